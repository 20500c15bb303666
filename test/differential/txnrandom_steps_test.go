//go:build oracle

package differential

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// step makes one step that the seed draws.
func (r *randomRun) step() {
	r.t.Helper()
	r.steps++
	n := r.rng.IntN(100)
	if len(r.handles) == 0 {
		n = 0
	}
	switch {
	case n < 6:
		r.newProducer()
	case n < 10:
		r.resume(r.pick())
	case n < 50:
		r.write(r.pick())
	case n < 58:
		r.writeOffsets(r.pick())
	case n < 74:
		r.end(r.pick())
	case n < 80:
		r.writePlain()
	case n < 83:
		r.abortByHand()
	case n < 84 && r.deletes:
		r.deleteRecords()
	default:
		r.look()
	}
}

// pick draws a handle, mostly one of the newest, which are not fenced.
func (r *randomRun) pick() *handle {
	if n := len(r.handles); r.rng.IntN(5) > 0 && n > 3 {
		return r.handles[n-3+r.rng.IntN(3)]
	}
	return r.handles[r.rng.IntN(len(r.handles))]
}

// longTimeout is that of transactions which are not to time out during the test: transaction.max.timeout.ms.
const longTimeout = 900_000

// newProducer is a client that starts: it fences the one before it.
func (r *randomRun) newProducer() {
	id := r.ids[r.rng.IntN(len(r.ids))]
	r.handles = append(r.handles, r.producerOf(id, longTimeout))
}

func (r *randomRun) producerOf(id string, timeoutMs int32) *handle {
	r.t.Helper()
	version := int16(r.rng.IntN(6))
	for {
		answers := r.ask(fmt.Sprintf("InitProducerId v%d of %s", version, id), func(*side) kmsg.Request {
			req := kmsg.NewPtrInitProducerIDRequest()
			req.SetVersion(version)
			req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, timeoutMs, -1, -1
			return req
		})
		r.settleAll()
		p, code := r.initialized(answers)
		switch code {
		case 0:
			return &handle{id: id, p: p, raising: r.rng.IntN(2) == 0, next: map[int32]int32{}}
		case concurrentTransactions: // the transaction of the producer before is aborted by now
		default:
			r.t.Fatalf("InitProducerId of %s: error %d", id, code)
		}
	}
}

func (r *randomRun) initialized(answers [2]kmsg.Response) (producer, int16) {
	p := producer{id: map[*side]int64{}}
	code := int16(0)
	for i, s := range r.sides {
		answer, ok := answers[i].(*kmsg.InitProducerIDResponse)
		if !ok {
			r.t.Fatalf("%s: no answer: %s", s.Name, s.outcome)
		}
		p.id[s], p.epoch, code = answer.ProducerID, answer.ProducerEpoch, answer.ErrorCode
	}
	return p, code
}

// resume is a client that asks for a new epoch, with what it believes to have.
func (r *randomRun) resume(h *handle) {
	r.t.Helper()
	version := 3 + int16(r.rng.IntN(3))
	p := h.p
	if r.rng.IntN(5) == 0 {
		p = p.plus(int16(r.rng.IntN(5) - 2))
	}
	if p.epoch < 0 {
		return
	}
	answers := r.ask(fmt.Sprintf("InitProducerId v%d of %s from epoch %d", version, h.id, p.epoch),
		initFrom(version, h.id, p))
	r.settleAll()
	if next, code := r.initialized(answers); code == 0 {
		r.handles = append(r.handles, &handle{id: h.id, p: next, raising: h.raising, next: map[int32]int32{}})
	}
}

// protocol is that of the handle, sometimes the other.
func (r *randomRun) protocol(h *handle) (raising bool) {
	return h.raising != (r.rng.IntN(12) == 0)
}

// write appends in a transaction, which is begun when it is not open.
func (r *randomRun) write(h *handle) {
	r.t.Helper()
	partition := int32(r.rng.IntN(randomPartitions))
	raising := r.protocol(h)
	if !raising && r.rng.IntN(4) > 0 {
		version := int16(r.rng.IntN(4))
		r.ask(fmt.Sprintf("AddPartitionsToTxn v%d of %s epoch %d partition %d", version, h.id, h.p.epoch, partition),
			addPartitions(version, h.id, h.p, r.topic, partition))
	}
	version := 7 + int16(r.rng.IntN(5))
	if raising {
		version = 12 + int16(r.rng.IntN(2))
	}
	sequence := h.next[partition]
	switch r.rng.IntN(25) {
	case 0:
		sequence++ // a gap
	case 1:
		sequence = max(0, sequence-1) // a repeated batch, or part of one
	}
	b := batch{records: r.records(), attributes: transactional, sequence: sequence, epoch: h.p.epoch}
	what := fmt.Sprintf("Produce v%d of %s epoch %d partition %d sequence %d, %d records", version, h.id, h.p.epoch,
		partition, sequence, len(b.records))
	answers := r.ask(what, r.produce(version, &h.id, h.p, partition, b))
	if code := producedCode(answers[0]); code == 0 {
		h.open = true
		h.next[partition] = sequence + int32(len(b.records))
	}
}

// produce is a produce request of a producer, whose id differs between the sides.
func (r *randomRun) produce(version int16, id *string, p producer, partition int32, b batch) request {
	return func(s *side) kmsg.Request {
		b := b
		if p.id != nil {
			b.producerID, b.epoch = p.on(s)+1, p.epoch
		}
		req := produce(version, r.topic, partition, -1, b.encode())(s).(*kmsg.ProduceRequest)
		req.TransactionID = id
		return req
	}
}

func producedCode(answer kmsg.Response) int16 {
	if a, ok := answer.(*kmsg.ProduceResponse); ok && len(a.Topics) == 1 && len(a.Topics[0].Partitions) == 1 {
		return a.Topics[0].Partitions[0].ErrorCode
	}
	return -1
}

// records are those of one batch.
func (r *randomRun) records() []rec {
	var all []rec
	for range 1 + r.rng.IntN(3) {
		r.now += int64(r.rng.IntN(3000)) - 500
		r.times[r.now] = true
		one := rec{ts: r.now, key: []byte("k"), value: []byte("v")}
		if r.bySize() && r.rng.IntN(8) == 0 {
			one.value = make([]byte, 100_000)
		}
		all = append(all, one)
	}
	return all
}

func (r *randomRun) group() string { return r.topic + "-group" }

func (r *randomRun) groupOffsets(stable bool) request {
	return func(s *side) kmsg.Request {
		req := fetchOffsets(r.group(), stable)(s).(*kmsg.OffsetFetchRequest)
		req.Groups[0].Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: r.topic, Partitions: []int32{0, 1}}}
		return req
	}
}

// writeOffsets commits offsets of a group in a transaction.
func (r *randomRun) writeOffsets(h *handle) {
	r.t.Helper()
	raising := r.protocol(h)
	version := int16(5)
	if !raising {
		version = int16(r.rng.IntN(5))
		if r.rng.IntN(4) > 0 {
			r.ask(fmt.Sprintf("AddOffsetsToTxn v%d of %s epoch %d", min(version, 4), h.id, h.p.epoch),
				addOffsets(min(version, 4), h.id, h.p, r.group()))
		}
	}
	o := offsetsIn{id: h.id, group: r.group(), p: h.p, topic: r.topic, partitions: []int32{int32(r.rng.IntN(2))}}
	r.ask(fmt.Sprintf("TxnOffsetCommit v%d of %s epoch %d", version, h.id, h.p.epoch), o.request(version))
	r.ask("OffsetFetch", r.groupOffsets(false))
	r.ask("OffsetFetch, stable", r.groupOffsets(true))
	h.open = true
}

// end commits or aborts, sometimes twice or with another outcome.
func (r *randomRun) end(h *handle) {
	r.t.Helper()
	raising := r.protocol(h)
	commit := r.rng.IntN(2) == 0
	times := 1
	if r.rng.IntN(5) == 0 {
		times = 2
	}
	p := h.p
	for range times {
		version := int16(r.rng.IntN(5))
		if raising {
			version = 5
		}
		answers := r.ask(fmt.Sprintf("EndTxn v%d of %s epoch %d, commit %v", version, h.id, p.epoch, commit),
			endTxn(version, h.id, p, commit))
		r.settleAll()
		r.ended(h, answers, raising)
		if r.rng.IntN(3) == 0 {
			commit = !commit
		}
	}
}

// ended takes note of the producer's next epoch.
func (r *randomRun) ended(h *handle, answers [2]kmsg.Response, raising bool) {
	next := producer{id: map[*side]int64{}}
	for i, s := range r.sides {
		answer, ok := answers[i].(*kmsg.EndTxnResponse)
		if !ok || answer.ErrorCode != 0 {
			return
		}
		next.id[s], next.epoch = answer.ProducerID, answer.ProducerEpoch
	}
	h.open = false
	if raising {
		h.p, h.next = next, map[int32]int32{}
	}
}

// writePlain appends without a transaction: with a producer id of its own, or without any.
func (r *randomRun) writePlain() {
	r.t.Helper()
	partition := int32(r.rng.IntN(randomPartitions))
	b := batch{records: r.records()}
	if r.rng.IntN(2) == 0 {
		r.ask(fmt.Sprintf("Produce to partition %d", partition), r.produce(11, nil, producer{}, partition, b))
		return
	}
	if len(r.plain) == 0 || r.rng.IntN(4) == 0 {
		p, _ := r.initialized(r.ask("InitProducerId", initProducerID(4, nil, -1, -1)))
		r.plain = append(r.plain, &plainProducer{p: p, next: map[int32]int32{}})
	}
	one := r.plain[r.rng.IntN(len(r.plain))]
	b.sequence = one.next[partition]
	answers := r.ask(fmt.Sprintf("Produce to partition %d, idempotent", partition),
		r.produce(11, nil, one.p, partition, b))
	if producedCode(answers[0]) == 0 {
		one.next[partition] += int32(len(b.records))
	}
}

// abortByHand writes a marker as the tool does that aborts hanging transactions. A later epoch than the producer's or
// the coordinator's is not drawn: after that, Kafka never completes the transaction that is open.
func (r *randomRun) abortByHand() {
	r.t.Helper()
	h := r.pick()
	version, txnVersion := 1+int16(r.rng.IntN(2)), int8(r.rng.IntN(2)*2)
	p := h.p.plus(-int16(r.rng.IntN(2)))
	partition, coordinator := int32(r.rng.IntN(randomPartitions)), int32(0)
	r.ask(fmt.Sprintf("WriteTxnMarkers v%d of %s epoch %d coordinator %d transaction version %d partition %d", version,
		h.id, p.epoch, coordinator, txnVersion, partition),
		writeMarker(version, p, false, coordinator, txnVersion, r.topic, partition))
}

// deleteRecords moves the start of a partition, sometimes past an open transaction.
func (r *randomRun) deleteRecords() {
	r.t.Helper()
	partition := int32(r.rng.IntN(randomPartitions))
	offset := r.rng.Int64N(r.endOffset(partition) + 1)
	r.ask(fmt.Sprintf("DeleteRecords of partition %d to %d", partition, offset), func(*side) kmsg.Request {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.SetVersion(2)
		req.TimeoutMillis = 30_000
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: r.topic,
			Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}}}
		return req
	})
}

// endOffset is the high watermark of a partition, the same on both sides.
func (r *randomRun) endOffset(partition int32) int64 {
	r.t.Helper()
	answers := r.ask("end offset", listOffsets(7, -1, 0, r.topic, offsetQuery{partition, -1, -1}))
	answer, ok := answers[0].(*kmsg.ListOffsetsResponse)
	if !ok {
		r.t.Fatal("no end offset")
	}
	return answer.Topics[0].Partitions[0].Offset
}

// shortTimeout is that of transactions which are to time out; it is long enough for the requests before.
const shortTimeout = 3000

// lapse opens a transaction of each protocol, in a partition of its own, and waits until both have timed out.
func (r *randomRun) lapse() {
	r.t.Helper()
	var lapsing []*handle
	for i, id := range r.ids[:2] {
		h := r.producerOf(id, shortTimeout)
		h.raising = i == 0
		lapsing = append(lapsing, h)
	}
	for i, h := range lapsing {
		partition := int32(i)
		version := int16(12)
		if !h.raising {
			version = 11
			r.ask("AddPartitionsToTxn of "+h.id, addPartitions(3, h.id, h.p, r.topic, partition))
		}
		b := batch{records: r.records(), attributes: transactional}
		r.ask("Produce of "+h.id, r.produce(version, &h.id, h.p, partition, b))
		h.next[partition] = int32(len(b.records))
	}
	for _, h := range lapsing {
		r.waitLapsed(h.id)
	}
	for _, h := range lapsing {
		r.ask("DescribeTransactions of "+h.id, describeTxn(h.id))
	}
	for _, h := range lapsing { // what the producers hear of it
		r.write(h)
		r.end(h)
		r.handles = append(r.handles, h, r.producerOf(h.id, longTimeout))
	}
}

func (r *randomRun) waitLapsed(id string) {
	r.t.Helper()
	for _, s := range r.sides {
		s.waitFor(r.t, "time-out of "+id, func() bool {
			answer, ok := s.ask(r.t, describeTxn(id)(s)).(*kmsg.DescribeTransactionsResponse)
			return ok && answer.TransactionStates[0].State == "CompleteAbort"
		})
	}
}
