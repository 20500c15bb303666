package cleaner

import (
	"errors"
	"math"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/internal/segment"
	"tidemark/record"
)

// output writes the batches that stay of a group of segments into the segment that takes their place; into more than
// one where offsets lie too far apart for one.
type output struct {
	log     *commitlog.Log
	room    int // bytes gathered for one write
	done    []*segment.Segment
	current *segment.Segment
	buf     []byte
	batches []segment.Batch // in buf
	written int64           // bytes, of all segments
}

// open starts a segment. Errors are those of commitlog.Log.NewReplacement.
func (o *output) open(base int64) error {
	s, err := o.log.NewReplacement(base)
	if err == nil {
		o.current = s
	}
	return err
}

// add takes the bytes that a filter made of one entry: batches of magic 2.
func (o *output) add(batch []byte) error {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return err
	}
	size, err := o.current.Size()
	if err != nil {
		return err
	}
	pos := size + int64(len(o.buf))
	if !o.current.CanHold(h.LastOffset) || pos+int64(len(batch)) > math.MaxInt32 {
		if err := o.finish(); err != nil {
			return err
		}
		if err := o.open(h.BaseOffset); err != nil {
			return err
		}
		pos = 0
	}
	o.buf = append(o.buf, batch...)
	o.batches = append(o.batches, segment.BatchOf(h, pos))
	if len(o.buf) >= o.room {
		return o.flush()
	}
	return nil
}

// flush writes what was gathered. An index that is full takes no more entries: look-ups scan the rest.
func (o *output) flush() error {
	if len(o.batches) == 0 {
		return nil
	}
	if _, err := o.current.Write(o.buf, o.batches[0].MaxTimestamp); err != nil {
		return err
	}
	for _, b := range o.batches {
		if err := o.current.Index(b); err != nil && !errors.Is(err, index.ErrFull) {
			return err
		}
	}
	o.written += int64(len(o.buf))
	o.buf, o.batches = o.buf[:0], o.batches[:0]
	return nil
}

// finish ends the present segment.
func (o *output) finish() error {
	if err := o.flush(); err != nil {
		return err
	}
	if err := o.current.Finish(); err != nil {
		return err
	}
	o.done, o.current = append(o.done, o.current), nil
	return nil
}

// setTime gives the segments a time of last change, in whole milliseconds.
func (o *output) setTime(t time.Time) error {
	for _, s := range o.done {
		if err := s.SetLastModified(time.UnixMilli(t.UnixMilli())); err != nil {
			return err
		}
	}
	return nil
}

// discard removes the segments.
func (o *output) discard() {
	if o.current != nil {
		o.done, o.current = append(o.done, o.current), nil
	}
	for _, s := range o.done {
		s.Discard()
	}
	o.done = nil
}
