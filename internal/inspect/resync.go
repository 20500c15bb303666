package inspect

import (
	"encoding/binary"
	"io"

	"tidemark/record"
)

const (
	resyncWindow = 1 << 20
	// maxDecoded bounds the batches that are read as a whole. The checksum of a larger one is read in pieces.
	maxDecoded = 64 << 20
	magicAt    = 16
)

// resync finds the first whole batch with a right checksum that begins in the bytes [from, until) of a log of end
// bytes, and whose offsets lie in [least, most]. Memory is bounded; what looks like a batch is read in full.
func resync(r io.ReaderAt, from, until, end, least, most int64) (pos int64, ok bool) {
	buf := make([]byte, min(resyncWindow, max(until-from, 0))+record.HeaderSize)
	for at := from; at < until && at+magicAt < end; at += resyncWindow {
		part := buf[:min(int64(len(buf)), end-at)]
		if n, err := r.ReadAt(part, at); n < len(part) {
			_ = err // the rest cannot be read: what is there is searched
			part = part[:n]
		}
		for i := 0; i+magicAt < len(part) && int64(i) < min(resyncWindow, until-at); i++ {
			if part[i+magicAt] > 2 {
				continue
			}
			offset := int64(binary.BigEndian.Uint64(part[i:]))
			size := int64(int32(binary.BigEndian.Uint32(part[i+8:]))) + 12
			if offset < least || offset > most || size < 26 || at+int64(i)+size > end {
				continue
			}
			if wholeBatch(r, at+int64(i), end, most) {
				return at + int64(i), true
			}
		}
	}
	return 0, false
}

// wholeBatch reports whether a good batch starts at pos.
func wholeBatch(r io.ReaderAt, pos, end, most int64) bool {
	sc := record.NewScanner(r, pos, end)
	if !sc.Next() {
		return false
	}
	if h := sc.Header(); h.LastOffset > most || h.LastOffset < h.BaseOffset {
		return false
	}
	good, err := sc.ValidCRC()
	return err == nil && good
}

// onlyZeros reports whether the bytes [from, end) are all zero.
func onlyZeros(r io.ReaderAt, from, end int64) (bool, error) {
	buf := make([]byte, 256<<10)
	for from < end {
		part := buf[:min(int64(len(buf)), end-from)]
		n, err := r.ReadAt(part, from)
		for _, b := range part[:n] {
			if b != 0 {
				return false, nil
			}
		}
		if n < len(part) {
			if err == io.EOF {
				return true, nil
			}
			return false, err
		}
		from += int64(n)
	}
	return true, nil
}
