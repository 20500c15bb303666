// Package wire reads and writes the primitive types of Kafka's protocol, which
// are also those of its records and metadata on disk.
//
// All fixed-size integers are big-endian. The variable-length ones are groups
// of seven bits, lowest first, the high bit of each byte saying that another
// follows:
//
//	uvarint   uint32, 1–5 bytes
//	varint    int32, zig-zag, 1–5 bytes
//	varlong   int64, zig-zag, 1–10 bytes
//
// Strings, byte fields and arrays come in three framings:
//
//	STRING, BYTES, ARRAY   int16 (STRING) or int32 length, -1 = null
//	COMPACT_…              uvarint length+1, 0 = null
//	record fields          varint length, negative = null
//
// Reading is by [Reader], whose error sticks; writing is by Append functions in
// the manner of package strconv. Nothing here allocates by a length that the
// input declares but does not hold.
//
// Concurrency: a Reader belongs to one goroutine; the functions are pure.
//
// Source: Kafka 4.3.1 protocol guide, "Protocol Primitive Types".
package wire

import "errors"

// Errors of a [Reader] and of the decoding functions.
var (
	// ErrShort means that the input ended inside a value.
	ErrShort = errors.New("input ends inside a value")
	// ErrVarint means that a variable-length integer did not end in the number
	// of bytes its type allows.
	ErrVarint = errors.New("variable-length integer is too long")
	// ErrLength means a length that is negative where null is not allowed, or
	// larger than the input that is left.
	ErrLength = errors.New("length is negative or larger than the input")
	// ErrTag means that tagged fields do not rise in tag number.
	ErrTag = errors.New("tagged fields are out of order")
)

// UUID is Kafka's 16-byte identifier; all zero stands for "none".
type UUID = [16]byte
