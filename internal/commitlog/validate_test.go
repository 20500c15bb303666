package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/internal/producerstate"
	"tidemark/record"
)

const nowMs = 1_796_007_235_802

// sealed computes the checksum of a batch whose bytes were changed.
func sealed(b record.Batch) record.Batch {
	max, kind := b.MaxTimestamp(), b.TimestampType()
	attributes := b.Attributes()
	b.SetMaxTimestamp(max-1, kind)
	b.SetMaxTimestamp(max, kind)
	if b.Attributes() != attributes { // those calls drop bits that are not known
		binary.BigEndian.PutUint16(b[21:], uint16(attributes))
		binary.BigEndian.PutUint32(b[17:], castagnoli(b[21:]))
	}
	return b
}

// kv is a batch of records with these keys (nil: null) at nowMs.
func kv(codec record.Codec, keys ...[]byte) record.Batch {
	o := record.DefaultBuilderOptions()
	o.Codec = codec
	b := record.NewBuilder(o)
	for _, k := range keys {
		_ = b.Append(nowMs, k, []byte("v"), nil)
	}
	return bytes.Clone(b.Bytes())
}

func at(codec record.Codec, timestamps ...int64) record.Batch {
	o := record.DefaultBuilderOptions()
	o.Codec = codec
	b := record.NewBuilder(o)
	for _, ts := range timestamps {
		_ = b.Append(ts, []byte("k"), []byte("v"), nil)
	}
	return bytes.Clone(b.Bytes())
}

// with changes fields of a batch and computes its checksum.
func with(b record.Batch, change func(b record.Batch)) record.Batch {
	change(b)
	return sealed(b)
}

func put16(pos int, v uint16) func(record.Batch) {
	return func(b record.Batch) { binary.BigEndian.PutUint16(b[pos:], v) }
}

func put32(pos int, v uint32) func(record.Batch) {
	return func(b record.Batch) { binary.BigEndian.PutUint32(b[pos:], v) }
}

func put64(pos int, v uint64) func(record.Batch) {
	return func(b record.Batch) { binary.BigEndian.PutUint64(b[pos:], v) }
}

// body replaces the records of an uncompressed batch of one record.
func body(records string) record.Batch {
	b := append(kv(record.None, []byte("k"))[:record.HeaderSize:record.HeaderSize], records...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	return sealed(b)
}

func invalidRecord(text string) *AppendError {
	return &AppendError{Reason: ErrInvalidRecord, Text: text}
}

func compacted(c *Config)  { c.CleanupPolicy = CleanupCompact }
func appendTime(c *Config) { c.MessageTimestampType = record.LogAppendTime }

// refusal is a batch that a leader refuses.
type refusal struct {
	name  string
	cfg   func(*Config) // nil: the defaults
	batch []byte
	want  *AppendError
}

// refusedHeaders are refused for what the header says.
func refusedHeaders() []refusal {
	k := []byte("k")
	return []refusal{
		{"base offset", nil, with(kv(0, k), put64(0, 7)),
			invalidRecord("The baseOffset of the record batch in the append to T-0 should be 0, but it is 7")},
		{"checksum", nil, func() []byte { b := kv(0, k); b[17], b[18], b[19], b[20] = 0, 0, 0, 1; return b }(),
			&AppendError{Reason: ErrCorruptMessage, Text: "Record is corrupt (stored crc = 1) in topic partition T-0."}},
		{"short header", nil, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x14\x00\x00\x00\x00\x02\x00\x00\x00\x09" +
			strings.Repeat("\x00", 11)),
			&AppendError{Reason: ErrCorruptMessage, Text: "Record is corrupt (stored crc = 9) in topic partition T-0."}},
		{"codec 5", nil, with(kv(0, k), put16(21, 5)), &AppendError{Reason: ErrUndecodable}},
		{"last offset delta", nil, with(kv(0, k), put32(23, 0xffffffff-1)),
			invalidRecord("Batch has an invalid offset range: [0, -2] in topic partition T-0")},
		{"count 0", nil, with(kv(0, k), put32(57, 0)),
			invalidRecord("Invalid reported count for record batch: 0 in topic partition T-0")},
		{"count", nil, with(kv(0, k), put32(57, 2)),
			invalidRecord("Inconsistent batch offset range [0, 0] and count of records 2 in topic partition T-0")},
		{"control", nil, with(kv(0, k), put16(21, 0x20)),
			invalidRecord("Clients are not allowed to write control records in topic partition T-0")},
		{"sequence", nil, with(kv(0, k), put64(43, 5)),
			invalidRecord("Invalid sequence number -1 in record batch with producerId 5 in topic partition T-0")},
	}
}

// refusedRecords are refused for the bytes or the keys of their records.
func refusedRecords() []refusal {
	k := []byte("k")
	return []refusal{
		{"body too short", nil, body(""), invalidRecord("Incorrect declared batch size, premature EOF reached")},
		{"bytes left", nil, body("\x10\x00\x00\x00\x02k\x02v\x00more"),
			invalidRecord("Incorrect declared batch size, records still remaining in file")},
		{"header key", nil, body("\x12\x00\x00\x00\x02k\x02v\x02\x01"),
			invalidRecord("Invalid negative header key size -1")},
		{"not gzip", nil, with(kv(0, k), put16(21, 1)), &AppendError{Reason: ErrUndecodable}},
		{"compacted without key", compacted, kv(0, nil, []byte{}, nil, nil, nil), &AppendError{
			Reason: ErrInvalidRecord, OnWire: true,
			Text: "One or more records have been rejected due to 4 record errors in total, and only showing the first " +
				"three errors at most: [" + noKey(0) + ", " + noKey(2) + ", " + noKey(3) + "]",
			RecordErrors: []RecordError{
				{0, noKeyText}, {2, noKeyText}, {3, noKeyText}, {4, noKeyText},
			},
		}},
	}
}

// refusedTimes are refused for timestamps, and for their type.
func refusedTimes() []refusal {
	k := []byte("k")
	return []refusal{
		{"timestamp", func(c *Config) { c.MessageTimestampBeforeMaxMs, c.MessageTimestampAfterMaxMs = 1000, 2000 },
			at(record.Gzip, nowMs-1000, nowMs-1001, nowMs+2000, nowMs+2001), &AppendError{
				Reason: ErrInvalidTimestamp, OnWire: true,
				Text: "One or more records have been rejected due to invalid timestamp",
				RecordErrors: []RecordError{
					{1, "Timestamp 1796007234801 of message with offset 1 is out of range. " + within},
					{3, "Timestamp 1796007237803 of message with offset 3 is out of range. " + within},
				},
			}},
		{"timestamp far", nil, at(0, nowMs+3_600_001), &AppendError{
			Reason: ErrInvalidTimestamp, OnWire: true,
			Text: "One or more records have been rejected due to invalid timestamp",
			RecordErrors: []RecordError{{0, "Timestamp 1796010835803 of message with offset 0 is out of range. " +
				"The timestamp should be within [-9223370240847540005, 1796010835802]"}},
		}},
		{"timestamp type", appendTime, with(kv(0, k), put16(21, 8)), &AppendError{
			Reason: ErrInvalidTimestamp, OnWire: true,
			Text: "One or more records have been rejected due to invalid timestamp",
			RecordErrors: []RecordError{{0, "Invalid timestamp type in message DefaultRecord(offset=0, " +
				"timestamp=1796007235802, key=1 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."}},
		}},
		{"timestamp type without timestamp", nil, with(at(0, -1), put16(21, 8)), &AppendError{
			Reason: ErrInvalidTimestamp, OnWire: true,
			Text: "One or more records have been rejected due to invalid timestamp",
			RecordErrors: []RecordError{{0, "Invalid timestamp type in message DefaultRecord(offset=0, timestamp=-1, " +
				"key=1 bytes, value=1 bytes). Producer should not set timestamp type to LogAppendTime."}},
		}},
	}
}

// refusedSizes are larger than a limit.
func refusedSizes() []refusal {
	k := []byte("k")
	return []refusal{
		{"too large", func(c *Config) { c.MaxMessageBytes = 50 }, kv(0, k), &AppendError{Reason: ErrMessageTooLarge,
			Text: "The record batch size in the append to T-0 is 70 bytes which exceeds the maximum configured value of 50)."}},
		{"rebuilt too large", func(c *Config) { c.CompressionType, c.MaxMessageBytes = CompressionUncompressed, 200 },
			compressible(), &AppendError{Reason: ErrMessageTooLarge,
				Text: "Message batch size is 1441 bytes in append topartition T-0 " +
					"which exceeds the maximum configured size of 200."}},
		{"larger than a segment", func(c *Config) { c.SegmentBytes = 60 }, kv(0, k), &AppendError{
			Reason: ErrRecordListTooLarge, Text: "Message batch size is 70 bytes in append to partition T-0, " +
				"which exceeds the maximum configured segment size of 60."}},
	}
}

// compressible is a small batch that is large without its compression.
func compressible() []byte {
	o := record.DefaultBuilderOptions()
	o.Codec = record.Gzip
	b := record.NewBuilder(o)
	for range 20 {
		_ = b.Append(nowMs, []byte("k"), bytes.Repeat([]byte("k"), 60), nil)
	}
	return bytes.Clone(b.Bytes())
}

// TestRefusals goes through the table of what a leader refuses, with Kafka's texts.
func TestRefusals(t *testing.T) {
	for _, test := range slices.Concat(refusedHeaders(), refusedRecords(), refusedTimes(), refusedSizes()) {
		t.Run(test.name, func(t *testing.T) {
			l := memLog(t, test.cfg)
			info, err := l.AppendAsLeader(test.batch, AppendOptions{})
			var got *AppendError
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if !errors.Is(err, test.want.Reason) {
				t.Errorf("reason %v, want %v", got.Reason, test.want.Reason)
			}
			if test.want.Reason != ErrUndecodable && got.Text != test.want.Text {
				t.Errorf("text\n %s, want\n %s", got.Text, test.want.Text)
			}
			if got.OnWire != test.want.OnWire {
				t.Errorf("on wire %v", got.OnWire)
			}
			if diff := cmp.Diff(test.want.RecordErrors, got.RecordErrors); diff != "" {
				t.Error(diff)
			}
			if info.BaseOffset != -1 || info.LogAppendTime != -1 || info.LogStartOffset != 0 || l.EndOffset() != 0 {
				t.Errorf("info %+v, end %d", info, l.EndOffset())
			}
		})
	}
}

const within = "The timestamp should be within [1796007234802, 1796007237802]"

const noKeyText = "Compacted topic cannot accept message without key in topic partition T-0"

func noKey(i int) string {
	return "RecordError(batchIndex=" + string(rune('0'+i)) + ", message='" + noKeyText + "')"
}

// memLog is an empty log of T-0 in memory, at nowMs.
func memLog(t testing.TB, change func(*Config)) *Log {
	t.Helper()
	w := newWorld(DefaultConfig())
	if change != nil {
		change(&w.cfg)
	}
	l, err := Open(Options{
		FS: w.fs, Dir: worldDir, Topic: "T", Config: w.cfg, Clock: func() time.Time { return time.UnixMilli(nowMs) },
	})
	must(t, err)
	t.Cleanup(func() { _ = l.Abandon() })
	return l
}

// acceptance is a batch that looks odd and is accepted; check compares what is stored.
type acceptance struct {
	name  string
	cfg   func(*Config) // nil: the defaults
	batch record.Batch
	check func(t *testing.T, sent, stored record.Batch)
}

// acceptedAsIs are stored as they came.
func acceptedAsIs() []acceptance {
	k := []byte("k")
	return []acceptance{
		{"negative key length is null", nil, body("\x0e\x00\x00\x00\x03\x02v\x00"), sameBody},
		{"record attributes", nil, body("\x10\x05\x00\x00\x02k\x02v\x00"), sameBody},
		{"offset deltas", nil, body("\x10\x00\x00\x0a\x02k\x02v\x00"), sameBody},
		{"unknown attribute bits", nil, with(kv(0, k), put16(21, 0x7f80)), func(t *testing.T, sent, stored record.Batch) {
			if stored.Attributes() != 0x7f80 || stored.CRC() != sent.CRC() {
				t.Errorf("attributes %#x", stored.Attributes())
			}
		}},
		{"delete horizon bit", nil, with(kv(0, k), put16(21, 0x40)), func(t *testing.T, _, stored record.Batch) {
			if stored.Attributes() != 0x40 {
				t.Errorf("attributes %#x", stored.Attributes())
			}
		}},
		{"producer -1 with a sequence", nil, with(kv(0, k), put32(53, 7)), sameBody},
		{"producer without epoch", nil, with(kv(0, k), func(b record.Batch) { put64(43, 5)(b); put32(53, 0)(b) }), sameBody},
		{"empty key on a compacted topic", compacted, kv(0, []byte{}), sameBody},
	}
}

// acceptedTimes get their timestamps or attributes put right.
func acceptedTimes() []acceptance {
	k := []byte("k")
	return []acceptance{
		{"wrong largest timestamp", nil, with(kv(0, k), put64(35, nowMs+999)), func(t *testing.T, _, stored record.Batch) {
			if stored.MaxTimestamp() != nowMs {
				t.Errorf("largest timestamp %d", stored.MaxTimestamp())
			}
		}},
		{"wrong largest timestamp and unknown bits", nil,
			with(kv(0, k), func(b record.Batch) { put16(21, 0x7f80)(b); put64(35, nowMs+999)(b) }),
			func(t *testing.T, _, stored record.Batch) {
				if stored.MaxTimestamp() != nowMs || stored.Attributes() != 0 {
					t.Errorf("largest timestamp %d, attributes %#x", stored.MaxTimestamp(), stored.Attributes())
				}
			}},
		{"LogAppendTime bit on a CreateTime topic", nil, with(kv(0, k), put16(21, 8)),
			func(t *testing.T, _, stored record.Batch) {
				if stored.Attributes() != 0 {
					t.Errorf("attributes %#x", stored.Attributes())
				}
			}},
		{"append time", appendTime, at(0, 5, 6), func(t *testing.T, _, stored record.Batch) {
			if stored.MaxTimestamp() != nowMs || stored.BaseTimestamp() != 5 || stored.TimestampType() != record.LogAppendTime {
				t.Errorf("stored %+v", stored.Header())
			}
		}},
		{"no timestamp", nil, at(0, -1, -2), func(t *testing.T, _, stored record.Batch) {
			if stored.MaxTimestamp() != -1 {
				t.Errorf("largest timestamp %d", stored.MaxTimestamp())
			}
		}},
	}
}

// acceptedRebuilt are stored in another codec.
func acceptedRebuilt() []acceptance {
	k := []byte("k")
	return []acceptance{
		{"rebuilt in another codec", func(c *Config) { c.CompressionType = CompressionZstd }, kv(record.Gzip, k, nil),
			func(t *testing.T, sent, stored record.Batch) {
				if stored.Codec() != record.Zstd || stored.Count() != 2 || stored.BaseTimestamp() != nowMs {
					t.Errorf("stored %+v", stored.Header())
				}
			}},
		{"rebuilt, odd offset deltas", func(c *Config) { c.CompressionType = CompressionGzip },
			body("\x10\x00\x00\x0a\x02k\x02v\x00"), func(t *testing.T, _, stored record.Batch) {
				if stored.Codec() != record.Gzip || stored.LastOffsetDelta() != 0 {
					t.Errorf("stored %+v", stored.Header())
				}
			}},
	}
}

// TestAccepted holds what looks odd and is accepted, and what is stored then.
func TestAccepted(t *testing.T) {
	for _, test := range slices.Concat(acceptedAsIs(), acceptedTimes(), acceptedRebuilt()) {
		t.Run(test.name, func(t *testing.T) {
			l := memLog(t, test.cfg)
			sent := bytes.Clone(test.batch)
			info, err := l.AppendAsLeader(test.batch, AppendOptions{LeaderEpoch: 3})
			must(t, err)
			s, err := l.Read(0, ReadOptions{MaxBytes: 1 << 20, UpTo: l.EndOffset()})
			must(t, err)
			defer s.Release()
			data, err := s.Bytes()
			must(t, err)
			stored := record.Batch(data)
			if !stored.ValidCRC() || stored.BaseOffset() != 0 || stored.LeaderEpoch() != 3 || len(data) != info.SizeBytes {
				t.Errorf("stored %+v, info %+v", stored.Header(), info)
			}
			test.check(t, sent, stored)
		})
	}
}

func sameBody(t *testing.T, sent, stored record.Batch) {
	t.Helper()
	if !bytes.Equal(sent[17:], stored[17:]) {
		t.Errorf("sent\n %x, stored\n %x", sent, stored)
	}
}

// TestDisorderedCompressedBatch is a batch that Kafka fails on with an error of its own.
func TestDisorderedCompressedBatch(t *testing.T) {
	o := record.DefaultBuilderOptions()
	o.Codec = record.Gzip
	b := record.NewBuilder(o)
	must(t, b.AppendAt(0, nowMs, nil, nil, nil))
	must(t, b.AppendAt(5, nowMs, nil, nil, nil))
	batch := with(bytes.Clone(b.Bytes()), put32(23, 1))
	if _, err := memLog(t, nil).AppendAsLeader(batch, AppendOptions{}); !errors.Is(err, ErrUndecodable) {
		t.Errorf("got %v", err)
	}
}

func TestSingleBatch(t *testing.T) {
	one := kv(0, []byte("k"))
	zstd := kv(record.Zstd, []byte("k"))
	magic := func(m byte) []byte { b := bytes.Clone(one); b[16] = m; return b }
	small := bytes.Clone(one)
	binary.BigEndian.PutUint32(small[8:], 13)
	tests := []struct {
		name    string
		records []byte
		version int16
		want    *AppendError
	}{
		{"one", one, 9, nil},
		{"partial second", append(bytes.Clone(one), one[:40]...), 9, nil},
		{"zstd v7", zstd, 7, nil},
		{"none", nil, 3, invalidRecord(
			"Produce requests with version 3 must have at least one record batch per partition")},
		{"truncated", one[:60], 9, invalidRecord(
			"Produce requests with version 9 must have at least one record batch per partition")},
		{"magic 1", magic(1), 9, invalidRecord(
			"Produce requests with version 9 are only allowed to contain record batches with magic version 2")},
		{"magic 3", magic(3), 9, &AppendError{
			Reason: ErrCorruptMessage, OnWire: true, Text: "Invalid magic found in record: 3",
		}},
		{"size 13", small, 9, &AppendError{
			Reason: ErrCorruptMessage, Text: "Record size 13 is less than the minimum record overhead (14)",
		}},
		{"two", append(bytes.Clone(one), one...), 9, invalidRecord(
			"Produce requests with version 9 are only allowed to contain exactly one record batch per partition")},
		{"zstd v6", zstd, 6, &AppendError{
			Reason: ErrUnsupportedCodec, Text: "Produce requests with version 6 are not allowed to use ZStandard compression",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			batch, err := SingleBatch(test.records, test.version)
			if test.want == nil {
				if err != nil || len(batch) != record.Batch(batch).SizeBytes() {
					t.Fatalf("%d bytes, %v", len(batch), err)
				}
				return
			}
			var got *AppendError
			if !errors.As(err, &got) || got.Reason != test.want.Reason || got.Text != test.want.Text ||
				got.OnWire != test.want.OnWire {
				t.Fatalf("got %+v, want %+v", err, test.want)
			}
		})
	}
}

// TestIdempotentProducer goes through duplicates, gaps and epochs.
func TestIdempotentProducer(t *testing.T) {
	l := memLog(t, nil)
	send := func(epoch int16, seq int32, n int) (AppendInfo, error) {
		o := record.DefaultBuilderOptions()
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = 42, epoch, seq
		b := record.NewBuilder(o)
		for range n {
			must(t, b.Append(nowMs, nil, []byte("v"), nil))
		}
		return l.AppendAsLeader(bytes.Clone(b.Bytes()), AppendOptions{})
	}
	for i, step := range []struct {
		epoch  int16
		seq    int32
		n      int
		offset int64
		twice  bool
		err    string
	}{
		{epoch: 1, seq: 5, n: 1, offset: 0},
		{epoch: 1, seq: 6, n: 2, offset: 1},
		{epoch: 1, seq: 8, n: 1, offset: 3},
		{epoch: 1, seq: 6, n: 2, offset: 1, twice: true},
		{epoch: 1, seq: 10, n: 1, err: "Out of order sequence number"},
		{epoch: 0, seq: 9, n: 1, err: "epoch"},
		{epoch: 2, seq: 1, n: 1, err: "Invalid sequence number for new epoch"},
		{epoch: 2, seq: 0, n: 1, offset: 4},
		{epoch: 2, seq: 1, n: 1, offset: 5},
		{epoch: 2, seq: 0, n: 1, offset: 4, twice: true},
	} {
		info, err := send(step.epoch, step.seq, step.n)
		if step.err != "" {
			if err == nil || !strings.Contains(err.Error(), step.err) {
				t.Errorf("step %d: %v", i, err)
			}
			continue
		}
		if err != nil || info.BaseOffset != step.offset || info.Duplicate != step.twice {
			t.Errorf("step %d: %+v, %v", i, info, err)
		}
		if step.twice && info.LogAppendTime != nowMs {
			t.Errorf("step %d: log append time %d", i, info.LogAppendTime)
		}
	}
	_, err := send(2, 99, 1)
	var outOfOrder *producerstate.OutOfOrderSequenceError
	if !errors.As(err, &outOfOrder) {
		t.Errorf("got %v", err)
	}
}

func castagnoli(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
