package record

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ValidCRC reports whether the checksum of a whole entry of any magic is right.
// An entry that is too short for its magic, or whose length field differs from
// len(entry), has no right checksum.
func ValidCRC(entry []byte) bool {
	h, err := ParseHeader(entry)
	if err != nil || int(h.SizeBytes) != len(entry) {
		return false
	}
	return h.CRC == h.newCRC(entry[h.crcStart():])
}

// crcStart is the position of the first byte under the checksum.
//
//	magic 2    CRC-32C over [21, end): from the attributes on
//	magic 0,1  CRC-32 (IEEE) over [16, end): from the magic on
func (h Header) crcStart() int {
	if h.Magic >= 2 {
		return posAttributes
	}
	return posMagic
}

func (h Header) newCRC(p []byte) uint32 { return h.addCRC(0, p) }

// addCRC continues the checksum of an entry of h's magic with more bytes.
func (h Header) addCRC(crc uint32, p []byte) uint32 {
	if h.Magic >= 2 {
		return crc32.Update(crc, castagnoli, p)
	}
	return crc32.Update(crc, crc32.IEEETable, p)
}

func putCRC(batch []byte) {
	crc := crc32.Checksum(batch[posAttributes:], castagnoli)
	binary.BigEndian.PutUint32(batch[posCRC:], crc)
}
