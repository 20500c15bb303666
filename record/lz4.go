package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/pierrec/lz4/v4"
)

// An lz4 body is one frame of independent blocks, in little-endian:
//
//	 0        4   5   6            +8            HC+1
//	┌────────┬───┬───┬────────────┬────┬────────┬───────┬──────────┬───┬────────┐
//	│184D2204│FLG│BD │[plain size]│ HC │size u32│ block │[xxhash32]│ … │0 (u32) │
//	└────────┴───┴───┴────────────┴────┴────────┴───────┴──────────┴───┴────────┘
//
// FLG: bits 6-7 version 1, 5 independent blocks, 4 block checksums, 3 plain
// size present, 2 checksum of the whole after the last block. BD: bits 4-6 hold
// 4 to 7 for blocks of at most 64 KiB, 256 KiB, 1 MiB, 4 MiB. HC is the second
// byte of the xxHash-32 of FLG, BD and plain size. The high bit of a block's
// size says that it is stored plain.
const (
	lz4Magic         = 0x184D2204
	lz4FlagsOurs     = 0x60
	lz4BlockOurs     = 0x40
	lz4BlockSize     = 64 << 10
	lz4Version       = 0xc0
	lz4Independent   = 0x20
	lz4BlockChecksum = 0x10
	lz4PlainSize     = 0x08
	lz4Reserved      = 0x03
	lz4Plain         = 1 << 31
	lz4MaxRatio      = 255

	// lz4FastLevel is Kafka's default of compression.lz4.level, at which it
	// takes the fast compressor; all others are "high compression".
	lz4FastLevel = 9
	lz4TopLevel  = 17
)

type lz4Encoder struct {
	fast lz4.Compressor
	high lz4.CompressorHC
	out  []byte
}

var lz4Encoders = sync.Pool{New: func() any { return new(lz4Encoder) }}

// lz4HeaderCheck is HC. Kafka: for magic 0 it was computed over the frame's
// magic too, and clients of that age expect it so (KAFKA-3160).
func lz4HeaderCheck(header []byte, magic int8) byte {
	if magic > 0 {
		header = header[4:]
	}
	return byte(xxHash32(header) >> 8)
}

func appendLZ4(dst []byte, magic int8, level int, src []byte) ([]byte, error) {
	start := len(dst)
	dst = append(binary.LittleEndian.AppendUint32(dst, lz4Magic), lz4FlagsOurs, lz4BlockOurs)
	dst = append(dst, lz4HeaderCheck(dst[start:], magic))
	e := lz4Encoders.Get().(*lz4Encoder)
	defer lz4Encoders.Put(e)
	for len(src) > 0 {
		n := min(len(src), lz4BlockSize)
		block, err := e.compress(level, src[:n])
		if err != nil {
			return dst, &CodecError{Codec: LZ4, Err: err}
		}
		if block == nil {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(n)|lz4Plain)
			dst = append(dst, src[:n]...)
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(block)))
			dst = append(dst, block...)
		}
		src = src[n:]
	}
	return binary.LittleEndian.AppendUint32(dst, 0), nil
}

// compress returns nil for a block that does not become shorter.
func (e *lz4Encoder) compress(level int, src []byte) ([]byte, error) {
	e.out = grow(e.out[:0], lz4.CompressBlockBound(lz4BlockSize))
	var n int
	var err error
	if level == 0 || level == lz4FastLevel {
		n, err = e.fast.CompressBlock(src, e.out)
	} else {
		// The library's nine levels are powers of two from 1<<9 on.
		step := max(0, min(level, lz4TopLevel)-1) / 2
		e.high.Level = lz4.CompressionLevel(1 << (9 + step))
		n, err = e.high.CompressBlock(src, e.out)
	}
	if err != nil || n == 0 || n >= len(src) {
		return nil, err
	}
	return e.out[:n], nil
}

type lz4Reader struct {
	rest     []byte
	flags    byte
	maxBlock int
	buf      []byte
}

var errLZ4 = errors.New("not an lz4 frame that Kafka takes")

// reset reads the frame's header.
//
// Kafka: dependent blocks, dictionaries and reserved bits are refused
// (Lz4BlockInputStream).
func (r *lz4Reader) reset(body []byte, magic int8) error {
	r.rest = nil
	if cap(r.buf) > maxKeptCarry {
		r.buf = nil
	}
	if len(body) < 7 {
		return io.ErrUnexpectedEOF
	}
	r.flags = body[4]
	bd, size := body[5], 6
	const fixed = lz4Version | lz4Independent | lz4Reserved
	if binary.LittleEndian.Uint32(body) != lz4Magic || r.flags&fixed != lz4FlagsOurs ||
		bd&0x8f != 0 || bd < lz4BlockOurs {
		return errLZ4
	}
	if r.flags&lz4PlainSize != 0 {
		size += 8
	}
	if len(body) <= size {
		return io.ErrUnexpectedEOF
	}
	if magic > 0 && body[size] != lz4HeaderCheck(body[:size], magic) {
		return errors.New("lz4 frame header checksum is wrong")
	}
	r.maxBlock = lz4BlockSize << (2 * (bd>>4 - 4))
	r.rest = body[size+1:]
	return nil
}

func (r *lz4Reader) next(left int64) ([]byte, error) {
	for {
		block, plain, err := r.block()
		if err != nil {
			return nil, err
		}
		if plain {
			if len(block) == 0 {
				continue
			}
			return block, nil
		}
		r.buf = grow(r.buf[:0], min(r.maxBlock, lz4MaxRatio*len(block)+lz4MaxRatio))
		n, err := lz4.UncompressBlock(block, r.buf)
		if err != nil {
			return nil, err
		}
		if int64(n) > left {
			return nil, ErrTooLarge
		}
		if n > 0 {
			return r.buf[:n], nil
		}
	}
}

// block takes the next block of the frame, io.EOF at the end mark. What follows
// the mark is not looked at, as in Kafka.
func (r *lz4Reader) block() (block []byte, plain bool, err error) {
	if len(r.rest) < 4 {
		return nil, false, io.ErrUnexpectedEOF
	}
	word := binary.LittleEndian.Uint32(r.rest)
	if word == 0 {
		return nil, false, io.EOF
	}
	n := int(word &^ lz4Plain)
	if n > r.maxBlock {
		return nil, false, fmt.Errorf("lz4 block of %d bytes in a frame of at most %d", n, r.maxBlock)
	}
	end := 4 + n
	if r.flags&lz4BlockChecksum != 0 {
		end += 4
	}
	if end > len(r.rest) {
		return nil, false, io.ErrUnexpectedEOF
	}
	block = r.rest[4 : 4+n]
	if end > 4+n && binary.LittleEndian.Uint32(r.rest[4+n:]) != xxHash32(block) {
		return nil, false, errors.New("lz4 block checksum is wrong")
	}
	r.rest = r.rest[end:]
	return block, word&lz4Plain != 0, nil
}
