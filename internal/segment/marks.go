package segment

import (
	"bytes"
	"encoding/binary"
	"sort"

	"tidemark/internal/wire"
	"tidemark/record"
)

// marks tell a look-up by time all it asks of a batch, without its records: the timestamp and offset of each record
// that is younger than every one before it. The first record that is not older than T is one of these. Records of one
// millisecond, of LogAppendTime, or out of order make no step, so marks are small: two bytes for most steps.
//
// They are kept as a note on the batch (index.Notes), behind the header it had, which must be the one it has. The
// steps are parted into blocks of markBlock, so that a binary search over the blocks' first steps leaves one to walk:
//
//	 0        61       65                                65+20n
//	┌────────┬────────┬─────────────────────────────────┬───────────────────────────────
//	│ header │ blocks │ n × first timestamp and offset, │ further steps, each: Δtimestamp,
//	│        │ n      │ position of its further steps   │ Δoffset uvarlong
//	│        │ uint32 │ int64, int64, uint32            │
//	└────────┴────────┴─────────────────────────────────┴───────────────────────────────
//
// A note of a header alone says that the batch was looked into once: marks are made the second time, for that takes
// reading all of it.
type marks []byte

const (
	markBlock     = 64
	markBlockSize = 20
	markStart     = record.HeaderSize + 4
	// maxMarks bounds the marks of a batch in bytes; a batch with more steps has none.
	maxMarks = 256 << 10
	// defaultMarkedBytes: to look into a smaller batch takes little more than the note would.
	defaultMarkedBytes = 16 << 10
)

// markable tells whether marks are kept for a batch.
func (e *Env) markable(h record.Header) bool {
	least := e.MarkedBytes
	if least == 0 {
		least = defaultMarkedBytes
	}
	if h.Codec() != record.None {
		least /= 8
	}
	return h.Magic >= 2 && h.Count > 1 && h.SizeBytes >= least
}

// complete tells marks from a note that is a header alone.
func (m marks) complete() bool { return len(m) > record.HeaderSize }

func (m marks) block(i int) (timestamp, offset int64, pos uint32) {
	b := m[markStart+i*markBlockSize:]
	be := binary.BigEndian
	return int64(be.Uint64(b)), int64(be.Uint64(b[8:])), be.Uint32(b[16:])
}

// first is the first record whose timestamp is at least ts; false when there is none.
func (m marks) first(ts int64) (timestamp, offset int64, ok bool) {
	n := int(binary.BigEndian.Uint32(m[record.HeaderSize:]))
	i := sort.Search(n, func(i int) bool { timestamp, _, _ := m.block(i); return timestamp >= ts })
	steps := m[markStart+n*markBlockSize:]
	if i < n {
		var end uint32
		timestamp, offset, end = m.block(i)
		steps = steps[:end]
	}
	if i == 0 {
		return timestamp, offset, n > 0
	}
	t, o, pos := m.block(i - 1)
	for steps = steps[pos:]; len(steps) > 0; {
		dt, used := wire.Uvarlong(steps)
		do, more := wire.Uvarlong(steps[used:])
		steps = steps[used+more:]
		t, o = t+int64(dt), o+int64(do)
		if t >= ts {
			return t, o, true
		}
	}
	return timestamp, offset, i < n
}

// marker makes the marks of a batch from its records.
type marker struct {
	blocks, steps     []byte
	n                 int
	timestamp, offset int64 // of the last step
	whole             bool  // all records were added
}

func (m *marker) add(offset, timestamp int64) {
	if m.n > 0 && timestamp <= m.timestamp || m.full() {
		return
	}
	if m.n%markBlock == 0 {
		be := binary.BigEndian
		m.blocks = be.AppendUint64(m.blocks, uint64(timestamp))
		m.blocks = be.AppendUint64(m.blocks, uint64(offset))
		m.blocks = be.AppendUint32(m.blocks, uint32(len(m.steps)))
	} else {
		m.steps = wire.AppendUvarlong(m.steps, uint64(timestamp-m.timestamp))
		m.steps = wire.AppendUvarlong(m.steps, uint64(offset-m.offset))
	}
	m.n++
	m.timestamp, m.offset = timestamp, offset
}

func (m *marker) size() int { return markStart + len(m.blocks) + len(m.steps) }

// full says that there are too many steps.
func (m *marker) full() bool { return m.size() > maxMarks }

// marks are those of all records added, behind the batch's header.
func (m *marker) marks(header []byte) marks {
	b := append(make([]byte, 0, m.size()), header...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.blocks)/markBlockSize))
	return append(append(b, m.blocks...), m.steps...)
}

// inBatch is what a look-up by time finds in a batch.
type inBatch struct {
	found   Found
	ok      bool // there is such a record
	damaged bool // the checksum of the batch is wrong
	decoded bool // the records were read
}

// lookInto finds the first record of the scanner's batch whose timestamp is at least ts and that is wanted, by the
// batch's marks where they tell. Errors are the disk's.
//
// Marks are made of a batch whose checksum was verified in this run, and stand for that.
func (s *Segment) lookInto(sc *scanner, ts int64, want func(offset, timestamp int64) bool) (inBatch, error) {
	if !s.env.markable(sc.h) {
		return s.readBatch(sc, nil, ts, want)
	}
	edition, pos := s.notes.Edition(), sc.Pos()
	raw, err := sc.RawHeader()
	if err != nil {
		return inBatch{}, err
	}
	header := [record.HeaderSize]byte(raw)
	m := marks(s.notes.Get(edition, pos))
	known := bytes.HasPrefix(m, header[:])
	if known && m.complete() {
		timestamp, offset, ok := m.first(ts)
		if !ok || want(offset, timestamp) {
			s.env.Metrics.Marked.Add(1)
			return inBatch{found: foundIn(sc, offset, timestamp), ok: ok}, nil
		}
		return s.readBatch(sc, nil, ts, want) // the log starts behind that record
	}
	note := marker{}
	if !known {
		s.notes.Put(edition, pos, bytes.Clone(header[:]))
		return s.readBatch(sc, nil, ts, want)
	}
	b, err := s.readBatch(sc, &note, ts, want)
	if err == nil && note.whole {
		s.notes.Put(edition, pos, note.marks(header[:]))
	}
	return b, err
}

// readBatch does as lookInto, by the records. note, if not nil, gets all of them.
func (s *Segment) readBatch(sc *scanner, note *marker, ts int64, want func(offset, timestamp int64) bool) (inBatch,
	error) {
	good, err := s.intact(sc)
	if err != nil || !good {
		return inBatch{damaged: !good}, err
	}
	f, ok, err := s.firstRecord(sc, note, func(offset, timestamp int64) bool {
		return timestamp >= ts && want(offset, timestamp)
	})
	return inBatch{found: f, ok: ok, decoded: true}, err
}
