package group

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/record"
	"tidemark/test/golden"
)

// goldenRecords are the records of __consumer_offsets in a directory that Kafka wrote, in order.
func goldenRecords(t *testing.T, c golden.Case) []Replayed {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(c.TreePath(t, golden.Data), "__consumer_offsets-*", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs of __consumer_offsets: %v", err)
	}
	slices.Sort(logs)
	var all []Replayed
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			h, entry, rest, err := record.NextEntry(b)
			if errors.Is(err, record.ErrShort) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b = rest
			all = append(all, goldenBatch(t, h, entry)...)
		}
	}
	return all
}

func goldenBatch(t *testing.T, h record.Header, entry []byte) (all []Replayed) {
	t.Helper()
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for it.Next() {
		r := it.Record()
		one := Replayed{Offset: r.Offset, ProducerID: noProducer, Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
		if h.IsTransactional() {
			one.ProducerID = h.ProducerID
		}
		if h.IsControl() {
			_, message, err := record.ParseControl(r.Key, r.Value)
			end, ok := message.(record.EndTxn)
			if err != nil || !ok {
				t.Fatalf("control record at %d: %v", r.Offset, err)
			}
			one.Key = []byte{0}
			if end.Commit {
				one.Key[0] = 1
			}
		}
		all = append(all, one)
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return all
}

// The offsets of every group are those that Kafka tells of the same directory.
func TestGoldenOffsets(t *testing.T) {
	for _, c := range golden.Cases(t, "13-") {
		t.Run(c.Name, func(t *testing.T) {
			w := newWorld()
			for _, r := range goldenRecords(t, c) {
				if commit, ok := asMarker(r); ok {
					w.m.ReplayMarker(r.ProducerID, commit)
				} else if err := w.m.Replay(r); err != nil && !errors.Is(err, ErrUnknownRecord) {
					t.Fatal(err)
				}
			}
			w.m.Loaded()
			want := c.Rows(t, "groups.tsv")
			for _, row := range want {
				checkGolden(t, w.m, row)
			}
			total := 0
			for id := range w.m.groups {
				topics, err := w.m.Fetch(&FetchRequest{Group: id, MemberEpoch: -1, All: true, Stable: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, topic := range topics {
					total += len(topic.Partitions)
				}
			}
			if total != len(want) {
				t.Errorf("%d offsets, Kafka has %d", total, len(want))
			}
			checkGoldenList(t, w.m, c.Rows(t, "group-list.tsv"))
		})
	}
}

func checkGoldenList(t *testing.T, m *Machine, want []map[string]string) {
	t.Helper()
	all := m.List(Filter{})
	if len(all) != len(want) {
		t.Errorf("%d groups, Kafka has %d", len(all), len(want))
	}
	for _, row := range want {
		if !slices.ContainsFunc(all, func(l Listed) bool {
			return l.ID == row["group"] && strings.EqualFold(l.Kind, row["type"]) && l.ProtocolType == row["protocol"] &&
				l.State == row["state"]
		}) {
			t.Errorf("%v is not among %v", row, all)
		}
	}
}

func checkGolden(t *testing.T, m *Machine, row map[string]string) {
	t.Helper()
	partition, _ := strconv.Atoi(row["partition"])
	asked := []TopicPartitions{{Topic: row["topic"], Partitions: []int32{int32(partition)}}}
	topics, err := m.Fetch(&FetchRequest{Group: row["group"], MemberEpoch: -1, Topics: asked, Stable: true})
	if err != nil {
		t.Fatal(err)
	}
	got := topics[0].Partitions[0]
	epoch := "-"
	if got.LeaderEpoch >= 0 {
		epoch = strconv.Itoa(int(got.LeaderEpoch))
	}
	if got.Err != nil || strconv.FormatInt(got.Offset, 10) != row["offset"] || got.Metadata != row["metadata"] ||
		epoch != row["leader_epoch"] {
		t.Errorf("%v: got %+v", row, got)
	}
}

// Every record that is of a kind we write is written as Kafka writes it.
func TestGoldenRecordsAgain(t *testing.T) {
	for _, c := range golden.Cases(t, "13-") {
		n := 0
		for _, r := range goldenRecords(t, c) {
			key, err := DecodeKey(r.Key)
			if _, marker := asMarker(r); marker || errors.Is(err, ErrUnknownRecord) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if again := key.AppendTo(nil); !bytes.Equal(again, r.Key) {
				t.Errorf("%s: key %x, Kafka's is %x", c.Name, again, r.Key)
			}
			if again := writtenAgain(t, key, r.Value); !bytes.Equal(again, r.Value) {
				t.Errorf("%s: record at %d: %x, Kafka's is %x", c.Name, r.Offset, again, r.Value)
			}
			n++
		}
		if n == 0 {
			t.Errorf("%s: no records", c.Name)
		}
	}
}

func writtenAgain(t *testing.T, key Key, value []byte) []byte {
	t.Helper()
	if value == nil {
		return nil
	}
	if key.isOffset() {
		o, err := DecodeOffset(value)
		if err != nil {
			t.Fatal(err)
		}
		return o.AppendTo(nil)
	}
	if key.isConsumer() {
		return consumerAgain(t, key, value)
	}
	v, err := decodeClassic(value)
	if err != nil {
		t.Fatal(err)
	}
	return v.appendTo(nil)
}

func consumerAgain(t *testing.T, key Key, value []byte) (again []byte) {
	t.Helper()
	m := newConsumerMember(key.Member)
	var err error
	switch key.Kind {
	case kindEpoch, kindTargetEpoch:
		var epoch int32
		var hash int64
		epoch, hash, err = decodeEpoch(value)
		again = encodeEpoch(epoch, hash)
	case kindMember:
		err = m.decodeWishes(value)
		again = m.appendTo(nil)
	case kindTarget:
		var to target
		to, err = decodeTarget(value)
		again = encodeTarget(to)
	case kindCurrent:
		err = m.decodeCurrent(value)
		again = m.encodeCurrent()
	case kindRegex:
		var r resolved
		r, err = decodeResolved(value)
		again = r.encode()
	default:
		err = errors.New("a kind that is not written any more")
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}
