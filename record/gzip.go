package record

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// gzipPiece is how much is decompressed at a time.
const gzipPiece = 16 << 10

// gzip levels run from 1 to 9; −1 is the default.
var gzipWriters [gzip.BestCompression + 1]sync.Pool

// gzipExtraFlags is the byte of the header that tells how hard the writer
// tried. Kafka: java.util.zip leaves it 0 at every level.
const gzipExtraFlags = 8

// appendGzip writes one member: 1f8b 08 00 00000000 00 ff, deflate blocks,
// CRC-32, size.
func appendGzip(dst []byte, level int, src []byte) ([]byte, error) {
	if level <= 0 {
		level = 0 // pool of the default level
	}
	pool := &gzipWriters[min(level, gzip.BestCompression)]
	out := bytes.NewBuffer(dst)
	z, _ := pool.Get().(*gzip.Writer)
	if z == nil {
		level = min(level, gzip.BestCompression)
		if level == 0 {
			level = gzip.DefaultCompression
		}
		var err error
		if z, err = gzip.NewWriterLevel(out, level); err != nil {
			return dst, &CodecError{Codec: Gzip, Err: err}
		}
	} else {
		z.Reset(out)
	}
	_, err := z.Write(src)
	err = errors.Join(err, z.Close())
	pool.Put(z)
	p := out.Bytes()
	if err == nil {
		p[len(dst)+gzipExtraFlags] = 0
	}
	return p, err
}

type gunzipper struct {
	src bytes.Reader
	z   gzip.Reader
	buf []byte
}

func (g *gunzipper) reset(body []byte, _ int8) error {
	g.src.Reset(body)
	if body == nil {
		return nil
	}
	return g.z.Reset(&g.src)
}

// next reads on into following members. Kafka: java.util.zip takes bytes after
// a member that start no other for the end.
func (g *gunzipper) next(int64) ([]byte, error) {
	if g.buf == nil {
		g.buf = make([]byte, gzipPiece)
	}
	for {
		n, err := g.z.Read(g.buf)
		if n > 0 {
			return g.buf[:n], nil
		}
		if errors.Is(err, gzip.ErrHeader) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, err
		}
	}
}
