package protocol

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// The hand-written codecs of Produce and Fetch are held against kmsg in every
// version, in both directions, on random messages.

var (
	anyName  = rapid.StringMatching(`[a-z0-9._-]{0,40}`)
	anyBytes = rapid.SliceOfN(rapid.Byte(), 0, 300)
	anyID    = rapid.Custom(func(t *rapid.T) (id [16]byte) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return id
	})
)

func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) *T {
	if !rapid.Bool().Draw(t, label+" set") {
		return nil
	}
	v := g.Draw(t, label)
	return &v
}

// someTags are unknown tagged fields, which a reader must pass over.
func someTags(t *rapid.T, tags *kmsg.Tags) {
	if rapid.IntRange(0, 3).Draw(t, "tags") == 0 {
		tags.Set(uint32(rapid.IntRange(100, 1<<31).Draw(t, "tag")), anyBytes.Draw(t, "value"))
	}
}

func anyProduceRequest(t *rapid.T, version int16) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version = version
	if version >= 3 {
		r.TransactionID = maybe(t, anyName, "txn")
	}
	r.Acks = rapid.Int16().Draw(t, "acks")
	r.TimeoutMillis = rapid.Int32().Draw(t, "timeout")
	for range rapid.IntRange(0, 4).Draw(t, "topics") {
		topic := kmsg.NewProduceRequestTopic()
		if version >= 13 {
			topic.TopicID = anyID.Draw(t, "id")
		} else {
			topic.Topic = anyName.Draw(t, "name")
		}
		for range rapid.IntRange(0, 4).Draw(t, "partitions") {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = rapid.Int32().Draw(t, "index")
			if b := maybe(t, anyBytes, "records"); b != nil {
				p.Records = *b
			}
			someTags(t, &p.UnknownTags)
			topic.Partitions = append(topic.Partitions, p)
		}
		someTags(t, &topic.UnknownTags)
		r.Topics = append(r.Topics, topic)
	}
	someTags(t, &r.UnknownTags)
	return r
}

func wantProduce(r *kmsg.ProduceRequest) *ProduceRequest {
	want := &ProduceRequest{TransactionalID: r.TransactionID, Acks: r.Acks, TimeoutMs: r.TimeoutMillis}
	for _, t := range r.Topics {
		topic := ProduceTopic{Name: t.Topic, ID: t.TopicID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, ProducePartition{Index: p.Partition, Records: p.Records})
		}
		want.Topics = append(want.Topics, topic)
	}
	return want
}

// sameRequest compares what a request says, not the slices it keeps for later.
func sameRequest(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmpopts.IgnoreUnexported(ProduceRequest{}, FetchRequest{}))
}

// cut checks that a body that ends too early is refused.
func cut(t *rapid.T, body []byte, parse func([]byte) error) {
	n := rapid.IntRange(0, len(body)-1).Draw(t, "cut")
	if err := parse(body[:n:n]); err == nil {
		t.Fatalf("cut at %d of %d: no error", n, len(body))
	}
}

func TestProduceRequestAllVersions(t *testing.T) {
	for version := int16(0); version <= 13; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			var got ProduceRequest // used over and over, as a pool would
			var names Names
			rapid.Check(t, func(t *rapid.T) {
				want := anyProduceRequest(t, version)
				body := want.AppendTo(nil)
				if err := got.Parse(version, body, &names); err != nil {
					t.Fatal(err)
				}
				if d := sameRequest(wantProduce(want), &got); d != "" {
					t.Fatal(d)
				}
				cut(t, body, func(b []byte) error { return new(ProduceRequest).Parse(version, b, nil) })
			})
		})
	}
}

func TestProduceRequestNullRecords(t *testing.T) {
	for _, version := range []int16{3, 9} {
		r := kmsg.NewPtrProduceRequest()
		r.Version = version
		r.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{
			{Partition: 1, Records: nil}, {Partition: 2, Records: []byte{}},
		}}}
		var got ProduceRequest
		if err := got.Parse(version, r.AppendTo(nil), nil); err != nil {
			t.Fatal(err)
		}
		if p := got.Topics[0].Partitions; p[0].Records != nil || p[1].Records == nil {
			t.Errorf("v%d: null is %v, empty is %v", version, p[0].Records, p[1].Records)
		}
	}
}

func anyFetchRequest(t *rapid.T, version int16) *kmsg.FetchRequest {
	i32, i64 := rapid.Int32(), rapid.Int64()
	r := kmsg.NewPtrFetchRequest()
	r.Version = version
	switch {
	case version <= 14:
		r.ReplicaID = i32.Draw(t, "replica")
	case rapid.Bool().Draw(t, "state"):
		r.ReplicaState.ID, r.ReplicaState.Epoch = i32.Draw(t, "replica"), i64.Draw(t, "epoch")
	}
	r.MaxWaitMillis, r.MinBytes = i32.Draw(t, "wait"), i32.Draw(t, "min")
	if version >= 3 {
		r.MaxBytes = i32.Draw(t, "max")
	}
	if version >= 4 {
		r.IsolationLevel = rapid.Int8().Draw(t, "isolation")
	}
	if version >= 7 {
		r.SessionID, r.SessionEpoch = i32.Draw(t, "session"), i32.Draw(t, "session epoch")
	}
	for range rapid.IntRange(0, 4).Draw(t, "topics") {
		r.Topics = append(r.Topics, anyFetchTopic(t, version))
	}
	for range rapid.IntRange(0, 3).Draw(t, "forgotten") {
		f := kmsg.NewFetchRequestForgottenTopic()
		f.Topic, f.TopicID = nameOrID(t, version)
		f.Partitions = rapid.SliceOfN(i32, 0, 4).Draw(t, "indexes")
		if version >= 7 {
			r.ForgottenTopics = append(r.ForgottenTopics, f)
		}
	}
	if version >= 11 {
		r.Rack = anyName.Draw(t, "rack")
	}
	if version >= 12 {
		r.ClusterID = maybe(t, anyName, "cluster")
		someTags(t, &r.UnknownTags)
	}
	return r
}

func nameOrID(t *rapid.T, version int16) (name string, id [16]byte) {
	if version >= 13 {
		return "", anyID.Draw(t, "id")
	}
	return anyName.Draw(t, "name"), id
}

func anyFetchTopic(t *rapid.T, version int16) kmsg.FetchRequestTopic {
	i32, i64 := rapid.Int32(), rapid.Int64()
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = nameOrID(t, version)
	for range rapid.IntRange(0, 4).Draw(t, "partitions") {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset = i32.Draw(t, "index"), i64.Draw(t, "offset")
		p.PartitionMaxBytes = i32.Draw(t, "partition max")
		if version >= 5 {
			p.LogStartOffset = i64.Draw(t, "start")
		}
		if version >= 9 {
			p.CurrentLeaderEpoch = i32.Draw(t, "leader epoch")
		}
		if version >= 12 {
			p.LastFetchedEpoch = i32.Draw(t, "last fetched")
			someTags(t, &p.UnknownTags)
		}
		if version >= 17 {
			p.ReplicaDirectoryID = anyID.Draw(t, "directory")
		}
		if version >= 18 && rapid.Bool().Draw(t, "hw set") {
			p.HighWatermark = i64.Draw(t, "hw")
		}
		topic.Partitions = append(topic.Partitions, p)
	}
	someTags(t, &topic.UnknownTags)
	return topic
}

func wantFetch(r *kmsg.FetchRequest) *FetchRequest {
	want := &FetchRequest{
		ClusterID: r.ClusterID, ReplicaID: r.ReplicaID, ReplicaEpoch: -1, MaxWaitMs: r.MaxWaitMillis,
		MinBytes: r.MinBytes, MaxBytes: r.MaxBytes, IsolationLevel: r.IsolationLevel,
		SessionID: r.SessionID, SessionEpoch: r.SessionEpoch, RackID: r.Rack,
	}
	if r.Version >= 15 {
		want.ReplicaID, want.ReplicaEpoch = r.ReplicaState.ID, r.ReplicaState.Epoch
	}
	for _, t := range r.Topics {
		topic := FetchTopic{Name: t.Topic, ID: t.TopicID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, FetchPartition{
				Index: p.Partition, CurrentLeaderEpoch: p.CurrentLeaderEpoch, FetchOffset: p.FetchOffset,
				LastFetchedEpoch: p.LastFetchedEpoch, LogStartOffset: p.LogStartOffset,
				MaxBytes: p.PartitionMaxBytes, ReplicaDirectoryID: p.ReplicaDirectoryID, HighWatermark: p.HighWatermark,
			})
		}
		want.Topics = append(want.Topics, topic)
	}
	for _, f := range r.ForgottenTopics {
		want.Forgotten = append(want.Forgotten, ForgottenTopic{Name: f.Topic, ID: f.TopicID, Partitions: f.Partitions})
	}
	return want
}

func TestFetchRequestAllVersions(t *testing.T) {
	for version := int16(0); version <= 18; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			var got FetchRequest
			var names Names
			rapid.Check(t, func(t *rapid.T) {
				want := anyFetchRequest(t, version)
				body := want.AppendTo(nil)
				if err := got.Parse(version, body, &names); err != nil {
					t.Fatal(err)
				}
				if d := sameRequest(wantFetch(want), &got); d != "" {
					t.Fatal(d)
				}
				cut(t, body, func(b []byte) error { return new(FetchRequest).Parse(version, b, nil) })
			})
		})
	}
}

func anyEndpoints(t *rapid.T) (ours []NodeEndpoint) {
	for range rapid.IntRange(0, 3).Draw(t, "nodes") {
		ours = append(ours, NodeEndpoint{
			NodeID: rapid.Int32().Draw(t, "node"), Host: rapid.StringN(0, 200, 400).Draw(t, "host"),
			Port: rapid.Int32().Draw(t, "port"), Rack: maybe(t, anyName, "rack"),
		})
	}
	return ours
}

var anyLeader = rapid.Custom(func(t *rapid.T) LeaderAndEpoch {
	return LeaderAndEpoch{rapid.Int32Min(0).Draw(t, "leader"), rapid.Int32().Draw(t, "epoch")}
})

var anyEpochEnd = rapid.Custom(func(t *rapid.T) EpochEnd {
	return EpochEnd{rapid.Int32Min(0).Draw(t, "epoch"), rapid.Int64().Draw(t, "end")}
})

func anyProduceResponse(t *rapid.T) *ProduceResponse {
	i64 := rapid.Int64()
	r := &ProduceResponse{ThrottleMs: rapid.Int32().Draw(t, "throttle"), NodeEndpoints: anyEndpoints(t)}
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := ProduceTopicResponse{Name: anyName.Draw(t, "name"), ID: anyID.Draw(t, "id")}
		for range rapid.IntRange(0, 3).Draw(t, "partitions") {
			p := ProducePartitionResponse{
				Index: rapid.Int32().Draw(t, "index"), ErrorCode: rapid.Int16().Draw(t, "code"),
				BaseOffset: i64.Draw(t, "base"), LogAppendTimeMs: i64.Draw(t, "time"),
				LogStartOffset: i64.Draw(t, "start"), ErrorMessage: maybe(t, anyName, "message"),
				CurrentLeader: maybe(t, anyLeader, "leader"),
			}
			for range rapid.IntRange(0, 3).Draw(t, "record errors") {
				p.RecordErrors = append(p.RecordErrors, RecordError{
					rapid.Int32().Draw(t, "batch index"), maybe(t, anyName, "record message")})
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func kmsgProduceResponse(r *ProduceResponse, version int16) *kmsg.ProduceResponse {
	k := kmsg.NewPtrProduceResponse()
	k.Version, k.ThrottleMillis = version, r.ThrottleMs
	if version >= 10 { // kmsg would write them from 9 on
		for _, n := range r.NodeEndpoints {
			k.Brokers = append(k.Brokers, kmsg.ProduceResponseBroker{NodeID: n.NodeID, Host: n.Host, Port: n.Port, Rack: n.Rack})
		}
	}
	for _, t := range r.Topics {
		topic := kmsg.ProduceResponseTopic{Topic: t.Name, TopicID: t.ID}
		for _, p := range t.Partitions {
			kp := kmsg.NewProduceResponseTopicPartition()
			kp.Partition, kp.ErrorCode, kp.BaseOffset = p.Index, p.ErrorCode, p.BaseOffset
			kp.LogAppendTime, kp.LogStartOffset, kp.ErrorMessage = p.LogAppendTimeMs, p.LogStartOffset, p.ErrorMessage
			for _, e := range p.RecordErrors {
				kp.ErrorRecords = append(kp.ErrorRecords,
					kmsg.ProduceResponseTopicPartitionErrorRecord{RelativeOffset: e.BatchIndex, ErrorMessage: e.Message})
			}
			if l := p.CurrentLeader; l != nil && version >= 10 {
				kp.CurrentLeader.LeaderID, kp.CurrentLeader.LeaderEpoch = l.LeaderID, l.LeaderEpoch
			}
			topic.Partitions = append(topic.Partitions, kp)
		}
		k.Topics = append(k.Topics, topic)
	}
	return k
}

func TestProduceResponseAllVersions(t *testing.T) {
	for version := int16(0); version <= 13; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := anyProduceResponse(t)
				got, want := r.AppendTo(nil, version), kmsgProduceResponse(r, version).AppendTo(nil)
				if !bytes.Equal(got, want) {
					t.Fatalf("got\n%x want\n%x", got, want)
				}
			})
		})
	}
}

func anyFetchResponse(t *rapid.T) *FetchResponse {
	i64 := rapid.Int64()
	r := &FetchResponse{
		ThrottleMs: rapid.Int32().Draw(t, "throttle"), ErrorCode: rapid.Int16().Draw(t, "code"),
		SessionID: rapid.Int32().Draw(t, "session"), NodeEndpoints: anyEndpoints(t),
	}
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := FetchTopicResponse{Name: anyName.Draw(t, "name"), ID: anyID.Draw(t, "id")}
		for range rapid.IntRange(0, 3).Draw(t, "partitions") {
			p := FetchPartitionResponse{
				Index: rapid.Int32().Draw(t, "index"), ErrorCode: rapid.Int16().Draw(t, "partition code"),
				HighWatermark: i64.Draw(t, "hw"), LastStableOffset: i64.Draw(t, "lso"),
				LogStartOffset: i64.Draw(t, "start"), PreferredReadReplica: rapid.Int32().Draw(t, "preferred"),
				Records: BytesPart(anyBytes.Draw(t, "records")), DivergingEpoch: maybe(t, anyEpochEnd, "diverging"),
				CurrentLeader: maybe(t, anyLeader, "leader"), SnapshotID: maybe(t, anyEpochEnd, "snapshot"),
			}
			if rapid.Bool().Draw(t, "committed") {
				p.AbortedTransactions = []AbortedTransaction{}
			}
			for range rapid.IntRange(0, 3).Draw(t, "aborted") {
				p.AbortedTransactions = append(p.AbortedTransactions,
					AbortedTransaction{i64.Draw(t, "pid"), i64.Draw(t, "first")})
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func kmsgFetchResponse(r *FetchResponse, version int16) *kmsg.FetchResponse {
	k := kmsg.NewPtrFetchResponse()
	k.Version, k.ThrottleMillis, k.ErrorCode, k.SessionID = version, r.ThrottleMs, r.ErrorCode, r.SessionID
	if version >= 16 {
		for _, n := range r.NodeEndpoints {
			k.Brokers = append(k.Brokers, kmsg.FetchResponseBroker{NodeID: n.NodeID, Host: n.Host, Port: n.Port, Rack: n.Rack})
		}
	}
	for _, t := range r.Topics {
		topic := kmsg.FetchResponseTopic{Topic: t.Name, TopicID: t.ID}
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsgFetchPartition(p))
		}
		k.Topics = append(k.Topics, topic)
	}
	return k
}

func kmsgFetchPartition(p FetchPartitionResponse) kmsg.FetchResponseTopicPartition {
	kp := kmsg.NewFetchResponseTopicPartition()
	kp.Partition, kp.ErrorCode, kp.HighWatermark = p.Index, p.ErrorCode, p.HighWatermark
	kp.LastStableOffset, kp.LogStartOffset = p.LastStableOffset, p.LogStartOffset
	kp.PreferredReadReplica = p.PreferredReadReplica
	kp.RecordBatches = append([]byte{}, p.Records.Bytes...)
	if p.AbortedTransactions != nil {
		kp.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
	}
	for _, a := range p.AbortedTransactions {
		kp.AbortedTransactions = append(kp.AbortedTransactions,
			kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a.ProducerID, FirstOffset: a.FirstOffset})
	}
	if d := p.DivergingEpoch; d != nil {
		kp.DivergingEpoch.Epoch, kp.DivergingEpoch.EndOffset = d.Epoch, d.EndOffset
	}
	if l := p.CurrentLeader; l != nil {
		kp.CurrentLeader.LeaderID, kp.CurrentLeader.LeaderEpoch = l.LeaderID, l.LeaderEpoch
	}
	if s := p.SnapshotID; s != nil {
		kp.SnapshotID.Epoch, kp.SnapshotID.EndOffset = s.Epoch, s.EndOffset
	}
	return kp
}

func join(parts Parts) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p.Bytes...)
	}
	return all
}

func TestFetchResponseAllVersions(t *testing.T) {
	for version := int16(0); version <= 18; version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := anyFetchResponse(t)
				parts := r.Encode(version)
				got, want := join(parts), kmsgFetchResponse(r, version).AppendTo(nil)
				if !bytes.Equal(got, want) {
					t.Fatalf("got\n%x want\n%x", got, want)
				}
				if size := parts.SizeBytes(); size != int64(len(want)) {
					t.Fatalf("size %d, want %d", size, len(want))
				}
				bound, n := r.headerBound()
				if used := len(want) - recordBytes(r); used > bound || len(parts) > 2*n+1 {
					t.Fatalf("%d header bytes in %d parts, bounds %d and %d", used, len(parts), bound, 2*n+1)
				}
			})
		})
	}
}

func recordBytes(r *FetchResponse) (n int) {
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			n += len(r.Topics[i].Partitions[j].Records.Bytes)
		}
	}
	return n
}
