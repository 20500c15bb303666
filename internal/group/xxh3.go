package group

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// xxh3 is the 64-bit hash XXH3 with seed 0, by which Kafka tells whether the topics of a consumer group have changed.
//
// Source: the specification of XXH3, xxHash 0.8.
func xxh3(b []byte) uint64 {
	switch n := len(b); {
	case n <= 16:
		return xxh3Short(b)
	case n <= 128:
		return xxh3Medium(b)
	case n <= 240:
		return xxh3Upper(b)
	default:
		return xxh3Long(b)
	}
}

const (
	prime32x1 = 0x9E3779B1
	prime32x2 = 0x85EBCA77
	prime32x3 = 0xC2B2AE3D
	prime64x1 = 0x9E3779B185EBCA87
	prime64x2 = 0xC2B2AE3D27D4EB4F
	prime64x3 = 0x165667B19E3779F9
	prime64x4 = 0x85EBCA77C2B2AE63
	prime64x5 = 0x27D4EB2F165667C5
	primeMX1  = 0x165667919E3779F9
	primeMX2  = 0x9FB21C651E98DF25
)

// xxh3Secret is the secret that XXH3 uses when it is given none.
var xxh3Secret = mustHex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f" +
	"cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c" +
	"3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8" +
	"a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364" +
	"eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e" +
	"2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")

func mustHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // a constant
	}
	return b
}

func le32(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func secret64(i int) uint64 { return le64(xxh3Secret[i:]) }

func mulFold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func xxh3Avalanche(h uint64) uint64 {
	h ^= h >> 37
	h *= primeMX1
	return h ^ h>>32
}

func xxh64Avalanche(h uint64) uint64 {
	h ^= h >> 33
	h *= prime64x2
	h ^= h >> 29
	h *= prime64x3
	return h ^ h>>32
}

func xxh3Short(b []byte) uint64 {
	n := len(b)
	switch {
	case n > 8:
		lo := le64(b) ^ secret64(24) ^ secret64(32)
		hi := le64(b[n-8:]) ^ secret64(40) ^ secret64(48)
		return xxh3Avalanche(uint64(n) + bits.ReverseBytes64(lo) + hi + mulFold(lo, hi))
	case n >= 4:
		h := (le32(b[n-4:]) + le32(b)<<32) ^ secret64(8) ^ secret64(16)
		h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
		h *= primeMX2
		h ^= h>>35 + uint64(n)
		h *= primeMX2
		return h ^ h>>28
	case n > 0:
		combined := uint64(b[0])<<16 | uint64(b[n>>1])<<24 | uint64(b[n-1]) | uint64(n)<<8
		return xxh64Avalanche(combined ^ le32(xxh3Secret) ^ le32(xxh3Secret[4:]))
	}
	return xxh64Avalanche(secret64(56) ^ secret64(64))
}

func mix16(b []byte, secret int) uint64 {
	return mulFold(le64(b)^secret64(secret), le64(b[8:])^secret64(secret+8))
}

func xxh3Medium(b []byte) uint64 {
	n := len(b)
	h := uint64(n) * prime64x1
	for i := (n - 1) / 32; i >= 0; i-- {
		h += mix16(b[16*i:], 32*i)
		h += mix16(b[n-16*(i+1):], 32*i+16)
	}
	return xxh3Avalanche(h)
}

func xxh3Upper(b []byte) uint64 {
	n := len(b)
	h := uint64(n) * prime64x1
	for i := range 8 {
		h += mix16(b[16*i:], 16*i)
	}
	h = xxh3Avalanche(h)
	for i := 8; i < n/16; i++ {
		h += mix16(b[16*i:], 16*(i-8)+3)
	}
	return xxh3Avalanche(h + mix16(b[n-16:], 136-17))
}

const (
	xxh3Stripe  = 64
	xxh3Stripes = 16 // of a block
)

type xxh3Lanes [8]uint64

func (a *xxh3Lanes) accumulate(b []byte, secret int) {
	for i := range a {
		data := le64(b[8*i:])
		key := data ^ secret64(secret+8*i)
		a[i^1] += data
		a[i] += (key & 0xFFFFFFFF) * (key >> 32)
	}
}

func (a *xxh3Lanes) scramble() {
	for i := range a {
		a[i] ^= a[i] >> 47
		a[i] ^= secret64(128 + 8*i)
		a[i] *= prime32x1
	}
}

func xxh3Long(b []byte) uint64 {
	n := len(b)
	a := xxh3Lanes{prime32x3, prime64x1, prime64x2, prime64x3, prime64x4, prime32x2, prime64x5, prime32x1}
	for i := range (n - 1) / xxh3Stripe {
		a.accumulate(b[i*xxh3Stripe:], 8*(i%xxh3Stripes))
		if i%xxh3Stripes == xxh3Stripes-1 {
			a.scramble()
		}
	}
	a.accumulate(b[n-xxh3Stripe:], 121)
	h := uint64(n) * prime64x1
	for i := range 4 {
		h += mulFold(a[2*i]^secret64(11+16*i), a[2*i+1]^secret64(19+16*i))
	}
	return xxh3Avalanche(h)
}
