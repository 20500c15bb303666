package index

import (
	"errors"
	"fmt"
)

// ErrFull says that an index has no room for another entry: the segment must roll.
var ErrFull = errors.New("index is full")

// CorruptKind tells what is wrong with an index file.
type CorruptKind int

// The ways an index file can be damaged. A missing file is fs.ErrNotExist.
const (
	Torn          CorruptKind = iota + 1 // size is not a multiple of the entry size
	Oversized                            // larger than an index may be
	ZeroFilled                           // entries that were never written: the index of a crashed broker
	NotIncreasing                        // an entry does not follow the one before
	OutOfRange                           // an entry lies outside its segment
	BadVersion                           // an entry of a later format
)

// String is a short name for logs and metrics.
func (k CorruptKind) String() string {
	switch k {
	case Torn:
		return "torn"
	case Oversized:
		return "oversized"
	case ZeroFilled:
		return "zero-filled"
	case NotIncreasing:
		return "not-increasing"
	case OutOfRange:
		return "out-of-range"
	case BadVersion:
		return "bad-version"
	}
	return fmt.Sprintf("CorruptKind(%d)", int(k))
}

// CorruptError is damage found in an index file. The log is not harmed by it.
type CorruptError struct {
	Name   string // path
	Entry  int64  // number of the first bad entry; -1 when it concerns the file
	Kind   CorruptKind
	Reason string
}

func (e *CorruptError) Error() string {
	if e.Entry < 0 {
		return fmt.Sprintf("index %s is corrupt: %s", e.Name, e.Reason)
	}
	return fmt.Sprintf("index %s is corrupt: entry %d: %s", e.Name, e.Entry, e.Reason)
}

// OrderError is an append that would break the order of an index.
type OrderError struct {
	Name      string // path
	What      string // "offset" or "timestamp"
	Got, Last int64
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("append to index %s: %s %d does not follow %d", e.Name, e.What, e.Got, e.Last)
}

// RangeError is an offset or position that the 32 bits of an entry cannot hold.
type RangeError struct {
	Name       string // path
	What       string // "offset" or "position"
	Got        int64
	BaseOffset int64
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("append to index %s: %s %d is out of range for base offset %d", e.Name, e.What, e.Got, e.BaseOffset)
}
