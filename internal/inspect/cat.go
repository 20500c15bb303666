package inspect

import (
	"cmp"
	"errors"
	"math"
	"path/filepath"
	"regexp"
	"slices"

	"tidemark/internal/commitlog"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// Range is a part of a partition. Offsets and times may be mixed; what is not set is the end of the log on that side.
type Range struct {
	FromOffset, ToOffset *int64 // [from, to)
	FromTime, ToTime     *int64 // ms: from the first record at that time or later up to, exclusive, the first at the other
}

// CatOptions say which records [Cat] gives.
type CatOptions struct {
	Range
	Keys      *regexp.Regexp // of the key; nil: all
	Grep      *regexp.Regexp // of key, value or a header; nil: all
	Committed bool           // leave out what readers of committed records do not see, and control records
	Control   bool           // give control records too
	Limit     int64          // 0: none
	// Warn is told of what cannot be read; may be nil.
	Warn     func(text string)
	Progress func(bytes int64) // of batches read; may be nil
}

// ErrStop is returned by a function that wants no more.
var ErrStop = errors.New("stop")

// readChunk is how much is read at a time.
const readChunk = 1 << 20

// Cat calls a function for the records of a range, in order; it may return ErrStop. Errors are the disk's, and those of
// the function; damage is told to Warn and passed over.
func Cat(fsys vfs.FS, t Target, cfg commitlog.Config, o CatOptions, each func(Record) error) error {
	log, err := Open(fsys, t, cfg)
	if err != nil {
		return err
	}
	defer log.Abandon() //nolint:errcheck // nothing was written
	c := &catter{fs: fsys, target: t, log: log, o: o, each: each, aborted: make(map[int64]bool)}
	if o.Warn == nil {
		c.o.Warn = func(string) {}
	}
	from, to, err := bounds(log, o.Range)
	if err != nil {
		return err
	}
	c.from, c.to = from, to
	if o.Committed {
		if err := c.prepareCommitted(); err != nil {
			return err
		}
	}
	err = c.run()
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// bounds are the offsets [from, to) of a range.
func bounds(log *commitlog.Log, r Range) (from, to int64, err error) {
	from, to = log.StartOffset(), log.EndOffset()
	if r.FromOffset != nil {
		from = max(from, *r.FromOffset)
	}
	if r.ToOffset != nil {
		to = min(to, *r.ToOffset)
	}
	at := func(ms int64) (int64, error) {
		f, ok, err := log.OffsetForTime(ms, log.EndOffset(), nil)
		if !ok {
			return log.EndOffset(), err
		}
		return f.Offset, err
	}
	if r.FromTime != nil {
		offset, err := at(*r.FromTime)
		if err != nil {
			return 0, 0, err
		}
		from = max(from, offset)
	}
	if r.ToTime != nil {
		offset, err := at(*r.ToTime)
		if err != nil {
			return 0, 0, err
		}
		to = min(to, offset)
	}
	return from, to, nil
}

type catter struct {
	fs       vfs.FS
	target   Target
	log      *commitlog.Log
	o        CatOptions
	each     func(Record) error
	from, to int64
	given    int64
	it       record.Iterator
	txns     []abortedTxn   // those that touch the range and are still to come, by first offset
	aborted  map[int64]bool // producers inside of an aborted transaction
	bases    []int64        // of the segments; nil: not asked for yet
	reading  int64          // base of the segment that was read last
}

// abortedTxn is a transaction that was aborted.
type abortedTxn struct{ first, producer int64 }

// prepareCommitted finds the aborted transactions of the range from the batches, and where stable records end.
func (c *catter) prepareCommitted() error {
	s, err := Transactions(c.fs, c.target, c.o.Progress, func(t Transaction) error {
		if t.State == "aborted" && t.MarkerOffset >= c.from && t.FirstOffset < c.to {
			c.txns = append(c.txns, abortedTxn{t.FirstOffset, t.ProducerID})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(c.txns, func(a, b abortedTxn) int { return cmp.Compare(a.first, b.first) })
	c.to = min(c.to, s.LastStableOffset)
	return nil
}

func (c *catter) run() error {
	for at := c.from; at < c.to; {
		slice, err := c.log.Read(at, commitlog.ReadOptions{MaxBytes: readChunk, MinOneBatch: true, UpTo: c.log.EndOffset()})
		if err != nil {
			if !isDamage(err) {
				return err
			}
			c.o.Warn(err.Error())
			if at = c.behindDamage(at, err); at < 0 {
				return nil
			}
			continue
		}
		data, err := c.bytes(&slice)
		if err != nil {
			return err
		}
		next, err := c.batches(data, at)
		if err != nil {
			return err
		}
		if next <= at {
			if next = c.behindSegment(at); next < 0 {
				return nil
			}
		}
		at = next
	}
	return nil
}

// bytes reads a slice. What was kept of the segment before is given up.
func (c *catter) bytes(slice *commitlog.Slice) ([]byte, error) {
	defer slice.Release()
	if c.reading != slice.SegmentBase {
		if err := c.log.RestSegment(c.reading); err != nil {
			return nil, err
		}
		c.reading = slice.SegmentBase
	}
	data, err := slice.Bytes()
	if c.o.Progress != nil {
		c.o.Progress(int64(len(data)))
	}
	return data, err
}

// behindDamage is where to go on after an error that tells of damage at an offset: at the next good batch of the
// segment, else at the next segment; -1: there is none.
func (c *catter) behindDamage(at int64, err error) int64 {
	next := c.behindSegment(at)
	var damage *record.CorruptError
	if !errors.As(err, &damage) || damage.Pos < 0 {
		return next
	}
	f, err := c.fs.Open(damage.File)
	if err != nil {
		return next
	}
	defer f.Close()
	size, err := fileSize(c.fs, damage.File)
	if err != nil {
		return next
	}
	most := int64(math.MaxInt64)
	if next >= 0 {
		most = next - 1
	}
	pos, ok := resync(f, damage.Pos+1, size, size, at+1, most)
	sc := record.NewScanner(f, pos, size)
	if !ok || !sc.Next() {
		return next
	}
	return sc.Header().BaseOffset
}

// behindSegment is the base of the segment behind the one that holds an offset; -1: there is none.
func (c *catter) behindSegment(at int64) int64 {
	bases := c.segments()
	if i, _ := slices.BinarySearch(bases, at+1); i < len(bases) {
		return bases[i]
	}
	return -1
}

// segments are the bases of the segments, as far as the folder can be read.
func (c *catter) segments() []int64 {
	if c.bases == nil {
		c.bases = []int64{}
		if f, err := readFolder(c.fs, c.target.Dir); err == nil {
			c.bases = f.logs
		}
	}
	return c.bases
}

// batches goes over whole batches; next is the offset behind the last.
func (c *catter) batches(data []byte, at int64) (next int64, err error) {
	next = at
	for len(data) > 0 {
		h, entry, rest, err := record.NextEntry(data)
		if err != nil {
			if next == at && !errors.Is(err, record.ErrShort) {
				c.o.Warn(err.Error())
			}
			return next, nil
		}
		if err := c.batch(h, entry); err != nil {
			return next, err
		}
		if h.NextOffset() <= next {
			return next, nil // going back: damage
		}
		next, data = h.NextOffset(), rest
		if next >= c.to {
			return next, nil
		}
	}
	return next, nil
}

func (c *catter) batch(h record.Header, entry []byte) error {
	if !record.ValidCRC(entry) {
		c.o.Warn((&record.CorruptError{File: c.file(h.BaseOffset), Pos: -1, Offset: h.BaseOffset,
			Reason: "wrong checksum"}).Error())
	}
	if c.o.Committed && c.hidden(h) || h.IsControl() && !c.o.Control {
		return nil
	}
	if err := c.it.Reset(entry, record.IterOptions{}); err != nil {
		c.o.Warn(err.Error())
		return nil
	}
	defer c.it.Close()
	for c.it.Next() {
		r := c.it.Record()
		if r.Offset < c.from || r.Offset >= c.to || !c.wanted(r) {
			continue
		}
		if err := c.each(viewRecord(h, r)); err != nil {
			return err
		}
		if c.given++; c.given == c.o.Limit {
			return ErrStop
		}
	}
	if err := c.it.Err(); err != nil {
		c.o.Warn(err.Error())
	}
	return nil
}

func (c *catter) file(offset int64) string {
	base, bases := int64(math.MaxInt64), c.segments()
	if i, _ := slices.BinarySearch(bases, offset+1); i > 0 {
		base = bases[i-1]
	}
	return filepath.Join(c.target.Dir, segment.Name(base, segment.LogSuffix))
}

// hidden reports whether a reader of committed records does not see a batch.
func (c *catter) hidden(h record.Header) bool {
	for len(c.txns) > 0 && c.txns[0].first <= h.LastOffset {
		c.aborted[c.txns[0].producer] = true
		c.txns = c.txns[1:]
	}
	if h.IsControl() {
		delete(c.aborted, h.ProducerID)
		return true
	}
	return h.IsTransactional() && c.aborted[h.ProducerID]
}

func (c *catter) wanted(r *record.Record) bool {
	if c.o.Keys != nil && (r.Key == nil || !c.o.Keys.Match(r.Key)) {
		return false
	}
	if c.o.Grep == nil || c.o.Grep.Match(r.Key) || c.o.Grep.Match(r.Value) {
		return true
	}
	for _, h := range r.Headers {
		if c.o.Grep.Match(h.Key) || c.o.Grep.Match(h.Value) {
			return true
		}
	}
	return false
}
