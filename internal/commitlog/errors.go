package commitlog

import (
	"errors"
	"fmt"
)

// The reasons for which a batch is refused; an [*AppendError] wraps one. Each has one Kafka error code.
var (
	ErrInvalidRecord      = errors.New("invalid record")                    // INVALID_RECORD (87)
	ErrCorruptMessage     = errors.New("corrupt message")                   // CORRUPT_MESSAGE (2)
	ErrMessageTooLarge    = errors.New("message too large")                 // MESSAGE_TOO_LARGE (10)
	ErrRecordListTooLarge = errors.New("record list too large")             // RECORD_LIST_TOO_LARGE (18)
	ErrInvalidTimestamp   = errors.New("invalid timestamp")                 // INVALID_TIMESTAMP (32)
	ErrUndecodable        = errors.New("undecodable compressed data")       // UNKNOWN_SERVER_ERROR (-1)
	ErrUnsupportedCodec   = errors.New("codec not allowed in this request") // UNSUPPORTED_COMPRESSION_TYPE (76)
	ErrInvalidTxnState    = errors.New("invalid transaction state")         // INVALID_TXN_STATE (48)
	ErrOffsetsOutOfOrder  = errors.New("offsets out of order")              // follower append only
	ErrUnexpectedOffset   = errors.New("unexpected offset in append")       // follower append only
)

// ErrFailed is wrapped by every error after the disk failed an append, a flush, a roll or a truncation: the log
// takes no further change (KAFKA_STORAGE_ERROR), unless the error also wraps [ErrDiskFull].
var ErrFailed = errors.New("log failed")

// ErrClosed is returned by a closed log.
var ErrClosed = errors.New("log is closed")

// AppendError is a refused batch. Nothing was appended.
type AppendError struct {
	Reason error  // one of the Err… variables above
	Text   string // Kafka's text, word for word
	// OnWire says that Kafka puts Text into the response; elsewhere its broker only logs it.
	OnWire bool
	// RecordErrors are the records at fault, in order; empty when the batch as a whole is.
	RecordErrors []RecordError
}

// Error is Kafka's text.
func (e *AppendError) Error() string { return e.Text }

// Unwrap is the reason.
func (e *AppendError) Unwrap() error { return e.Reason }

// RecordError is one record for which a batch was refused.
type RecordError struct {
	BatchIndex int32 // index of the record in the batch, from 0
	Message    string
}

// OffsetOutOfRangeError is a read below the log start offset or above the log end offset.
type OffsetOutOfRangeError struct {
	Requested, Start, End int64
}

func (e *OffsetOutOfRangeError) Error() string {
	return fmt.Sprintf("offset %d is out of range: the log holds [%d, %d)", e.Requested, e.Start, e.End)
}
