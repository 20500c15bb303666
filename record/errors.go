package record

import (
	"errors"
	"fmt"
)

// Errors that name no place.
var (
	// ErrShort means that a slice ends before the header or entry that it
	// should hold.
	ErrShort = errors.New("bytes end inside an entry")
	// ErrTooLarge means that a body would decompress to more than
	// IterOptions.MaxBytes.
	ErrTooLarge = errors.New("decompressed records are larger than allowed")
)

// CorruptError is damage found in a log: an entry whose frame or checksum is
// wrong. It is the only error that a repair takes.
type CorruptError struct {
	File   string // path of the .log, "" when not from a file
	Pos    int64  // byte position of the entry in it, -1 when unknown
	Offset int64  // base offset in the entry's header, -1 when unreadable
	Reason string
	// Incomplete says that the bytes end inside the entry, as after a write
	// that was cut off; nothing else is known to be wrong with it.
	Incomplete bool
}

// Error says where and why.
func (e *CorruptError) Error() string {
	if e.File == "" && e.Pos < 0 {
		return e.Reason
	}
	return fmt.Sprintf("%s at byte %d (offset %d): %s", e.File, e.Pos, e.Offset, e.Reason)
}

// InvalidRecordError is an entry whose frame is right, but not its records.
// Kafka answers it with INVALID_RECORD.
type InvalidRecordError struct{ Reason string }

// Error is the reason, in Kafka's words where clients see them.
func (e *InvalidRecordError) Error() string { return e.Reason }

func invalid(format string, args ...any) error {
	return &InvalidRecordError{Reason: fmt.Sprintf(format, args...)}
}

// ReadError is a failure to read an entry that an [Iterator] decodes from a
// file, which tells nothing of the entry.
type ReadError struct{ Err error }

// Error is the cause.
func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// CodecError is a body that is no stream of its codec, or of a codec that does
// not exist.
type CodecError struct {
	Codec Codec
	Err   error
}

// Error names the codec and the cause.
func (e *CodecError) Error() string { return fmt.Sprintf("decompress %v: %v", e.Codec, e.Err) }

// Unwrap returns the cause.
func (e *CodecError) Unwrap() error { return e.Err }
