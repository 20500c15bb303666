package controller

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"tidemark/internal/metadata"
	"tidemark/internal/wire"
	"tidemark/record"
)

// kafkaLog is the metadata log of a Kafka node, record by record.
type kafkaLog struct {
	records map[int64]metadata.Record
	values  map[int64][]byte
	end     int64
}

func readKafkaLog(t *testing.T) *kafkaLog {
	t.Helper()
	rest, err := os.ReadFile("../metadata/testdata/restarts/00000000000000000000.log")
	if err != nil {
		t.Fatal(err)
	}
	log := &kafkaLog{records: map[int64]metadata.Record{}, values: map[int64][]byte{}}
	for len(rest) > 0 {
		h, entry, next, err := record.NextEntry(rest)
		if err != nil {
			t.Fatal(err)
		}
		rest, log.end = next, h.NextOffset()
		if h.IsControl() {
			continue
		}
		r := wire.NewReader(entry[record.HeaderSize:])
		for i := range h.Count {
			r.Varint()
			r.Int8()
			r.Varlong()
			r.Varint()
			r.VarintBytes()
			value := r.VarintBytes()
			r.Varint()
			rec, err := metadata.DecodeRecord(value)
			if err != nil {
				t.Fatal(err)
			}
			offset := h.BaseOffset + int64(i)
			log.records[offset], log.values[offset] = rec, value
		}
	}
	return log
}

// imageAt is the image of the records below an offset.
func (l *kafkaLog) imageAt(t *testing.T, offset int64) *metadata.Image {
	t.Helper()
	loader := metadata.NewLoader(metadata.NewImage())
	for o := range offset {
		if rec, ok := l.records[o]; ok {
			if err := loader.Replay(metadata.Batch{BaseOffset: o, LastOffset: o, Records: []metadata.Record{rec}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return loader.Publish().Image()
}

// TestDecisionsEqualKafka gives the controller the commands that Kafka was
// given, on the image Kafka had, and compares the records byte by byte. Within a
// decision their order may differ, since Kafka's follows hash tables.
func TestDecisionsEqualKafka(t *testing.T) {
	log := readKafkaLog(t)
	c := New(testOptions())
	for _, tt := range kafkaDecisions(log) {
		name := fmt.Sprintf("%d-%d %T", tt.first, tt.last, tt.cmd)
		d, err := c.Decide(State{Image: log.imageAt(t, tt.first), NextOffset: tt.first, Random: tt.random}, tt.cmd)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got, want []string
		for _, rec := range d.Records {
			value, err := rec.AppendTo(nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%v %x", rec.Body.Kind(), value))
		}
		for o := tt.first; o <= tt.last; o++ {
			want = append(want, fmt.Sprintf("%v %x", log.records[o].Body.Kind(), log.values[o]))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s\n got %v\nwant %v", name, got, want)
		}
	}
}

type kafkaDecision struct {
	first, last int64 // offsets of Kafka's records
	cmd         Command
	random      *bytes.Reader
}

func kafkaDecisions(log *kafkaLog) []kafkaDecision {
	topicID := func(offset int64) *bytes.Reader {
		id := log.records[offset].Body.(*metadata.TopicRecord).TopicID
		// placement draws first
		return bytes.NewReader(append([]byte{0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}, id[:]...))
	}
	register := func(offset, previous int64) RegisterBroker {
		r := log.records[offset].Body.(*metadata.RegisterBrokerRecord)
		return RegisterBroker{Registration: Registration{
			BrokerID: 1, ClusterID: "4L6g3nShT-eMCtK--X86sw", IncarnationID: r.IncarnationID, Endpoints: r.EndPoints,
			Features: r.Features, LogDirs: r.LogDirs, PreviousEpoch: previous,
		}}
	}
	controller := log.records[11].Body.(*metadata.RegisterControllerRecord)
	set := func(r metadata.ConfigResource, pairs ...string) IncrementalAlterConfigs {
		var ops []ConfigOp
		for i := 0; i < len(pairs); i += 2 {
			ops = append(ops, ConfigOp{pairs[i], OpSet, &pairs[i+1]})
		}
		return IncrementalAlterConfigs{Resources: []AlterResource{{r, ops}}}
	}
	beat := func(epoch int64) BrokerHeartbeat {
		return BrokerHeartbeat{BrokerID: 1, BrokerEpoch: epoch, CurrentOffset: epoch}
	}
	cordoned := func(epoch int64) BrokerHeartbeat {
		return BrokerHeartbeat{BrokerID: 1, BrokerEpoch: epoch, WantFence: true, CordonedDirs: []metadata.UUID{}}
	}
	shutdown := func(epoch int64) BrokerHeartbeat {
		return BrokerHeartbeat{BrokerID: 1, BrokerEpoch: epoch, CurrentOffset: epoch, WantShutdown: true}
	}
	t1 := NewTopic{Name: "t1", Partitions: 2, ReplicationFactor: -1, Configs: []ConfigEntry{{"retention.ms", text("-1")}}}
	t2 := NewTopic{Name: "t2", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{
		{"cleanup.policy", text("compact")}, {"min.insync.replicas", text("1")}}}
	return []kafkaDecision{
		{1, 9, Activate{Bootstrap: BootstrapFeatures()}, nil},
		{11, 11, RegisterController{1, controller.IncarnationID, controller.EndPoints, controller.Features}, nil},
		{13, 13, register(13, -1), nil},
		{15, 15, cordoned(13), nil},
		{17, 17, beat(13), nil},
		{25, 28, CreateTopics{Topics: []NewTopic{t1}}, topicID(25)},
		{36, 40, CreateTopics{Topics: []NewTopic{t2}}, topicID(36)},
		{49, 49, set(broker("1"), "log.cleaner.threads", "2"), nil},
		{60, 60, set(broker(""), "log.retention.ms", "100000000"), nil},
		{95, 96, set(metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "cm1"},
			"interval.ms", "1000", "metrics", "a.b"), nil},
		{104, 104, set(metadata.ConfigResource{Type: metadata.ResourceGroup, Name: "g1"},
			"consumer.heartbeat.interval.ms", "6000"), nil},
		{110, 110, CreatePartitions{Topics: []MorePartitions{{Topic: "t1", Count: 3}}}, topicID(25)},
		{116, 116, AllocateProducerIDs{1, 13}, nil},
		{157, 161, shutdown(13), nil},
		{163, 163, shutdown(13), nil},
		{169, 169, register(169, 13), nil},
		{170, 170, cordoned(169), nil},
		{173, 177, beat(169), nil},
		{218, 222, register(222, -1), nil},
		{224, 228, beat(218), nil},
		{291, 295, shutdown(218), nil},
		{296, 296, shutdown(218), nil},
	}
}
