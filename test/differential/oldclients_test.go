//go:build oracle

package differential

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
	"tidemark/test/pair"
)

// oldKafka is the last version that serves the requests of the oldest clients; Kafka 4 closes the connection on them.
const oldKafka = "3.9.2"

// TestOldClients compares the versions that Kafka 4 does not serve any more with a Kafka that did.
func TestOldClients(t *testing.T) {
	kafka, tidemark := pair.StartVersion(t, oldKafka, quiet())
	w := worldOf(t, kafka, tidemark)
	w.run(t, "ApiVersions", w.oldVersions)
	w.run(t, "topics", w.oldTopics)
	w.run(t, "Produce", w.oldProduce)
	w.run(t, "Fetch", w.oldFetch)
	w.run(t, "ListOffsets", w.oldListOffsets)
	w.run(t, "OffsetForLeaderEpoch", w.oldEpochs)
}

// oldVersions compares the first version of every key that both list.
func (w *world) oldVersions(t *testing.T) {
	var first [2]map[int16]int16
	for i, s := range w.sides {
		req := kmsg.NewPtrApiVersionsRequest()
		answer, ok := s.ask(t, req).(*kmsg.ApiVersionsResponse)
		if !ok {
			t.Fatalf("%s does not answer", s.Name)
		}
		first[i] = make(map[int16]int16)
		for _, k := range answer.ApiKeys {
			first[i][k.ApiKey] = k.MinVersion
		}
	}
	for key, kafka := range first[0] {
		if tidemark, ok := first[1][key]; ok && tidemark > kafka && key != 27 { // only brokers send 27
			t.Errorf("%s: Kafka %s serves it from version %d on, Tidemark from %d", kmsg.NameForKey(key), oldKafka, kafka,
				tidemark)
		}
	}
}

func (w *world) oldTopics(t *testing.T) {
	for v := int16(0); v <= 1; v++ {
		name := fmt.Sprintf("old%d", v)
		w.same(t, "create", createCase{topic: name, partitions: 2, replication: 1}.request(v))
		for _, s := range w.sides {
			s.waitLed(t, name, 2)
		}
		w.same(t, "create again", createCase{topic: name, partitions: 2, replication: 1}.request(v))
		w.same(t, "no partitions", createCase{topic: "new", replication: 1}.request(v))
		w.same(t, "defaults", createCase{topic: "defaults" + name, partitions: -1, replication: -1}.request(v))
		w.same(t, "describe", describeConfigs(0, kmsg.ConfigResourceTypeTopic, name, "cleanup.policy", "segment.bytes"),
			byName)
		w.same(t, "describe an unknown one", describeConfigs(0, kmsg.ConfigResourceTypeTopic, "nope"), byName)
		w.same(t, "delete", deleteTopics(0, deletion{name: name}))
		w.same(t, "delete again", deleteTopics(0, deletion{name: name}, deletion{name: "nope"}), byTopic)
	}
}

// message is one message of the formats before batches.
type message struct {
	offset     int64
	magic      int8
	attributes byte
	ts         int64
	key, value []byte
	badCRC     bool
}

func (m message) encode() []byte {
	body := []byte{byte(m.magic), m.attributes}
	if m.magic > 0 {
		body = binary.BigEndian.AppendUint64(body, uint64(m.ts))
	}
	for _, field := range [][]byte{m.key, m.value} {
		if field == nil {
			body = binary.BigEndian.AppendUint32(body, 0xffffffff)
			continue
		}
		body = binary.BigEndian.AppendUint32(body, uint32(len(field)))
		body = append(body, field...)
	}
	sum := crc32.ChecksumIEEE(body)
	if m.badCRC {
		sum++
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(m.offset))
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)+4))
	return append(binary.BigEndian.AppendUint32(out, sum), body...)
}

func messageSet(messages ...message) []byte {
	var out []byte
	for _, m := range messages {
		out = append(out, m.encode()...)
	}
	return out
}

// wrapper is a message whose value is a compressed set.
func wrapper(magic int8, codec byte, inner []byte, last int64) message {
	var compressed bytes.Buffer
	switch codec {
	case 1:
		w := gzip.NewWriter(&compressed)
		_, _ = w.Write(inner) // a bytes.Buffer takes everything
		_ = w.Close()
	case 2:
		compressed.Write(snappy.Encode(nil, inner))
	case 3:
		w := lz4.NewWriter(&compressed)
		_ = w.Apply(lz4.BlockSizeOption(lz4.Block64Kb))
		_, _ = w.Write(inner)
		_ = w.Close()
	}
	return message{offset: last, magic: magic, attributes: codec, ts: base + last, value: compressed.Bytes()}
}

func messages(magic int8, n int, relative bool) []message {
	var out []message
	for i := range n {
		m := message{magic: magic, ts: base + int64(i)*1000, key: []byte("k"), value: fmt.Append(nil, "value ", i)}
		if relative {
			m.offset = int64(i)
		}
		out = append(out, m)
	}
	return out
}

// oldSets are the records of produce requests before version 3.
func oldSets() map[string][]byte {
	out := map[string][]byte{
		"empty":          {},
		"garbage":        []byte("nothing like a message"),
		"magic 2":        batch{records: some(2)}.encode(),
		"magic 3":        message{magic: 3}.encode(),
		"wrong checksum": message{magic: 1, badCRC: true}.encode(),
	}
	for magic := int8(0); magic <= 1; magic++ {
		set := messageSet(messages(magic, 3, false)...)
		name := func(s string) string { return fmt.Sprintf("magic %d, %s", magic, s) }
		out[name("three messages")] = set
		out[name("one cut")] = set[:len(set)-5]
		out[name("only a part")] = set[:20]
		out[name("null key and value")] = message{magic: magic, ts: base}.encode()
		out[name("offsets given")] = messageSet(messages(magic, 3, true)...)
		out[name("timestamp -1")] = message{magic: magic, ts: -1, value: []byte("v")}.encode()
		out[name("far ahead")] = message{magic: magic, ts: ahead(1)[0].ts, value: []byte("v")}.encode()
		out[name("append time set")] = message{magic: magic, ts: base, attributes: 8, value: []byte("v")}.encode()
		out[name("too large")] = message{magic: magic, value: make([]byte, 2000)}.encode()
		out[name("bad inside")] = messageSet(message{magic: magic, value: []byte("v")}, message{magic: magic, badCRC: true})
		out[name("other magic inside")] = messageSet(message{magic: magic, value: []byte("v")},
			message{magic: 1 - magic, ts: base, value: []byte("w")})
		for codec := byte(1); codec <= 2; codec++ {
			inner := messageSet(messages(magic, 4, true)...)
			out[name(fmt.Sprintf("codec %d", codec))] = wrapper(magic, codec, inner, 3).encode()
			out[name(fmt.Sprintf("codec %d, twice", codec))] = messageSet(wrapper(magic, codec, inner, 3),
				wrapper(magic, codec, inner, 3))
		}
		out[name("wrapper of nothing")] = wrapper(magic, 1, nil, 0).encode()
		out[name("not gzip")] = message{magic: magic, attributes: 1, value: []byte("nothing like gzip")}.encode()
	}
	out["magic 1, codec 3"] = wrapper(1, 3, messageSet(messages(1, 4, true)...), 3).encode()
	out["magic 1, zstd"] = message{magic: 1, attributes: 4, value: []byte("x")}.encode()
	return out
}

func (w *world) oldProduce(t *testing.T) {
	const after, hour = "message.timestamp.after.max.ms", "3600000" // the default since 4.0
	w.create(t, "old-sets", 1, "max.message.bytes", "1000", "retention.ms", "-1", after, hour)
	w.create(t, "old-compacted", 1, "cleanup.policy", "compact")
	w.create(t, "old-append-time", 1, "message.timestamp.type", "LogAppendTime")
	w.create(t, "old-gzip", 1, "compression.type", "gzip", "retention.ms", "-1", after, hour)
	w.create(t, "old-uncompressed", 1, "compression.type", "uncompressed", "retention.ms", "-1", after, hour)
	for name, set := range oldSets() {
		for v := int16(0); v <= 2; v++ {
			for _, topic := range []string{"old-sets", "old-compacted", "old-append-time", "old-gzip", "old-uncompressed"} {
				if topic == "old-append-time" && name == "magic 1, append time set" {
					continue // Kafka refuses it; here the bit is lost in the conversion
				}
				w.same(t, topic+": "+name, produce(v, topic, 0, -1, set), hide("LogAppendTime"), hideTimes)
			}
		}
	}
	valid := messageSet(messages(1, 1, false)...)
	for v := int16(0); v <= 2; v++ {
		w.same(t, "unknown topic", produce(v, "nope", 0, 1, valid))
		w.same(t, "unknown partition", produce(v, "old-sets", 3, 1, valid))
		w.same(t, "acks 7", produce(v, "old-sets", 0, 7, valid))
	}
	for _, topic := range []string{"old-sets", "old-compacted", "old-gzip", "old-uncompressed"} {
		w.sameRecords(t, "stored in "+topic, newFetch(topic, 0), 11)
	}
}

// sameRecords fetches from both sides and compares what is in the batches: compressors differ in their bytes.
//
// A Kafka that converts cuts the last message where Tidemark sends it whole: what Kafka lacks at the end is not
// compared.
func (w *world) sameRecords(t *testing.T, name string, f fetchSpec, version int16, changes ...change) {
	t.Helper()
	var lengths []int // of Kafka's sets
	decode := func(s *side, tree any) any {
		var walk func(tree any) any
		walk = func(tree any) any {
			switch v := tree.(type) {
			case map[string]any:
				for key := range v {
					if text, ok := v[key].(string); ok && key == "RecordBatches" {
						set, err := base64.StdEncoding.DecodeString(text)
						if err != nil {
							t.Fatal(err)
						}
						list := describeSet(set)
						if s == w.sides[0] {
							lengths = append(lengths, len(list))
						} else if len(lengths) > 0 {
							if version < 4 && len(list) > lengths[0] {
								list = list[:lengths[0]]
							}
							lengths = lengths[1:]
						}
						v[key] = list
						continue
					}
					v[key] = walk(v[key])
				}
			case []any:
				for i := range v {
					v[i] = walk(v[i])
				}
			}
			return tree
		}
		return walk(tree)
	}
	w.same(t, name, f.request(version), append([]change{decode}, changes...)...)
}

// describeSet lists batches and messages with their records.
func describeSet(set []byte) []any {
	var out []any
	for len(set) > 0 {
		h, entry, rest, err := record.NextEntry(set)
		if errors.Is(err, record.ErrShort) { // a cut message; Kafka fills small sets up with one
			return out
		}
		if err != nil {
			return append(out, fmt.Sprintf("%d bytes: %v", len(set), err))
		}
		head := fmt.Sprintf("magic %d, %d to %d, attributes %#x, largest time %d, epoch %d, producer %v, checksum %v",
			h.Magic, h.BaseOffset, h.LastOffset, h.Attributes, h.MaxTimestamp, h.LeaderEpoch, h.ProducerID >= 0,
			record.ValidCRC(entry))
		if h.IsControl() { // at the broker's time
			head = fmt.Sprintf("control batch, %d to %d, attributes %#x", h.BaseOffset, h.LastOffset, h.Attributes)
		}
		if h.Codec() == record.None {
			head += fmt.Sprintf(", %d bytes", len(entry))
		}
		records := []any{head}
		it, err := record.NewIterator(entry, record.IterOptions{})
		for err == nil && it.Next() {
			r := it.Record()
			if h.IsControl() {
				r.Timestamp = 0
			}
			records = append(records, fmt.Sprintf("%d at %d: %q = %q (%d headers)", r.Offset, r.Timestamp, r.Key, r.Value,
				len(r.Headers)))
		}
		if err == nil {
			err = it.Err()
		}
		if err != nil {
			records = append(records, err.Error())
		}
		out, set = append(out, records), rest
	}
	return out
}

func (w *world) oldFetch(t *testing.T) {
	w.create(t, "old-fetch", 2, "retention.ms", "-1")
	w.fill(t, "old-fetch")
	mixed := batch{records: []rec{{ts: base, key: []byte("k"), tail: []byte{2, 2, 'h', 2, 'v'}}, {ts: -1},
		{ts: base + 5, value: []byte("v")}}}
	w.same(t, "headers", produce(11, "old-fetch", 1, -1, mixed.encode()))
	for v := int16(0); v <= 3; v++ {
		for _, offset := range []int64{-1, 0, 1, 4, 9, 11, 12, 13} {
			w.sameRecords(t, fmt.Sprintf("offset %d", offset), newFetch("old-fetch", offset), v)
		}
		for _, n := range []int32{-1, 0, 1, 12, 20, 60, 90, 100, 130, 200, 400} {
			f := newFetch("old-fetch", 1)
			f.partMax = n
			w.sameRecords(t, fmt.Sprintf("partition max bytes %d", n), f, v)
			f = newFetch("old-fetch", 0)
			f.maxBytes, f.second = n, ptr(int32(1))
			w.sameRecords(t, fmt.Sprintf("max bytes %d", n), f, v)
		}
		w.sameRecords(t, "unknown topic", newFetch("nope", 0), v)
		f := newFetch("old-fetch", 0)
		f.partition = 1
		w.sameRecords(t, "headers and nulls", f, v)
		f.partition = 7
		w.sameRecords(t, "unknown partition", f, v)
		for _, topic := range []string{"old-sets", "old-compacted", "old-gzip", "old-uncompressed"} {
			w.sameRecords(t, "converted there and back: "+topic, newFetch(topic, 0), v)
		}
	}
}

func (w *world) oldListOffsets(t *testing.T) {
	w.create(t, "old-offsets", 2, "retention.ms", "-1", "segment.ms", "100")
	for i := range 5 { // a segment each
		b := batch{records: some(3)}
		for j := range b.records {
			b.records[j].ts += int64(i) * 100_000
		}
		w.same(t, "fill", produce(11, "old-offsets", 0, -1, b.encode()))
	}
	for _, n := range []int32{-1, 0, 1, 2, 3, 6, 10} {
		for _, ts := range []int64{-3, -2, -1, 0, base, time.Now().Add(time.Hour).UnixMilli(), 1<<63 - 1} {
			for _, replica := range []int32{-1, -2} {
				for partition := range int32(3) {
					w.same(t, fmt.Sprintf("%d offsets at %d, partition %d, replica %d", n, ts, partition, replica),
						func(*side) kmsg.Request {
							req := listOffsets(0, replica, 0, "old-offsets", offsetQuery{partition, ts, -1})(nil).(*kmsg.ListOffsetsRequest)
							req.Topics[0].Partitions[0].MaxNumOffsets = n
							return req
						})
				}
			}
		}
	}
	w.same(t, "twice", listOffsets(0, -1, 0, "old-offsets", offsetQuery{0, -1, -1}, offsetQuery{0, -2, -1}))
	w.same(t, "unknown topic", listOffsets(0, -1, 0, "nope", offsetQuery{0, -1, -1}))
}

func (w *world) oldEpochs(t *testing.T) {
	w.create(t, "old-epochs", 1, "retention.ms", "-1")
	w.fill(t, "old-epochs")
	for v := int16(0); v <= 1; v++ {
		for _, q := range []struct{ partition, epoch int32 }{{0, 0}, {0, 1}, {0, -1}, {9, 0}} {
			w.same(t, fmt.Sprintf("%+v", q), func(*side) kmsg.Request {
				req := kmsg.NewPtrOffsetForLeaderEpochRequest()
				req.SetVersion(v)
				req.ReplicaID = -1
				rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
				rt.Topic = "old-epochs"
				rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
				rp.Partition, rp.LeaderEpoch = q.partition, q.epoch
				rt.Partitions = append(rt.Partitions, rp)
				req.Topics = append(req.Topics, rt)
				return req
			})
		}
	}
}
