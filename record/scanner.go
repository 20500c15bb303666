package record

import (
	"errors"
	"fmt"
	"io"
)

// Read-ahead of a Scanner: it starts small, for look-ups that want one or two
// headers, and doubles while entries follow each other closely.
const (
	minReadAhead = 1 << 10
	maxReadAhead = 64 << 10

	// DefaultMaxBatch is what Scanner.MaxBatchBytes is when left 0.
	DefaultMaxBatch = 1 << 30
)

// Scanner walks the entries of a file by their headers, in file order. Headers
// need only the read-ahead of at most 64 KiB; [Scanner.Batch] also loads the
// body. The zero Scanner is ready for [Scanner.Reset].
type Scanner struct {
	// File is the name that a CorruptError gives.
	File string
	// MaxBatchBytes is the largest entry that Batch loads; DefaultMaxBatch if 0.
	MaxBatchBytes int

	r        io.ReaderAt
	pos, end int64 // of the current entry; of the part to scan
	next     int64 // position of the entry after it
	header   Header
	err      error

	buf     []byte // bytes of the file from bufPos on
	bufPos  int64
	ahead   int
	scanned int64
}

// NewScanner returns a Scanner over the bytes [pos, end) of r, with pos at the
// start of an entry.
func NewScanner(r io.ReaderAt, pos, end int64) *Scanner {
	s := new(Scanner)
	s.Reset(r, pos, end)
	return s
}

// Reset starts over with another file or part, keeping the buffer.
func (s *Scanner) Reset(r io.ReaderAt, pos, end int64) {
	*s = Scanner{
		File: s.File, MaxBatchBytes: s.MaxBatchBytes,
		r: r, pos: pos, next: pos, end: end,
		buf: s.buf[:0], ahead: minReadAhead,
	}
}

// Next steps to the next entry and reports whether there is one. It is false at
// the end, at damage, and when a read fails; [Scanner.Err] tells these apart.
func (s *Scanner) Next() bool {
	if s.err != nil || s.next >= s.end {
		return false
	}
	s.pos = s.next
	p, err := s.load(s.pos, HeaderSize)
	if err != nil {
		s.err = err
		return false
	}
	s.header, err = ParseHeader(p)
	if err != nil {
		s.err = s.damage(err, len(p))
		return false
	}
	if s.pos+int64(s.header.SizeBytes) > s.end {
		s.err = s.incomplete(s.header.BaseOffset, fmt.Sprintf("entry of %d bytes has only %d",
			s.header.SizeBytes, s.end-s.pos))
		return false
	}
	s.next = s.pos + int64(s.header.SizeBytes)
	return true
}

// Header is the current entry's.
func (s *Scanner) Header() Header { return s.header }

// Pos is the position of the current entry, or of the damage at which Next
// stopped.
func (s *Scanner) Pos() int64 { return s.pos }

// End is the position after the last entry that Next accepted, where a log with
// a damaged tail would be cut.
func (s *Scanner) End() int64 { return s.next }

// Batch loads the current entry, header included. The bytes are valid until the
// next call of Next or Reset. Errors: those of the reader, *CorruptError when
// the file is shorter than the scanned part, and an error that wraps
// ErrTooLarge for an entry above MaxBatchBytes.
func (s *Scanner) Batch() ([]byte, error) {
	n := int(s.header.SizeBytes)
	limit := s.MaxBatchBytes
	if limit == 0 {
		limit = DefaultMaxBatch
	}
	if n > limit {
		return nil, fmt.Errorf("load entry of %d bytes at byte %d of %s: %w", n, s.pos, s.File, ErrTooLarge)
	}
	p, err := s.load(s.pos, n)
	if err != nil {
		return nil, err
	}
	if len(p) < n {
		return nil, s.lacks(s.pos + int64(len(p)))
	}
	return p[:n:n], nil
}

// lacks is the error for a file that ends inside the current entry.
func (s *Scanner) lacks(end int64) error {
	return s.incomplete(s.header.BaseOffset, fmt.Sprintf("entry of %d bytes has only %d", s.header.SizeBytes, end-s.pos))
}

// RawHeader is the bytes of the current entry's header, valid until the next
// call: HeaderSize of them, or all of a shorter entry. Errors are those of the
// reader.
func (s *Scanner) RawHeader() ([]byte, error) {
	n := min(HeaderSize, int(s.header.SizeBytes))
	p, err := s.load(s.pos, n)
	if err == nil && len(p) < n {
		err = s.lacks(s.pos + int64(len(p)))
	}
	if err != nil {
		return nil, err
	}
	return p[:n], nil
}

// ValidCRC reads the current entry in pieces, whatever its size, and reports
// whether its checksum is right.
func (s *Scanner) ValidCRC() (bool, error) {
	at, end := s.pos+int64(s.header.crcStart()), s.pos+int64(s.header.SizeBytes)
	crc := uint32(0)
	for at < end {
		p, err := s.load(at, int(min(end-at, maxReadAhead)))
		if err != nil {
			return false, err
		}
		if len(p) == 0 {
			return false, nil
		}
		p = p[:min(int64(len(p)), end-at)]
		crc = s.header.addCRC(crc, p)
		at += int64(len(p))
	}
	return crc == s.header.CRC, nil
}

// Err is nil at the end of the part, *CorruptError for damage, or the error of
// the reader.
func (s *Scanner) Err() error { return s.err }

// BytesRead is the number of bytes read from the file since Reset.
func (s *Scanner) BytesRead() int64 { return s.scanned }

// load returns the bytes from pos on: at least n of them, or all up to the end
// if that comes first. They alias the buffer.
func (s *Scanner) load(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), s.end-pos))
	if skip := pos - s.bufPos; skip >= 0 && skip <= int64(len(s.buf)) {
		if int64(len(s.buf))-skip >= int64(n) {
			return s.buf[skip:], nil
		}
		if skip < int64(len(s.buf)) { // entries lie close together
			s.ahead = min(2*s.ahead, maxReadAhead)
		}
		s.buf = s.buf[:copy(s.buf, s.buf[skip:])]
	} else {
		s.ahead = max(s.ahead/2, minReadAhead)
		s.buf = s.buf[:0]
	}
	s.bufPos = pos
	return s.buf, s.fill(n)
}

// fill reads until the buffer holds n bytes, in steps that do not outgrow what
// the file really holds.
func (s *Scanner) fill(n int) error {
	for want := max(n, s.ahead); len(s.buf) < n; {
		at := s.bufPos + int64(len(s.buf))
		step := int(min(int64(want-len(s.buf)), s.end-at, int64(max(len(s.buf), maxReadAhead))))
		have := len(s.buf)
		s.buf = grow(s.buf, have+step)
		got, err := s.r.ReadAt(s.buf[have:have+step], at)
		s.buf = s.buf[:have+got]
		s.scanned += int64(got)
		if err == io.EOF || (err == nil && got == 0) {
			return nil // shorter than said; the caller sees it by the length
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func grow(b []byte, n int) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	return append(b[:cap(b)], make([]byte, n-cap(b))...)[:n]
}

func (s *Scanner) damage(err error, have int) error {
	if errors.Is(err, ErrShort) {
		return s.incomplete(-1, fmt.Sprintf("header has only %d bytes", have))
	}
	var c *CorruptError
	if errors.As(err, &c) {
		c.File, c.Pos = s.File, s.pos
	}
	return err
}

func (s *Scanner) incomplete(offset int64, reason string) error {
	return &CorruptError{File: s.File, Pos: s.pos, Offset: offset, Reason: reason, Incomplete: true}
}
