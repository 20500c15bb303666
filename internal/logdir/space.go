package logdir

import (
	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/vfs"
)

// Logs lists the logs that are held in a log directory and can be worked on.
func (s *Set) Logs(path string) map[checkpoint.TopicPartition]*commitlog.Log {
	for _, d := range s.dirs {
		if d.path == path {
			return s.online(d)
		}
	}
	return nil
}

// Space is the size of a log directory's disk and how much may still be written to it, -1 where that is not known.
func (s *Set) Space(path string) (total, usable int64, err error) {
	total, known, err := vfs.TotalBytes(s.opts.FS, path)
	if err != nil {
		return -1, -1, err
	}
	usable, known2, err := vfs.FreeBytes(s.opts.FS, path)
	if err != nil || !known || !known2 {
		return -1, -1, err
	}
	return total, usable, nil
}
