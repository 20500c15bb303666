package damage

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/broker"
	"tidemark/internal/checkpoint"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/test/ledger"
	"tidemark/vfs"
)

// topic is the name under which every case's folder is served.
const topic = "damaged"

// template makes a data directory with the case's topic in it, empty, and stops cleanly.
func template(t *testing.T, c golden.Case) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "template")
	b := start(t, dir, slog.DiscardHandler)
	var configs []string
	for _, key := range slices.Sorted(maps.Keys(c.Info.TopicConfig)) {
		configs = append(configs, key, c.Info.TopicConfig[key])
	}
	ledger.Dial(t, b.Addresses()[0]).CreateTopic(t, topic, 1, configs...)
	stop(t, b)
	return dir
}

// start starts a broker over dir, or returns nil when it does not start.
func start(t *testing.T, dir string, log slog.Handler) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Options{Logger: slog.New(log), Properties: map[string]string{
		"log.dirs": dir, "listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
	if err != nil {
		t.Logf("start: %v", err)
		return nil
	}
	return b
}

func stop(t *testing.T, b *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// place copies the template and puts the case's folder into it, as it was given to Kafka: under the recovery point
// and with or without the clean marker.
func place(t *testing.T, template string, c golden.Case) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, topic+"-0")
	id := readFile(t, filepath.Join(folder, checkpoint.PartitionMetadataFile))
	must(t, os.RemoveAll(folder))
	must(t, os.Rename(c.CopyDir(t, golden.Before), folder))
	must(t, os.WriteFile(filepath.Join(folder, checkpoint.PartitionMetadataFile), id, 0o644))
	points := checkpoint.Offsets{}
	if p := *c.Info.RecoveryPoint; p > 0 {
		points[checkpoint.TopicPartition{Topic: topic}] = p
	}
	must(t, checkpoint.WriteOffsets(vfs.OS(), filepath.Join(dir, checkpoint.RecoveryPointFile), points))
	if !*c.Info.CleanShutdown {
		must(t, os.Remove(filepath.Join(dir, checkpoint.CleanShutdownFile)))
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reader reads a partition past its damaged places.
type reader struct {
	t      *testing.T
	client *ledger.Client
	bad    []string // what no server may do
}

// read reads from the start to the end, and gives the records of intact batches by offset. A fetch that ends before
// damage, or answers that there is some, is asked again one offset further on.
func (r *reader) read(isolation int8) map[int64]ledger.Record {
	out := make(map[int64]ledger.Record)
	aborted := make(map[int64][]int64)
	first := r.client.FetchOne(r.t, topic, 0, 1<<40, 1<<20, isolation)
	if first.ErrorCode != kerr.OffsetOutOfRange.Code {
		r.bad = append(r.bad, fmt.Sprintf("fetch far behind the end: error %d", first.ErrorCode))
	}
	for offset := int64(0); ; {
		got := r.client.FetchOne(r.t, topic, 0, offset, 1<<20, isolation)
		switch got.ErrorCode {
		case 0:
		case kerr.CorruptMessage.Code:
			offset++
			continue
		default:
			r.bad = append(r.bad, fmt.Sprintf("fetch at %d: error %d", offset, got.ErrorCode))
			return out
		}
		end := got.HighWatermark
		if isolation == 1 {
			end = got.LastStableOffset
		}
		if offset >= end {
			return out
		}
		next := r.batches(got, offset, isolation, aborted, out)
		if next <= offset {
			next = offset + 1
			r.bad = append(r.bad, fmt.Sprintf("fetch at %d, below the end %d: nothing and no error", offset, end))
		}
		offset = next
	}
}

// batches takes the whole batches of an answer and returns the offset behind them.
func (r *reader) batches(got kmsg.FetchResponseTopicPartition, offset int64, isolation int8,
	aborted map[int64][]int64, out map[int64]ledger.Record) (next int64) {
	for _, a := range got.AbortedTransactions {
		if !slices.Contains(aborted[a.ProducerID], a.FirstOffset) {
			aborted[a.ProducerID] = append(aborted[a.ProducerID], a.FirstOffset)
		}
	}
	for rest := got.RecordBatches; len(rest) > 0; {
		h, entry, after, err := record.NextEntry(rest)
		if err != nil {
			return next // cut by the size limit, or no batch: then the next fetch is at it
		}
		rest = after
		if !record.ValidCRC(entry) {
			r.bad = append(r.bad, fmt.Sprintf("a damaged batch was served, at offset %d", h.BaseOffset))
			return next
		}
		next = h.NextOffset()
		if h.LastOffset < offset || isolation == 1 && r.hidden(h, entry, aborted) {
			continue
		}
		for _, rec := range decode(r.t, entry) {
			if rec.Offset >= offset && !rec.Control {
				out[rec.Offset] = rec
			}
		}
	}
	return next
}

// hidden does what a read_committed consumer does: data of a producer is dropped from the first offset of an aborted
// transaction on, up to its abort marker.
func (r *reader) hidden(h record.Header, entry []byte, aborted map[int64][]int64) bool {
	firsts := aborted[h.ProducerID]
	if h.IsControl() {
		if isAbort(batch{records: decode(r.t, entry)}) {
			aborted[h.ProducerID] = slices.DeleteFunc(firsts, func(o int64) bool { return o <= h.BaseOffset })
		}
		return true
	}
	return h.IsTransactional() && slices.ContainsFunc(firsts, func(o int64) bool { return o <= h.LastOffset })
}

// tidemarkVerdict serves the folder placed in dir and judges the answers, and once more after an append and a restart.
func tidemarkVerdict(t *testing.T, dir string, tr *truth) verdict {
	t.Helper()
	before := folderBytes(t, filepath.Join(dir, topic+"-0"))
	var log strings.Builder
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})
	b := start(t, dir, handler)
	if b == nil {
		return refused
	}
	first := judge(t, b, tr)
	appended := appendOne(t, b, tr)
	stop(t, b)
	first.readable = join(first.readable, destroyed(before, folderBytes(t, filepath.Join(dir, topic+"-0"))))
	if b = start(t, dir, handler); b == nil {
		first.starts = "not again"
		return first
	}
	defer stop(t, b)
	second := judge(t, b, tr)
	first.readable = join(first.readable, again(first.readable, second.readable), appended, readable(t, b, tr))
	first.lookups = join(first.lookups, again(first.lookups, second.lookups))
	first.committed = join(first.committed, again(first.committed, second.committed))
	if !first.yes() {
		t.Logf("logged:\n%s", log.String())
	}
	return first
}

func join(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "; ")
}

// again says what the second start changed.
func again(first, second string) string {
	if first == second || second == "" {
		return ""
	}
	return "after a restart " + second
}

// judge compares all answers with the truth.
func judge(t *testing.T, b *broker.Broker, tr *truth) verdict {
	t.Helper()
	c := ledger.Dial(t, b.Addresses()[0])
	c.WaitLed(t, topic, 1)
	var v verdict
	r := &reader{t: t, client: c}
	all := r.read(0)
	lost, wrong := 0, 0
	for _, want := range tr.book.Read(false) {
		got, ok := all[want.Offset]
		if !ok {
			lost++
		} else if got.Timestamp != want.Timestamp || string(got.Key) != string(want.Key) ||
			string(got.Value) != string(want.Value) {
			wrong++
		}
	}
	n := len(tr.book.Read(false))
	v.readable = join(share("lost", lost, n), share("changed", wrong, n), strings.Join(r.bad, ", "))
	r.bad = nil
	committed := make(map[int64]bool)
	for offset := range r.read(1) {
		committed[offset] = true
	}
	v.committed = join(judgeCommitted(tr, committed), strings.Join(r.bad, ", "))
	v.lookups = judgeLookups(t, c, tr)
	return v
}

// judgeLookups asks for every timestamp of every record of the undamaged log, and those beside them.
func judgeLookups(t *testing.T, c *ledger.Client, tr *truth) string {
	t.Helper()
	wrong, example := 0, ""
	times := tr.times()
	for _, isolation := range []int8{0, 1} {
		for _, ts := range times {
			got, code := c.ForTime(t, topic, 0, ts, isolation)
			if code == 0 && tr.answers(ts, isolation, got) {
				continue
			}
			if wrong++; example == "" {
				example = fmt.Sprintf("time %d, isolation %d: %+v (error %d), want %+v below %d", ts, isolation, got, code,
					tr.book.ForTime(ts), tr.stable)
			}
		}
	}
	if wrong > 0 {
		t.Logf("look-ups: %s", example)
	}
	return share("wrong", wrong, 2*len(times))
}

func (tr *truth) times() []int64 {
	out := []int64{-3, 0}
	for _, r := range tr.book.Records {
		out = append(out, r.Timestamp-1, r.Timestamp, r.Timestamp+1)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// marker is the value of the record that is appended to every damaged log.
const marker = "appended behind the damage"

// appendOne appends a record, which must land behind everything intact.
func appendOne(t *testing.T, b *broker.Broker, tr *truth) string {
	t.Helper()
	batch := ledger.Batch{ProducerID: -1, Records: []ledger.Record{{Timestamp: 1, Value: []byte(marker)}}}
	encoded, err := batch.Encode()
	must(t, err)
	got, err := ledger.Dial(t, b.Addresses()[0]).Produce(topic, 0, encoded)
	if err != nil || got.Err() != nil {
		return fmt.Sprintf("append refused: %v %v", err, got.Err())
	}
	if got.Base < tr.book.End {
		return fmt.Sprintf("append at offset %d, which is taken", got.Base)
	}
	return ""
}

// readable tells whether the appended record can be read.
func readable(t *testing.T, b *broker.Broker, tr *truth) string {
	t.Helper()
	r := &reader{t: t, client: ledger.Dial(t, b.Addresses()[0])}
	for offset, rec := range r.read(0) {
		if offset >= tr.book.End && string(rec.Value) == marker {
			return ""
		}
	}
	return "appended record lost"
}

// folderBytes reads the files of a folder.
func folderBytes(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	out := make(map[string][]byte)
	for _, e := range entries {
		out[e.Name()] = readFile(t, filepath.Join(dir, e.Name()))
	}
	return out
}

// destroyed tells which logs' bytes are nowhere any more, but for zeros at their end and for what a completed
// replacement replaced.
func destroyed(before, after map[string][]byte) string {
	var gone []string
	for name, was := range before {
		if strings.HasSuffix(name, ".swap") {
			return ""
		}
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		now := after[name]
		same := 0
		for same < min(len(was), len(now)) && was[same] == now[same] {
			same++
		}
		rest := strings.TrimRight(string(was[same:]), "\x00")
		found := rest == ""
		for _, content := range after {
			found = found || strings.Contains(string(content), rest)
		}
		if !found {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return ""
	}
	slices.Sort(gone)
	return "bytes destroyed of " + strings.Join(gone, ", ")
}
