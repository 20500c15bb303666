package inspect

import (
	"path/filepath"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

const logStartFile = checkpoint.LogStartOffsetFile

// key is the target in the checkpoints of its log directory.
func (t Target) key() checkpoint.TopicPartition {
	return checkpoint.TopicPartition{Topic: t.Topic, Partition: t.Partition}
}

func readOffsets(fsys vfs.FS, dir, file string) (checkpoint.Offsets, error) {
	return checkpoint.ReadOffsets(fsys, filepath.Join(dir, file))
}
