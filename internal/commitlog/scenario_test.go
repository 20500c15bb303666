package commitlog

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"tidemark/record"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// TestScenarios runs the scripts in testdata/scenarios. The first line of a script is "open", with topic configs as
// arguments; each command prints what it did.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		w := newWorld(smallConfig())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(command{d.Cmd, argsOf(d)})
			if err != nil {
				out += "error: " + err.Error() + "\n"
			}
			return out
		})
		if w.log != nil {
			must(t, w.log.Abandon())
		}
	})
}

// command is one line of a script.
type command struct {
	name string
	args map[string]string
}

func argsOf(d *datadriven.TestData) map[string]string {
	args := make(map[string]string)
	for _, a := range d.CmdArgs {
		args[a.Key] = strings.Join(a.Vals, ",")
	}
	return args
}

func (c command) num(key string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(c.args[key], 10, 64); err == nil {
		return n
	}
	return otherwise
}

// run performs a command and says what came of it.
func (w *world) run(c command) (string, error) {
	switch c.name {
	case "open":
		return w.runOpen(c)
	case "close":
		return "", w.close()
	case "kill":
		w.kill()
		return "", nil
	case "append":
		return w.runAppend(c)
	case "read":
		return w.runRead(c)
	case "time":
		return w.runTime(c)
	case "max-timestamp":
		f, ok, err := w.log.MaxTimestamp(w.log.EndOffset())
		return fmt.Sprintf("%v offset %d timestamp %d\n", ok, f.Offset, f.Timestamp), err
	case "check":
		return "", w.check()
	case "hold":
		return "", w.keepSlice(c.num("offset", 0))
	case "check-slices":
		return "", w.checkSlices()
	case "tick":
		w.tick()
		return "", nil
	case "dump":
		return w.dump()
	case "clock":
		w.nowMs = c.num("ms", w.nowMs)
		return "", nil
	}
	return w.runChange(c)
}

func (w *world) runChange(c command) (string, error) {
	switch c.name {
	case "roll":
		return "", w.log.Roll()
	case "flush":
		err := w.log.Flush()
		if err == nil {
			w.point = w.log.RecoveryPoint()
		}
		return "", err
	case "truncate":
		to := c.num("to", 0)
		if err := w.log.TruncateTo(to); err != nil {
			return "", err
		}
		w.truncated(to)
		w.point = min(w.point, to)
		return fmt.Sprintf("end %d\n", w.log.EndOffset()), nil
	case "start-offset":
		err := w.log.SetStartOffset(c.num("to", 0))
		return fmt.Sprintf("start %d\n", w.log.StartOffset()), err
	case "retention":
		cfg := w.log.Config()
		cfg.RetentionMs, cfg.RetentionBytes = c.num("ms", -1), c.num("bytes", -1)
		w.log.UpdateConfig(cfg)
		n, err := w.log.DeleteOldSegments(w.clock())
		return fmt.Sprintf("%d deleted, start %d\n", n, w.log.StartOffset()), err
	case "spoil":
		return "", w.spoil(c)
	}
	return "", fmt.Errorf("no command %q", c.name)
}

func (w *world) runOpen(c command) (string, error) {
	w.cfg.SegmentBytes = int32(c.num("segment.bytes", int64(w.cfg.SegmentBytes)))
	w.cfg.SegmentMs = c.num("segment.ms", w.cfg.SegmentMs)
	w.cfg.IndexIntervalBytes = int32(c.num("index.interval.bytes", int64(w.cfg.IndexIntervalBytes)))
	w.cfg.SegmentIndexBytes = int32(c.num("segment.index.bytes", int64(w.cfg.SegmentIndexBytes)))
	_, w.cfg.Preallocate = c.args["preallocate"]
	if err := w.open(); err != nil {
		return "", err
	}
	l := w.log
	return fmt.Sprintf("start %d end %d recovery point %d\n", l.StartOffset(), l.EndOffset(), l.RecoveryPoint()), nil
}

// runAppend appends one batch with a record for each of ts, times over, with step added to every timestamp.
func (w *world) runAppend(c command) (string, error) {
	codec, _ := record.ParseCodec(c.args["codec"])
	var out strings.Builder
	for i := range c.num("times", 1) {
		var rows []row
		for j, ts := range strings.Split(c.args["ts"], ",") {
			n, err := strconv.ParseInt(ts, 10, 64)
			if err != nil {
				return "", err
			}
			value := fmt.Sprintf("%d.%d", len(w.acked), j)
			value += strings.Repeat("x", max(int(c.num("size", 0))-len(value), 0))
			rows = append(rows, row{ts: n + i*c.num("step", 0), value: value})
		}
		info, err := w.append(codec, c.num("pid", -1), rows)
		if err != nil {
			return out.String(), err
		}
		fmt.Fprintf(&out, "%d-%d, %d bytes\n", info.BaseOffset, info.LastOffset, info.SizeBytes)
	}
	return out.String(), nil
}

func (w *world) runRead(c command) (string, error) {
	s, err := w.log.Read(c.num("offset", 0), ReadOptions{
		MaxBytes: int(c.num("bytes", 1<<20)), MinOneBatch: c.args["min-one"] != "no",
		UpTo: c.num("up-to", w.log.EndOffset()),
	})
	if err != nil {
		return "", err
	}
	defer s.Release()
	data, err := s.Bytes()
	return fmt.Sprintf("segment %d position %d: %d bytes\n", s.SegmentBase, s.Pos, len(data)), err
}

func (w *world) runTime(c command) (string, error) {
	var trace Trace
	f, ok, err := w.log.OffsetForTime(c.num("ts", 0), c.num("up-to", w.log.EndOffset()), &trace)
	if err != nil {
		return "", err
	}
	out := "none"
	if ok {
		out = fmt.Sprintf("offset %d timestamp %d", f.Offset, f.Timestamp)
	}
	return fmt.Sprintf("%s (%d segments considered, %d searched; from position %d of segment %d, "+
		"%d batches, %d decoded)\n", out, trace.SegmentsConsidered, trace.SegmentsSearched, trace.Position, trace.SegmentBase,
		trace.BatchesScanned, trace.BatchesDecoded), nil
}

// spoil changes a file behind the log's back: "file", and "at" with "xor", or "append" hex bytes, or "size".
func (w *world) spoil(c command) error {
	f, err := w.mem.OpenFile(worldDir+"/"+c.args["file"], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case c.args["xor"] != "":
		var b [1]byte
		at := c.num("at", 0)
		if _, err := f.ReadAt(b[:], at); err != nil {
			return err
		}
		b[0] ^= byte(c.num("xor", 0))
		_, err = f.WriteAt(b[:], at)
	case c.args["append"] != "":
		_, err = f.WriteAt([]byte(c.args["append"]), info.Size())
	case c.args["zeros"] != "":
		err = f.Truncate(info.Size() + c.num("zeros", 0))
	default:
		err = f.Truncate(c.num("size", 0))
	}
	return errors.Join(err, f.Close())
}

// script is what the tests with failures and crashes run: appends over several segments, with all that a log does.
var script = []command{
	{"open", nil},
	{"append", map[string]string{"ts": "100,90", "size": "40", "times": "12", "step": "10", "pid": "7"}},
	{"flush", nil},
	{"append", map[string]string{"ts": "300", "size": "60", "times": "6", "codec": "gzip"}},
	{"hold", map[string]string{"offset": "3"}},
	{"truncate", map[string]string{"to": "14"}},
	{"append", map[string]string{"ts": "500,700", "size": "50", "times": "8", "step": "3", "pid": "8"}},
	{"start-offset", map[string]string{"to": "9"}},
	{"retention", nil},
	{"check-slices", nil},
	{"tick", nil},
	{"close", nil},
	{"open", nil},
	{"append", map[string]string{"ts": "900", "size": "30", "times": "5", "step": "1", "pid": "9"}},
	{"roll", nil},
	{"append", map[string]string{"ts": "901", "size": "30", "times": "3"}},
	{"kill", nil},
	{"open", nil},
	{"check", nil},
	{"close", nil},
}

// scripts are the one above and those in testdata/scenarios that do no harm to files themselves.
func scripts(t *testing.T) map[string][]command {
	t.Helper()
	out := map[string][]command{"built-in": script}
	names, err := filepath.Glob("testdata/scenarios/*.txt")
	must(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		if !strings.Contains(string(text), "spoil") {
			out[filepath.Base(name)] = parseScript(string(text))
		}
	}
	if len(out) < 3 {
		t.Fatalf("only %d scripts", len(out))
	}
	return out
}

// parseScript takes the commands, the lines above "----", out of a scenario.
func parseScript(text string) []command {
	var out []command
	lines := strings.Split(text, "\n")
	for i := 1; i < len(lines); i++ {
		if lines[i] != "----" {
			continue
		}
		fields := strings.Fields(lines[i-1])
		c := command{fields[0], make(map[string]string)}
		for _, f := range fields[1:] {
			key, value, _ := strings.Cut(f, "=")
			c.args[key] = strings.Trim(value, "()")
		}
		out = append(out, c)
	}
	return out
}

// TestEachFailure lets every call of the file system fail once. What was acknowledged before must be there when the
// log is opened again. A short run takes every second script.
func TestEachFailure(t *testing.T) {
	all := scripts(t)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if testing.Short() && i%2 == 1 {
			continue
		}
		t.Run(name, func(t *testing.T) { failEverywhere(t, all[name], 0) })
	}
	t.Run("synced together", func(t *testing.T) { failEverywhere(t, script, 1) })
}

func failEverywhere(t *testing.T, commands []command, many int) {
	var w *world
	fresh := func() vfs.FS {
		w = newWorld(smallConfig())
		w.many = many
		return w.mem
	}
	runs := 0
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		runs++
		w.fs = fsys
		var failed command
		var err error
		for _, c := range commands {
			if _, err = w.run(c); err != nil && errors.Is(err, faultfs.ErrInjected) {
				failed = c
				break
			}
			err = nil // what the script expects to fail
		}
		w.abandon(failed)
		if cerr := w.reopened(failed.name); cerr != nil {
			return fmt.Errorf("after a failed %s (%v): %w", failed.name, err, cerr)
		}
		return err
	})
	if runs < 50 {
		t.Errorf("only %d runs", runs)
	}
}

// abandon ends a run that failed at a command.
func (w *world) abandon(failed command) {
	if failed.name == "truncate" { // it may have come half way
		w.truncated(failed.num("to", 0))
	}
	for i := range w.hold {
		w.hold[i].slice.Release()
	}
	w.hold = nil
	if w.log != nil {
		w.start = max(w.start, w.log.StartOffset())
		_ = w.log.Abandon()
	}
}

// reopened opens the log again on the disk without faults, as after a crash of the process, and checks it.
func (w *world) reopened(failed string) error {
	end := int64(0)
	if n := len(w.acked); n > 0 {
		end = w.acked[n-1].offset + 1
	}
	w.fs, w.clean, w.point = w.mem, false, 0
	if err := w.open(); err != nil {
		return err
	}
	defer func() { _ = w.log.Abandon() }()
	if got := w.log.EndOffset(); got < end && failed != "truncate" {
		return fmt.Errorf("the log ends at %d, acknowledged were %d", got, end)
	}
	return w.checkAcknowledged()
}

// checkAcknowledged checks that all that is in the model is in the log, and that the log answers for itself. Batches
// that were written but not acknowledged may be there too.
func (w *world) checkAcknowledged() error {
	got, err := readAll(w.log)
	if err != nil {
		return err
	}
	byOffset := make(map[int64]row)
	for _, r := range got {
		byOffset[r.offset] = r
	}
	for _, r := range w.visible(w.log.StartOffset(), w.log.EndOffset()) {
		if byOffset[r.offset] != r {
			return fmt.Errorf("offset %d: got %v, acknowledged %v", r.offset, byOffset[r.offset], r)
		}
	}
	return w.checkTimes(got)
}

// checkHoles checks a log after a power loss: what lies below the offset durable is there, more may be, and where
// bytes were lost that had others behind them, reads say so.
func (w *world) checkHoles(durable int64) error {
	got, err := w.readAround()
	if err != nil {
		return err
	}
	if err := w.compareHoles(got, durable); err != nil {
		return err
	}
	return w.checkTimes(got)
}

// compareHoles compares what was read with the model.
func (w *world) compareHoles(got []row, durable int64) error {
	want := w.visible(w.log.StartOffset(), w.log.EndOffset())
	i := 0
	for _, r := range want {
		if i < len(got) && got[i] == r {
			i++
		} else if r.offset < durable {
			return fmt.Errorf("offset %d was durable and is lost", r.offset)
		}
	}
	if i < len(got) {
		return fmt.Errorf("record %v was never written", got[i])
	}
	return nil
}

// readAround is readAll, but goes on behind damage.
func (w *world) readAround() ([]row, error) {
	var all []row
	for offset := w.log.StartOffset(); offset < w.log.EndOffset(); {
		got, err := readFrom(w.log, offset)
		all = append(all, got...)
		if len(got) > 0 {
			offset = got[len(got)-1].offset + 1
		}
		if err != nil && !errors.Is(err, ErrCorruptMessage) {
			return all, err
		}
		if err == nil {
			break
		}
		offset++
	}
	return all, nil
}

// TestCrashes cuts the power after every step, with several chances for what was not synced.
func TestCrashes(t *testing.T) {
	for name, commands := range scripts(t) {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				for _, keep := range []float64{0, 0.5, 1} {
					crashEverywhere(t, commands, seed, keep)
				}
			}
		})
	}
}

func crashEverywhere(t *testing.T, commands []command, seed uint64, keep float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(smallConfig())
	for i, c := range commands {
		_, _ = w.run(c) // TestScenarios looks at the outcome
		durable := w.log.RecoveryPoint()
		after := w.crash(rng, keep)
		after.start = w.log.StartOffset()
		if w.clean {
			after.clean = true
		}
		after.point = min(w.point, durable)
		if err := after.open(); err != nil {
			t.Fatalf("seed %d keep %g: open after step %d (%s): %v", seed, keep, i, c.name, err)
		}
		if lost := after.visible(after.log.EndOffset(), durable); len(lost) > 0 {
			t.Fatalf("seed %d keep %g: after step %d (%s) what was durable is lost: %v", seed, keep, i, c.name, lost)
		}
		after.truncated(after.log.EndOffset())
		if err := after.checkHoles(durable); err != nil {
			t.Fatalf("seed %d keep %g: after step %d (%s): %v", seed, keep, i, c.name, err)
		}
		must(t, after.close())
	}
}
