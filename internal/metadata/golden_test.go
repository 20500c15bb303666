package metadata

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/wire"
	"tidemark/record"
	"tidemark/test/golden"
)

// kafkaFiles are metadata logs and snapshots that Kafka 4.3.1 wrote.
func kafkaFiles(t testing.TB) []string {
	t.Helper()
	data := filepath.Join(golden.Load(t, "13-data").Path, "data")
	files := []string{
		filepath.Join(data, "__cluster_metadata-0", "00000000000000000000.log"),
		filepath.Join(data, "bootstrap.checkpoint"),
	}
	more, err := filepath.Glob("testdata/restarts/*.[lc][oh]*")
	if err != nil || len(more) < 5 {
		t.Fatalf("files of testdata/restarts: %v %v", more, err)
	}
	return append(files, more...)
}

// readBatches returns the data batches of a log or snapshot; raw holds the
// values of their records in order.
func readBatches(t testing.TB, file string) (batches []Batch, raw [][]byte) {
	t.Helper()
	rest, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for len(rest) > 0 {
		h, entry, next, err := record.NextEntry(rest)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		rest = next
		if h.IsControl() {
			continue
		}
		b := Batch{BaseOffset: h.BaseOffset, LastOffset: h.LastOffset, Epoch: h.LeaderEpoch, TimestampMs: h.MaxTimestamp}
		r := wire.NewReader(entry[record.HeaderSize:])
		for range h.Count {
			value := recordValue(r)
			rec, err := DecodeRecord(value)
			if err != nil {
				t.Fatalf("%s: batch %d: %v", file, h.BaseOffset, err)
			}
			b.Records, raw = append(b.Records, rec), append(raw, value)
		}
		if r.Err() != nil || r.Len() != 0 {
			t.Fatalf("%s: batch %d: %v", file, h.BaseOffset, r.Err())
		}
		batches = append(batches, b)
	}
	return batches, raw
}

func recordValue(r *wire.Reader) []byte {
	r.Varint()  // length
	r.Int8()    // attributes
	r.Varlong() // timestamp delta
	r.Varint()  // offset delta
	r.VarintBytes()
	value := r.VarintBytes()
	r.Varint() // headers
	return value
}

// TestKafkaRecordsRoundTrip decodes and encodes every record that Kafka wrote.
func TestKafkaRecordsRoundTrip(t *testing.T) {
	kinds := map[Kind]int{}
	for _, file := range kafkaFiles(t) {
		batches, raw := readBatches(t, file)
		var records []Record
		for _, b := range batches {
			records = append(records, b.Records...)
		}
		for i, rec := range records {
			kinds[rec.Body.Kind()]++
			got, err := rec.AppendTo(nil)
			if err != nil {
				t.Fatalf("%s: record %d: %v", file, i, err)
			}
			if !bytes.Equal(got, raw[i]) {
				t.Errorf("%s: record %d: %v\n got %x\nwant %x", file, i, rec.Body.Kind(), got, raw[i])
			}
		}
	}
	if len(kinds) < 15 {
		t.Errorf("only %d kinds of records were seen: %v", len(kinds), kinds)
	}
}

// imageUpTo replays the batches of a log that end below the offset.
func imageUpTo(t testing.TB, file string, end int64) *Image {
	t.Helper()
	l := NewLoader(NewImage())
	batches, _ := readBatches(t, file)
	for _, b := range batches {
		if b.LastOffset >= end {
			break
		}
		if err := l.Replay(b); err != nil {
			t.Fatal(err)
		}
	}
	if l.TransactionStart() != -1 {
		t.Fatalf("a transaction that began at %d never ended", l.TransactionStart())
	}
	return l.Publish().Image()
}

// TestKafkaSnapshotsEqualLog compares every snapshot that Kafka took with the
// image of the log up to the same offset.
func TestKafkaSnapshotsEqualLog(t *testing.T) {
	log := "testdata/restarts/00000000000000000000.log"
	snapshots, _ := filepath.Glob("testdata/restarts/*.checkpoint")
	seen := 0
	for _, file := range snapshots {
		name := strings.TrimSuffix(filepath.Base(file), ".checkpoint")
		if len(name) != 31 {
			continue // leader-epoch-checkpoint
		}
		seen++
		var end int64
		for _, c := range name[:20] {
			end = end*10 + int64(c-'0')
		}
		want := imageUpTo(t, log, end)
		got := imageUpTo(t, file, 1<<62)
		if diff := diffImages(got, want); diff != "" {
			t.Errorf("%s: snapshot and log differ: %s", file, diff)
		}
	}
	if seen < 4 {
		t.Errorf("only %d snapshots", seen)
	}
}

// TestGoldenTopics compares the image of 13-data with what Kafka's tools said.
func TestGoldenTopics(t *testing.T) {
	c := golden.Load(t, "13-data")
	image := imageUpTo(t, filepath.Join(c.Path, "data/__cluster_metadata-0/00000000000000000000.log"), 1<<62)
	partitions := 0
	for _, row := range tsv(t, filepath.Join(c.Path, "expect/topics.tsv")) {
		topic := image.Topic(row[0])
		if topic == nil || topic.ID.String() != row[1] || image.TopicByID(topic.ID) != topic {
			t.Fatalf("topic %s: %+v", row[0], topic)
		}
		partitions++
		var configs []string
		for key, value := range image.Config(TopicConfigs(topic.Name)).All() {
			configs = append(configs, key+"="+value)
		}
		if got := strings.Join(configs, ","); got != row[4] {
			t.Errorf("configs of %s: %s, want %s", topic.Name, got, row[4])
		}
	}
	if image.NumPartitions() != partitions || image.NumTopics() != 4 || image.Topic("to-be-deleted") != nil {
		t.Errorf("%d topics, %d partitions", image.NumTopics(), image.NumPartitions())
	}
	p := image.Topic("t-a").Partition(2)
	if p.Leader != NoLeader || p.LeaderEpoch != 1 || p.PartitionEpoch != 1 || !slices.Equal(p.ELR, []int32{1}) {
		t.Errorf("t-a-2 after the stop: %+v", p)
	}
	if b := image.Broker(1); b == nil || b.Epoch != 19 || !b.Fenced || !b.InControlledShutdown ||
		b.CordonedLogDirs == nil {
		t.Errorf("broker 1: %+v", b)
	}
	if image.NextProducerID() != 1000 || image.MetadataVersion() != 30 || image.FeatureLevel("transaction.version") != 2 {
		t.Errorf("next producer id %d, features %v", image.NextProducerID(), image.FeatureLevel("transaction.version"))
	}
}

func tsv(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		rows = append(rows, strings.Split(line, "\t"))
	}
	return rows
}
