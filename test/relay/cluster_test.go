//go:build oracle

package relay

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/ledger"
)

// checkMetadata compares cluster id, topics, their ids and configs.
func (w *world) checkMetadata(s *server) {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	cluster := ledger.Ask[*kmsg.MetadataResponse](w.t, s.Client, req).ClusterID
	switch {
	case cluster == nil:
		w.t.Error("no cluster id")
	case w.clusterID == "":
		w.clusterID = *cluster
	case w.clusterID != *cluster:
		w.t.Errorf("cluster id %s, was %s", *cluster, w.clusterID)
	}
	got := s.Metadata(w.t)
	for _, internal := range []string{"__consumer_offsets", "__transaction_state"} {
		delete(got, internal)
	}
	if len(got) != len(w.topics) {
		w.t.Errorf("%d topics, want %d", len(got), len(w.topics))
	}
	for name, tp := range w.topics {
		if g, ok := got[name]; !ok || g.TopicID != tp.id || len(g.Partitions) != int(tp.partitions) {
			w.t.Errorf("%s: id %x, %d partitions; want %x, %d", name, g.TopicID, len(g.Partitions), tp.id, tp.partitions)
		}
		w.checkConfigs(s, tp)
	}
}

func (w *world) checkConfigs(s *server, tp *topic) {
	w.t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	rr := kmsg.NewDescribeConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, tp.name
	req.Resources = append(req.Resources, rr)
	got := make(map[string]string)
	for _, c := range ledger.Ask[*kmsg.DescribeConfigsResponse](w.t, s.Client, req).Resources[0].Configs {
		if c.Value != nil && c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			got[c.Name] = *c.Value
		}
	}
	for i := 0; i < len(tp.configs); i += 2 {
		if got[tp.configs[i]] != tp.configs[i+1] {
			w.t.Errorf("%s: %s is %q, want %q", tp.name, tp.configs[i], got[tp.configs[i]], tp.configs[i+1])
		}
	}
	if len(got) != len(tp.configs)/2 {
		w.t.Errorf("%s: configs %v, want %v", tp.name, got, tp.configs)
	}
}

// lead waits until every partition is led and notes the epochs.
func (w *world) lead(s *server) {
	w.t.Helper()
	for name, tp := range w.topics {
		s.WaitLed(w.t, name, tp.partitions)
	}
	w.learnLeaders(s)
}

func (w *world) learnLeaders(s *server) {
	w.t.Helper()
	for name, m := range s.Metadata(w.t) {
		if w.topics[name] == nil {
			continue
		}
		for _, p := range m.Partitions {
			w.book.Partition(name, p.Partition).Lead(p.LeaderEpoch)
		}
	}
}

// transactions is the topic of transactional records.
const transactions = "transactions"

// transactions commits some and aborts some, where the server has transactions.
func (w *world) transactions(s *server) {
	w.t.Helper()
	if !s.Serves(22, 24, 26) {
		return
	}
	if w.topics[transactions] == nil {
		w.create(s, &topic{name: transactions, partitions: 1, configs: []string{"retention.ms", "-1",
			"internal.segment.bytes", "2000"}})
	}
	client := w.transactional(s)
	for i := range 6 {
		w.transaction(s, client, i%2 == 0)
	}
}

// transactionTimeout bounds what is done with transactions.
const transactionTimeout = time.Minute

// transactional returns a producer that continues the one of the leg before: the server ends what that left open.
func (w *world) transactional(s *server) *kgo.Client {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addr), kgo.TransactionalID("relay"),
		kgo.DefaultProduceTopic(transactions), kgo.ProducerBatchCompression(kgo.Lz4Compression()),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.TransactionTimeout(10*time.Minute))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	if _, _, err := client.ProducerID(ctx); err != nil {
		w.t.Fatalf("begin to be a transactional producer: %v", err)
	}
	return client
}

// begin starts a transaction with three records in it, whose end is still open.
func (w *world) begin(client *kgo.Client) {
	w.t.Helper()
	if err := client.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	p := w.book.Partition(transactions, 0)
	w.opened = len(p.Records)
	for i := range 3 {
		r := &kgo.Record{Key: fmt.Appendf(nil, "leg %d", w.legs), Value: fmt.Appendf(nil, "%d", i)}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			w.t.Fatalf("produce in a transaction: %v", err)
		}
		p.Add(ledger.Record{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
			Epoch: p.Epoch()})
	}
}

// ended notes how the transaction ended.
func (w *world) ended(s *server, commit bool) {
	w.t.Helper()
	p := w.book.Partition(transactions, 0)
	for i := range p.Records[w.opened:] {
		p.Records[w.opened+i].Aborted = !commit
	}
	w.opened = 0
	w.learnMarker(s, p)
}

// leaveOpen begins a transaction that this leg does not end.
func (w *world) leaveOpen(s *server) {
	w.t.Helper()
	if s.Serves(22, 24, 26) {
		w.begin(w.transactional(s))
	}
}

// endOpen proves that the transaction is open that the leg before left, and ends it: a new producer of the same name
// has it aborted.
func (w *world) endOpen(s *server) {
	w.t.Helper()
	if w.opened == 0 {
		return
	}
	p := w.book.Partition(transactions, 0)
	first := p.Records[w.opened].Offset
	got := s.FetchOne(w.t, transactions, 0, first, 1<<20, 1)
	if got.ErrorCode != 0 || got.LastStableOffset != first || got.HighWatermark != p.End || len(got.RecordBatches) > 0 {
		w.t.Errorf("a transaction is open from %d on: last stable offset %d, high watermark %d, %d bytes, error %d", first,
			got.LastStableOffset, got.HighWatermark, len(got.RecordBatches), got.ErrorCode)
	}
	w.transactional(s)
	w.ended(s, false)
}

func (w *world) transaction(s *server, client *kgo.Client, commit bool) {
	w.t.Helper()
	w.begin(client)
	ctx, cancel := context.WithTimeout(context.Background(), transactionTimeout)
	defer cancel()
	if err := client.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		w.t.Fatalf("end a transaction: %v", err)
	}
	w.ended(s, commit)
}

// learnMarker reads the marker that ended a transaction: its time is the server's.
func (w *world) learnMarker(s *server, p *ledger.Partition) {
	w.t.Helper()
	at := p.End
	for deadline := time.Now().Add(30 * time.Second); s.EndOffset(w.t, p.Topic, p.ID) == at; {
		if time.Now().After(deadline) {
			w.t.Fatalf("no marker at offset %d of %s", at, p.Name())
		}
		time.Sleep(5 * time.Millisecond)
	}
	tail := &ledger.Partition{Topic: p.Topic, ID: p.ID, Start: at, End: at + 1}
	for _, r := range ledger.Consume(w.t, s.Addr, []*ledger.Partition{tail}, false)[p.Name()] {
		if !r.Control {
			w.t.Fatalf("record at %d of %s is no marker", r.Offset, p.Name())
		}
		p.Add(r)
	}
}

// deleteRecords moves the log start of one partition, where the server has that.
func (w *world) deleteRecords(s *server) {
	w.t.Helper()
	if !s.Serves(21) {
		return
	}
	p := w.book.Partition("rolled", 2)
	to := p.Start + (p.End-p.Start)/4
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 30_000
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = p.Topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = p.ID, to
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer := ledger.Ask[*kmsg.DeleteRecordsResponse](w.t, s.Client, req).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil || answer.LowWatermark != to {
		w.t.Fatalf("delete records before %d: low watermark %d, %v", to, answer.LowWatermark, err)
	}
	p.DeleteBefore(to)
}

// group commits offsets in Kafka's legs, and in Tidemark's where it has groups.
const group = "relay"

func (w *world) commitGroup(s *server) {
	w.t.Helper()
	if !s.Serves(8, 9, 10) {
		return
	}
	w.awaitCoordinator(s, group)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	req.SetVersion(8)
	for name, partitions := range w.book.Topics() {
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic = name
		for id := range partitions {
			p := w.book.Partition(name, id)
			rp := kmsg.NewOffsetCommitRequestTopicPartition()
			rp.Partition, rp.Offset = id, p.End-int64(w.legs)
			w.committed[p.Name()] = rp.Offset
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
	}
	for _, topic := range ledger.Ask[*kmsg.OffsetCommitResponse](w.t, s.Client, req).Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				w.t.Errorf("commit offset of %s-%d: %v", topic.Topic, p.Partition, err)
			}
		}
	}
}

func (w *world) checkGroup(s *server) {
	w.t.Helper()
	if !s.Serves(8, 9, 10) || len(w.committed) == 0 {
		return
	}
	w.awaitCoordinator(s, group)
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	req.Groups = append(req.Groups, rg)
	got := make(map[string]int64)
	for _, g := range ledger.Ask[*kmsg.OffsetFetchResponse](w.t, s.Client, req).Groups {
		for _, topic := range g.Topics {
			for _, p := range topic.Partitions {
				got[fmt.Sprintf("%s-%d", topic.Topic, p.Partition)] = p.Offset
			}
		}
	}
	for _, p := range w.book.Partitions() {
		if want, ok := w.committed[p.Name()]; ok && got[p.Name()] != want {
			w.t.Errorf("committed offset of %s is %d, want %d", p.Name(), got[p.Name()], want)
		}
	}
}

func (w *world) awaitCoordinator(s *server, group string) {
	w.t.Helper()
	var last error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorKeys, req.CoordinatorKey = []string{group}, group
		answer := ledger.Ask[*kmsg.FindCoordinatorResponse](w.t, s.Client, req)
		last = kerr.ErrorForCode(answer.ErrorCode)
		if len(answer.Coordinators) > 0 {
			last = kerr.ErrorForCode(answer.Coordinators[0].ErrorCode)
		}
		if last == nil && w.loaded(s, group) {
			return
		}
	}
	w.t.Fatalf("no coordinator of group %s: %v", group, last)
}

// loaded tells whether the group's coordinator has read its log.
func (w *world) loaded(s *server, group string) bool {
	w.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	req.Groups = append(req.Groups, rg)
	answer := ledger.Ask[*kmsg.OffsetFetchResponse](w.t, s.Client, req)
	return answer.ErrorCode == 0 && len(answer.Groups) == 1 && answer.Groups[0].ErrorCode == 0
}
