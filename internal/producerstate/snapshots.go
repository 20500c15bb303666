package producerstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tidemark/vfs"
)

// DeletedSuffix is added to the names of files that wait for removal.
const DeletedSuffix = ".deleted"

func (m *Manager) path(offset int64) string { return filepath.Join(m.o.Dir, SnapshotName(offset)) }

// SetDir tells that the partition's folder was renamed.
func (m *Manager) SetDir(dir string) { m.o.Dir = dir }

// Snapshots lists the offsets of the snapshot files, ascending.
func (m *Manager) Snapshots() []int64 { return slices.Clone(m.snapshots) }

// LatestSnapshot is the offset of the newest snapshot file.
func (m *Manager) LatestSnapshot() (int64, bool) {
	if len(m.snapshots) == 0 {
		return NoOffset, false
	}
	return m.snapshots[len(m.snapshots)-1], true
}

// OldestSnapshot is the offset of the oldest snapshot file.
func (m *Manager) OldestSnapshot() (int64, bool) {
	if len(m.snapshots) == 0 {
		return NoOffset, false
	}
	return m.snapshots[0], true
}

// Snapshot writes the state to a file named by EndOffset, unless nothing came
// since the last one, and syncs it if asked to. Errors are those of the disk.
func (m *Manager) Snapshot(sync bool) (offset int64, taken bool, err error) {
	if m.end <= m.lastEnd {
		return NoOffset, false, nil
	}
	data := encodeSnapshot(m.producers.size, func(yield func(*Entry) bool) {
		for _, e := range m.producers.all {
			if !yield(e) {
				return
			}
		}
	})
	if err := writeSnapshot(m.o.FS, m.path(m.end), data, sync); err != nil {
		return NoOffset, false, fmt.Errorf("write producer snapshot: %w", err)
	}
	if i, found := slices.BinarySearch(m.snapshots, m.end); !found {
		m.snapshots = slices.Insert(m.snapshots, i, m.end)
	}
	m.lastEnd = m.end
	return m.end, true, nil
}

// writeSnapshot replaces a file in place: its checksum tells when that was cut
// short, and then the snapshot before serves.
func writeSnapshot(fsys vfs.FS, name string, data []byte, sync bool) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if sync {
		return f.Sync()
	}
	return nil
}

// SyncSnapshot makes a snapshot file durable that was written without sync. One
// that is gone is no error.
func SyncSnapshot(fsys vfs.FS, dir string, offset int64) (err error) {
	f, err := fsys.OpenFile(filepath.Join(dir, SnapshotName(offset)), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sync producer snapshot: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("sync producer snapshot: %w", cerr)
		}
	}()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync producer snapshot: %w", err)
	}
	return nil
}

// TruncateAndReload makes the state fit a log of [logStart, logEnd): snapshots
// beyond are deleted, and unless the state already ends at logEnd it is reset to
// the newest snapshot that can be read (damaged ones are deleted), without the
// producers that expired by nowMs. EndOffset then tells where to replay from: the
// snapshot's offset, or logStart without one. Errors are those of the disk.
func (m *Manager) TruncateAndReload(logStart, logEnd, nowMs int64) error {
	for _, offset := range m.Snapshots() {
		if offset > logEnd || offset <= logStart {
			if err := m.DeleteSnapshot(offset); err != nil {
				return err
			}
		}
	}
	if logEnd == m.end {
		m.SetLogStartOffset(logStart)
		return nil
	}
	m.clear()
	return m.load(logStart, nowMs)
}

func (m *Manager) load(logStart, nowMs int64) error {
	for {
		offset, ok := m.LatestSnapshot()
		if !ok {
			m.end, m.lastEnd = logStart, logStart
			return nil
		}
		entries, err := m.read(offset)
		var corrupt *CorruptSnapshotError
		if errors.As(err, &corrupt) {
			m.o.Logger.Warn("producer snapshot is not usable, trying the one before", "error", err)
			if err := m.DeleteSnapshot(offset); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read producer snapshot: %w", err)
		}
		for _, e := range entries {
			if !m.expired(&e, nowMs) {
				m.loadEntry(e)
			}
		}
		m.end, m.lastEnd = offset, offset
		return nil
	}
}

func (m *Manager) read(offset int64) ([]Entry, error) {
	name := m.path(offset)
	data, err := vfs.ReadFile(m.o.FS, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptSnapshotError{Name: name, Reason: "the file is missing"}
	}
	if err != nil {
		return nil, err
	}
	entries, err := DecodeSnapshot(data)
	var corrupt *CorruptSnapshotError
	if errors.As(err, &corrupt) {
		corrupt.Name = name
	}
	return entries, err
}

func (m *Manager) loadEntry(e Entry) {
	m.producers.put(e.ProducerID, &e)
	if first := e.CurrentTxnFirstOffset; first != NoOffset {
		m.ongoing.put(ongoingTxn{producerID: e.ProducerID, firstOffset: first})
	}
}

// TruncateFully forgets all, deletes every snapshot, and starts again at offset.
// Errors are those of the disk.
func (m *Manager) TruncateFully(offset int64) error {
	m.clear()
	for _, s := range m.Snapshots() {
		if err := m.DeleteSnapshot(s); err != nil {
			return err
		}
	}
	m.end, m.lastEnd = offset, 0
	return nil
}

// SetLogStartOffset tells that the log now starts at logStart. Producers stay
// known even if their records are gone.
func (m *Manager) SetLogStartOffset(logStart int64) {
	m.UpdateHighWatermark(logStart)
	m.end = max(m.end, logStart)
	latest, ok := m.LatestSnapshot()
	if !ok {
		latest = logStart
	}
	m.lastEnd = latest
}

// RemoveStraySnapshots deletes the snapshots that belong to no segment, except the
// newest of them if it is not below the newest segment: a clean stop left it.
// The base offsets ascend. Errors are those of the disk.
func (m *Manager) RemoveStraySnapshots(segmentBases []int64) error {
	var strays []int64
	for _, s := range m.snapshots {
		if _, found := slices.BinarySearch(segmentBases, s); !found {
			strays = append(strays, s)
		}
	}
	if n := len(strays); n > 0 && (len(segmentBases) == 0 || strays[n-1] >= segmentBases[len(segmentBases)-1]) {
		strays = strays[:n-1]
	}
	for _, s := range strays {
		if err := m.DeleteSnapshot(s); err != nil {
			return err
		}
	}
	return nil
}

// DeleteSnapshotsBefore deletes the snapshots of smaller offsets. Errors are those
// of the disk.
func (m *Manager) DeleteSnapshotsBefore(offset int64) error {
	for _, s := range m.Snapshots() {
		if s < offset {
			if err := m.DeleteSnapshot(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// DeleteSnapshot deletes one snapshot; an absent one is no error. Errors are those
// of the disk.
func (m *Manager) DeleteSnapshot(offset int64) error {
	m.forget(offset)
	if err := m.o.FS.Remove(m.path(offset)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete producer snapshot: %w", err)
	}
	return nil
}

// TakeSnapshot forgets one snapshot for a caller that renames or removes its file,
// and returns the path, "" when there is none.
func (m *Manager) TakeSnapshot(offset int64) (path string) {
	if !m.forget(offset) {
		return ""
	}
	return m.path(offset)
}

// MarkDeleted renames a snapshot that was taken for removal later, when its segment
// goes, and returns the new path, "" when the file is gone. Errors are those of the
// disk.
func MarkDeleted(fsys vfs.FS, path string) (name string, err error) {
	name = path + DeletedSuffix
	switch err := fsys.Rename(path, name); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("mark producer snapshot for removal: %w", err)
	}
	return name, nil
}

func (m *Manager) forget(offset int64) bool {
	i, found := slices.BinarySearch(m.snapshots, offset)
	if found {
		m.snapshots = slices.Delete(m.snapshots, i, i+1)
	}
	return found
}
