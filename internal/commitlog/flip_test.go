package commitlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/segment"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// TestEveryByteFlipped spoils every byte of every file in turn, and opens the log as after a clean stop and as after a
// crash. Whatever the byte, each record of the other batches is served and found by its time; those of the spoiled
// batch are right or missing. A short run spoils every fifth byte.
func TestEveryByteFlipped(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	w := unsealedWorld(t)
	must(t, w.close())
	for name, content := range files(t, w.mem, worldDir) {
		kind := filepath.Ext(name)
		if !slices.Contains([]string{".log", ".index", ".timeindex"}, kind) {
			continue
		}
		for at := 0; at < len(content); at += step {
			for _, clean := range []bool{true, false} {
				for _, bit := range []byte{1, 0x40} {
					if err := w.withFlip(t, name, at, bit, clean); err != nil {
						t.Fatalf("%s byte %d xor %d, clean %v: %v", name, at, bit, clean, err)
					}
				}
			}
		}
	}
}

// withFlip checks a copy of the world in which one byte is spoiled.
func (w *world) withFlip(t *testing.T, name string, at int, bit byte, clean bool) error {
	after := w.crash(rand.New(rand.NewPCG(1, 1)), 1)
	after.clean, after.point = clean, 0
	data, err := vfs.ReadFile(after.mem, worldDir+"/"+name)
	if err != nil {
		return err
	}
	data[at] ^= bit
	if err := vfs.WriteFileAtomic(after.mem, worldDir+"/"+name, data); err != nil {
		return err
	}
	base, kind, _ := splitName(name)
	hurt := int64(-1)
	if kind == segment.LogSuffix { // all batches have the same size
		hurt = base + int64(at/(len(data)/3))
		if hurt == 8 && at%(len(data)/3) < 8 {
			return nil // the base offset of the very last batch: nothing behind it tells that it is wrong
		}
	}
	if err := after.open(); err != nil {
		return err
	}
	defer func() { must(t, after.log.Abandon()) }()
	return after.checkBut(hurt)
}

// checkBut checks that all records but perhaps one are served and found.
func (w *world) checkBut(hurt int64) error {
	got, err := w.readAround()
	if err != nil {
		return err
	}
	without := slices.DeleteFunc(slices.Clone(w.acked), func(r row) bool { return r.offset == hurt })
	if !slices.Equal(got, w.acked) && !slices.Equal(got, without) {
		return fmt.Errorf("records:\n got  %v\n want %v", got, w.acked)
	}
	if err := w.checkTimes(got); err != nil {
		return err
	}
	f, ok, err := w.log.MaxTimestamp(w.log.EndOffset())
	if last := got[len(got)-1]; err != nil || !ok || f.Offset != last.offset || f.Timestamp != last.ts {
		return fmt.Errorf("largest timestamp: %v %+v %v, want that of %+v", ok, f, err, last)
	}
	return nil
}

// TestFirstUseFailures lets each I/O of a first use fail: of a log with damage in the middle, an offset index that is
// missing, a time index that was cut and a transaction index that lost an entry. Without the failure the same log
// answers right afterwards.
func TestFirstUseFailures(t *testing.T) {
	w := threeSegments(t)
	for i := range int32(2) {
		must(t, abortOne(w.log, 5, i))
	}
	must(t, w.log.Roll())
	must(t, w.close())
	must(t, w.mem.Remove(worldDir+"/"+SealsFile))
	must(t, w.mem.Remove(worldDir+"/"+segment.Name(0, segment.IndexSuffix)))
	must(t, w.spoil(command{"spoil", map[string]string{
		"file": segment.Name(3, segment.LogSuffix), "at": "130", "xor": "4",
	}}))
	must(t, w.spoil(command{"spoil", map[string]string{"file": segment.Name(3, segment.TimeSuffix), "size": "12"}}))
	for name, content := range files(t, w.mem, worldDir) {
		if strings.HasSuffix(name, segment.TxnSuffix) {
			must(t, w.spoil(command{"spoil", map[string]string{"file": name, "size": fmt.Sprint(len(content) - 34)}}))
		}
	}
	var after *world
	fresh := func() vfs.FS {
		after = w.crash(rand.New(rand.NewPCG(1, 1)), 1)
		after.clean = true
		return after.mem
	}
	runs := 0
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		runs++
		after.fs = fsys
		err := after.open()
		if err == nil {
			err = after.useAll()
			must(t, after.log.Abandon())
		}
		after.fs, after.clean = after.mem, true
		must(t, after.open())
		if cerr := after.useAll(); cerr != nil {
			t.Fatalf("run %d, after %v: %v", runs, err, cerr)
		}
		must(t, after.log.Abandon())
		return err
	})
	if runs < 50 {
		t.Errorf("only %d runs", runs)
	}
}

// useAll reads and looks up everything in both isolation levels, and scrubs.
func (w *world) useAll() error {
	s, err := w.log.Read(5, ReadOptions{MaxBytes: 1 << 20, UpTo: w.log.EndOffset(), Isolation: ReadCommitted})
	if err != nil {
		return err
	}
	s.Release()
	s, err = w.log.Read(9, ReadOptions{MaxBytes: 1 << 20, UpTo: w.log.EndOffset(), Isolation: ReadCommitted})
	if err != nil {
		return err
	}
	s.Release()
	if len(s.AbortedTxns) != 2 {
		return fmt.Errorf("%d aborted transactions, not 2", len(s.AbortedTxns))
	}
	if _, err := w.log.Read(4, ReadOptions{MaxBytes: 1, UpTo: 9}); !errors.Is(err, ErrCorruptMessage) {
		if err == nil {
			return errors.New("the damaged batch was served")
		}
		return err
	}
	if f, ok, err := w.log.OffsetForTime(t0+1020, w.log.EndOffset(), nil); err != nil {
		return err
	} else if !ok || f.Offset != 5 {
		return fmt.Errorf("look-up in the segment whose time index was cut: %v %+v", ok, f)
	}
	for done := false; !done; {
		if _, done, err = w.log.Scrub(1 << 20); err != nil {
			return err
		}
	}
	return nil
}
