package commitlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/record"
	"tidemark/vfs"
)

// TestAgainstModel runs random operations under random settings and compares the log with a slice of records after
// each: what is read, and every look-up by time.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(drawConfig(t))
		w.marked = rapid.SampledFrom([]int32{1, 0}).Draw(t, "marked")
		check := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		check(w.open())
		defer func() { _ = w.log.Abandon() }()
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) { check(drawAppend(t, w)) },
			"roll":   func(*rapid.T) { check(w.log.Roll()) },
			"flush":  func(*rapid.T) { check(w.log.Flush()) },
			"truncate": func(t *rapid.T) {
				to := rapid.Int64Range(w.log.StartOffset(), w.log.EndOffset()).Draw(t, "to")
				check(w.log.TruncateTo(to))
				w.truncated(to)
				w.log.UpdateHighWatermark(w.log.EndOffset())
			},
			"startOffset": func(t *rapid.T) {
				check(w.log.SetStartOffset(rapid.Int64Range(0, w.log.EndOffset()).Draw(t, "start")))
			},
			"retention": func(*rapid.T) {
				_, err := w.log.DeleteOldSegments(w.clock())
				check(err)
			},
			"tick": func(*rapid.T) { w.tick() },
			"hold": func(t *rapid.T) {
				check(w.keepSlice(rapid.Int64Range(w.log.StartOffset(), w.log.EndOffset()).Draw(t, "at")))
			},
			"slices": func(*rapid.T) { check(w.checkSlices()) },
			"reopen": func(*rapid.T) {
				check(w.checkSlices())
				check(w.close())
				w.seq = make(map[int64]int32)
				check(w.open())
			},
			"kill": func(*rapid.T) {
				check(w.checkSlices())
				w.point = 0
				w.kill()
				check(w.open())
			},
			"crash": func(t *rapid.T) {
				check(w.checkSlices())
				durable := w.log.RecoveryPoint()
				_ = w.log.Abandon()
				w.start, w.point = w.log.StartOffset(), durable
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				after := w.crash(rng, 0.5)
				for w.beyondModel(after) {
					after = w.crash(rng, 0.5)
				}
				*w = *after
				check(w.open())
				if lost := w.visible(w.log.EndOffset(), durable); len(lost) > 0 {
					t.Fatalf("lost records that were durable: %v", lost)
				}
				w.truncated(w.log.EndOffset())
				w.seq = make(map[int64]int32)
			},
			"": func(*rapid.T) { check(w.check()) },
		})
	})
}

// beyondModel says that a power loss left a whole batch behind a lost one, which is damage that stays: the model does
// not read around it, as TestCrashesAtEverySync does. Or that a whole batch is left but for its base offset, which no
// checksum covers: behind other damage it is another batch then, and nobody can tell.
func (w *world) beyondModel(after *world) bool {
	names, err := w.mem.ReadDir(worldDir)
	if err != nil {
		panic(err)
	}
	for _, e := range names {
		name := filepath.Join(worldDir, e.Name())
		kept, err := vfs.ReadFile(after.mem, name)
		if err != nil || filepath.Ext(name) != ".log" {
			continue
		}
		written, err := vfs.ReadFile(w.mem, name)
		if err != nil {
			panic(err)
		}
		lost := false
		for pos := 0; ; {
			_, batch, _, err := record.NextEntry(written[pos:])
			if err != nil || pos+len(batch) > len(kept) {
				break
			}
			there := kept[pos : pos+len(batch)]
			if bytes.Equal(there[8:], batch[8:]) && (lost || !bytes.Equal(there, batch)) {
				return true
			}
			lost = lost || !bytes.Equal(there, batch)
			pos += len(batch)
		}
	}
	return false
}

func drawConfig(t *rapid.T) Config {
	cfg := smallConfig()
	cfg.SegmentBytes = rapid.Int32Range(600, 3000).Draw(t, "segment.bytes")
	cfg.SegmentIndexBytes = rapid.Int32Range(24, 400).Draw(t, "segment.index.bytes")
	cfg.IndexIntervalBytes = rapid.Int32Range(0, 600).Draw(t, "index.interval.bytes")
	cfg.SegmentMs = rapid.Int64Range(100, 10000).Draw(t, "segment.ms")
	cfg.Preallocate = rapid.Bool().Draw(t, "preallocate")
	cfg.CompressionType = CompressionType(rapid.Int8Range(-1, 4).Draw(t, "compression.type"))
	return cfg
}

func drawAppend(t *rapid.T, w *world) error {
	n := rapid.IntRange(1, 4).Draw(t, "records")
	base := rapid.Int64Range(0, 20000).Draw(t, "ts")
	rows := make([]row, n)
	for i := range rows {
		size := rapid.IntRange(0, 60).Draw(t, "size")
		rows[i] = row{
			ts:    base + rapid.Int64Range(-50, 50).Draw(t, "delta"),
			value: fmt.Sprint(len(w.acked), ".", i, strings.Repeat("x", size)),
		}
		if rapid.IntRange(0, 9).Draw(t, "no timestamp") == 0 {
			rows[i].ts = record.NoTimestamp
		}
	}
	_, err := w.append(record.Codec(rapid.Int8Range(0, 4).Draw(t, "codec")), -1, rows)
	return err
}
