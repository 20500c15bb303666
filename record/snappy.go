package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/snappy"
)

// A snappy body is a stream of the xerial library, or one bare block without
// any header (as librdkafka writes it):
//
//	 0                  8         12        16
//	┌──────────────────┬─────────┬─────────┬──────────────┬───────┬───
//	│82 S N A P P Y 00 │version 1│compat. 1│size int32 BE │ block │ …
//	└──────────────────┴─────────┴─────────┴──────────────┴───────┴───
const (
	xerialHeader    = "\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
	xerialMagicSize = 8
	// xerialBlock is how much of the plain bytes one block of ours holds.
	xerialBlock = 32 << 10
	// snappyMaxRatio bounds how much a snappy block can expand: a copy of 64
	// bytes takes three.
	snappyMaxRatio = 22
)

func appendSnappy(dst, src []byte) []byte {
	dst = append(dst, xerialHeader...)
	for len(src) > 0 {
		n := min(len(src), xerialBlock)
		at := len(dst)
		dst = grow(dst, at+4+snappy.MaxEncodedLen(n))
		block := snappy.Encode(dst[at+4:], src[:n])
		binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
		dst = dst[:at+4+len(block)]
		src = src[n:]
	}
	return dst
}

type unsnapper struct {
	rest []byte
	bare bool
	buf  []byte
}

func (s *unsnapper) reset(body []byte, _ int8) error {
	s.rest, s.bare = body, false
	if cap(s.buf) > maxKeptCarry {
		s.buf = nil
	}
	if len(body) == 0 {
		return io.ErrUnexpectedEOF
	}
	if !bytes.HasPrefix(body, []byte(xerialHeader[:xerialMagicSize])) {
		s.bare = true
		return nil
	}
	return s.header()
}

// header takes the sixteen bytes at the start of a stream, which may come again
// where streams were joined.
func (s *unsnapper) header() error {
	if len(s.rest) < len(xerialHeader) {
		return io.ErrUnexpectedEOF
	}
	if version := int32(binary.BigEndian.Uint32(s.rest[xerialMagicSize:])); version < 1 {
		return errors.New("xerial stream of an unknown version")
	}
	s.rest = s.rest[len(xerialHeader):]
	return nil
}

func (s *unsnapper) next(left int64) ([]byte, error) {
	for len(s.rest) > 0 {
		block, err := s.block()
		if err != nil {
			return nil, err
		}
		n, err := snappy.DecodedLen(block)
		if err != nil {
			return nil, err
		}
		if n > snappyMaxRatio*len(block) {
			return nil, snappy.ErrCorrupt
		}
		if int64(n) > left {
			return nil, ErrTooLarge
		}
		s.buf, err = snappy.Decode(s.buf[:cap(s.buf)], block)
		if err != nil || n > 0 {
			return s.buf, err
		}
	}
	return nil, io.EOF
}

func (s *unsnapper) block() ([]byte, error) {
	if s.bare {
		block := s.rest
		s.rest = nil
		return block, nil
	}
	for bytes.HasPrefix(s.rest, []byte(xerialHeader[:4])) {
		if err := s.header(); err != nil {
			return nil, err
		}
	}
	if len(s.rest) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	n := int64(binary.BigEndian.Uint32(s.rest))
	if n > int64(len(s.rest)-4) {
		return nil, io.ErrUnexpectedEOF
	}
	block := s.rest[4 : 4+n]
	s.rest = s.rest[4+n:]
	return block, nil
}
