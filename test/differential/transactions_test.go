//go:build oracle

package differential

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
	"tidemark/test/proc"
)

// TestTransactions compares transactions, request by request, in both protocols.
func TestTransactions(t *testing.T) {
	w := &txnWorld{world: newWorld(t, "offsets.topic.num.partitions", "7", "transaction.state.log.num.partitions", "7")}
	w.run(t, "FindCoordinator", w.testFindCoordinator)
	w.create(t, "data", 2)
	w.run(t, "InitProducerId", w.testInit)
	w.run(t, "classic", w.testClassic)
	w.run(t, "raising", w.testRaising)
	w.run(t, "isolation", w.testIsolation)
	w.run(t, "fencing", w.testFencing)
	w.run(t, "offsets", w.testOffsets)
	w.run(t, "brokers", w.testBrokers)
	w.run(t, "markers", w.testMarkers)
	w.run(t, "listings", w.testListings)
	w.run(t, "log", w.testTransactionLog)
	for _, s := range w.sides {
		if exit := s.Process.Stop(t); exit != 0 && s.Name == "Tidemark" {
			t.Errorf("%s ended with status %d; its log:\n%s", s.Name, exit, proc.Tail(s.Process.Log(), 20))
		}
	}
}

// producer is a producer id and epoch on each side, which differ in the id.
type producer struct {
	id    map[*side]int64
	epoch int16
}

func (p producer) plus(n int16) producer { return producer{id: p.id, epoch: p.epoch + n} }

// stranger is a producer id that nobody has.
var stranger = producer{epoch: 0}

func (p producer) on(s *side) int64 {
	if p.id == nil {
		return 987_654
	}
	return p.id[s]
}

// txnWorld adds what transactions need: producer ids are named by the order in which they come up.
type txnWorld struct {
	*world
}

// hideTxn hides what differs in transactional answers.
var hideTxn = hide("ProducerID", "StartTimestamp", "LastTimestamp")

// txn asks until both sides have completed what is under way, so that answers do not depend on the speed of markers.
func (w *txnWorld) txn(t *testing.T, name string, ask request, changes ...change) kmsg.Response {
	t.Helper()
	return w.same(t, name, ask, append(changes, hideTxn)...)
}

// settle waits until no transaction of an id is being completed.
func (w *txnWorld) settle(t *testing.T, id string) {
	t.Helper()
	for _, s := range w.sides {
		s.waitFor(t, "transaction of "+id+" complete", func() bool {
			answer, ok := s.ask(t, describeTxn(id)(s)).(*kmsg.DescribeTransactionsResponse)
			if !ok {
				return false
			}
			state := answer.TransactionStates[0].State
			return state != "PrepareCommit" && state != "PrepareAbort"
		})
	}
}

func describeTxn(ids ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = ids
		return req
	}
}

// init asks both sides for a producer, and again while they are busy.
func (w *txnWorld) init(t *testing.T, id string) producer {
	t.Helper()
	p := producer{id: map[*side]int64{}}
	for i, s := range w.sides {
		var epoch int16
		s.waitFor(t, "producer for "+id, func() bool {
			answer, ok := s.ask(t, initProducerID(5, &id, -1, -1)(s)).(*kmsg.InitProducerIDResponse)
			if !ok || answer.ErrorCode != 0 {
				return false
			}
			p.id[s], epoch = answer.ProducerID, answer.ProducerEpoch
			return true
		})
		if i > 0 && epoch != p.epoch {
			t.Errorf("%s: epoch %d in Kafka, %d in Tidemark", id, p.epoch, epoch)
		}
		p.epoch = epoch
	}
	return p
}

func initFrom(version int16, id string, p producer) request {
	return func(s *side) kmsg.Request { return initProducerID(version, &id, p.on(s), p.epoch)(s) }
}

func addPartitions(version int16, id string, p producer, topic string, partitions ...int32) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.SetVersion(version)
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, p.on(s), p.epoch
		req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: partitions}}
		return req
	}
}

func addOffsets(version int16, id string, p producer, group string) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.SetVersion(version)
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = id, p.on(s), p.epoch, group
		return req
	}
}

func endTxn(version int16, id string, p producer, commit bool) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrEndTxnRequest()
		req.SetVersion(version)
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, p.on(s), p.epoch, commit
		return req
	}
}

// transactional is the attribute of a batch in a transaction.
const transactional = 0x10

func produceTxn(version int16, id *string, p producer, partition, sequence int32) request {
	return func(s *side) kmsg.Request {
		records := batch{records: some(1), attributes: transactional, producerID: p.on(s) + 1, epoch: p.epoch,
			sequence: sequence}.encode()
		req := produce(version, "data", partition, -1, records)(s).(*kmsg.ProduceRequest)
		req.TransactionID = id
		return req
	}
}

func findCoordinator(version int16, kind int8, keys ...string) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.SetVersion(version)
		req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = kind, keys[0], keys
		return req
	}
}

func (w *txnWorld) testFindCoordinator(t *testing.T) {
	const groups, transactions, unknown = 0, 1, 9
	for _, s := range w.sides {
		for _, kind := range []int8{groups, transactions} {
			s.waitFor(t, "coordinator found", func() bool {
				answer, ok := s.ask(t, findCoordinator(4, kind, "a")(s)).(*kmsg.FindCoordinatorResponse)
				return ok && answer.Coordinators[0].ErrorCode == 0
			})
		}
	}
	w.coordinatorsLoaded(t)
	for v := int16(0); v <= 6; v++ {
		w.same(t, "group", findCoordinator(v, groups, "a"))
		w.same(t, "transactional id", findCoordinator(v, transactions, "a"))
		w.same(t, "empty key", findCoordinator(v, transactions, ""))
		w.same(t, "unknown kind", findCoordinator(v, unknown, "a"))
	}
	w.same(t, "two keys", findCoordinator(6, groups, "a", "b"))
	for _, topic := range []string{"__transaction_state", "__consumer_offsets"} {
		w.same(t, "configs of "+topic, describeConfigs(4, kmsg.ConfigResourceTypeTopic, topic), byName)
	}
}

// coordinatorsLoaded waits until every partition of both coordinators' topics is loaded. The names fall into all of
// them: their hashes are consecutive numbers.
func (w *txnWorld) coordinatorsLoaded(t *testing.T) {
	t.Helper()
	for _, s := range w.sides {
		for name := 'a'; name <= 'z'; name++ {
			s.waitFor(t, "coordinators of "+string(name)+" loaded", func() bool {
				states, ok := s.ask(t, describeTxn(string(name))(s)).(*kmsg.DescribeTransactionsResponse)
				offsets, too := s.ask(t, fetchOffsets(string(name), false)(s)).(*kmsg.OffsetFetchResponse)
				return ok && too && offsets.Groups[0].ErrorCode == 0 &&
					states.TransactionStates[0].ErrorCode == transactionalIDNotFound
			})
		}
	}
}

func (w *txnWorld) testInit(t *testing.T) {
	w.init(t, "i0")
	for v := int16(0); v <= 5; v++ {
		for _, timeout := range []int32{0, -1, 900_001} {
			w.txn(t, fmt.Sprintf("time-out %d", timeout), func(s *side) kmsg.Request {
				req := initProducerID(v, kmsg.StringPtr("i1"), -1, -1)(s).(*kmsg.InitProducerIDRequest)
				req.TransactionTimeoutMillis = timeout
				return req
			})
		}
		w.txn(t, "again and again", initProducerID(v, kmsg.StringPtr("i0"), -1, -1))
	}
	p := w.init(t, "i2")
	for v := int16(3); v <= 5; v++ {
		w.txn(t, "id without epoch", initProducerID(v, kmsg.StringPtr("i2"), 5, -1))
		w.txn(t, "epoch without id", initProducerID(v, kmsg.StringPtr("i2"), -1, 5))
		w.txn(t, "what it has", initFrom(v, "i2", p))
		w.txn(t, "what it has, again", initFrom(v, "i2", p))
		w.txn(t, "an epoch that never was", initFrom(v, "i2", p.plus(7)))
		w.txn(t, "another producer id", initFrom(v, "i2", stranger))
		w.txn(t, "an id that is new", initFrom(v, fmt.Sprintf("i3-%d", v), stranger))
		p = p.plus(1)
	}
}

func (w *txnWorld) testClassic(t *testing.T) {
	for v := int16(0); v <= 4; v++ {
		id := fmt.Sprintf("classic-%d", v)
		p := w.init(t, id)
		add := min(v, 3)
		for _, c := range []struct {
			name string
			ask  request
		}{
			{"unknown id", addPartitions(add, "nobody", p, "data", 0)},
			{"empty id", addPartitions(add, "", p, "data", 0)},
			{"another producer", addPartitions(add, id, stranger, "data", 0)},
			{"another epoch", addPartitions(add, id, p.plus(1), "data", 0)},
			{"unknown partition", addPartitions(add, id, p, "data", 0, 7)},
			{"unknown topic", addPartitions(add, id, p, "nope", 0)},
			{"internal topic", addPartitions(add, id, p, "__consumer_offsets", 0)},
			{"no topics", addPartitions(add, id, p, "data")},
			{"offsets, unknown", addOffsets(v, "nobody", p, "g")},
			{"offsets, empty id", addOffsets(v, "", p, "g")},
			{"offsets, another", addOffsets(v, id, stranger, "g")},
			{"offsets, epoch", addOffsets(v, id, p.plus(1), "g")},
			{"end, unknown", endTxn(v, "nobody", p, true)},
			{"end, empty id", endTxn(v, "", p, true)},
			{"end, another", endTxn(v, id, stranger, true)},
			{"end, another epoch", endTxn(v, id, p.plus(1), true)},
			{"end of nothing", endTxn(v, id, p, true)},
			{"abort of nothing", endTxn(v, id, p, false)},
		} {
			w.txn(t, c.name, c.ask)
			w.settle(t, id)
		}
		w.classicRound(t, v, id, w.init(t, id))
	}
}

func (w *txnWorld) classicRound(t *testing.T, v int16, id string, p producer) {
	add, write := min(v, 3), v+7 // produce 7 to 11
	w.txn(t, "not added", produceTxn(write, &id, p, 0, 0))
	w.txn(t, "no transactional id", produceTxn(write, nil, p, 0, 0))
	w.txn(t, "add", addPartitions(add, id, p, "data", 0))
	w.txn(t, "add again", addPartitions(add, id, p, "data", 0))
	w.txn(t, "describe", describeTxn(id))
	w.append(t, "added", produceTxn(write, &id, p, 0, 0))
	w.txn(t, "another partition", produceTxn(write, &id, p, 1, 0))
	w.append(t, "offsets", addOffsets(v, id, p, "g"))
	w.append(t, "next", produceTxn(write, &id, p, 0, 1))
	w.append(t, "twice", produceTxn(write, &id, p, 0, 1))
	w.txn(t, "another epoch", produceTxn(write, &id, p.plus(1), 0, 0))
	w.txn(t, "commit", endTxn(v, id, p, true))
	w.settle(t, id)
	w.txn(t, "commit again", endTxn(v, id, p, true))
	w.txn(t, "abort after commit", endTxn(v, id, p, false))
	w.txn(t, "describe", describeTxn(id))
	w.txn(t, "after the end", produceTxn(write, &id, p, 0, 2))
	w.txn(t, "add", addPartitions(add, id, p, "data", 0, 1))
	w.append(t, "second transaction", produceTxn(write, &id, p, 0, 2))
	w.txn(t, "abort", endTxn(v, id, p, false))
	w.settle(t, id)
	w.txn(t, "abort again", endTxn(v, id, p, false))
	w.txn(t, "commit after abort", endTxn(v, id, p, true))
	w.txn(t, "end by the other protocol", endTxn(5, id, p, false))
	w.settle(t, id)
}

// append compares an append of which the offset does not matter.
func (w *txnWorld) append(t *testing.T, name string, ask request) {
	t.Helper()
	w.sameAppend(t, name, "data", ask)
}

func (w *txnWorld) testRaising(t *testing.T) {
	id := "raising"
	p := w.init(t, id)
	for v := int16(12); v <= 13; v++ {
		w.txn(t, "unknown id", produceTxn(v, kmsg.StringPtr("nobody"), p, 0, 0))
		w.txn(t, "another producer", produceTxn(v, &id, stranger, 0, 0))
		w.txn(t, "another epoch", produceTxn(v, &id, p.plus(1), 0, 0))
		w.txn(t, "unknown producer begins at 5", produceTxn(v, &id, p, 0, 5))
		w.append(t, "first", produceTxn(v, &id, p, 0, 0))
		w.append(t, "second partition", produceTxn(v, &id, p, 1, 0))
		w.append(t, "next", produceTxn(v, &id, p, 0, 1))
		w.txn(t, "describe", describeTxn(id))
		w.txn(t, "commit", endTxn(5, id, p, true))
		w.settle(t, id)
		w.txn(t, "commit again", endTxn(5, id, p, true))
		w.txn(t, "abort after commit", endTxn(5, id, p, false))
		w.txn(t, "old epoch", produceTxn(v, &id, p, 0, 2))
		p = p.plus(1)
		w.txn(t, "commit of nothing", endTxn(5, id, p, true))
		w.txn(t, "abort of nothing", endTxn(5, id, p, false))
		w.settle(t, id)
		w.txn(t, "abort of nothing, again", endTxn(5, id, p, false))
		w.txn(t, "commit after it", endTxn(5, id, p, true))
		w.txn(t, "another epoch", endTxn(5, id, p.plus(5), true))
		w.txn(t, "another producer", endTxn(5, id, stranger, true))
		p = p.plus(1)
		w.append(t, "after an abort of nothing", produceTxn(v, &id, p, 0, 0))
		w.txn(t, "abort", endTxn(5, id, p, false))
		w.settle(t, id)
		p = p.plus(1)
	}
	fresh := "raising-2"
	q := w.init(t, fresh)
	w.txn(t, "commit of nothing", endTxn(5, fresh, q, true))
	w.txn(t, "abort of nothing", endTxn(5, fresh, q, false))
	w.settle(t, fresh)
	w.txn(t, "describe", describeTxn(fresh))
}

func (w *txnWorld) testFencing(t *testing.T) {
	id := "fencing"
	p := w.init(t, id)
	w.append(t, "first", produceTxn(12, &id, p, 0, 0))
	w.txn(t, "second producer", initProducerID(5, &id, -1, -1))
	w.settle(t, id)
	w.txn(t, "describe", describeTxn(id))
	w.txn(t, "old producer writes", produceTxn(12, &id, p, 0, 1))
	w.txn(t, "old producer writes by the old protocol", produceTxn(11, &id, p, 0, 1))
	w.txn(t, "old producer commits", endTxn(5, id, p, true))
	w.txn(t, "old producer aborts", endTxn(5, id, p, false))
	q := w.init(t, id)
	for v := int16(0); v <= 3; v++ {
		w.txn(t, "old producer adds", addPartitions(v, id, p, "data", 0))
		w.txn(t, "old producer adds offsets", addOffsets(v, id, p, "g"))
		w.txn(t, "old producer ends", endTxn(v, id, p, true))
	}
	w.txn(t, "old producer resumes", initFrom(3, id, p))
	w.txn(t, "old producer resumes", initFrom(5, id, p))
	w.append(t, "new producer", produceTxn(12, &id, q, 0, 0))
	w.txn(t, "commit", endTxn(5, id, q, true))
	w.settle(t, id)
}

// offsetsIn is a commit of offsets in a transaction.
type offsetsIn struct {
	id, group  string
	p          producer
	topic      string
	partitions []int32
	member     string
	generation int32
}

func (o offsetsIn) request(version int16) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.SetVersion(version)
		req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = o.id, o.group, o.p.on(s), o.p.epoch
		req.Generation, req.MemberID = -1, o.member
		if o.generation != 0 {
			req.Generation = o.generation
		}
		topic := kmsg.TxnOffsetCommitRequestTopic{Topic: o.topic}
		for _, n := range o.partitions {
			p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.Metadata = n, 17, kmsg.StringPtr("m")
			topic.Partitions = append(topic.Partitions, p)
		}
		req.Topics = append(req.Topics, topic)
		return req
	}
}

func fetchOffsets(group string, stable bool) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.SetVersion(8)
		req.RequireStable = stable
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group = group
		rg.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "data", Partitions: []int32{0, 1}}}
		req.Groups = append(req.Groups, rg)
		return req
	}
}

func (w *txnWorld) testOffsets(t *testing.T) {
	for v := int16(0); v <= 5; v++ {
		id, group := fmt.Sprintf("offsets-%d", v), fmt.Sprintf("group-%d", v)
		p := w.init(t, id)
		good := offsetsIn{id: id, group: group, p: p, topic: "data", partitions: []int32{0}}
		commit := func(name string, edit func(*offsetsIn)) {
			o := good
			edit(&o)
			w.txn(t, name, o.request(v))
		}
		commit("unknown id", func(o *offsetsIn) { o.id = "nobody" })
		commit("empty id", func(o *offsetsIn) { o.id = "" })
		commit("empty group", func(o *offsetsIn) { o.group = "" })
		commit("another producer", func(o *offsetsIn) { o.p = stranger })
		commit("another epoch", func(o *offsetsIn) { o.p = p.plus(1) })
		commit("unknown topic", func(o *offsetsIn) { o.topic = "nope" })
		commit("unknown partition", func(o *offsetsIn) { o.partitions = []int32{0, 9} })
		commit("unknown member", func(o *offsetsIn) { o.member = "someone" })
		commit("unknown generation", func(o *offsetsIn) { o.generation = 3 })
		if v < 5 {
			w.txn(t, "not added", good.request(v))
			w.txn(t, "add", addOffsets(min(v, 4), id, p, group))
		}
		w.txn(t, "commit offsets", good.request(v))
		w.same(t, "pending", fetchOffsets(group, false))
		w.same(t, "pending, stable", fetchOffsets(group, true))
		w.txn(t, "describe", describeTxn(id))
		w.txn(t, "end", endTxn(v, id, p, v%2 == 0))
		w.settle(t, id)
		w.same(t, "decided", fetchOffsets(group, true))
	}
}

func verify(version int16, p producer, id string, verifyOnly bool, partitions ...int32) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.SetVersion(version)
		req.Transactions = []kmsg.AddPartitionsToTxnRequestTransaction{{TransactionalID: id, ProducerID: p.on(s),
			ProducerEpoch: p.epoch, VerifyOnly: verifyOnly,
			Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: "data", Partitions: partitions}}}}
		return req
	}
}

func (w *txnWorld) testBrokers(t *testing.T) {
	id := "brokers"
	p := w.init(t, id)
	for v := int16(4); v <= 5; v++ {
		w.txn(t, "verify nothing", verify(v, p, id, true, 0))
		w.txn(t, "add", verify(v, p, id, false, 0))
		w.txn(t, "verify", verify(v, p, id, true, 0))
		w.txn(t, "verify another partition", verify(v, p, id, true, 1))
		w.txn(t, "verify unknown partition", verify(v, p, id, true, 9))
		w.txn(t, "verify another producer", verify(v, stranger, id, true, 0))
		w.txn(t, "verify another epoch", verify(v, p.plus(1), id, true, 0))
		w.txn(t, "verify unknown id", verify(v, p, "nobody", true, 0))
		w.txn(t, "verify empty id", verify(v, p, "", true, 0))
		w.txn(t, "add for another epoch", verify(v, p.plus(1), id, false, 0))
		w.txn(t, "abort", endTxn(5, id, p, false))
		w.settle(t, id)
		p = p.plus(1)
	}
}

func writeMarker(version int16, p producer, commit bool, coordinator int32, txnVersion int8, topic string,
	partitions ...int32) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		req.SetVersion(version)
		req.Markers = []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: p.on(s), ProducerEpoch: p.epoch,
			Committed: commit, CoordinatorEpoch: coordinator, TransactionVersion: txnVersion,
			Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: partitions}}}}
		return req
	}
}

func describeProducers(topic string, partitions ...int32) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeProducersRequest()
		req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: topic, Partitions: partitions}}
		return req
	}
}

func (w *txnWorld) testMarkers(t *testing.T) {
	w.create(t, "marked", 1)
	for v := int16(1); v <= 2; v++ {
		p := producer{epoch: 3}
		w.txn(t, "unknown partition", writeMarker(v, p, true, 0, 0, "marked", 7))
		w.txn(t, "unknown topic", writeMarker(v, p, true, 0, 0, "nope", 0))
		w.txn(t, "of no transaction", writeMarker(v, p, true, 5, 0, "marked", 0))
		w.txn(t, "old coordinator", writeMarker(v, p, true, 4, 0, "marked", 0))
		w.txn(t, "old producer", writeMarker(v, p.plus(-1), true, 5, 0, "marked", 0))
		w.txn(t, "same epoch, v2, repeated", writeMarker(v, p, false, 5, 2, "marked", 0))
		w.txn(t, "raised epoch, v2", writeMarker(v, p.plus(1), false, 5, 2, "marked", 0))
		w.txn(t, "producers", describeProducers("marked", 0, 7))
		w.txn(t, "no markers", func(*side) kmsg.Request {
			req := kmsg.NewPtrWriteTxnMarkersRequest()
			req.SetVersion(v)
			return req
		})
	}
	w.txn(t, "producers, unknown topic", describeProducers("nope", 0))
	w.txn(t, "producers, illegal topic", describeProducers("a/b", 0))
	w.hostileMarkers(t)
}

// marker is one marker of a request of several.
type marker struct {
	producerID int64
	epoch      int16
	topic      string
	partitions []int32
}

func writeMarkers(version int16, markers ...marker) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		req.SetVersion(version)
		for _, m := range markers {
			req.Markers = append(req.Markers, kmsg.WriteTxnMarkersRequestMarker{ProducerID: m.producerID,
				ProducerEpoch: m.epoch, Committed: true, CoordinatorEpoch: 9,
				Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: m.topic, Partitions: m.partitions}}})
		}
		return req
	}
}

// hostileMarkers are such as no coordinator sends.
func (w *txnWorld) hostileMarkers(t *testing.T) {
	w.create(t, "hostile", 3)
	all := []int32{0, 1, 2}
	for v := int16(1); v <= 2; v++ {
		good := marker{70_000, 3, "hostile", []int32{0}}
		for name, markers := range map[string][]marker{
			"good":                      {good},
			"no producer":               {{-1, 3, "hostile", all}},
			"no epoch":                  {{70_001, -1, "hostile", all}},
			"neither":                   {{-1, -1, "hostile", all}},
			"negative producer":         {{-2, 3, "hostile", all}},
			"negative epoch":            {{70_002, -2, "hostile", all}},
			"no epoch, elsewhere":       {{70_003, -1, "hostile", []int32{7}}},
			"no epoch, offsets":         {{70_004, -1, "__consumer_offsets", []int32{0}}},
			"no producer, offsets":      {{-1, 1, "__consumer_offsets", []int32{0}}},
			"negative epoch, offsets":   {{70_005, -2, "__consumer_offsets", []int32{0}}},
			"good, then no epoch":       {good, {70_006, -1, "hostile", all}},
			"no epoch, then good":       {{70_006, -1, "hostile", all}, good},
			"partly unknown, no epoch":  {{70_007, -1, "hostile", []int32{0, 8}}},
			"one producer, two markers": {{70_008, 1, "hostile", []int32{0}}, {70_008, 2, "hostile", []int32{1, 9}}},
			"unknown, then good":        {{70_009, 1, "hostile", []int32{9}}, good},
			"partition twice":           {{70_010, 1, "hostile", []int32{1, 1}}},
		} {
			if name == "partition twice" { // Kafka never answers this
				for _, s := range w.sides {
					s.dial(t).timeout = 3 * time.Second
				}
			}
			w.same(t, name, writeMarkers(v, markers...), byMarker)
			for _, s := range w.sides {
				s.dial(t).timeout = answerTimeout
			}
		}
	}
	w.txn(t, "producers, after hostile markers", describeProducers("hostile", all...), byProducer)
}

// byMarker orders the markers of an answer by producer, and their partitions: Kafka's order is a hash table's.
func byMarker(s *side, tree any) any {
	m, _ := tree.(map[string]any)
	markers, _ := m["Markers"].([]any)
	text := func(one any) string {
		b, err := json.Marshal(one)
		if err != nil {
			panic(err) // it was decoded from JSON
		}
		return string(b)
	}
	order := func(list []any) {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	for _, one := range markers {
		topics, _ := one.(map[string]any)["Topics"].([]any)
		for _, topic := range topics {
			partitions, _ := topic.(map[string]any)["Partitions"].([]any)
			order(partitions)
		}
	}
	order(markers)
	return tree
}

func listTxns(version int16, edit func(*kmsg.ListTransactionsRequest)) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrListTransactionsRequest()
		req.SetVersion(version)
		edit(req)
		return req
	}
}

// byID orders listed transactions: Kafka's order is a hash table's.
func byID(s *side, tree any) any {
	if m, ok := tree.(map[string]any); ok {
		m["Topics"] = m["TransactionStates"]
		byTopic(s, m)
		delete(m, "Topics")
	}
	return tree
}

func (w *txnWorld) testListings(t *testing.T) {
	for v := int16(0); v <= 2; v++ {
		for name, edit := range map[string]func(*kmsg.ListTransactionsRequest){
			"all":      func(*kmsg.ListTransactionsRequest) {},
			"state":    func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"CompleteCommit", "Nonsense"} },
			"nonsense": func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Nonsense"} },
			"producer": func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{987_654} },
			"duration": func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3_600_000 },
			"pattern":  func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("i[0-2]") },
			"part":     func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("classic") },
			"bad":      func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("(") },
			"empty":    func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("") },
		} {
			w.same(t, name, listTxns(v, edit), hideTxn, byID)
		}
	}
	w.txn(t, "describe unknown and empty", describeTxn("nobody", "", "i0"))
}

// testTransactionLog compares what both sides wrote to __transaction_state, record by record: the same requests must
// leave the same states.
func (w *txnWorld) testTransactionLog(t *testing.T) {
	var logs [2]map[string][]string
	for i, s := range w.sides {
		logs[i] = s.transactionLog(t)
	}
	for id, kafka := range logs[0] {
		if d := difference(tree(kafka), tree(logs[1][id])); d != "" {
			t.Errorf("records of %s: %s", id, d)
		}
	}
}

func tree(list []string) any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// transactionLog reads the values of all transactional ids, in order, without times; producer ids count from the
// first of each id.
func (s *side) transactionLog(t *testing.T) map[string][]string {
	t.Helper()
	meta, ok := s.ask(t, metadata(12, []string{"__transaction_state"}, false)(s)).(*kmsg.MetadataResponse)
	if !ok {
		t.Fatal("no metadata")
	}
	s.learnID("__transaction_state", meta.Topics[0].TopicID)
	all := map[string][]string{}
	first := map[string]int64{}
	for partition := range int32(len(meta.Topics[0].Partitions)) {
		spec := newFetch("__transaction_state", 0)
		spec.partition = partition
		answer, ok := s.ask(t, spec.request(12)(s)).(*kmsg.FetchResponse)
		if !ok || len(answer.Topics) == 0 {
			t.Fatalf("%s: no records of partition %d", s.Name, partition)
		}
		for _, r := range keyValues(t, answer.Topics[0].Partitions[0].RecordBatches) {
			var key kmsg.TxnMetadataKey
			var value kmsg.TxnMetadataValue
			if err := key.ReadFrom(r.Key); err != nil {
				t.Fatal(err)
			}
			if err := value.ReadFrom(r.Value); err != nil {
				t.Fatal(err)
			}
			id := key.TransactionalID
			if _, ok := first[id]; !ok {
				first[id] = value.ProducerID
			}
			for _, producerID := range []*int64{&value.ProducerID, &value.PreviousProducerID, &value.NextProducerID} {
				if *producerID >= 0 {
					*producerID -= first[id]
				}
			}
			value.LastUpdateTimestamp, value.StartTimestamp = 0, min(value.StartTimestamp, 1)
			b, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			all[id] = append(all[id], string(b))
		}
	}
	return all
}

// keyValues are the records of batches.
func keyValues(t *testing.T, batches []byte) []record.Record {
	t.Helper()
	var all []record.Record
	for len(batches) > 0 {
		_, entry, rest, err := record.NextEntry(batches)
		if err != nil {
			t.Fatal(err)
		}
		it, err := record.NewIterator(bytes.Clone(entry), record.IterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			all = append(all, *it.Record())
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
		batches = rest
	}
	return all
}
