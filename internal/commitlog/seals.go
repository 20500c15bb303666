package commitlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"tidemark/internal/segment"
	"tidemark/vfs"
)

// SealsFile holds the seals of a partition's segments. Kafka passes over a file of this name and keeps it.
const SealsFile = "tidemark.seals"

const (
	sealsMagic      = "TMSEALS\x01"
	sealFrameSize   = 8
	maxSealsBytes   = 256 << 20
	maxStrayEntries = 64
	// sealCheckCost is what a scrub counts for opening a segment, in bytes.
	sealCheckCost = 32 << 10
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// seals is the file of seals: appended to, read once when the first segment asks, written anew when most of it is of
// segments that are gone.
//
//	 0           8
//	+-----------+-------+-----------+------+-------+-----------+------+ …
//	| "TMSEALS" | size  | crc-32c   | seal | size  | crc-32c   | seal | …
//	| 1         | int32 | of seal   |      | int32 | of seal   |      |
//	+-----------+-------+-----------+------+-------+-----------+------+ …
//
// The last seal of a segment counts. Reading ends at the first bytes that are no seal.
//
// It is not synced: a seal that a power loss takes is made again, and one of a segment whose data was lost is not asked
// for, since recovery makes a new one.
type seals struct {
	log *Log

	mu     sync.Mutex
	loaded bool
	asked  map[int64][]byte // encoded, of segments that did not ask yet
	end    int64            // of the file
	n      int              // seals in it
}

// of gives the seal of a segment, once.
func (s *seals) of(base int64) (segment.Seal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		s.log.o.Logger.Warn("seals cannot be read", "error", err)
		return segment.Seal{}, false
	}
	data, ok := s.asked[base]
	if !ok {
		return segment.Seal{}, false
	}
	delete(s.asked, base)
	seal, err := segment.DecodeSeal(data)
	return seal, err == nil
}

// load reads the file at the first use. The caller holds mu.
func (s *seals) load() error {
	if s.loaded {
		return nil
	}
	data, err := readBounded(s.log.o.FS, s.log.path(SealsFile))
	if err != nil {
		return err
	}
	s.loaded = true
	var all map[int64][]byte
	all, s.end, s.n = decodeSeals(data)
	s.asked = make(map[int64][]byte)
	for _, one := range s.log.segmentsNow() {
		if seal, ok := all[one.BaseOffset()]; ok {
			s.asked[one.BaseOffset()] = seal
		}
	}
	return nil
}

// forget starts over without a file.
func (s *seals) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded, s.asked, s.end, s.n = true, nil, 0, 0
}

func readBounded(fsys vfs.FS, name string) ([]byte, error) {
	info, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > maxSealsBytes {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return vfs.ReadFile(fsys, name)
}

// ReadSeals reads the seals of a partition's folder, by the base offsets of their segments; none where there is no
// file, or one that is no seals'. Whether a seal still fits its segment it does not say. Errors are the disk's.
func ReadSeals(fsys vfs.FS, dir string) (map[int64]segment.Seal, error) {
	data, err := readBounded(fsys, filepath.Join(dir, SealsFile))
	if err != nil {
		return nil, err
	}
	encoded, _, _ := decodeSeals(data)
	seals := make(map[int64]segment.Seal, len(encoded))
	for base, body := range encoded {
		if seal, err := segment.DecodeSeal(body); err == nil {
			seals[base] = seal
		}
	}
	return seals, nil
}

// decodeSeals returns the last seal of each segment, where the good ones end, and how many there are.
func decodeSeals(data []byte) (all map[int64][]byte, end int64, n int) {
	all = make(map[int64][]byte)
	if len(data) < len(sealsMagic) || string(data[:len(sealsMagic)]) != sealsMagic {
		return all, 0, 0
	}
	end = int64(len(sealsMagic))
	for rest := data[end:]; len(rest) >= sealFrameSize; n++ {
		size := int64(binary.BigEndian.Uint32(rest))
		if size < 8 || size > int64(len(rest)-sealFrameSize) {
			break
		}
		body := rest[sealFrameSize : sealFrameSize+size]
		if crc32.Checksum(body, crcTable) != binary.BigEndian.Uint32(rest[4:]) {
			break
		}
		all[int64(binary.BigEndian.Uint64(body))] = body
		rest = rest[sealFrameSize+size:]
		end += sealFrameSize + size
	}
	return all, end, n
}

func appendSeal(dst, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.Checksum(body, crcTable))
	return append(dst, body...)
}

// put stores a seal. An error leaves the file as it was, or with half a seal at its end, which is overwritten later.
func (s *seals) put(seal segment.Seal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return err
	}
	delete(s.asked, seal.BaseOffset)
	data := appendSeal(nil, seal.AppendTo(nil))
	if s.n > 2*len(s.log.segmentsNow())+maxStrayEntries {
		return s.rewrite(data)
	}
	if s.end == 0 {
		data = append([]byte(sealsMagic), data...)
	}
	f, err := s.log.o.FS.OpenFile(s.log.path(SealsFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, s.end)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	s.end += int64(len(data))
	s.n++
	return nil
}

// rewrite drops the seals of segments that are gone, and adds one that is encoded already.
func (s *seals) rewrite(added []byte) error {
	name := s.log.path(SealsFile)
	data, err := readBounded(s.log.o.FS, name)
	if err != nil {
		return err
	}
	all, _, _ := decodeSeals(data)
	out, n := []byte(sealsMagic), 1
	for _, one := range s.log.segmentsNow() {
		if seal, ok := all[one.BaseOffset()]; ok && len(out) < math.MaxInt32 {
			out, n = appendSeal(out, seal), n+1
		}
	}
	out = append(out, added...)
	if err := vfs.WriteFileAtomic(s.log.o.FS, name, out); err != nil {
		return err
	}
	s.end, s.n = int64(len(out)), n
	return nil
}

// seal stores the seal of a segment that takes no more appends, if all of it is proven. A seal that cannot be stored
// is missed by nobody but the next first use.
func (l *Log) seal(s *segment.Segment) {
	if f := l.failure.Load(); s.Sealed() || s.Doomed() || l.closed.Load() || f != nil && !errors.Is(f.err, ErrReadOnly) {
		return
	}
	seal, ok, err := s.Seal()
	if err == nil && ok {
		if err = l.seals.put(seal); err == nil {
			s.MarkSealed()
			l.o.Metrics.Seals.Add(1)
		}
	}
	if err != nil {
		l.o.Logger.Warn("a segment cannot be sealed", "segment", s.BaseOffset(), "error", err)
	}
}

// Scrub proves what is not proven yet of the segments that take no more appends, oldest first, and seals them. It reads
// about budget bytes and returns how many it read, the opening of a segment counted as some; done says that nothing is
// left to prove. A segment that cannot be read is passed over until the log is opened again. Errors are the disk's.
func (l *Log) Scrub(budget int64) (read int64, done bool, err error) {
	if l.closed.Load() {
		return 0, true, ErrClosed
	}
	v := l.view.Load()
	for _, s := range v.segments[:len(v.segments)-1] {
		if s.Sealed() || l.unreadable(s) || !s.Acquire() {
			continue
		}
		n, proven, err := s.Scrub(max(budget-read, 1))
		if err == nil && proven {
			l.seal(s)
		}
		s.Release()
		read += n + sealCheckCost
		if err != nil {
			if l.outdated(v, err) {
				return read, false, nil
			}
			l.skip(s)
			return read, false, err
		}
		if !proven || read >= budget {
			return read, false, nil
		}
	}
	return read, true, nil
}

func (l *Log) unreadable(s *segment.Segment) bool {
	_, skip := l.skipped.Load(s.BaseOffset())
	return skip
}

func (l *Log) skip(s *segment.Segment) { l.skipped.Store(s.BaseOffset(), nil) }

// Proven counts the segments of which every batch is known to have the right checksum, or to be damaged, and all. A
// segment whose seal nobody has asked for yet does not count.
func (l *Log) Proven() (proven, total int) {
	v := l.view.Load()
	for _, s := range v.segments {
		if s.Proven() {
			proven++
		}
	}
	return proven, len(v.segments)
}
