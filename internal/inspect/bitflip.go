package inspect

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"tidemark/record"
)

// patch is bytes of a file to be replaced.
type patch struct {
	pos  int64
	data []byte
	what string
}

// restoreBatch tries to undo a change of the bytes of one batch that its checksum can prove undone: one bit flipped
// anywhere, or a wrong length or magic. entry is all that lies between the batch before and the next, and is kept.
func restoreBatch(entry []byte, pos int64) (patch, bool) {
	if len(entry) < record.HeaderSize {
		return patch{}, false
	}
	fixed := append([]byte(nil), entry...)
	binary.BigEndian.PutUint32(fixed[8:], uint32(len(entry)-12))
	framed := fixed[magicAt] == 2 && string(fixed) == string(entry)
	fixed[magicAt] = 2
	if !framed && record.ValidCRC(fixed) && recordsFit(fixed) {
		return patch{pos + 8, append([]byte(nil), fixed[8:magicAt+1]...), "the length and magic that the checksum proves"},
			true
	}
	at, ok := flippedBit(fixed)
	if !ok {
		return patch{}, false
	}
	fixed[at/8] ^= 1 << (at % 8)
	if !record.ValidCRC(fixed) || !recordsFit(fixed) {
		return patch{}, false
	}
	from, to := at/8, at/8+1
	if !framed {
		from, to = min(from, 8), max(to, magicAt+1)
	}
	return patch{pos + int64(from), append([]byte(nil), fixed[from:to]...),
		"the one flipped bit that the checksum points at"}, true
}

// recordsFit decodes a batch.
func recordsFit(entry []byte) bool {
	it, err := record.NewIterator(entry, record.IterOptions{SkipKV: true})
	if err != nil {
		return false
	}
	defer it.Close()
	n := int32(0)
	for it.Next() {
		n++
	}
	return it.Err() == nil && n == it.Header().Count
}

// flippedBit finds the one bit of a magic-2 batch, counted from the first byte, low bits first, whose change makes the
// checksum right; ok is false when there is none or more than one.
//
// A checksum is linear: flipping a bit changes it by a pattern that depends only on how far the bit is from the end.
// So the patterns of all bits are walked from the end on and compared with the difference that is seen.
func flippedBit(entry []byte) (bit int, ok bool) {
	const crcAt, coveredAt = 17, 21
	table := crc32.MakeTable(crc32.Castagnoli)
	diff := binary.BigEndian.Uint32(entry[crcAt:]) ^ crc32.Checksum(entry[coveredAt:], table)
	if diff == 0 {
		return 0, false
	}
	found := 0
	if bits.OnesCount32(diff) == 1 { // in the stored checksum itself
		n := bits.TrailingZeros32(diff)
		bit, found = (crcAt+3-n/8)*8+n%8, 1
	}
	var pattern [8]uint32
	for b := range pattern {
		pattern[b] = table[1<<b]
	}
	for at := len(entry) - 1; at >= coveredAt; at-- {
		for b, p := range pattern {
			if p == diff {
				bit, found = at*8+b, found+1
			}
			pattern[b] = table[p&0xff] ^ p>>8
		}
	}
	return bit, found == 1
}
