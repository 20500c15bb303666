package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/metadata"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// ReadImage reads the metadata log in a log directory, as a start would replay it: the newest snapshot that can be
// read, and the log behind it. Nothing is changed. A last batch that is cut off, as a kill leaves it, is passed over.
//
// The error says why the image is not all that the directory holds; the image, which is never nil, then has what comes
// before, and lacks records that this version does not know. The error wraps fs.ErrNotExist where there is no metadata
// log at all.
func ReadImage(fsys vfs.FS, logDir string) (*metadata.Image, error) {
	r := storedReader{fs: fsys, dir: filepath.Join(logDir, folder), loader: metadata.NewLoader(metadata.NewImage())}
	err := r.read()
	if err == nil {
		err = r.unknown
	}
	return r.loader.Publish().Image(), err
}

// storedReader replays the files of a metadata log that nobody may change.
type storedReader struct {
	fs      vfs.FS
	dir     string
	loader  *metadata.Loader
	next    int64 // offset of the next record that is wanted
	unknown error // the first record that could not be decoded
}

func (r *storedReader) read() error {
	entries, err := r.fs.ReadDir(r.dir)
	if err != nil {
		return err
	}
	snapshots := snapshotsOf(entries)
	var bases []int64
	for _, e := range entries {
		if digits, ok := strings.CutSuffix(e.Name(), segment.LogSuffix); ok && len(digits) == 20 {
			if base, err := strconv.ParseUint(digits, 10, 63); err == nil {
				bases = append(bases, int64(base))
			}
		}
	}
	slices.Sort(bases)
	damaged := r.snapshot(snapshots)
	for i, base := range bases {
		if i+1 < len(bases) && bases[i+1] <= r.next {
			continue
		}
		if base > r.next {
			gap := fmt.Errorf("%s: the log begins at offset %d, and what comes before ends at %d", r.dir, base, r.next)
			return errors.Join(damaged, gap)
		}
		if err := r.segment(filepath.Join(r.dir, segment.Name(base, segment.LogSuffix)), i+1 == len(bases)); err != nil {
			return err
		}
	}
	if len(bases) == 0 && len(snapshots) == 0 {
		return fmt.Errorf("%s holds no metadata: %w", r.dir, fs.ErrNotExist)
	}
	return nil
}

// snapshot begins with the newest snapshot that can be read; the error tells of newer ones.
func (r *storedReader) snapshot(list []SnapshotID) (damaged error) {
	for _, id := range slices.Backward(list) {
		reader := snapshotReader{name: filepath.Join(r.dir, id.FileName()), maxBatch: maxBatchBytes, unknown: r.passOver}
		content, err := reader.read(r.fs)
		if err == nil {
			r.loader, r.next = metadata.NewLoader(content.at(id)), id.EndOffset
			return damaged
		}
		damaged = errors.Join(damaged, err)
	}
	return damaged
}

// passOver notes the first record of a newer Kafka.
func (r *storedReader) passOver(err error) error {
	if r.unknown == nil {
		r.unknown = fmt.Errorf("%s: %w", r.dir, err)
	}
	return nil
}

// segment replays what is wanted of one segment.
func (r *storedReader) segment(name string, last bool) error {
	return r.batches(name, last, func(h record.Header, entry []byte) error {
		if h.LastOffset < r.next {
			return nil
		}
		b, err := decodeBatch(h, entry, func(record.ControlMessage) error { return nil }, r.passOver)
		if err == nil {
			err = r.loader.Replay(b)
		}
		r.next = h.NextOffset()
		return err
	})
}

// batches calls a function for each sound batch of a file. In the last segment the end may be cut off.
func (r *storedReader) batches(name string, last bool, each func(h record.Header, entry []byte) error) error {
	f, err := r.fs.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sc := record.NewScanner(f, 0, info.Size())
	sc.File, sc.MaxBatchBytes = name, maxBatchBytes
	for sc.Next() {
		entry, err := sc.Batch()
		if err == nil && !record.ValidCRC(entry) {
			err = &record.CorruptError{File: name, Pos: sc.Pos(), Offset: sc.Header().BaseOffset,
				Reason: "the checksum is wrong"}
		}
		if err == nil {
			err = each(sc.Header(), entry)
		}
		if err != nil {
			return fmt.Errorf("read %s at %d: %w", name, sc.Pos(), err)
		}
	}
	var damage *record.CorruptError
	if last && errors.As(sc.Err(), &damage) && damage.Incomplete {
		return nil
	}
	return sc.Err()
}
