package cleaner

import (
	"fmt"
	"maps"
	"path/filepath"
	"sync"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

// checkpoints are the files with the first dirty offsets, one in each log directory. They are read at the first use.
type checkpoints struct {
	fs vfs.FS

	mu    sync.Mutex
	known map[string]checkpoint.Offsets // by directory
}

func (c *checkpoints) file(dir string) string {
	return filepath.Join(dir, checkpoint.CleanerOffsetFile)
}

// of is the first dirty offset of a partition; false when the file has no line of it. Errors are
// *checkpoint.MalformedError and those of the disk.
func (c *checkpoints) of(dir string, tp checkpoint.TopicPartition) (int64, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.load(dir)
	if err != nil {
		return 0, false, err
	}
	offset, ok := all[tp]
	return offset, ok, nil
}

// load reads the file of a directory. The caller holds mu.
func (c *checkpoints) load(dir string) (checkpoint.Offsets, error) {
	if all, ok := c.known[dir]; ok {
		return all, nil
	}
	all, err := checkpoint.ReadOffsets(c.fs, c.file(dir))
	if err != nil {
		return nil, fmt.Errorf("read first dirty offsets: %w", err)
	}
	if c.known == nil {
		c.known = make(map[string]checkpoint.Offsets)
	}
	c.known[dir] = all
	return all, nil
}

// change replaces the file of a directory by one that a function has changed, without the partitions that are gone.
// After an error it is as it was.
//
// Kafka: lines of partitions that are gone go with the next change.
func (c *checkpoints) change(
	dir string, there func(checkpoint.TopicPartition) bool, to func(checkpoint.Offsets),
) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.load(dir)
	if err != nil {
		return err
	}
	next := maps.Clone(old)
	maps.DeleteFunc(next, func(tp checkpoint.TopicPartition, _ int64) bool { return !there(tp) })
	to(next)
	if maps.Equal(old, next) {
		return nil
	}
	if err := checkpoint.WriteOffsets(c.fs, c.file(dir), next); err != nil {
		return fmt.Errorf("write first dirty offsets: %w", err)
	}
	c.known[dir] = next
	return nil
}
