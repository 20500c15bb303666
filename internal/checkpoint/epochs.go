package checkpoint

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"tidemark/vfs"
)

// UndefinedEpoch and UndefinedOffset stand for "not known" in answers.
const (
	UndefinedEpoch  int32 = -1
	UndefinedOffset int64 = -1
)

// EpochEntry says that the leader of Epoch wrote from StartOffset on.
type EpochEntry struct {
	Epoch       int32
	StartOffset int64
}

// LeaderEpochs is the history of leader epochs of one partition, in memory and in
// its file (leader-epoch-checkpoint, lines of "epoch startOffset"). Epochs and
// start offsets increase from entry to entry.
//
// Assign writes the file before it returns. Note and the truncations change the
// memory only and leave the file behind until Flush: after truncations a stale file
// holds entries too many, which loading the log cuts off; one that lacks an entry
// gets it from the batches of the epoch, when they are recovered.
type LeaderEpochs struct {
	fsys vfs.FS

	fileMu sync.Mutex // held while writing; before mu

	mu      sync.RWMutex
	name    string
	entries []EpochEntry // never written in place: readers may hold it
	dirty   bool         // the file differs
}

// OpenLeaderEpochs reads the file; an absent one, or one of no bytes, has no
// entries. Entries that break the order are dropped as Assign would. Errors:
// *MalformedError, or those of the disk.
func OpenLeaderEpochs(fsys vfs.FS, name string) (*LeaderEpochs, error) {
	l := &LeaderEpochs{fsys: fsys, name: name}
	n := 0
	err := readText(fsys, name, 2, func(fields []string) error {
		n++
		e, err := parseEpochEntry(fields)
		if err == nil {
			l.entries, _ = assign(l.entries, e)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	l.dirty = n != len(l.entries)
	return l, nil
}

func parseEpochEntry(fields []string) (EpochEntry, error) {
	epoch, err := parseInt(fields[0], 32)
	if err != nil {
		return EpochEntry{}, err
	}
	start, err := parseInt(fields[1], 64)
	if err != nil {
		return EpochEntry{}, err
	}
	if epoch < 0 || start < 0 {
		return EpochEntry{}, fmt.Errorf("epoch %d from offset %d is negative", epoch, start)
	}
	return EpochEntry{Epoch: int32(epoch), StartOffset: start}, nil
}

// NewLeaderEpochs starts from the entries given, in order, instead of those of the
// file, which is written at the first change or Flush.
func NewLeaderEpochs(fsys vfs.FS, name string, entries []EpochEntry) *LeaderEpochs {
	return &LeaderEpochs{fsys: fsys, name: name, entries: slices.Clone(entries), dirty: true}
}

// Assign is Note, and writes and syncs the file if that changed anything.
func (l *LeaderEpochs) Assign(epoch int32, start int64) (changed bool, err error) {
	changed, err = l.Note(epoch, start)
	if changed && err == nil {
		err = l.Flush()
	}
	return changed, err
}

// Note notes that epoch starts at offset start, in memory, unless the latest entry
// already covers it (same epoch, start not later). Entries that contradict it
// (epoch or start not smaller) are dropped. A negative epoch or start is an error.
func (l *LeaderEpochs) Note(epoch int32, start int64) (changed bool, err error) {
	if epoch < 0 || start < 0 {
		return false, fmt.Errorf("assign leader epoch %d at offset %d: negative", epoch, start)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries, changed = assign(l.entries, EpochEntry{epoch, start})
	l.dirty = l.dirty || changed
	return changed, nil
}

func assign(entries []EpochEntry, e EpochEntry) ([]EpochEntry, bool) {
	n := len(entries)
	if n > 0 && entries[n-1].Epoch == e.Epoch && entries[n-1].StartOffset <= e.StartOffset {
		return entries, false
	}
	for n > 0 && (entries[n-1].Epoch >= e.Epoch || entries[n-1].StartOffset >= e.StartOffset) {
		n--
	}
	return append(slices.Clone(entries[:n]), e), true
}

// TruncateFromEnd drops the entries that start at or behind end, in memory.
func (l *LeaderEpochs) TruncateFromEnd(end int64) (changed bool) {
	return l.change(func(entries []EpochEntry) []EpochEntry {
		n := len(entries)
		for end >= 0 && n > 0 && entries[n-1].StartOffset >= end {
			n--
		}
		return entries[:n]
	})
}

// TruncateFromStart makes start the start of the epoch it lies in and drops the
// epochs before, in memory.
func (l *LeaderEpochs) TruncateFromStart(start int64) (changed bool) {
	return l.change(func(entries []EpochEntry) []EpochEntry {
		n := 0
		for n < len(entries) && entries[n].StartOffset <= start {
			n++
		}
		if n == 0 || n == 1 && entries[0].StartOffset == start {
			return entries
		}
		kept := slices.Clone(entries[n-1:])
		kept[0].StartOffset = start
		return kept
	})
}

// Clear drops all entries, in memory.
func (l *LeaderEpochs) Clear() (changed bool) {
	return l.change(func([]EpochEntry) []EpochEntry { return nil })
}

func (l *LeaderEpochs) change(f func([]EpochEntry) []EpochEntry) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.entries
	l.entries = f(before)
	changed = !slices.Equal(before, l.entries)
	l.dirty = l.dirty || changed
	return changed
}

// Flush writes and syncs the file if the memory changed since it was last
// written. It may run beside the other methods.
func (l *LeaderEpochs) Flush() error {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	l.mu.Lock()
	entries, name, dirty := l.entries, l.name, l.dirty
	l.dirty = false
	l.mu.Unlock()
	if !dirty {
		return nil
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = fmt.Sprintf("%d %d", e.Epoch, e.StartOffset)
	}
	if err := writeText(l.fsys, name, lines); err != nil {
		l.mu.Lock()
		l.dirty = true
		l.mu.Unlock()
		return err
	}
	return nil
}

// SetName tells that the partition's folder was renamed.
func (l *LeaderEpochs) SetName(newName string) {
	l.fileMu.Lock()
	defer l.fileMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name = newName
}

// Entries lists the history, oldest first. The slice must not be changed.
func (l *LeaderEpochs) Entries() []EpochEntry {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clip(l.entries)
}

// Latest is the newest entry.
func (l *LeaderEpochs) Latest() (EpochEntry, bool) {
	entries := l.Entries()
	if len(entries) == 0 {
		return EpochEntry{}, false
	}
	return entries[len(entries)-1], true
}

// Earliest is the oldest entry.
func (l *LeaderEpochs) Earliest() (EpochEntry, bool) {
	entries := l.Entries()
	if len(entries) == 0 {
		return EpochEntry{}, false
	}
	return entries[0], true
}

// Previous is the newest entry of an epoch smaller than the one given.
func (l *LeaderEpochs) Previous(epoch int32) (EpochEntry, bool) {
	entries := l.Entries()
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Epoch >= epoch })
	if i == 0 {
		return EpochEntry{}, false
	}
	return entries[i-1], true
}

// EpochForOffset is the epoch whose leader wrote, or will write, at offset.
func (l *LeaderEpochs) EpochForOffset(offset int64) (int32, bool) {
	entries := l.Entries()
	i := sort.Search(len(entries), func(i int) bool { return entries[i].StartOffset > offset })
	if i == 0 {
		return UndefinedEpoch, false
	}
	return entries[i-1].Epoch, true
}

// EndOffsetFor answers OffsetForLeaderEpoch: the largest known epoch ≤ the one
// asked for, and the offset where it ends. For the latest epoch that is logEnd.
// For an epoch before all known ones it is the asked one and the start of the
// first known. For a later or negative one it is (UndefinedEpoch, UndefinedOffset).
func (l *LeaderEpochs) EndOffsetFor(epoch int32, logEnd int64) (int32, int64) {
	entries := l.Entries()
	i := sort.Search(len(entries), func(i int) bool { return entries[i].Epoch > epoch })
	switch {
	case epoch == UndefinedEpoch || len(entries) == 0:
		return UndefinedEpoch, UndefinedOffset
	case entries[len(entries)-1].Epoch == epoch:
		return epoch, logEnd
	case i == len(entries):
		return UndefinedEpoch, UndefinedOffset
	case i == 0:
		return epoch, entries[0].StartOffset
	}
	return entries[i-1].Epoch, entries[i].StartOffset
}
