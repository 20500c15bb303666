package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

const (
	classCorrupt      = "org.apache.kafka.common.errors.CorruptRecordException"
	magicEnd          = 17 // bytes up to and with the magic
	lengthPrefix      = 12 // bytes of an entry before what its length counts
	minRecordOverhead = 14
	positionOfLength  = 8
	positionOfMagic   = 16
)

// logFile is a .log read as Kafka's FileRecords reads one: entry by entry, by the length
// that each tells, and no further than the first that is not whole.
type logFile struct {
	name   string // as messages show it
	file   *os.File
	size   int64
	walked map[int64]walk // by start position; what entriesFrom found
}

type walk struct {
	entries []logEntry
	err     error
}

func openLog(name, shown string) (*logFile, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fileFailure(shown, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &logFile{name: shown, file: file, size: info.Size(), walked: map[int64]walk{}}, nil
}

func (l *logFile) close() { _ = l.file.Close() } // only read

// String is how Kafka's messages name an open log.
func (l *logFile) String() string {
	return fmt.Sprintf("FileRecords(size=%d, file=%s, start=0, end=2147483647)", l.size, l.name)
}

// sliceEnd is where a slice of n bytes from a position ends.
func (l *logFile) sliceEnd(pos, n int64) (int64, error) {
	switch {
	case pos < 0:
		return 0, cli.BadArgument("Invalid position: %d in read from %s", pos, l)
	case pos > l.size:
		return 0, cli.BadArgument("Slice from position %d exceeds end position of %s", pos, l)
	case n < 0:
		return 0, cli.BadArgument("Invalid size: %d in read from %s", n, l)
	case pos+n > math.MaxInt32 || pos+n > l.size:
		return l.size, nil
	}
	return pos + n, nil
}

// logEntry is one entry of a log: a batch, or a message of an older magic.
type logEntry struct {
	pos  int64
	head record.Header
}

// next reads the header of the entry at a position. ok is false at the end, which is
// also before an entry that is not whole.
func (l *logFile) next(pos, end int64) (entry logEntry, ok bool, err error) {
	if pos >= end-magicEnd {
		return entry, false, nil
	}
	var buf [record.HeaderSize]byte
	n, err := l.file.ReadAt(buf[:min(record.HeaderSize, end-pos)], pos)
	if err != nil && !errors.Is(err, io.EOF) || n < magicEnd {
		return entry, false, cli.Fail("java.io.EOFException", "Failed to read `log header` from file channel `%s`", l.name)
	}
	size := int64(int32(beUint32(buf[positionOfLength:])))
	if size < minRecordOverhead {
		return entry, false, cli.Fail(classCorrupt, "Found record size %d smaller than minimum record overhead (%d) in file "+
			"%s.", size, minRecordOverhead, l.name)
	}
	if pos > end-lengthPrefix-size {
		return entry, false, nil
	}
	head, err := record.ParseHeader(buf[:n])
	if err != nil {
		return entry, false, cli.Fail("org.apache.kafka.common.KafkaException", "%s", err)
	}
	return logEntry{pos, head}, true, nil
}

func beUint32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// bytes reads the whole entry, into buf when that is large enough.
func (l *logFile) bytes(e logEntry, buf []byte) ([]byte, error) {
	if cap(buf) < int(e.head.SizeBytes) {
		buf = make([]byte, e.head.SizeBytes)
	}
	buf = buf[:e.head.SizeBytes]
	if _, err := l.file.ReadAt(buf, e.pos); err != nil {
		return nil, fmt.Errorf("read %s at %d: %w", l.name, e.pos, err)
	}
	return buf, nil
}

// entriesFrom lists the entries from a position to the end of the file. What was walked
// before is not read again.
func (l *logFile) entriesFrom(pos int64) ([]logEntry, error) {
	for start, w := range l.walked {
		if pos < start {
			continue
		}
		for i, e := range w.entries {
			if e.pos == pos {
				return w.entries[i:], w.err
			}
		}
	}
	end, err := l.sliceEnd(pos, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	var w walk
	for at := pos; ; {
		e, ok, err := l.next(at, end)
		if err != nil || !ok {
			w.err = err
			break
		}
		w.entries = append(w.entries, e)
		at += int64(e.head.SizeBytes)
	}
	l.walked[pos] = w
	return w.entries, w.err
}
