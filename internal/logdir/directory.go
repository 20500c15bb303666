package logdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

// lockFile is held, exclusively, while a directory is in use.
const lockFile = ".lock"

// directory is one entry of log.dirs.
type directory struct {
	fs        vfs.FS
	path      string
	lock      io.Closer
	whole     vfs.Whole // the file system that it is on; nil where that cannot be synced as a whole
	meta      checkpoint.MetaProperties
	formatted bool
	failure   error // guarded by Set.mu; why the directory is offline

	// Read at the start of loading, not changed afterwards.
	clean          checkpoint.CleanShutdown
	recoveryPoints checkpoint.Offsets
	startOffsets   checkpoint.Offsets
	highWatermarks checkpoint.Offsets
}

// makeDirectory makes a log directory that is absent, so that a power loss does not take it, and what is durable in it,
// away again.
func makeDirectory(fsys vfs.FS, path string) error {
	if _, err := fsys.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fsys.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

func openDirectory(fsys vfs.FS, path string, readOnly bool) (*directory, error) {
	if err := makeDirectory(fsys, path); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	lock, err := fsys.Lock(filepath.Join(path, lockFile))
	if err != nil {
		//nolint:staticcheck // Kafka's text
		return nil, fmt.Errorf("Failed to acquire lock on file .lock in %s. A Kafka instance in another process or "+
			"thread is using this directory: %w", path, err)
	}
	d := &directory{fs: fsys, path: path, lock: lock}
	if !readOnly {
		if d.whole, err = vfs.OpenWhole(fsys, path); err != nil {
			return nil, errors.Join(fmt.Errorf("open file system of log directory: %w", err), d.unlock())
		}
	}
	d.meta, err = checkpoint.ReadMetaProperties(fsys, d.file(checkpoint.MetaPropertiesFile))
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && readOnly:
	case err != nil:
		return nil, errors.Join(fmt.Errorf("read identity of log directory %s: %w", path, err), d.unlock())
	default:
		d.formatted = true
	}
	return d, nil
}

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// syncAll is Options.SyncAll of the logs in the directory; nil where there is no such thing.
func (d *directory) syncAll() func() error {
	if d.whole == nil {
		return nil
	}
	return d.whole.Sync
}

func (d *directory) unlock() error {
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	if d.whole != nil {
		err = errors.Join(err, d.whole.Close())
	}
	return err
}

// begin removes the clean marker, remembering it, and reads the checkpoints. A checkpoint that cannot be read is
// an error of the whole directory, as in Kafka: its offsets bound what recovery may skip.
func (d *directory) begin() (err error) {
	if d.clean, err = checkpoint.TakeCleanShutdown(d.fs, d.path); err != nil {
		return err
	}
	if d.recoveryPoints, err = checkpoint.ReadOffsets(d.fs, d.file(checkpoint.RecoveryPointFile)); err != nil {
		return err
	}
	if d.startOffsets, err = checkpoint.ReadOffsets(d.fs, d.file(checkpoint.LogStartOffsetFile)); err != nil {
		return err
	}
	d.highWatermarks, err = checkpoint.ReadOffsets(d.fs, d.file(checkpoint.HighWatermarkFile))
	return err
}

// beginReadOnly is begin for a directory that is only read: what cannot be read of its small files is done without.
func (d *directory) beginReadOnly(logger *slog.Logger) {
	var err error
	if d.clean, err = checkpoint.TakeCleanShutdown(d.fs, d.path); err != nil {
		logger.Warn("clean marker cannot be read: logs are recovered in memory", "dir", d.path, "error", err)
	}
	for name, offsets := range map[string]*checkpoint.Offsets{checkpoint.RecoveryPointFile: &d.recoveryPoints,
		checkpoint.LogStartOffsetFile: &d.startOffsets, checkpoint.HighWatermarkFile: &d.highWatermarks} {
		if *offsets, err = checkpoint.ReadOffsets(d.fs, d.file(name)); err != nil {
			logger.Warn("checkpoint cannot be read and counts for nothing", "error", err)
		}
	}
}
