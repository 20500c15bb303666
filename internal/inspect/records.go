package inspect

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"tidemark/internal/commitlog"
	"tidemark/record"
)

// Text is bytes of a key, value or header: JSON shows valid UTF-8 as a string, other bytes as {"base64": "…"}, and nil
// as null.
type Text []byte

// MarshalJSON writes a string, an object or null.
func (t Text) MarshalJSON() ([]byte, error) {
	switch {
	case t == nil:
		return []byte("null"), nil
	case utf8.Valid(t):
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(t)})
}

// Header is one header of a record.
type Header struct {
	Key   Text `json:"key"`
	Value Text `json:"value"`
}

// Record is one record, with what its batch says.
type Record struct {
	Offset        int64    `json:"offset"`
	Timestamp     int64    `json:"timestamp"` // ms, -1: none
	TimestampType string   `json:"timestampType"`
	Key           Text     `json:"key"`
	Value         Text     `json:"value"`
	Headers       []Header `json:"headers,omitempty"`
	LeaderEpoch   int32    `json:"leaderEpoch"`
	ProducerID    int64    `json:"producerId"`        // -1: none
	Control       string   `json:"control,omitempty"` // name of the control type, "" for data
	Transactional bool     `json:"transactional,omitempty"`
}

// viewRecord copies a record out of its iterator.
func viewRecord(h record.Header, r *record.Record) Record {
	v := Record{
		Offset: r.Offset, Timestamp: r.Timestamp, TimestampType: h.TimestampType().String(),
		Key: cloneBytes(r.Key), Value: cloneBytes(r.Value), LeaderEpoch: h.LeaderEpoch,
		Transactional: h.IsTransactional(), ProducerID: h.ProducerID,
	}
	for _, header := range r.Headers {
		v.Headers = append(v.Headers, Header{Key: cloneBytes(header.Key), Value: cloneBytes(header.Value)})
	}
	if h.IsControl() {
		v.Control = "unknown"
		if kind, err := record.ParseControlKey(r.Key); err == nil {
			v.Control = kind.String()
		}
	}
	return v
}

func cloneBytes(b []byte) Text {
	if b == nil {
		return nil
	}
	return append(make(Text, 0, len(b)), b...)
}

// recordAt reads the first record of a log whose offset is at least the one given; false when there is none.
func recordAt(log *commitlog.Log, offset int64) (Record, bool, error) {
	for offset < log.EndOffset() {
		r, next, ok, err := recordInBatch(log, offset)
		if err != nil || ok {
			return r, ok, err
		}
		if next <= offset {
			break
		}
		offset = next
	}
	return Record{}, false, nil
}

// recordInBatch looks in the one batch that a read from offset begins with; next is the offset behind it.
func recordInBatch(log *commitlog.Log, offset int64) (r Record, next int64, ok bool, err error) {
	slice, err := log.Read(offset, commitlog.ReadOptions{MaxBytes: 1, MinOneBatch: true, UpTo: log.EndOffset()})
	if err != nil {
		return r, 0, false, err
	}
	defer slice.Release()
	data, err := slice.Bytes()
	if err != nil || len(data) == 0 {
		return r, 0, false, err
	}
	h, entry, _, err := record.NextEntry(data)
	if err != nil {
		return r, 0, false, err
	}
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		return r, 0, false, err
	}
	defer it.Close()
	for it.Next() {
		if it.Record().Offset >= offset {
			return viewRecord(h, it.Record()), h.NextOffset(), true, nil
		}
	}
	return r, h.NextOffset(), false, it.Err()
}

// isDamage reports whether an error tells of the content of a file, not of the disk.
func isDamage(err error) bool {
	return errors.As(err, new(*record.CorruptError)) || errors.As(err, new(*record.InvalidRecordError)) ||
		errors.As(err, new(*record.CodecError)) || errors.Is(err, record.ErrTooLarge) || errors.Is(err, record.ErrShort)
}
