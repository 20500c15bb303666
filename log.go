package tidemark

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/record"
)

// Header is one header of a record; a nil Value is null.
type Header = record.RecordHeader

// Record is one record of a log.
type Record struct {
	Offset int64 // given by Append
	// Time has milliseconds. Append takes the present for the zero Time, and for all with
	// message.timestamp.type=LogAppendTime. Records without a timestamp are read with the zero Time.
	Time       time.Time
	Key, Value []byte // nil: null
	Headers    []Header
}

// Found is the answer of a look-up by time.
type Found struct {
	Offset int64
	Time   time.Time
}

// readChunk is how many bytes of a log are read at once, in bytes; a larger batch is read as a whole.
const readChunk = 1 << 20

// Log is the log of one partition, of a [Store].
type Log struct {
	log      *commitlog.Log
	readOnly bool
	raising  sync.Mutex
}

// StartOffset is the offset of the first record that can be read.
func (l *Log) StartOffset() int64 { return l.log.StartOffset() }

// EndOffset is the offset that the next record gets.
func (l *Log) EndOffset() int64 { return l.log.EndOffset() }

// Append appends records as one batch, compressed as compression.type says, and returns the offset of the first.
// Either all are appended or none.
//
// Errors: [ErrReadOnly], [ErrClosed], [ErrDiskFull]; what Kafka would refuse (max.message.bytes, a timestamp too far
// ahead), with its text; the disk's, after which the log takes no more records until the store is opened again.
func (l *Log) Append(records ...Record) (offset int64, err error) {
	if l.readOnly {
		return 0, ErrReadOnly
	}
	if len(records) == 0 {
		return l.EndOffset(), nil
	}
	now := time.Now()
	o := record.DefaultBuilderOptions()
	o.Codec = codec(l.log.Config().CompressionType)
	b := record.NewBuilder(o)
	for _, r := range records {
		if r.Time.IsZero() {
			r.Time = now
		}
		if err := b.Append(r.Time.UnixMilli(), r.Key, r.Value, r.Headers); err != nil {
			return 0, fmt.Errorf("append: %w", err)
		}
	}
	info, err := l.log.AppendAsLeader(b.Bytes(), commitlog.AppendOptions{})
	if err != nil {
		return 0, refusal(err)
	}
	l.raise()
	return info.BaseOffset, nil
}

// refusal adds to an error what is wrong with the first of the records at fault.
func refusal(err error) error {
	var refused *commitlog.AppendError
	if errors.As(err, &refused) && len(refused.RecordErrors) > 0 {
		first := refused.RecordErrors[0]
		return fmt.Errorf("append: %w: record %d: %s", err, first.BatchIndex, first.Message)
	}
	return fmt.Errorf("append: %w", err)
}

// raise lets the log know that nobody else has to have its records. Of two appends at once the later one's end stays.
func (l *Log) raise() {
	l.raising.Lock()
	defer l.raising.Unlock()
	l.log.UpdateHighWatermark(l.log.EndOffset())
}

func codec(t commitlog.CompressionType) record.Codec {
	if t == commitlog.CompressionProducer {
		return record.None
	}
	return record.Codec(t)
}

// Flush makes everything appended so far survive a power loss.
//
// Errors: [ErrReadOnly]; the disk's, after which the log takes no more records until the store is opened again.
func (l *Log) Flush() error {
	if l.readOnly {
		return ErrReadOnly
	}
	return l.log.Flush()
}

// OffsetForTime finds the first record, by offset, that is not earlier than t; false: there is none.
//
// Errors: [ErrClosed], the disk's.
func (l *Log) OffsetForTime(t time.Time) (Found, bool, error) {
	found, ok, err := l.log.OffsetForTime(t.UnixMilli(), l.EndOffset(), nil)
	if !ok || err != nil {
		return Found{}, false, err
	}
	return Found{Offset: found.Offset, Time: timeOf(found.Timestamp)}, true, nil
}

func timeOf(ms int64) time.Time {
	if ms == record.NoTimestamp {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Read reads the records from an offset to the end that the log has now, oldest first, those of aborted and of open
// transactions included. The bytes of a Record are the caller's. After an error there are no more records.
//
// Errors: *[OffsetOutOfRangeError], [ErrCorrupt], [ErrClosed], the disk's.
func (l *Log) Read(offset int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		end := l.EndOffset()
		for next, more := offset, true; more; {
			set, err := l.read(next, end)
			if err == nil && len(set) > 0 {
				next, more, err = visit(set, next, offset, yield)
			}
			if err != nil {
				yield(Record{}, err)
			}
			if err != nil || len(set) == 0 {
				return
			}
		}
	}
}

// read reads at least one batch from an offset on, unless the log has no more below end.
func (l *Log) read(offset, end int64) ([]byte, error) {
	slice, err := l.log.Read(offset, commitlog.ReadOptions{MaxBytes: readChunk, MinOneBatch: true, UpTo: end})
	if err != nil {
		return nil, err
	}
	defer slice.Release()
	return slice.Bytes()
}

// visit yields the records of the whole batches of a set, from an offset on, and returns the offset after them.
func visit(set []byte, next, from int64, yield func(Record, error) bool) (after int64, more bool, err error) {
	for first := true; len(set) > 0; first = false {
		h, entry, rest, err := record.NextEntry(set)
		if err != nil {
			if first {
				return next, false, err
			}
			return next, true, nil // the last batch is cut, and read again from its start
		}
		set, next = rest, h.LastOffset+1
		if h.IsControl() {
			continue
		}
		if more, err := visitBatch(entry, from, yield); err != nil || !more {
			return next, false, err
		}
	}
	return next, true, nil
}

func visitBatch(entry []byte, from int64, yield func(Record, error) bool) (more bool, err error) {
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		return false, err
	}
	defer it.Close()
	for it.Next() {
		if r := it.Record(); r.Offset >= from && !yield(own(r), nil) {
			return false, nil
		}
	}
	return true, it.Err()
}

// own copies a record out of its iterator.
func own(r *record.Record) Record {
	out := Record{Offset: r.Offset, Time: timeOf(r.Timestamp), Key: slices.Clone(r.Key), Value: slices.Clone(r.Value)}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, Header{Key: slices.Clone(h.Key), Value: slices.Clone(h.Value)})
	}
	return out
}
