package record

import (
	"errors"
	"io"
	"sync"
)

// DefaultMaxBytes bounds what one entry may decompress to when the caller names
// no bound: 256 MiB.
const DefaultMaxBytes = 256 << 20

// AppendCompressed compresses src as one body of a batch, in the framing that
// Kafka's own writer uses, and appends it to dst. None copies. level is that of
// compression.<codec>.level, 0 (and gzip's −1) standing for the default; a level
// out of range is brought into it. An unknown codec is a *CodecError.
func AppendCompressed(dst []byte, c Codec, level int, src []byte) ([]byte, error) {
	return appendCompressed(dst, c, 2, level, src)
}

func appendCompressed(dst []byte, c Codec, magic int8, level int, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return appendGzip(dst, level, src)
	case Snappy:
		return appendSnappy(dst, src), nil
	case LZ4:
		return appendLZ4(dst, magic, level, src)
	case Zstd:
		return appendZstd(dst, level, src)
	}
	return dst, unknownCodec(c)
}

// AppendDecompressed appends to dst what the body src of a batch decompresses
// to. More than maxBytes of it (DefaultMaxBytes if 0) is ErrTooLarge, and a body
// that is no stream of the codec *CodecError.
func AppendDecompressed(dst []byte, c Codec, src []byte, maxBytes int64) ([]byte, error) {
	return appendDecompressed(dst, c, 2, src, IterOptions{MaxBytes: maxBytes})
}

func appendDecompressed(dst []byte, c Codec, magic int8, src []byte, o IterOptions) ([]byte, error) {
	if c == None {
		return append(dst, src...), nil
	}
	var w window
	defer w.release()
	if err := w.open(c, magic, src, o); err != nil {
		return dst, err
	}
	for {
		err := w.fill()
		if err == io.EOF { //nolint:errorlint // the end; wrapped it would be damage
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		dst = append(dst, w.chunk...)
		w.chunk = nil
	}
}

// decompressor turns one body into pieces of plain bytes.
type decompressor interface {
	// reset starts with another body; reset(nil, 0) lets go of it.
	reset(src []byte, magic int8) error
	// next returns the next piece, not empty and valid until the following
	// call, and io.EOF after the last. A piece of more than left bytes is
	// ErrTooLarge.
	next(left int64) ([]byte, error)
}

// decompressors keeps the state of the codecs for reuse.
var decompressors = [...]sync.Pool{
	Gzip:   {New: func() any { return new(gunzipper) }},
	Snappy: {New: func() any { return new(unsnapper) }},
	LZ4:    {New: func() any { return new(lz4Reader) }},
	Zstd:   {New: func() any { return new(zstdReader) }},
}

func unknownCodec(c Codec) error {
	return &CodecError{Codec: c, Err: errors.New("unknown compression type")}
}

// window is the part of a body that is decompressed and not yet decoded.
type window struct {
	chunk []byte // unread bytes; all of them when src and file are nil
	carry []byte // own memory, for what straddles two pieces
	src   decompressor
	file  *Scanner // of whose entry, which is not compressed, a piece at a time is read
	at    int64    // position in the file behind the chunk
	codec Codec
	left  int64 // how much more src may yield

	memory Memory // that held bytes were acquired from; nil: none
	held   int64
}

// open starts a body; for None it is the window itself.
func (w *window) open(c Codec, magic int8, body []byte, o IterOptions) error {
	if c == None {
		w.chunk = body
		return nil
	}
	if !c.Known() {
		return unknownCodec(c)
	}
	w.left = o.MaxBytes
	if o.MaxBytes <= 0 {
		w.left = DefaultMaxBytes
	}
	w.codec = c
	w.hold(o.Memory, len(body))
	w.src = decompressors[c].Get().(decompressor)
	if err := w.src.reset(body, magic); err != nil {
		w.release()
		return &CodecError{Codec: c, Err: err}
	}
	return nil
}

// need brings at least n bytes into the chunk, or all that are left.
func (w *window) need(n int) error {
	for len(w.chunk) < n {
		if err := w.fill(); err == io.EOF { //nolint:errorlint // the end; wrapped it would be damage
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// fill adds one piece to the chunk; io.EOF says that there is none.
func (w *window) fill() error {
	if w.file != nil {
		return w.read()
	}
	if w.src == nil {
		return io.EOF
	}
	kept := len(w.chunk)
	if kept > 0 { // src may overwrite its last piece
		w.carry = append(w.carry[:0], w.chunk...)
		w.chunk = w.carry
	}
	piece, err := w.src.next(w.left)
	if err == io.EOF || errors.Is(err, ErrTooLarge) { //nolint:errorlint // the end; wrapped it would be damage
		return err
	}
	if err != nil {
		return &CodecError{Codec: w.codec, Err: err}
	}
	if w.left -= int64(len(piece)); w.left < 0 {
		return ErrTooLarge
	}
	if kept == 0 {
		w.chunk = piece
		return nil
	}
	w.carry = append(w.carry, piece...)
	w.chunk = w.carry
	return nil
}

// read adds a piece of the file to the chunk, which aliases the scanner's buffer.
func (w *window) read() error {
	have := len(w.chunk)
	pos, end := w.at-int64(have), w.file.next
	if w.at >= end {
		return io.EOF
	}
	p, err := w.file.load(pos, int(min(int64(have+max(have, maxReadAhead)), end-pos)))
	if err != nil {
		return &ReadError{err}
	}
	if len(p) <= have {
		return &ReadError{w.file.lacks(pos + int64(len(p)))}
	}
	w.chunk = p[:min(int64(len(p)), end-pos)]
	w.at = pos + int64(len(w.chunk))
	return nil
}

// maxKeptCarry bounds the memory that an idle iterator holds on to.
const maxKeptCarry = 1 << 20

// release gives the codec's state back. The chunk is gone after it.
func (w *window) release() {
	w.chunk, w.file = nil, nil
	if cap(w.carry) > maxKeptCarry {
		w.carry = nil
	}
	if w.src != nil {
		_ = w.src.reset(nil, 0) // an empty body may be an error; it is let go all the same
		decompressors[w.codec].Put(w.src)
		w.src = nil
	}
	w.letGo()
}
