package metadata

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// diffImages compares what two images hold, "" when it is equal.
func diffImages(a, b *Image) string {
	ra, rb := slices.Collect(a.Records()), slices.Collect(b.Records())
	if len(ra) != len(rb) {
		return fmt.Sprintf("%d and %d records", len(ra), len(rb))
	}
	for i := range ra {
		ea, errA := ra[i].AppendTo(nil)
		eb, errB := rb[i].AppendTo(nil)
		if errA != nil || errB != nil || !bytes.Equal(ea, eb) {
			return fmt.Sprintf("record %d: %+v and %+v (%v, %v)", i, ra[i].Body, rb[i].Body, errA, errB)
		}
	}
	return ""
}

func ptr[T any](v T) *T { return &v }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replayAll returns the image after the records.
func replayAll(t testing.TB, base *Image, bodies ...Body) *Delta {
	t.Helper()
	d := NewDelta(base)
	for _, b := range bodies {
		must(t, d.Replay(Record{Version: b.Kind().NewestVersion(), Body: b}))
	}
	return d
}

func topicID(n byte) UUID { return UUID{0: 7, 15: n} }

func partitionRecord(topic UUID, id int32, brokers ...int32) *PartitionRecord {
	dirs := make([]UUID, len(brokers))
	for i, b := range brokers {
		dirs[i] = UUID{0: 9, 15: byte(b)}
	}
	return &PartitionRecord{
		TopicID: topic, PartitionID: id, Replicas: brokers, ISR: brokers, Leader: brokers[0], Directories: dirs,
	}
}

func TestPartitionChangeEpochs(t *testing.T) {
	base := replayAll(t, NewImage(),
		&TopicRecord{Name: "a", TopicID: topicID(1)}, partitionRecord(topicID(1), 0, 1, 2)).Image()
	change := func(f func(*PartitionChangeRecord)) *PartitionChangeRecord {
		r := NewPartitionChange(topicID(1), 0)
		f(r)
		return r
	}
	for _, tt := range []struct {
		name                string
		change              *PartitionChangeRecord
		leader              int32
		leaderEpoch, pEpoch int32
	}{
		{"isr only", change(func(r *PartitionChangeRecord) { r.ISR = []int32{1} }), 1, 0, 1},
		{"same leader", change(func(r *PartitionChangeRecord) { r.Leader = 1 }), 1, 1, 1},
		{"no leader", change(func(r *PartitionChangeRecord) { r.Leader = NoLeader; r.ISR = []int32{} }), NoLeader, 1, 1},
		{"nothing", change(func(*PartitionChangeRecord) {}), 1, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := replayAll(t, base, tt.change).Image().Topic("a").Partition(0)
			if p.Leader != tt.leader || p.LeaderEpoch != tt.leaderEpoch || p.PartitionEpoch != tt.pEpoch {
				t.Errorf("leader %d, epochs %d and %d", p.Leader, p.LeaderEpoch, p.PartitionEpoch)
			}
		})
	}
	if p := base.Topic("a").Partition(0); p.PartitionEpoch != 0 || len(p.ISR) != 2 {
		t.Errorf("the base image changed: %+v", p)
	}
}

func TestReplayRefuses(t *testing.T) {
	base := replayAll(t, NewImage(), &TopicRecord{Name: "a", TopicID: topicID(1)},
		&RegisterBrokerRecord{BrokerID: 1, BrokerEpoch: 5}).Image()
	for _, body := range []Body{
		&TopicRecord{Name: "a", TopicID: topicID(2)},
		&TopicRecord{Name: "b", TopicID: topicID(1)},
		partitionRecord(topicID(9), 0, 1),
		NewPartitionChange(topicID(1), 3),
		&PartitionRecord{TopicID: topicID(1), Replicas: []int32{1}, Directories: make([]UUID, 2)},
		&RemoveTopicRecord{TopicID: topicID(9)},
		&ClearELRRecord{TopicName: "none"},
		&BrokerRegistrationChangeRecord{BrokerID: 2},
		&BrokerRegistrationChangeRecord{BrokerID: 1, BrokerEpoch: 4, Fenced: Fence},
		&BrokerRegistrationChangeRecord{BrokerID: 1, BrokerEpoch: 5, Fenced: 7},
		&FenceBrokerRecord{ID: 1, Epoch: 6},
		&FeatureLevelRecord{Name: MetadataVersionFeature, FeatureLevel: MaxFollowedMetadataVersion + 1},
		&RemoveAccessControlEntryRecord{ID: topicID(3)},
		&BeginTransactionRecord{},
	} {
		d := NewDelta(base)
		err := d.Replay(Record{Body: body})
		if _, ok := err.(*ReplayError); !ok {
			t.Errorf("%T %+v: error %v", body, body, err)
		}
		if diff := diffImages(d.Image(), base); diff != "" {
			t.Errorf("%T: a refused record changed the image: %s", body, diff)
		}
	}
}

func TestDeltaSaysWhatChanged(t *testing.T) {
	base := replayAll(t, NewImage(),
		&TopicRecord{Name: "gone", TopicID: topicID(1)}, partitionRecord(topicID(1), 0, 1),
		&TopicRecord{Name: "moved", TopicID: topicID(2)}, partitionRecord(topicID(2), 0, 1),
		partitionRecord(topicID(2), 1, 1),
		&ConfigRecord{ResourceType: ResourceTopic, ResourceName: "gone", Name: "k", Value: ptr("v")}).Image()
	move := NewPartitionChange(topicID(2), 0)
	move.Replicas, move.ISR, move.Leader, move.Directories = []int32{2}, []int32{2}, 2, []UUID{topicID(8)}
	shrink := NewPartitionChange(topicID(2), 1)
	shrink.ISR = []int32{1}
	d := replayAll(t, base, &RemoveTopicRecord{TopicID: topicID(1)},
		&TopicRecord{Name: "gone", TopicID: topicID(3)}, partitionRecord(topicID(3), 0, 2, 1), move, shrink)

	var got []string
	for _, c := range d.Topics() {
		got = append(got, fmt.Sprint(c.Before != nil, c.After != nil))
	}
	if want := []string{"true false", "false true", "true true"}; !slices.Equal(got, want) {
		t.Errorf("changes %v, want %v", got, want)
	}
	if c := d.Configs(); len(c) != 1 || c[0] != TopicConfigs("gone") || d.Image().Config(c[0]).Len() != 0 {
		t.Errorf("configs changed: %v", c)
	}
	local := d.LocalChanges(1)
	if len(local.Deleted) != 2 || local.Deleted[0].Topic.ID != topicID(1) || local.Deleted[1].Topic.ID != topicID(2) {
		t.Errorf("deleted: %+v", local.Deleted)
	}
	if len(local.Leaders) != 1 || local.Leaders[0].ID != 1 || len(local.Elected) != 0 {
		t.Errorf("leaders: %+v, elected: %+v", local.Leaders, local.Elected)
	}
	if len(local.Followers) != 1 || local.Followers[0].Topic.ID != topicID(3) {
		t.Errorf("followers: %+v", local.Followers)
	}
	if other := d.LocalChanges(2); len(other.Elected) != 2 || len(other.Leaders) != 2 || len(other.Deleted) != 0 {
		t.Errorf("changes of broker 2: %+v", other)
	}
}

func TestLoaderTransactions(t *testing.T) {
	feature := func(name string) Record { return Record{Body: &FeatureLevelRecord{Name: name, FeatureLevel: 1}} }
	begin, end := Record{Body: &BeginTransactionRecord{}}, Record{Body: &EndTransactionRecord{}}
	abort := Record{Body: &AbortTransactionRecord{}}
	l := NewLoader(NewImage())
	step := func(base int64, records ...Record) *Image {
		t.Helper()
		b := Batch{BaseOffset: base, LastOffset: base + int64(len(records)) - 1, Epoch: 3, TimestampMs: base,
			Records: records}
		must(t, l.Replay(b))
		return l.Publish().Image()
	}
	image := step(0, feature("a"), begin, feature("b"))
	if image.FeatureLevel("a") != 1 || image.FeatureLevel("b") != 0 || image.Offset() != -1 || l.TransactionStart() != 1 {
		t.Errorf("inside of the transaction: offset %d, start %d", image.Offset(), l.TransactionStart())
	}
	image = step(3, abort, feature("c"))
	if image.FeatureLevel("b") != 0 || image.FeatureLevel("c") != 1 || image.Offset() != 4 || image.Epoch() != 3 {
		t.Errorf("after the abort: %+v", image)
	}
	image = step(5, begin, feature("d"))
	if image.FeatureLevel("d") != 0 || image.Offset() != 4 {
		t.Errorf("inside of the second transaction: offset %d", image.Offset())
	}
	image = step(7, feature("e"), end)
	if image.FeatureLevel("d") != 1 || image.FeatureLevel("e") != 1 || image.Offset() != 8 {
		t.Errorf("after the end: offset %d", image.Offset())
	}
	for _, rec := range []Record{end, abort} {
		if err := NewLoader(image).Replay(Batch{Records: []Record{rec}}); err == nil {
			t.Errorf("%v without a transaction was accepted", rec.Body.Kind())
		}
	}
	if err := NewLoader(image).Replay(Batch{Records: []Record{begin, begin}}); err == nil {
		t.Errorf("a transaction in a transaction was accepted")
	}
}

// TestSnapshotEqualsLog replays random histories, and then the snapshot of what
// came out: both images must be equal, at every point where one is taken.
func TestSnapshotEqualsLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDelta(NewImage())
		_ = d.Replay(Record{Body: &FeatureLevelRecord{Name: MetadataVersionFeature, FeatureLevel: MaxMetadataVersion}})
		for range rapid.IntRange(1, 120).Draw(t, "records") {
			_ = d.Replay(Record{Body: randomBody(t)}) // what does not fit is refused
			if rapid.IntRange(0, 20).Draw(t, "publish") == 0 {
				d = NewDelta(d.Image())
			}
		}
		image := d.Image()
		again := NewDelta(NewImage())
		for rec := range image.Records() {
			value, err := rec.AppendTo(nil)
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := DecodeRecord(value)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Replay(decoded); err != nil {
				t.Fatal(err)
			}
		}
		if diff := diffImages(again.Image(), image); diff != "" {
			t.Fatal(diff)
		}
		partitions := 0
		for topic := range image.Topics() {
			partitions += topic.NumPartitions()
			if image.TopicByID(topic.ID) != topic {
				t.Fatalf("topic %s is not the one of its id", topic.Name)
			}
		}
		if partitions != image.NumPartitions() || again.Image().NumPartitions() != partitions {
			t.Fatalf("%d partitions, counted %d and %d", partitions, image.NumPartitions(), again.Image().NumPartitions())
		}
	})
}

func TestFullDelta(t *testing.T) {
	image := imageUpTo(t, "testdata/restarts/00000000000000000000.log", 1<<62)
	d := FullDelta(image)
	if diff := diffImages(d.Image(), image); diff != "" {
		t.Error(diff)
	}
	if len(d.Topics()) != image.NumTopics() || len(d.Brokers()) != 1 || len(d.Configs()) != 6 {
		t.Errorf("%d topics, %v, %v", len(d.Topics()), d.Brokers(), d.Configs())
	}
	if l := d.LocalChanges(1); len(l.Followers) != image.NumPartitions() { // stopped: nobody leads
		t.Errorf("%d followers", len(l.Followers))
	}
}
