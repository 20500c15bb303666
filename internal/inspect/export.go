package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/vfs"
)

// ExportSummary is what [Export] wrote.
type ExportSummary struct {
	Type      string `json:"type"` // "export"
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Dir       string `json:"dir"`         // the folder that was written
	From      int64  `json:"startOffset"` // of the first batch: the range may begin inside of it
	To        int64  `json:"endOffset"`
	Batches   int64  `json:"batches"`
	Bytes     int64  `json:"bytes"`
	Left      int64  `json:"damagedBatches"` // in the range, and left out
}

// Export copies the batches of a range into a new partition's folder under out: whole batches with their offsets, as
// they are, with indexes, producer snapshot and leader epochs of their own. Batches with a wrong checksum are left out.
// progress, which may be nil, is called with numbers of bytes written. The folder has a name that ends in [PartSuffix]
// until all is written; an error removes it.
// An error wraps os.ErrExist when the folder is there and not empty; others are the disk's.
func Export(fsys vfs.FS, t Target, cfg commitlog.Config, r Range, out string, now time.Time,
	progress func(bytes int64)) (*ExportSummary, error) {
	log, err := Open(fsys, t, cfg)
	if err != nil {
		return nil, err
	}
	defer log.Abandon() //nolint:errcheck // nothing was written
	from, to, err := bounds(log, r)
	if err != nil {
		return nil, err
	}
	s := &ExportSummary{Type: "export", Topic: t.Topic, Partition: t.Partition, Dir: filepath.Join(out, t.Name())}
	if entries, err := fsys.ReadDir(s.Dir); err == nil && len(entries) > 0 {
		return nil, &os.PathError{Op: "export to", Path: s.Dir, Err: os.ErrExist}
	}
	x := &exporter{fs: fsys, target: t, cfg: cfg, summary: s, now: now, dir: s.Dir + PartSuffix, progress: progress}
	if err := x.makeDir(); err != nil {
		return nil, err
	}
	c := &catter{fs: fsys, target: t, log: log, from: from, to: to}
	c.o.Warn = func(string) { s.Left++ }
	x.read = c
	if err := x.copy(); err != nil {
		return nil, errors.Join(err, fsys.RemoveAll(x.dir))
	}
	return s, nil
}

// PartSuffix ends the name of the folder of an export that is not complete.
const PartSuffix = ".part"

// makeDir makes the folder, in the place of one that was left by an export that was broken off.
func (x *exporter) makeDir() error {
	if err := x.fs.RemoveAll(x.dir); err != nil {
		return err
	}
	return x.fs.MkdirAll(x.dir, 0o755)
}

// copy does the work, and gives the folder its name at the end.
func (x *exporter) copy() error {
	err := x.run()
	if x.to != nil {
		err = errors.Join(err, x.to.Close())
	} else if err == nil {
		err = errors.New("nothing to export: the range holds no batch")
	}
	if err != nil {
		return err
	}
	if err := x.fs.RemoveAll(x.summary.Dir); err != nil { // it may be there, empty
		return err
	}
	if err := x.fs.Rename(x.dir, x.summary.Dir); err != nil {
		return err
	}
	return x.fs.SyncDir(filepath.Dir(x.dir))
}

type exporter struct {
	fs       vfs.FS
	target   Target
	cfg      commitlog.Config
	now      time.Time
	dir      string // that is written to
	progress func(bytes int64)
	read     *catter
	to       *commitlog.Log
	summary  *ExportSummary
}

func (x *exporter) run() error {
	for at := x.read.from; at < x.read.to; {
		slice, err := x.read.log.Read(at, commitlog.ReadOptions{MaxBytes: readChunk, MinOneBatch: true,
			UpTo: x.read.log.EndOffset()})
		var next int64
		switch {
		case isDamage(err):
			x.summary.Left++
			if next = x.read.behindDamage(at, err); next < 0 {
				return nil
			}
		case err != nil:
			return err
		default:
			data, readErr := x.read.bytes(&slice)
			if readErr != nil {
				return readErr
			}
			if next, err = x.batches(data, at); err != nil {
				return err
			}
		}
		if next <= at {
			if next = x.read.behindSegment(at); next < 0 {
				return nil
			}
		}
		at = next
	}
	return nil
}

func (x *exporter) batches(data []byte, at int64) (next int64, err error) {
	next = at
	for len(data) > 0 && next < x.read.to {
		h, entry, rest, err := record.NextEntry(data)
		if err != nil || h.NextOffset() <= next {
			return next, nil
		}
		next, data = h.NextOffset(), rest
		if !record.ValidCRC(entry) {
			x.summary.Left++
			continue
		}
		if err := x.write(h, entry); err != nil {
			return next, err
		}
	}
	return next, nil
}

// write appends a batch as a follower would.
func (x *exporter) write(h record.Header, entry []byte) error {
	s := x.summary
	if x.to == nil {
		id, err := checkpoint.ReadPartitionMetadata(x.fs, filepath.Join(x.target.Dir, checkpoint.PartitionMetadataFile))
		if err != nil {
			id = [16]byte{} // the copy has none either
		}
		x.cfg.Preallocate = false
		x.to, err = commitlog.Open(commitlog.Options{
			FS: x.fs, Dir: x.dir, Topic: x.target.Topic, Partition: x.target.Partition, TopicID: id, Config: x.cfg,
			StartOffset: h.BaseOffset, Clock: func() time.Time { return x.now }, Clean: true,
		})
		if err != nil {
			return err
		}
		s.From = h.BaseOffset
	}
	info, err := x.to.AppendAsFollower(append([]byte(nil), entry...))
	if err != nil {
		return fmt.Errorf("write the batch at offset %d: %w", h.BaseOffset, err)
	}
	s.To = info.LastOffset + 1
	s.Batches++
	s.Bytes += int64(len(entry))
	if x.progress != nil {
		x.progress(int64(len(entry)))
	}
	return nil
}
