package inspect

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

func dirOf(name string) string { return filepath.Dir(name) }

// eachHeader calls a function for the batches of a partition from the segment that holds an offset on; entry reads the
// current one. Damage ends a segment. The function may end the walk with errStop.
func eachHeader(fsys vfs.FS, t Target, from int64,
	each func(h record.Header, entry func() ([]byte, error)) error) error {
	f, err := readFolder(fsys, t.Dir)
	if err != nil {
		return err
	}
	for i, base := range f.logs {
		if next := f.nextBase(i); next >= 0 && next <= from {
			continue
		}
		err := headersOf(fsys, filepath.Join(t.Dir, segment.Name(base, segment.LogSuffix)), each)
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errStop = errors.New("enough")

func headersOf(fsys vfs.FS, name string, each func(h record.Header, entry func() ([]byte, error)) error) error {
	size, err := fileSize(fsys, name)
	if err != nil || size <= 0 {
		return err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := record.NewScanner(f, 0, size)
	sc.MaxBatchBytes = maxDecoded
	for sc.Next() {
		if err := each(sc.Header(), sc.Batch); err != nil {
			return err
		}
	}
	if isDamage(sc.Err()) {
		return nil
	}
	return sc.Err()
}

// replayTo is the state of producers at an offset, replayed from the snapshot at start, or from nothing at 0.
func replayTo(fsys vfs.FS, t Target, start, end int64) (*replay, error) {
	_, err := readSnapshot(fsys, t.Dir, start)
	r, newErr := newReplay(fsys, t, start, err == nil)
	if newErr != nil {
		return nil, newErr
	}
	err = eachHeader(fsys, t, start, func(h record.Header, entry func() ([]byte, error)) error {
		if h.BaseOffset >= end {
			return errStop
		}
		if h.LastOffset < start || h.Magic < 2 {
			return nil
		}
		var data []byte
		if h.IsControl() {
			var err error
			if data, err = entry(); err != nil {
				return err
			}
		}
		_, _, err := r.batch(h, data)
		return err
	})
	r.m.SetEndOffset(end)
	return r, err
}

// writeSnapshot writes the snapshot at an offset anew; one that lies behind the end of the log goes.
func writeSnapshot(fsys vfs.FS, t Target, start, at int64) error {
	end := int64(0)
	err := eachHeader(fsys, t, at, func(h record.Header, _ func() ([]byte, error)) error {
		end = h.NextOffset()
		return nil
	})
	if err != nil {
		return err
	}
	name := filepath.Join(t.Dir, producerstate.SnapshotName(at))
	if at > end && end > 0 {
		if err := fsys.Remove(name); err != nil && !isAbsent(err) {
			return err
		}
		return fsys.SyncDir(t.Dir)
	}
	r, err := replayTo(fsys, t, start, at)
	if err != nil {
		return fmt.Errorf("replay producers up to offset %d: %w", at, err)
	}
	return vfs.WriteFileAtomic(fsys, name, producerstate.EncodeSnapshot(r.m.ActiveProducers()))
}

// planEpochs writes the leader epochs anew from the batches.
func (p *partitionPlan) planEpochs() {
	if p.epochs || p.target.Segments != nil || !p.has(-1, EpochsMissing, EpochsWrong) {
		return
	}
	name := p.path(checkpoint.LeaderEpochFile)
	p.steps = append(p.steps, step{
		action: Action{File: name, What: "write the leader epochs anew from the batches", WriteBytes: 4096},
		do:     func(fsys vfs.FS) error { return writeEpochs(fsys, p.target) },
	})
	p.answer(func(f Finding) bool { return f.Kind == EpochsMissing || f.Kind == EpochsWrong })
}

func writeEpochs(fsys vfs.FS, t Target) error {
	name := filepath.Join(t.Dir, checkpoint.LeaderEpochFile)
	f, err := readFolder(fsys, t.Dir)
	if err != nil {
		return err
	}
	var entries []checkpoint.EpochEntry
	end := int64(-1)
	err = eachHeader(fsys, t, 0, func(h record.Header, _ func() ([]byte, error)) error {
		if n := len(entries); h.LeaderEpoch >= 0 && (n == 0 || entries[n-1].Epoch < h.LeaderEpoch) {
			start := h.BaseOffset
			if end < 0 { // the first of the log: nobody knows another epoch of what compaction took out before it
				start = min(start, f.logs[0])
			}
			entries = append(entries, checkpoint.EpochEntry{Epoch: h.LeaderEpoch, StartOffset: start})
		}
		end = h.NextOffset()
		return nil
	})
	if err != nil {
		return err
	}
	if last, ok := emptyEpoch(fsys, name, max(end, 0)); ok &&
		(len(entries) == 0 || last.Epoch > entries[len(entries)-1].Epoch) {
		entries = append(entries, last)
	}
	epochs := checkpoint.NewLeaderEpochs(fsys, name, nil)
	for _, e := range entries {
		if _, err := epochs.Assign(e.Epoch, e.StartOffset); err != nil {
			return err
		}
	}
	if len(entries) == 0 {
		epochs.Clear()
	}
	return epochs.Flush()
}

// emptyEpoch finds the epoch in a checkpoint in which nothing was appended yet: it begins at the end of the log. Of a
// checkpoint that is damaged elsewhere its line is taken too.
func emptyEpoch(fsys vfs.FS, name string, end int64) (e checkpoint.EpochEntry, ok bool) {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil || len(data) > 1<<20 {
		return e, false
	}
	for line := range strings.Lines(string(data)) {
		var found checkpoint.EpochEntry
		fields := strings.Fields(line)
		if len(fields) != 2 || !strings.HasSuffix(line, "\n") {
			continue
		}
		epoch, err1 := strconv.ParseInt(fields[0], 10, 32)
		start, err2 := strconv.ParseInt(fields[1], 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || start != end {
			continue
		}
		if found.Epoch, found.StartOffset = int32(epoch), start; !ok || found.Epoch > e.Epoch {
			e, ok = found, true
		}
	}
	return e, ok
}
