//go:build oracle

package differential

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
)

// look compares one thing that readers and operators see.
func (r *randomRun) look() {
	r.t.Helper()
	partition := int32(r.rng.IntN(randomPartitions))
	switch r.rng.IntN(6) {
	case 0:
		r.ask("DescribeTransactions", describeTxn(append(slices.Clone(r.ids), "nobody")...))
	case 1:
		r.ask("DescribeProducers", describeProducers(r.topic, 0, 1), byProducer)
	case 2:
		r.list()
	case 3:
		r.lookUp(partition, int8(r.rng.IntN(2)), r.now-int64(r.rng.IntN(100_000)))
	default:
		end := r.endOffset(partition)
		r.fetch(partition, r.rng.Int64N(end+1), int8(r.rng.IntN(2)))
	}
}

func (r *randomRun) list() {
	version := int16(r.rng.IntN(3))
	r.ask(fmt.Sprintf("ListTransactions v%d", version), func(s *side) kmsg.Request {
		return listTxns(version, func(req *kmsg.ListTransactionsRequest) {
			for _, h := range r.handles[len(r.handles)/2:] {
				req.ProducerIDFilters = append(req.ProducerIDFilters, h.p.on(s))
			}
		})(s)
	}, byID)
}

// byProducer orders the producers of partitions by id: Kafka's order is a hash table's.
func byProducer(_ *side, tree any) any {
	m, _ := tree.(map[string]any)
	topics, _ := m["Topics"].([]any)
	for _, topic := range topics {
		partitions, _ := topic.(map[string]any)["Partitions"].([]any)
		for _, p := range partitions {
			producers, _ := p.(map[string]any)["ActiveProducers"].([]any)
			id := func(one any) int64 {
				n, _ := one.(map[string]any)["ProducerID"].(json.Number)
				v, _ := n.Int64()
				return v
			}
			slices.SortFunc(producers, func(a, b any) int { return int(id(a) - id(b)) })
		}
	}
	return tree
}

// lookUp compares a look-up by time. Where Kafka says that there is no record, and there is one, Tidemark's answer is
// held against the records: the one class of answers in which Tidemark differs, see doc/compat.md.
func (r *randomRun) lookUp(partition int32, isolation int8, ts int64) {
	r.t.Helper()
	ask := listOffsets(7, -1, isolation, r.topic, offsetQuery{partition, ts, -1})
	var found [2]kmsg.ListOffsetsResponseTopicPartition
	for i, s := range r.sides {
		answer, ok := s.ask(r.t, ask(s)).(*kmsg.ListOffsetsResponse)
		if !ok {
			r.t.Fatalf("%s: no answer: %s", s.Name, s.outcome)
		}
		found[i] = answer.Topics[0].Partitions[0]
	}
	if found[0].ErrorCode == 0 && found[0].Offset < 0 && found[1].Offset >= 0 {
		want, wantTime := r.firstFrom(r.sides[1], partition, isolation, ts)
		if found[1].Offset != want || found[1].Timestamp != wantTime {
			r.t.Errorf("seed %d: look-up of %d in partition %d, isolation %d: offset %d of time %d, should be %d of %d",
				r.seed, ts, partition, isolation, found[1].Offset, found[1].Timestamp, want, wantTime)
		}
		return
	}
	r.ask(fmt.Sprintf("ListOffsets of partition %d at %d, isolation %d", partition, ts, isolation), ask)
}

// firstFrom reads a partition and finds the first record, or marker, whose time is not below ts.
func (r *randomRun) firstFrom(s *side, partition int32, isolation int8, ts int64) (offset, timestamp int64) {
	r.t.Helper()
	for next := r.startOffset(s, partition); ; {
		f := newFetch(r.topic, next)
		f.partition, f.isolation = partition, isolation
		answer, ok := s.ask(r.t, f.request(12)(s)).(*kmsg.FetchResponse)
		if !ok || len(answer.Topics) == 0 || len(answer.Topics[0].Partitions[0].RecordBatches) == 0 {
			return -1, -1
		}
		for _, one := range keyValues(r.t, answer.Topics[0].Partitions[0].RecordBatches) {
			if one.Offset < next {
				continue
			}
			if one.Timestamp >= ts {
				return one.Offset, one.Timestamp
			}
			next = one.Offset + 1
		}
	}
}

func (r *randomRun) startOffset(s *side, partition int32) int64 {
	r.t.Helper()
	answer, ok := s.ask(r.t, listOffsets(7, -1, 0, r.topic, offsetQuery{partition, -2, -1})(s)).(*kmsg.ListOffsetsResponse)
	if !ok {
		r.t.Fatal("no start offset")
	}
	return answer.Topics[0].Partitions[0].Offset
}

// fetch compares records, aborted transactions and offsets, with a limit that the seed draws.
func (r *randomRun) fetch(partition int32, offset int64, isolation int8) {
	r.t.Helper()
	f := newFetch(r.topic, offset)
	f.partition, f.isolation = partition, isolation
	f.partMax = []int32{1, 100, 500, 2000, 10_000}[r.rng.IntN(5)]
	version := []int16{4, 11, 12, 18}[r.rng.IntN(4)]
	r.ask(fmt.Sprintf("Fetch v%d of partition %d from %d, isolation %d, at most %d bytes", version, partition, offset,
		isolation, f.partMax), f.request(version), r.decodeRecords)
}

// decodeRecords describes the batches of an answer, with the producers' names.
func (r *randomRun) decodeRecords(s *side, tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		for key, value := range v {
			text, ok := value.(string)
			if !ok || key != "RecordBatches" {
				v[key] = r.decodeRecords(s, value)
				continue
			}
			set, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				r.t.Fatal(err)
			}
			if set = r.neutral(s, set); len(set) < 1000 {
				v[key] = fmt.Sprintf("%x", set)
			} else {
				v[key] = fmt.Sprintf("%d bytes, SHA-256 %x", len(set), sha256.Sum256(set))
			}
		}
	case []any:
		for i := range v {
			v[i] = r.decodeRecords(s, v[i])
		}
	}
	return tree
}

// The fields of a batch that differ between the sides.
const (
	posFirstTimestamp = 27
	posProducerID     = 43
)

// neutral rewrites batches so that they are the same on both sides: producers are numbered, and the times of control
// batches are 0. What a set of batches ends with and is not a whole batch stays.
func (r *randomRun) neutral(s *side, set []byte) []byte {
	out := slices.Clone(set)
	for rest := out; len(rest) > 0; {
		h, entry, after, err := record.NextEntry(rest)
		if err != nil {
			r.neutralHeader(s, rest) // of a cut batch
			return out
		}
		if !record.ValidCRC(entry) {
			r.t.Errorf("%s: checksum of the batch at %d", s.Name, h.BaseOffset)
		}
		r.neutralHeader(s, entry)
		rest = after
	}
	return out
}

// neutralHeader rewrites the header of a batch, which may be cut.
func (r *randomRun) neutralHeader(s *side, b []byte) {
	var whole [headerSize]byte
	n := copy(whole[:], b)
	clear(whole[posCRC:posAttributes])
	const control = 0x20
	if whole[posAttributes+1]&control != 0 {
		clear(whole[posFirstTimestamp:posProducerID])
	}
	if n >= posProducerID+8 {
		r.neutralProducer(s, whole[posProducerID:])
	} else {
		clear(whole[posProducerID:])
	}
	copy(b, whole[:n])
}

// neutralProducer replaces a producer id of 8 bytes by its number in the run.
func (r *randomRun) neutralProducer(s *side, b []byte) {
	id := int64(binary.BigEndian.Uint64(b))
	if id < 0 {
		return
	}
	var n uint64
	if _, err := fmt.Sscanf(r.producerName(s, id), "producer %d", &n); err != nil {
		n = 1 << 40 // the stranger
	}
	binary.BigEndian.PutUint64(b, n)
}

// compare compares all that can be seen of the run.
func (r *randomRun) compare(t *testing.T) {
	r.t = t
	r.seeAll(4)
	for _, h := range r.handles { // no transaction stays open
		if h.open {
			r.end(h)
		}
	}
	for _, id := range r.ids {
		r.producerOf(id, longTimeout)
	}
	r.seeAll(1)
	for partition := range r.starts {
		r.starts[partition] = r.startOffset(r.sides[0], int32(partition))
	}
	for _, what := range slices.Sorted(maps.Keys(r.seen)) {
		t.Logf("%5d × %s", r.seen[what], what)
	}
}

// seeAll compares what readers and operators see; of records and look-ups by time, one in n.
func (r *randomRun) seeAll(n int) {
	r.t.Helper()
	r.ask("DescribeTransactions", describeTxn(r.ids...))
	r.ask("DescribeProducers", describeProducers(r.topic, 0, 1), byProducer)
	r.ask("ListTransactions", listTxns(2, func(req *kmsg.ListTransactionsRequest) {
		req.TransactionalIDPattern = kmsg.StringPtr(r.topic + "-.*")
	}), byID)
	r.ask("OffsetFetch", r.groupOffsets(true))
	times := slices.Sorted(maps.Keys(r.times))
	for partition := range int32(randomPartitions) {
		end := r.endOffset(partition)
		for isolation := range int8(2) {
			for offset := range end + 2 {
				if r.rng.IntN(n) == 0 {
					r.fetch(partition, offset, isolation)
				}
			}
			for _, ts := range []int64{-1, -2, base - 10_000, r.now + 100_000} {
				r.lookUp(partition, isolation, ts)
			}
			for _, ts := range times {
				if r.rng.IntN(2*n) == 0 {
					r.lookUp(partition, isolation, ts+r.rng.Int64N(2))
				}
			}
		}
	}
}

// compareFiles compares the files of both sides, which are stopped.
func (r *randomRun) compareFiles(t *testing.T) {
	r.t = t
	for partition := range randomPartitions {
		var files [2]map[string][]byte
		for i, s := range r.sides {
			files[i] = r.readFiles(s, filepath.Join(s.Dir, fmt.Sprintf("%s-%d", r.topic, partition)))
			dropDeleted(files[i], r.starts[partition])
		}
		names := slices.Sorted(maps.Keys(files[0]))
		if others := slices.Sorted(maps.Keys(files[1])); !slices.Equal(names, others) {
			t.Errorf("partition %d: files %q in Kafka, %q in Tidemark", partition, names, others)
		}
		for _, name := range names {
			if a, b := files[0][name], files[1][name]; b != nil && string(a) != string(b) {
				t.Errorf("partition %d: %s differs: %d bytes in Kafka, %d in Tidemark%s", partition, name, len(a), len(b),
					firstDifference(a, b))
			}
		}
	}
}

// dropDeleted drops the files of segments that lie below the start of the log: each side deletes them in its own time.
func dropDeleted(files map[string][]byte, start int64) {
	base := func(name string) int64 {
		n, err := strconv.ParseInt(strings.TrimSuffix(name, filepath.Ext(name)), 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	first := int64(0)
	for name := range files {
		if b := base(name); filepath.Ext(name) == ".log" && b <= start {
			first = max(first, b)
		}
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return base(name) < first })
}

// readFiles reads logs, transaction indexes and snapshots of a partition, all made neutral. Of time indexes, which hold
// the times of markers, only the names count.
func (r *randomRun) readFiles(s *side, dir string) map[string][]byte {
	r.t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if !slices.Contains([]string{".log", ".index", ".txnindex", ".snapshot", ".timeindex"}, ext) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			r.t.Fatal(err)
		}
		switch ext {
		case ".log":
			data = r.neutral(s, data)
		case ".txnindex":
			const entrySize, posID = 34, 2
			for at := 0; at+entrySize <= len(data); at += entrySize {
				r.neutralProducer(s, data[at+posID:])
			}
		case ".timeindex":
			data = nil // that it is there
		case ".snapshot":
			data = r.neutralSnapshot(s, data)
		}
		files[e.Name()] = data
	}
	return files
}

// neutralSnapshot orders the entries of a producer snapshot by producer; the times of markers become 0.
func (r *randomRun) neutralSnapshot(s *side, data []byte) []byte {
	const header, entrySize, posTime = 10, 46, 26
	clear(data[2:6]) // checksum
	var entries []string
	for at := header; at+entrySize <= len(data); at += entrySize {
		e := data[at : at+entrySize]
		r.neutralProducer(s, e)
		if int64(binary.BigEndian.Uint64(e[posTime:])) >= r.start {
			clear(e[posTime : posTime+8])
		}
		entries = append(entries, string(e))
	}
	slices.Sort(entries)
	return append(data[:header:header], strings.Join(entries, "")...)
}

// firstDifference tells where two files differ first.
func firstDifference(a, b []byte) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			from := max(0, i-8)
			return fmt.Sprintf(", first at %d:\n  %x\n  %x", i, a[from:min(len(a), i+60)], b[from:min(len(b), i+60)])
		}
	}
	return ", one is longer"
}
