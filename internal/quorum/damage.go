package quorum

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tidemark/record"
)

// checkInside refuses a log in which whole batches follow a damaged one.
//
// Every batch is made durable before the next is written, so a crash can only
// hurt the last one, and package commitlog may cut that off. Anything else is
// damage to metadata that was acknowledged: cutting there would turn topics
// into strays.
//
// Kafka: cuts there all the same.
func (q *Quorum) checkInside() error {
	entries, err := q.o.FS.ReadDir(q.dir)
	if err != nil {
		return err
	}
	var damage *record.CorruptError
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if damage != nil {
			info, err := e.Info()
			if err != nil {
				return err
			}
			if info.Size() > 0 {
				return damage
			}
			continue
		}
		found, inside, err := q.scanSegment(filepath.Join(q.dir, e.Name()))
		if err != nil {
			return err
		}
		if damage = found; inside {
			return damage
		}
	}
	return nil
}

// scanSegment returns the first damage of a segment, nil without any, and
// whether a whole batch follows it in the segment.
func (q *Quorum) scanSegment(name string) (damage *record.CorruptError, inside bool, err error) {
	f, err := q.o.FS.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	scan := record.NewScanner(f, 0, info.Size())
	scan.File, scan.MaxBatchBytes = name, maxBatchBytes
	end, offset := int64(0), int64(-1)
	for scan.Next() {
		valid, err := scan.ValidCRC()
		if err != nil {
			return nil, false, err
		}
		if !valid {
			break
		}
		end, offset = scan.End(), scan.Header().LastOffset
	}
	if end == info.Size() {
		return nil, false, nil
	}
	damage = &record.CorruptError{File: name, Pos: end, Offset: offset + 1,
		Reason: "a batch is damaged, and whole ones follow it"}
	tail := make([]byte, min(info.Size()-end, 2*maxBatchBytes))
	if _, err := f.ReadAt(tail, end); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("read %s at %d: %w", name, end, err)
	}
	return damage, hasBatch(tail[1:], offset), nil
}

// hasBatch reports whether a whole and sound batch with records above offset
// begins anywhere in b.
func hasBatch(b []byte, offset int64) bool {
	for ; len(b) >= record.HeaderSize; b = b[1:] {
		if b[16] != 2 {
			continue
		}
		h, entry, _, err := record.NextEntry(b)
		if err == nil && h.BaseOffset > offset && record.ValidCRC(entry) {
			return true
		}
	}
	return false
}
