//go:build oracle

package differential

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// inTransaction is a produce request of a transaction: n records at a past time.
func inTransaction(topic string, partition int32, id string, p producer, sequence int32, n int) request {
	return func(s *side) kmsg.Request {
		b := batch{records: some(n), attributes: transactional, producerID: p.on(s) + 1, epoch: p.epoch, sequence: sequence}
		req := produce(11, topic, partition, -1, b.encode())(s).(*kmsg.ProduceRequest)
		req.TransactionID = &id
		return req
	}
}

// testIsolation is what readers see of transactions that are open, aborted and committed.
func (w *txnWorld) testIsolation(t *testing.T) {
	w.create(t, "isolated", 2, "retention.ms", "-1")
	p := w.init(t, "isolation")
	w.append(t, "begin", addPartitions(3, "isolation", p, "isolated", 0))
	w.append(t, "open", inTransaction("isolated", 0, "isolation", p, 0, 2))
	w.append(t, "beside it", produce(11, "isolated", 0, -1, batch{records: some(5)[4:]}.encode()))
	w.look(t, "open")
	t.Run("long poll", func(t *testing.T) {
		w.longPoll(t, longPoll{name: "committed records do not come", parts: []part{{topic: "isolated"}},
			o: fetchOptions{wait: shortWait, minBytes: 1, isolation: 1}})
		w.longPoll(t, longPoll{name: "the end of the transaction wakes", parts: []part{{topic: "isolated"}},
			o:         fetchOptions{wait: longWait, minBytes: 1, isolation: 1},
			meanwhile: []request{endTxn(3, "isolation", p, false)}})
	})
	w.settle(t, "isolation")
	w.look(t, "aborted")
	w.append(t, "begin", addPartitions(3, "isolation", p, "isolated", 0))
	w.append(t, "more", inTransaction("isolated", 0, "isolation", p, 2, 3))
	w.append(t, "commit", endTxn(3, "isolation", p, true))
	w.settle(t, "isolation")
	w.look(t, "committed")
	sequence := int32(0)
	for i, commit := range []bool{true, false, true} { // one after the other in a partition of their own
		w.append(t, "begin", addPartitions(3, "isolation", p, "isolated", 1))
		w.append(t, "append", inTransaction("isolated", 1, "isolation", p, sequence, 1))
		w.append(t, "end", endTxn(3, "isolation", p, commit))
		w.settle(t, "isolation")
		sequence++
		w.look(t, fmt.Sprintf("%d transactions", i+1))
	}
}

// look asks for offsets and records with each isolation.
func (w *txnWorld) look(t *testing.T, when string) {
	t.Helper()
	for isolation := range int8(3) {
		for partition := range int32(2) {
			for _, ts := range []int64{-1, -2, -3, base, base + 1000, base + 1001, base + 4000} {
				w.same(t, fmt.Sprintf("%s: time %d of partition %d, isolation %d", when, ts, partition, isolation),
					listOffsets(7, -1, isolation, "isolated", offsetQuery{partition, ts, -1}), w.hideMarkerTime)
			}
			for offset := range int64(12) {
				for _, version := range []int16{4, 12} {
					f := newFetch("isolated", offset)
					f.isolation, f.partition = isolation, partition
					w.sameRecords(t, fmt.Sprintf("%s: offset %d of partition %d, isolation %d", when, offset, partition, isolation),
						f, version, hideTxn)
				}
			}
		}
	}
}

// hideMarkerTime hides the time of a marker, which is the broker's.
func (w *txnWorld) hideMarkerTime(_ *side, tree any) any {
	m, _ := tree.(map[string]any)
	topics, _ := m["Topics"].([]any)
	for _, topic := range topics {
		partitions, _ := topic.(map[string]any)["Partitions"].([]any)
		for _, p := range partitions {
			one := p.(map[string]any)
			if large(one["Timestamp"]) {
				one["Timestamp"] = "a marker's"
			}
		}
	}
	return tree
}

// large tells whether a time is later than those of all records of these tests.
func large(v any) bool {
	var n int64
	_, err := fmt.Sscan(fmt.Sprint(v), &n)
	return err == nil && n > base+100_000
}
