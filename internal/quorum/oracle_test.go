//go:build oracle

package quorum

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/vfs"
)

// diskOptions are options over a directory of the disk.
func diskOptions(t *testing.T, dir string, id metadata.UUID) Options {
	t.Helper()
	o := testOptions(vfs.OS(), newClock())
	o.LogDir, o.DirectoryID, o.Clock = dir, id, time.Now
	var random [32]byte
	random[0], random[1] = byte(time.Now().UnixNano()), byte(time.Now().UnixNano()>>8)
	o.Random = rand.NewChaCha8(random)
	return o
}

// format makes a log directory as a broker does at its first start.
func format(t *testing.T, dir string, id metadata.UUID) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	must(t, checkpoint.WriteMetaProperties(vfs.OS(), filepath.Join(dir, checkpoint.MetaPropertiesFile),
		checkpoint.MetaProperties{ClusterID: oracle.ClusterID, NodeID: 1, DirectoryID: id}, time.Now()))
	must(t, WriteBootstrap(vfs.OS(), dir, time.Now()))
}

// partitionFolder makes the folder of a partition with n records in it.
func partitionFolder(t *testing.T, dir string, topic *metadata.Topic, partition int32, n int) {
	t.Helper()
	folder := filepath.Join(dir, fmt.Sprintf("%s-%d", topic.Name, partition))
	must(t, os.MkdirAll(folder, 0o755))
	log, err := commitlog.Open(commitlog.Options{FS: vfs.OS(), Dir: folder, Topic: topic.Name, Partition: partition,
		TopicID: topic.ID, Config: commitlog.DefaultConfig(), Clock: time.Now})
	must(t, err)
	epoch := topic.Partition(partition).LeaderEpoch
	must(t, log.AssignEpoch(epoch))
	for i := range n {
		b := record.NewBuilder(record.DefaultBuilderOptions())
		must(t, b.Append(time.Now().UnixMilli(), nil, fmt.Appendf(nil, "value %d", i), nil))
		_, err := log.AppendAsLeader(b.Bytes(), commitlog.AppendOptions{LeaderEpoch: epoch})
		must(t, err)
	}
	must(t, log.Close())
}

// closeDirectory writes what a clean stop leaves in a log directory.
func closeDirectory(t *testing.T, dir string, epoch int64, ends checkpoint.Offsets) {
	t.Helper()
	for _, name := range []string{checkpoint.RecoveryPointFile, checkpoint.HighWatermarkFile} {
		must(t, checkpoint.WriteOffsets(vfs.OS(), filepath.Join(dir, name), ends))
	}
	must(t, checkpoint.WriteCleanShutdown(vfs.OS(), dir, epoch))
}

// changes are the commands that the test gives, of most kinds.
func changes(t *testing.T, q *Quorum, epoch int64) {
	t.Helper()
	value := func(s string) *string { return &s }
	set := func(r metadata.ConfigResource, key, v string) {
		t.Helper()
		res := ask[controller.AlterConfigsResult](t, q,
			controller.IncrementalAlterConfigs{Resources: []controller.AlterResource{
				{Resource: r, Ops: []controller.ConfigOp{{Key: key, Value: value(v)}}}}})
		if e := res.Resources[0].Err; e != nil {
			t.Fatal(e)
		}
	}
	res := ask[controller.CreateTopicsResult](t, q, controller.CreateTopics{Topics: []controller.NewTopic{
		{Name: "a", Partitions: 2, ReplicationFactor: 1, Configs: []controller.ConfigEntry{
			{Key: "retention.ms", Value: value("-1")}, {Key: "min.insync.replicas", Value: value("1")}}},
		{Name: "b.c_d", Partitions: 1, ReplicationFactor: 1},
		{Name: "gone", Partitions: 1, ReplicationFactor: 1},
	}})
	for _, topic := range res.Topics {
		if topic.Err != nil {
			t.Fatal(topic.Err)
		}
	}
	set(metadata.TopicConfigs("a"), "max.message.bytes", "100000")
	set(metadata.ConfigResource{Type: metadata.ResourceBroker, Name: "1"}, "log.cleaner.threads", "2")
	set(metadata.ClusterConfigs, "log.retention.ms", "100000000")
	set(metadata.ConfigResource{Type: metadata.ResourceGroup, Name: "g"}, "consumer.heartbeat.interval.ms", "6000")
	set(metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "m"}, "interval.ms", "1000")
	ask[controller.CreatePartitionsResult](t, q, controller.CreatePartitions{
		Topics: []controller.MorePartitions{{Topic: "a", Count: 3}}})
	ask[controller.DeleteTopicsResult](t, q, controller.DeleteTopics{Names: []string{"gone"}})
	ask[controller.ProducerIDBlock](t, q, controller.AllocateProducerIDs{BrokerID: 1, BrokerEpoch: epoch})
}

// TestKafkaTakesOver writes a directory with several starts, stops and
// snapshots, starts Kafka on it, changes it there, and opens it again.
func TestKafkaTakesOver(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	for _, mode := range []string{"clean", "from a snapshot", "killed"} {
		t.Run(mode, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			id, err := controller.NewUUID(diskOptions(t, dir, dirID).Random)
			must(t, err)
			format(t, dir, id)
			ends := writeOurs(t, dir, id, mode)

			n := k.Start(t, oracle.NodeOptions{Dir: dir})
			wantTopics(t, n.Addr, ends)
			produce(t, n.Addr, "a", 0)
			n.Stop(t)
			if errs := n.Errors(); len(errs) > 0 {
				t.Errorf("Kafka logged %s", strings.Join(errs, "\n"))
			}
			if strings.Contains(n.Log(), "stray") {
				t.Errorf("Kafka found strays:\n%s", n.Log())
			}
			backAgain(t, dir, id)
		})
	}
}

// writeOurs fills a directory and returns how many records each partition has.
func writeOurs(t *testing.T, dir string, id metadata.UUID, mode string) checkpoint.Offsets {
	t.Helper()
	q := mustOpen(t, diskOptions(t, dir, id))
	epoch := startOn(t, q, id, -1)
	changes(t, q, epoch)
	stop(t, q, epoch)
	mustClose(t, q)
	q = mustOpen(t, diskOptions(t, dir, id))
	epoch = startOn(t, q, id, epoch)
	ends := checkpoint.Offsets{}
	for topic := range q.Image().Topics() {
		for p := range topic.Partitions() {
			partitionFolder(t, dir, topic, p, 5+int(p))
			ends[checkpoint.TopicPartition{Topic: topic.Name, Partition: p}] = int64(5 + p)
		}
	}
	if mode == "from a snapshot" {
		_, taken, err := q.Snapshot()
		if err != nil || !taken {
			t.Fatal(taken, err)
		}
	}
	if mode == "killed" {
		must(t, q.Log().Abandon())
		return ends
	}
	stop(t, q, epoch)
	mustClose(t, q)
	closeDirectory(t, dir, epoch, ends)
	return ends
}

func startOn(t *testing.T, q *Quorum, dir metadata.UUID, previous int64) int64 {
	t.Helper()
	id, err := controller.NewUUID(q.o.Random)
	must(t, err)
	epoch := ask[controller.BrokerRegistered](t, q, controller.RegisterBroker{Registration: controller.Registration{
		BrokerID: 1, ClusterID: clusterID, IncarnationID: id, PreviousEpoch: previous,
		Endpoints: []metadata.Endpoint{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}},
		Features:  controller.SupportedFeatures(), LogDirs: []metadata.UUID{dir},
	}}).Epoch
	ask[controller.HeartbeatReply](t, q, controller.BrokerHeartbeat{BrokerID: 1, BrokerEpoch: epoch,
		CurrentOffset: q.Image().Offset(), CordonedDirs: []metadata.UUID{}})
	return epoch
}

// wantTopics compares what Kafka says of topics, configurations and records.
func wantTopics(t *testing.T, addr string, ends checkpoint.Offsets) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	must(t, err)
	defer client.Close()
	admin, ctx := kadm.NewClient(client), context.Background()
	got := checkpoint.Offsets{}
	for deadline := time.Now().Add(time.Minute); fmt.Sprint(got) != fmt.Sprint(ends); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("end offsets %v, want %v", got, ends)
			break
		}
		listed, err := admin.ListEndOffsets(ctx) // partitions are led a while after the broker serves
		must(t, err)
		clear(got)
		listed.Each(func(o kadm.ListedOffset) {
			got[checkpoint.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = o.Offset
		})
	}
	configs, err := admin.DescribeTopicConfigs(ctx, "a")
	must(t, err)
	want := map[string]string{"retention.ms": "-1", "max.message.bytes": "100000", "min.insync.replicas": "1"}
	for _, c := range configs[0].Configs {
		if v, ok := want[c.Key]; ok && c.MaybeValue() != v {
			t.Errorf("%s is %s", c.Key, c.MaybeValue())
		}
	}
}

func produce(t *testing.T, addr, topic string, partition int32) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	defer client.Close()
	res := client.ProduceSync(context.Background(),
		&kgo.Record{Topic: topic, Partition: partition, Value: []byte("from Kafka's time")})
	must(t, res.FirstErr())
	_, err = kadm.NewClient(client).CreateTopic(context.Background(), 2, 1, nil, "made-by-kafka")
	must(t, err)
}

// backAgain opens the directory after Kafka had it.
func backAgain(t *testing.T, dir string, id metadata.UUID) {
	t.Helper()
	q := mustOpen(t, diskOptions(t, dir, id))
	if topic := q.Image().Topic("made-by-kafka"); topic == nil || topic.NumPartitions() != 2 {
		t.Errorf("topic made by Kafka: %+v", topic)
	}
	if q.Image().Topic("a").NumPartitions() != 3 || q.Image().Topic("gone") != nil || q.Image().NextProducerID() != 2000 {
		t.Errorf("%d topics, next producer id %d", q.Image().NumTopics(), q.Image().NextProducerID())
	}
	clean, err := checkpoint.TakeCleanShutdown(vfs.OS(), dir)
	must(t, err)
	startOn(t, q, id, clean.BrokerEpoch)
	if p := q.Image().Topic("a").Partition(0); p.Leader != 1 || len(p.ELR) != 0 {
		t.Errorf("a-0 after Kafka's clean stop: %+v", p)
	}
	mustClose(t, q)
}

// TestKafkaTakesOverItsVoters does the same with a directory that Kafka
// formatted with its voters in the log.
func TestKafkaTakesOverItsVoters(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	dir := filepath.Join(t.TempDir(), "data")
	copyFolder(t, vfs.OS(), "testdata/formatted", dir)
	id, err := metadata.ParseUUID("wZR4C01_SbSRU6_8qooLFw")
	must(t, err)
	ends := writeOurs(t, dir, id, "from a snapshot")
	n := k.Start(t, oracle.NodeOptions{Dir: dir, Properties: map[string]string{
		"controller.quorum.voters": "", "controller.quorum.bootstrap.servers": "127.0.0.1:1"}})
	wantTopics(t, n.Addr, ends)
	produce(t, n.Addr, "a", 0)
	n.Stop(t)
	if errs := n.Errors(); len(errs) > 0 {
		t.Errorf("Kafka logged %s", strings.Join(errs, "\n"))
	}
	backAgain(t, dir, id)
}

// TestDumpDecodesEveryRecord lets Kafka's tool decode every record of our log
// and of our snapshot.
func TestDumpDecodesEveryRecord(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	dir := filepath.Join(t.TempDir(), "data")
	format(t, dir, dirID)
	q := mustOpen(t, diskOptions(t, dir, dirID))
	epoch := startOn(t, q, dirID, -1)
	changes(t, q, epoch)
	id, _, err := q.Snapshot()
	must(t, err)
	stop(t, q, epoch)
	mustClose(t, q)
	for name, least := range map[string]int{"00000000000000000000.log": 35, id.FileName(): 20} {
		file := filepath.Join(q.dir, name)
		out := k.MustTool(t, "kafka-dump-log", "--cluster-metadata-decoder", "--files", file)
		decoded := dumped(t, out)
		want := kinds(t, vfs.OS(), file)
		if len(decoded) != len(want) || len(want) < least {
			t.Fatalf("%s: Kafka decodes %d of %d records:\n%s", name, len(decoded), len(want), out)
		}
		for i, line := range decoded {
			if !strings.HasSuffix(want[i], "_RECORD") {
				continue // a control record
			}
			var payload struct{ Type string }
			must(t, json.Unmarshal([]byte(line), &payload))
			if payload.Type != want[i] {
				t.Errorf("%s: record %d is %s, want %s", name, i, payload.Type, want[i])
			}
		}
		if strings.Contains(out, "isvalid: false") || strings.Contains(out, "rror") {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

// dumped returns what the tool prints of each record.
func dumped(t *testing.T, out string) []string {
	t.Helper()
	var list []string
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		_, payload, ok := strings.Cut(line, "payload: ")
		if !ok {
			_, payload, _ = strings.Cut(line, "headerKeys: [] ")
		}
		list = append(list, payload)
	}
	return list
}
