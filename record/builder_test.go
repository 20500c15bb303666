package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBuilderMakesTheSentBatch(t *testing.T) {
	b := NewBuilder(DefaultBuilderOptions())
	if b.Bytes() != nil {
		t.Error("a batch without records")
	}
	err := errors.Join(
		b.Append(1700000000000, []byte("k1"), []byte("v1"), nil),
		b.Append(1700000000005, []byte("k2"), nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(b.Bytes()); got != sentHex {
		t.Errorf("built\n%s, want\n%s", got, sentHex)
	}
}

func TestBuilderBounds(t *testing.T) {
	o := DefaultBuilderOptions()
	o.BaseOffset = 100
	b := NewBuilder(o)
	for offset, want := range map[int64]error{99: ErrOffset, 101 + math.MaxInt32: ErrOffset} {
		if err := b.AppendAt(offset, 0, nil, nil, nil); !errors.Is(err, want) {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	if err := b.AppendAt(105, 7, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.AppendAt(105, 7, nil, nil, nil); !errors.Is(err, ErrOffset) {
		t.Errorf("the same offset twice: %v", err)
	}
	if err := b.SetLastOffset(104); !errors.Is(err, ErrOffset) {
		t.Errorf("last offset below the last record: %v", err)
	}
	if err := b.SetLastOffset(109); err != nil {
		t.Fatal(err)
	}
	if got := Batch(b.Bytes()); got.LastOffset() != 109 || got.Count() != 1 || !got.ValidCRC() {
		t.Errorf("built %+v", got.Header())
	}
}

func TestEmptyBatch(t *testing.T) {
	h := Header{
		BaseOffset: 5, LastOffset: 9, SizeBytes: 300, LeaderEpoch: 3, Magic: 2, Attributes: 0x7f, BaseTimestamp: 4,
		MaxTimestamp: 6, ProducerID: 9000, ProducerEpoch: 1, BaseSequence: 2, Count: 5,
	}
	b := EmptyBatch(h)
	want := h
	want.SizeBytes, want.Attributes, want.BaseTimestamp, want.Count, want.CRC = 61, 0x38, -1, 0, b.CRC()
	if diff := cmp.Diff(want, b.Header()); diff != "" || !b.ValidCRC() {
		t.Errorf("empty batch (-want +got):\n%s", diff)
	}
	it, err := NewIterator(b, IterOptions{})
	if err != nil || it.Next() || it.Err() != nil {
		t.Errorf("records in an empty batch, or %v, %v", err, it.Err())
	}
}

// plainRecord is a Record that owns its bytes.
func plainRecord(r *Record) Record {
	c := *r
	c.Key, c.Value, c.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), nil
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, RecordHeader{bytes.Clone(h.Key), bytes.Clone(h.Value)})
	}
	return c
}

func readAll(t testing.TB, entry []byte) []Record {
	t.Helper()
	it, err := NewIterator(entry, IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var list []Record
	for it.Next() {
		list = append(list, plainRecord(it.Record()))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return list
}

func drawRecord(t *rapid.T, offset int64) Record {
	bytesOrNil := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 3000))
	r := Record{
		Offset: offset, Timestamp: rapid.Int64().Draw(t, "ts"),
		Key: bytesOrNil.Draw(t, "key"), Value: bytesOrNil.Draw(t, "value"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "headers") {
		r.Headers = append(r.Headers, RecordHeader{
			Key: rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "header"), Value: bytesOrNil.Draw(t, "header value"),
		})
	}
	r.KeySize, r.ValueSize = size(r.Key), size(r.Value)
	return r
}

// What was built is what is read, whatever the codec and level.
func TestBuilderRoundTrip(t *testing.T) {
	var b Builder
	rapid.Check(t, func(t *rapid.T) {
		o := DefaultBuilderOptions()
		o.Codec = Codec(rapid.IntRange(0, 4).Draw(t, "codec"))
		o.Level = rapid.IntRange(-3, 25).Draw(t, "level")
		o.BaseOffset = rapid.Int64Range(0, 1<<60).Draw(t, "base")
		o.LeaderEpoch = rapid.Int32().Draw(t, "epoch")
		b.Reset(o)
		var want []Record
		offset, maxTs := o.BaseOffset, NoTimestamp
		for range rapid.IntRange(1, 12).Draw(t, "count") {
			offset += rapid.Int64Range(0, 1000).Draw(t, "gap")
			r := drawRecord(t, offset)
			if err := b.AppendAt(r.Offset, r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
				t.Fatal(err)
			}
			want = append(want, r)
			maxTs = max(maxTs, r.Timestamp)
			offset++
		}
		batch := Batch(b.Bytes())
		if !batch.ValidCRC() || batch.SizeBytes() != len(batch) || batch.MaxTimestamp() != maxTs ||
			batch.LastOffset() != offset-1 {
			t.Fatalf("header %+v", batch.Header())
		}
		if diff := cmp.Diff(want, readAllRapid(t, batch)); diff != "" {
			t.Fatalf("records (-built +read):\n%s", diff)
		}
	})
}

func readAllRapid(t *rapid.T, entry []byte) (list []Record) {
	it, err := NewIterator(entry, IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		list = append(list, plainRecord(it.Record()))
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return list
}

// Every golden batch with its own timestamps, built anew from its records, has
// the same bytes, or when compressed the same header fields and records.
func TestGoldenBatchesRebuilt(t *testing.T) {
	equal, alike := 0, 0
	var b Builder
	for _, file := range goldenLogs(t) {
		for s := NewScanner(bytes.NewReader(file), 0, int64(len(file))); s.Next(); {
			stored, err := s.Batch()
			if err != nil {
				t.Fatal(err)
			}
			h := s.Header()
			if h.Magic < 2 || h.Count == 0 || h.TimestampType() == LogAppendTime || !ValidCRC(stored) {
				continue // LogAppendTime hides the records' own times
			}
			rebuilt := rebuild(t, &b, h, stored)
			if h.Codec() == None {
				equal++
				if !bytes.Equal(stored, rebuilt) {
					t.Fatalf("offset %d:\nstored  %x\nrebuilt %x", h.BaseOffset, stored, rebuilt)
				}
				continue
			}
			alike++
			h.SizeBytes, h.CRC = int32(len(rebuilt)), Batch(rebuilt).CRC()
			if diff := cmp.Diff(h, Batch(rebuilt).Header()); diff != "" {
				t.Fatalf("header (-stored +rebuilt):\n%s", diff)
			}
			if diff := cmp.Diff(readAll(t, stored), readAll(t, rebuilt)); diff != "" {
				t.Fatalf("records (-stored +rebuilt):\n%s", diff)
			}
		}
	}
	if equal < 1000 || alike < 100 {
		t.Errorf("only %d plain and %d compressed batches seen", equal, alike)
	}
}

func rebuild(t *testing.T, b *Builder, h Header, stored []byte) []byte {
	t.Helper()
	b.Reset(BuilderOptions{
		Codec: h.Codec(), TimestampType: h.TimestampType(), BaseOffset: h.BaseOffset, LeaderEpoch: h.LeaderEpoch,
		ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, BaseSequence: h.BaseSequence,
		Transactional: h.IsTransactional(), Control: h.IsControl(),
		HasDeleteHorizon: h.HasDeleteHorizon(), DeleteHorizon: h.BaseTimestamp,
	})
	for _, r := range readAll(t, stored) {
		if err := b.AppendAt(r.Offset, r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
			t.Fatal(err)
		}
		if h.IsControl() {
			checkControl(t, r)
		}
	}
	if err := b.SetLastOffset(h.LastOffset); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checkControl parses a golden control record and encodes it again.
func checkControl(t *testing.T, r Record) {
	t.Helper()
	kind, m, err := ParseControl(r.Key, r.Value)
	if err != nil || m == nil {
		t.Fatalf("control record %x: %v", r.Key, err)
	}
	if !bytes.Equal(ControlKey(kind), r.Key) || m.ControlType() != kind || !bytes.Equal(m.AppendTo(nil), r.Value) {
		t.Errorf("%v %+v encodes to %x, stored %x", kind, m, m.AppendTo(nil), r.Value)
	}
}
