package record

import (
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// zstdMaxWindow is the largest window that Kafka's decoder takes.
	zstdMaxWindow = 128 << 20
	// zstdWindow is that of our frames; a batch is rarely larger.
	zstdWindow = 1 << 20
	// zstdDefaultLevel is Kafka's default of compression.zstd.level.
	zstdDefaultLevel = 3
)

// zstdEncoders has a pool for each of the library's speeds, from 1 on.
var zstdEncoders [zstd.SpeedBestCompression + 1]sync.Pool

// appendZstd writes one frame without a checksum.
func appendZstd(dst []byte, level int, src []byte) ([]byte, error) {
	if level == 0 {
		level = zstdDefaultLevel
	}
	speed := zstd.EncoderLevelFromZstd(level)
	e, _ := zstdEncoders[speed].Get().(*zstd.Encoder)
	if e == nil {
		var err error
		e, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(zstdWindow), zstd.WithEncoderCRC(false), zstd.WithZeroFrames(true),
			zstd.WithLowerEncoderMem(true))
		if err != nil {
			return dst, &CodecError{Codec: Zstd, Err: err}
		}
	}
	dst = e.EncodeAll(src, dst)
	zstdEncoders[speed].Put(e)
	return dst, nil
}

// zstdReader decodes all frames at once: a frame may ask for a window of 128
// MiB, while decoding at once takes no more than what comes out.
type zstdReader struct {
	src  []byte
	dec  *zstd.Decoder
	max  int64 // that dec was made with
	buf  []byte
	done bool
}

func (z *zstdReader) reset(body []byte, _ int8) error {
	z.src, z.done = body, false
	if cap(z.buf) > maxKeptCarry {
		z.buf = nil
	}
	if body == nil {
		return nil
	}
	if len(body) == 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (z *zstdReader) next(left int64) ([]byte, error) {
	if z.done {
		return nil, io.EOF
	}
	if left <= 0 {
		return nil, ErrTooLarge
	}
	z.done = true
	if z.dec == nil || z.max != left {
		if err := z.setMax(left); err != nil {
			return nil, err
		}
	}
	var err error
	z.buf, err = z.dec.DecodeAll(z.src, z.buf[:0])
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, ErrTooLarge
	case err != nil:
		return nil, err
	case len(z.buf) == 0:
		return nil, io.EOF
	}
	return z.buf, nil
}

func (z *zstdReader) setMax(n int64) error {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(zstdMaxWindow), zstd.WithDecoderMaxMemory(uint64(n)))
	if err != nil {
		return err
	}
	z.dec, z.max = dec, n
	return nil
}
