package txn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tidemark/internal/checkpoint"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func sorted(tps []checkpoint.TopicPartition) []checkpoint.TopicPartition {
	out := slices.Clone(tps)
	slices.SortFunc(out, func(a, b checkpoint.TopicPartition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

// world is a machine with its log, its partitions' markers left to the script.
type world struct {
	m       *Machine
	log     []Record
	nowMs   int64
	version int16
	nextID  int64
	held    []*Write // appended, not yet committed
	hold    bool
	lose    bool // the next write cannot be appended
	out     strings.Builder
}

func newWorld() *world {
	w := &world{version: 2, nextID: 1000, nowMs: 1_000_000}
	w.m = New(w.options())
	return w
}

func (w *world) options() Options {
	return Options{MaxTimeoutMs: 900_000, ExpirationMs: 604_800_000, Version: func() int16 { return w.version },
		NewProducerID: func() (int64, error) {
			if w.nextID < 0 {
				return 0, errors.New("no producer ids")
			}
			w.nextID++
			return w.nextID - 1, nil
		}}
}

func (w *world) printf(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// write appends what a command wants, and commits it unless the script holds writes back.
func (w *world) write(write *Write) {
	if write == nil {
		return
	}
	if w.lose {
		w.lose = false
		w.printf("lost")
		return
	}
	for _, r := range write.Records {
		w.log = append(w.log, r)
		w.printf("append %s", showRecord(r))
	}
	w.m.Apply(write)
	if w.hold {
		w.held = append(w.held, write)
		return
	}
	w.committed(write)
}

func (w *world) committed(write *Write) {
	for _, m := range w.m.Committed(write, w.nowMs) {
		w.printf("%s", showMarkers(m))
		if len(m.Partitions) == 0 {
			w.write(w.m.Complete(m.ID))
		}
	}
}

func showMarkers(m Markers) string {
	kind := "abort"
	if m.Commit {
		kind = "commit"
	}
	return fmt.Sprintf("markers %s %s %d/%d v%d %s", m.ID, kind, m.Producer.ID, m.Producer.Epoch, m.Version,
		showPartitions(m.Partitions))
}

func showPartitions(tps []checkpoint.TopicPartition) string {
	names := make([]string, len(tps))
	for i, tp := range tps {
		names[i] = tp.String()
	}
	return "[" + strings.Join(names, " ") + "]"
}

func showRecord(r Record) string {
	id, err := DecodeKey(r.Key)
	if err != nil {
		return err.Error()
	}
	if r.Value == nil {
		return id + " tombstone"
	}
	v, err := DecodeValue(r.Value)
	if err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("%s v%d %s %d/%d", id, r.Value[1], v.State, v.ID, v.Epoch)
	if v.PreviousProducerID != NoProducerID {
		s += fmt.Sprintf(" previous=%d", v.PreviousProducerID)
	}
	if v.NextProducerID != NoProducerID {
		s += fmt.Sprintf(" next=%d", v.NextProducerID)
	}
	return s + fmt.Sprintf(" timeout=%d update=%d start=%d client=%d %s", v.TimeoutMs, v.LastUpdateMs, v.StartMs,
		v.ClientVersion, showPartitions(v.Partitions))
}

func (w *world) answer(err error, format string, args ...any) {
	if err != nil {
		w.printf("error: %v", err)
		return
	}
	w.printf(format, args...)
}

// request is a line of a script taken apart.
type request struct {
	id         string
	producer   Producer
	partitions []checkpoint.TopicPartition
	version    int16
	timeoutMs  int32
}

func parseRequest(t *testing.T, d *datadriven.TestData) request {
	r := request{producer: NoProducer, version: 2, timeoutMs: 60_000}
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		r.id = d.CmdArgs[0].Key
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "p":
			if _, err := fmt.Sscanf(a.Vals[0], "%d/%d", &r.producer.ID, &r.producer.Epoch); err != nil {
				t.Fatal(err)
			}
		case "v":
			a.Scan(t, 0, &r.version)
		case "timeout":
			a.Scan(t, 0, &r.timeoutMs)
		case "on":
			for _, v := range a.Vals {
				r.partitions = append(r.partitions, parsePartition(t, v))
			}
		}
	}
	return r
}

func parsePartition(t *testing.T, s string) checkpoint.TopicPartition {
	i := strings.LastIndex(s, "-")
	n, err := strconv.Atoi(s[i+1:])
	if err != nil {
		t.Fatal(err)
	}
	return checkpoint.TopicPartition{Topic: s[:i], Partition: int32(n)}
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	w.out.Reset()
	if !w.request(parseRequest(t, d), d) && !w.control(t, d) {
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	return w.out.String()
}

// request runs what clients ask.
func (w *world) request(r request, d *datadriven.TestData) bool {
	switch d.Cmd {
	case "init":
		p, write, err := w.m.Init(r.id, r.timeoutMs, r.producer, w.nowMs)
		w.write(write)
		w.answer(err, "producer %d/%d", p.ID, p.Epoch)
	case "add":
		write, err := w.m.Add(r.id, r.producer, r.partitions, r.version, w.nowMs)
		w.write(write)
		w.answer(err, "ok")
	case "verify":
		errs, err := w.m.Verify(r.id, r.producer, r.partitions)
		w.answer(err, "%v", errs)
	case "commit", "abort":
		p, write, err := w.m.End(r.id, r.producer, d.Cmd == "commit", r.version, w.nowMs)
		w.write(write)
		w.answer(err, "producer %d/%d", p.ID, p.Epoch)
	case "describe":
		x, err := w.m.Describe(r.id)
		w.answer(err, "%s %d/%d timeout=%d start=%d %s", x.State, x.ID, x.Epoch, x.TimeoutMs, x.StartMs,
			showPartitions(x.Partitions))
	default:
		return false
	}
	return true
}

// control runs what happens around the machine.
func (w *world) control(t *testing.T, d *datadriven.TestData) bool {
	switch d.Cmd {
	case "marked":
		r := parseRequest(t, d)
		for _, tp := range r.partitions {
			if w.m.Marked(r.id, r.producer, tp) {
				w.write(w.m.Complete(r.id))
			}
		}
	case "now":
		var plus int64
		d.ScanArgs(t, "plus", &plus)
		w.nowMs += plus
	case "expire":
		for i, write := range w.m.Expire(w.nowMs, 100) {
			w.printf("batch %d", i)
			w.write(write)
		}
	case "timeouts":
		for _, id := range slices.Sorted(slices.Values(w.m.Ongoing())) {
			write, err := w.m.AbortTimedOut(id, w.nowMs)
			w.write(write)
			if err != nil {
				w.printf("error: %v", err)
			}
		}
	case "version":
		d.ScanArgs(t, "is", &w.version)
	case "epoch": // sets the epoch of an id, which would take 32 thousand transactions
		r := parseRequest(t, d)
		w.m.byID[r.id].Epoch = r.producer.Epoch
	case "ids":
		d.ScanArgs(t, "next", &w.nextID)
	case "hold":
		w.hold = true
	case "release":
		w.hold = false
		for _, write := range w.held {
			w.committed(write)
		}
		w.held = nil
	case "lose":
		w.lose = true
	case "restart":
		w.restart(t)
	default:
		return false
	}
	return true
}

// restart loads a new machine from the log.
func (w *world) restart(t *testing.T) {
	w.m, w.held, w.hold = New(w.options()), nil, false
	for _, r := range w.log {
		if err := w.m.Replay(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range w.m.Loaded(w.nowMs) {
		w.printf("%s", showMarkers(m))
	}
}

// TestTranscripts runs conversations with the machine.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, w.run)
	})
}
