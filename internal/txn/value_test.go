package txn

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tidemark/internal/checkpoint"
	"tidemark/internal/wire"
	"tidemark/record"
	"tidemark/test/golden"
)

// goldenRecords are the records of real __transaction_state partitions, in order.
func goldenRecords(t *testing.T) []Record {
	t.Helper()
	dir := golden.Load(t, "13-data").TreePath(t, golden.Data)
	files, err := filepath.Glob(filepath.Join(dir, "__transaction_state-*", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	var out []Record
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, recordsOf(t, data)...)
	}
	if len(out) == 0 {
		t.Fatal("no records")
	}
	return out
}

func recordsOf(t *testing.T, data []byte) []Record {
	t.Helper()
	var out []Record
	for len(data) > 0 {
		_, entry, rest, err := record.NextEntry(data)
		if err != nil {
			t.Fatal(err)
		}
		it, err := record.NewIterator(entry, record.IterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			r := it.Record()
			out = append(out, Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		data = rest
	}
	return out
}

func TestGoldenRecordsSurviveARoundTrip(t *testing.T) {
	for i, r := range goldenRecords(t) {
		id, err := DecodeKey(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		v, err := DecodeValue(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(r, Record{Key: EncodeKey(id), Value: v.AppendTo(nil, flexibleVersion)}); diff != "" {
			t.Errorf("record %d of %s: %s", i, id, diff)
		}
	}
}

func TestGoldenPartitionLoads(t *testing.T) {
	m := New(Options{MaxTimeoutMs: 900_000, ExpirationMs: 1, Version: func() int16 { return 2 }})
	for _, r := range goldenRecords(t) {
		if err := m.Replay(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	if left := m.Loaded(0); len(left) > 0 {
		t.Errorf("markers are missing: %v", left)
	}
	want := golden.Load(t, "13-data").Rows(t, "transactions.tsv")
	for _, row := range want {
		d, err := m.Describe(row["transactional_id"])
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{"transactional_id": row["transactional_id"], "producer_id": itoa(d.ID),
			"epoch": itoa(int64(d.Epoch)), "state": d.State.String(), "timeout_ms": itoa(int64(d.TimeoutMs))}
		if diff := gocmp.Diff(row, got); diff != "" {
			t.Error(diff)
		}
	}
	if m.Len() != len(want) {
		t.Errorf("%d ids, want %d", m.Len(), len(want))
	}
}

func TestValueRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newValue()
		v.ID = rapid.Int64().Draw(t, "id")
		v.Epoch = rapid.Int16().Draw(t, "epoch")
		v.TimeoutMs = rapid.Int32().Draw(t, "timeout")
		v.State = State(rapid.IntRange(0, 7).Draw(t, "state"))
		v.LastUpdateMs = rapid.Int64().Draw(t, "update")
		v.StartMs = rapid.Int64().Draw(t, "start")
		if v.State != Empty {
			for _, topic := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z.]{1,8}`), 0, 20,
				func(s string) string { return s }).Draw(t, "topics") {
				for p := range rapid.IntRange(1, 5).Draw(t, "partitions") {
					v.Partitions = append(v.Partitions, checkpoint.TopicPartition{Topic: topic, Partition: int32(p)})
				}
			}
		}
		version := rapid.Int16Range(0, 1).Draw(t, "version")
		if version == flexibleVersion {
			v.PreviousProducerID = rapid.Int64Min(-1).Draw(t, "previous")
			v.NextProducerID = rapid.Int64Min(-1).Draw(t, "next")
			v.NextProducerEpoch = rapid.Int16Min(-1).Draw(t, "next epoch")
			v.ClientVersion = rapid.Int16Range(0, 2).Draw(t, "client version")
		}
		encoded := v.AppendTo(nil, version)
		got, err := DecodeValue(encoded)
		if err != nil {
			t.Fatal(err)
		}
		// The order of the partitions is that of Java's hash codes; a second time it stays as it is.
		if diff := gocmp.Diff(encoded, got.AppendTo(nil, version)); diff != "" {
			t.Fatal(diff)
		}
		v.Partitions, got.Partitions = sorted(v.Partitions), sorted(got.Partitions)
		if diff := gocmp.Diff(v, got); diff != "" {
			t.Fatal(diff)
		}
		for cut := range encoded {
			if _, err := DecodeValue(encoded[:cut]); err == nil {
				t.Fatalf("cut after %d of %d bytes: no error", cut, len(encoded))
			}
		}
	})
}

func TestMalformedRecords(t *testing.T) {
	m := New(Options{})
	if err := m.Replay(wire.AppendInt16(nil, 1), nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("unknown key version: %v", err)
	}
	if err := m.Replay(wire.AppendInt16(nil, 0), nil); !errors.Is(err, wire.ErrShort) {
		t.Errorf("cut key: %v", err)
	}
	key := EncodeKey("id")
	for name, value := range map[string][]byte{
		"version": wire.AppendInt16(nil, 2),
		"empty":   {},
		"state":   func() []byte { b := newValue().AppendTo(nil, 0); b[16] = 8; return b }(),
	} {
		if err := m.Replay(key, value); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if m.Len() != 0 {
		t.Errorf("%d ids", m.Len())
	}
}

func FuzzDecodeValue(f *testing.F) {
	f.Add(newValue().AppendTo(nil, 0))
	f.Add(newValue().AppendTo(nil, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := DecodeValue(b)
		if err == nil {
			_ = v.AppendTo(nil, flexibleVersion)
		}
	})
}
