package record

import (
	"encoding/binary"
	"math/bits"
)

const (
	xxPrime1 uint32 = 2654435761
	xxPrime2 uint32 = 2246822519
	xxPrime3 uint32 = 3266489917
	xxPrime4 uint32 = 668265263
	xxPrime5 uint32 = 374761393
)

// xxHash32 is the xxHash of 32 bits with seed 0, which lz4 frames carry.
//
// Source: the xxHash specification, "XXH32 algorithm description".
func xxHash32(p []byte) uint32 {
	total := uint32(len(p))
	h := xxPrime5
	if len(p) >= 16 {
		one, two := xxPrime1, xxPrime2 // variables, so that sums may wrap
		lanes := [4]uint32{one + two, two, 0, -one}
		for ; len(p) >= 16; p = p[16:] {
			for i := range lanes {
				lanes[i] = bits.RotateLeft32(lanes[i]+binary.LittleEndian.Uint32(p[4*i:])*xxPrime2, 13) * xxPrime1
			}
		}
		h = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	h += total
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*xxPrime3, 17) * xxPrime4
	}
	for _, c := range p {
		h = bits.RotateLeft32(h+uint32(c)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}
