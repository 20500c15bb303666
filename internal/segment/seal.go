package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"tidemark/internal/index"
	"tidemark/record"
)

// Seal vouches for a segment that takes no more appends: every batch was read and its checksum found right or its
// damage noted, and the indexes were found to fit. It is void when it does not match the files any more.
type Seal struct {
	BaseOffset int64
	SizeBytes  int64  // of the log
	First      uint32 // CRC-32C of the first header
	Last       uint32 // and of the last one, at LastPos; 0 without a batch
	LastPos    int64
	Largest    index.TimeEntry
	Aborts     bool // aborted transactions end in it
	// Indexes are the offset, time and transaction index, in that order.
	Indexes [3]FileSum
	Damage  []Damage
}

// FileSum is what a seal tells of an index file.
type FileSum struct {
	SizeBytes int64  // -1: there is no such file
	Sum       uint32 // CRC-32C of the file, or of its first and last 32 KiB when it is larger than both
}

// sumPart is how much of each end of an index file is in its sum.
const sumPart = 32 << 10

const (
	sealFixedSize  = 8 + 8 + 4 + 4 + 8 + 8 + 8 + 1 + 3*12 + 2
	sealDamageSize = 5*8 + 2
	sealMaxDamage  = 1000
	sealMaxReason  = 500
)

// ErrSeal is what DecodeSeal returns for bytes that are no seal.
var ErrSeal = errors.New("no seal")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendTo appends the encoded seal:
//
//	 0      8      16      20     24        32           40          48      49        85        87
//	+------+------+-------+------+---------+------------+-----------+-------+---------+---------+----------+
//	| base | log  | first | last | last    | largest    | of        | flags | 3 × size| damages | damage … |
//	|      | size | crc   | crc  | pos     | timestamp  | offset    |       | and crc |         |          |
//	+------+------+-------+------+---------+------------+-----------+-------+---------+---------+----------+
//
// sizes are int64, crcs uint32, flags int8 (1: aborts), damages uint16. A damage is pos, end, from, to, the offset in
// the bad header (int64 each), the length of the reason (uint16) and the reason.
func (s Seal) AppendTo(dst []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint64(dst, uint64(s.BaseOffset))
	dst = be.AppendUint64(dst, uint64(s.SizeBytes))
	dst = be.AppendUint32(dst, s.First)
	dst = be.AppendUint32(dst, s.Last)
	dst = be.AppendUint64(dst, uint64(s.LastPos))
	dst = be.AppendUint64(dst, uint64(s.Largest.Timestamp))
	dst = be.AppendUint64(dst, uint64(s.Largest.Offset))
	flags := byte(0)
	if s.Aborts {
		flags = 1
	}
	dst = append(dst, flags)
	for _, f := range s.Indexes {
		dst = be.AppendUint64(dst, uint64(f.SizeBytes))
		dst = be.AppendUint32(dst, f.Sum)
	}
	dst = be.AppendUint16(dst, uint16(len(s.Damage)))
	for _, d := range s.Damage {
		for _, n := range []int64{d.Pos, d.End, d.From, d.To, d.Err.Offset} {
			dst = be.AppendUint64(dst, uint64(n))
		}
		reason := d.Err.Reason[:min(len(d.Err.Reason), sealMaxReason)]
		dst = be.AppendUint16(dst, uint16(len(reason)))
		dst = append(dst, reason...)
	}
	return dst
}

// DecodeSeal decodes a seal that takes all of b. The error is ErrSeal.
func DecodeSeal(b []byte) (Seal, error) {
	if len(b) < sealFixedSize {
		return Seal{}, ErrSeal
	}
	be := binary.BigEndian
	i64 := func(at int) int64 { return int64(be.Uint64(b[at:])) }
	s := Seal{
		BaseOffset: i64(0), SizeBytes: i64(8), First: be.Uint32(b[16:]), Last: be.Uint32(b[20:]), LastPos: i64(24),
		Largest: index.TimeEntry{Timestamp: i64(32), Offset: i64(40)}, Aborts: b[48]&1 != 0,
	}
	for i := range s.Indexes {
		s.Indexes[i] = FileSum{SizeBytes: i64(49 + 12*i), Sum: be.Uint32(b[57+12*i:])}
	}
	n := int(be.Uint16(b[85:]))
	b = b[sealFixedSize:]
	for range n {
		if len(b) < sealDamageSize {
			return Seal{}, ErrSeal
		}
		size := int(be.Uint16(b[40:]))
		if len(b) < sealDamageSize+size {
			return Seal{}, ErrSeal
		}
		s.Damage = append(s.Damage, Damage{
			Pos: i64(0), End: i64(8), From: i64(16), To: i64(24),
			Err: &record.CorruptError{Pos: i64(0), Offset: i64(32), Reason: string(b[42 : 42+size])},
		})
		b = b[sealDamageSize+size:]
	}
	if len(b) > 0 {
		return Seal{}, ErrSeal
	}
	return s, nil
}

// Seal makes the seal of a segment that takes no more appends and of which all is proven; false when it is not.
func (s *Segment) Seal() (Seal, bool, error) {
	if s.growing.Load() || !s.Proven() || !s.verified.Load() || !s.txnsOK.Load() {
		return Seal{}, false, nil
	}
	size, err := s.Size()
	if err != nil {
		return Seal{}, false, err
	}
	list := s.damaged()
	if len(list) > sealMaxDamage {
		return Seal{}, false, nil
	}
	seal := Seal{BaseOffset: s.base, SizeBytes: size, Damage: list}
	if seal.Largest, err = s.largestEntry(); err != nil {
		return Seal{}, false, err
	}
	if seal.LastPos, err = s.lastBatch(size); err != nil {
		return Seal{}, false, err
	}
	if seal.First, seal.Last, err = s.headerSums(size, seal.LastPos); err != nil {
		return Seal{}, false, err
	}
	txns := int64(0)
	if seal.Indexes, txns, err = s.indexSums(); err != nil {
		return Seal{}, false, err
	}
	seal.Aborts = txns > 0
	return seal, s.seen.Load() == s.seenBy(list), nil
}

// seenBy tells whether damage was noted since the list was read: it then is another.
func (s *Segment) seenBy(list damages) int64 {
	if now := s.damaged(); len(now) == len(list) && (len(now) == 0 || &now[0] == &list[0]) {
		return s.seen.Load()
	}
	return -1
}

// lastBatch is the position of the last batch, 0 when there is none.
func (s *Segment) lastBatch(size int64) (int64, error) {
	last, _, err := s.files().offsets.Last()
	if err != nil {
		return 0, err
	}
	sc := s.scanWith(last.Pos, size, walk{tail: true})
	defer sc.close()
	pos := int64(0)
	for sc.next() {
		pos = sc.Pos()
	}
	return pos, notDamage(sc.Err())
}

func (s *Segment) headerSums(size, lastPos int64) (first, last uint32, err error) {
	if first, err = s.headerSum(0, size); err != nil {
		return 0, 0, err
	}
	last, err = s.headerSum(lastPos, size)
	return first, last, err
}

func (s *Segment) headerSum(pos, size int64) (uint32, error) {
	var buf [record.HeaderSize]byte
	part := buf[:max(min(int64(len(buf)), size-pos), 0)]
	if len(part) == 0 {
		return 0, nil
	}
	if n, err := s.files().log.ReadAt(part, pos); n < len(part) {
		return 0, errors.Join(notEnd(err), io.ErrUnexpectedEOF)
	}
	return crc32.Checksum(part, castagnoli), nil
}

// indexSums reads the ends of the index files; txns is the size of the transaction index.
func (s *Segment) indexSums() (sums [3]FileSum, txns int64, err error) {
	s.mu.Lock()
	names := [3]string{s.pathLocked(IndexSuffix), s.pathLocked(TimeSuffix), s.pathLocked(TxnSuffix)}
	s.mu.Unlock()
	for i, p := range []Present{HasIndex, HasTime, HasTxn} {
		sums[i].SizeBytes = -1
		if !s.has(p) {
			continue
		}
		if sums[i], err = s.fileSum(names[i]); err != nil {
			return sums, 0, err
		}
	}
	return sums, max(sums[2].SizeBytes, 0), nil
}

func (s *Segment) fileSum(name string) (FileSum, error) {
	f, err := s.env.Files.FS().Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return FileSum{SizeBytes: -1}, nil
	}
	if err != nil {
		return FileSum{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return FileSum{}, err
	}
	sum := FileSum{SizeBytes: info.Size()}
	head := min(info.Size(), sumPart)
	tail := max(head, info.Size()-sumPart)
	buf := make([]byte, head+info.Size()-tail)
	if n, err := f.ReadAt(buf[:head], 0); n < int(head) {
		return sum, errors.Join(notEnd(err), io.ErrUnexpectedEOF)
	}
	if n, err := f.ReadAt(buf[head:], tail); n < len(buf)-int(head) {
		return sum, errors.Join(notEnd(err), io.ErrUnexpectedEOF)
	}
	sum.Sum = crc32.Checksum(buf, castagnoli)
	return sum, nil
}

// matches says why a seal is void; "" when it is not.
func (s *Segment) matches(seal Seal) (string, error) {
	size, err := s.Size()
	if err != nil {
		return "", err
	}
	if size != seal.SizeBytes {
		return fmt.Sprintf("the log has %d bytes, not %d", size, seal.SizeBytes), nil
	}
	first, last, err := s.headerSums(size, seal.LastPos)
	if err != nil {
		return "", err
	}
	if first != seal.First || last != seal.Last {
		return "the log has other batches", nil
	}
	sums, _, err := s.indexSums()
	if err != nil {
		return "", err
	}
	if sums != seal.Indexes {
		return "an index has changed", nil
	}
	return "", nil
}

// trySeal takes the segment's seal, if there is one that holds, for the checks of a first use. The caller holds
// checkMu.
func (s *Segment) trySeal() error {
	if s.env.Seal == nil || s.sealAsked || s.growing.Load() {
		return nil
	}
	s.sealAsked = true
	seal, ok := s.env.Seal(s.base)
	if !ok {
		return nil
	}
	reason, err := s.matches(seal)
	if err != nil {
		return err
	}
	if reason != "" {
		s.env.Metrics.SealsVoid.Add(1)
		s.env.Logger.Info("the seal of a segment is void: it is checked again", "segment", s.LogName(), "reason", reason)
		return nil
	}
	for _, d := range seal.Damage {
		d.Err.File = s.LogName()
		s.noteDamage(d)
	}
	s.setMax(seal.Largest)
	s.noteProven(0, max(seal.SizeBytes, 1))
	s.compared, s.builtWith = true, s.seen.Load()
	s.endsOK.Store(true)
	s.txnsOK.Store(true)
	// Of larger index files the seal knows the ends: their entries are still compared as they are used.
	s.trusted.Store(max(seal.Indexes[0].SizeBytes, seal.Indexes[1].SizeBytes) <= 2*sumPart)
	s.verified.Store(true)
	s.sealed.Store(true)
	return nil
}

// Sealed reports whether a seal for the segment is known to hold, or was made.
func (s *Segment) Sealed() bool { return s.sealed.Load() }

// MarkSealed notes that the segment's seal was stored.
func (s *Segment) MarkSealed() { s.sealed.Store(true) }

// Scrub reads up to budget bytes of a segment that takes no more appends, to prove it. It returns how many it read, and
// done when all of the segment is proven: [Segment.Seal] succeeds then. Errors are the disk's.
func (s *Segment) Scrub(budget int64) (read int64, done bool, err error) {
	if err := s.readyEnds(); err != nil { // takes a seal that holds
		return 0, false, err
	}
	size, err := s.Size()
	if err != nil {
		return 0, false, err
	}
	if !s.Proven() {
		pos := s.provenTo(0)
		if _, err := s.prove(pos, min(pos+budget, size), size); err != nil {
			return 0, false, err
		}
		read = max(s.provenTo(0), pos) - pos
		if s.provenTo(0) < size {
			return read, false, nil
		}
		s.noteProven(0, max(size, 1))
	}
	return read, true, s.readyTxns()
}
