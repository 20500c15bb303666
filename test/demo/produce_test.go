//go:build oracle

package demo

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/ledger"
)

// base is the timestamp of the demo's first record, in ms.
const base = int64(1790214409427)

// batch is the timestamps in ms of the records that are sent as one batch.
type batch []int64

// single returns n batches of one record, each a second later.
func single(n int) []batch {
	var out []batch
	for i := range n {
		out = append(out, batch{base + int64(i)*1000})
	}
	return out
}

// produce sends a scenario's batches to both servers, each awaited; record i has key k<i> and value v<i>, counted over
// all batches. A client library decides itself where a batch ends, so the batches are made here.
func (w *world) produce(t *testing.T, s scenario) {
	t.Helper()
	for _, to := range w.servers {
		client := ledger.Dial(t, to.Addr)
		client.WaitLed(t, s.topic, 1) // Kafka answers a creation before that
		sent := ledger.Batch{Codec: s.codec}
		sent.ProducerID, sent.Epoch = newProducer(t, client)
		for _, b := range s.batches {
			if s.clock {
				time.Sleep(2 * time.Millisecond) // so that no two batches get the same time
			}
			sent.Records = records(int(sent.Sequence), b)
			data, err := sent.Encode()
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Produce(s.topic, 0, data)
			if err != nil || answer.Err() != nil {
				t.Fatalf("%s, topic %s, sequence %d: %v, %v", to.Name, s.topic, sent.Sequence, err, answer.Err())
			}
			sent.Sequence += int32(len(b))
		}
	}
}

// newProducer returns the id and epoch of a new idempotent producer.
func newProducer(t *testing.T, client *ledger.Client) (id int64, epoch int16) {
	t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionTimeoutMillis = 60_000
	var answer *kmsg.InitProducerIDResponse
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer = ledger.Ask[*kmsg.InitProducerIDResponse](t, client, req)
		if answer.ErrorCode != kerr.CoordinatorLoadInProgress.Code || time.Now().After(deadline) {
			break
		}
	}
	if answer.ErrorCode != 0 {
		t.Fatalf("%s: InitProducerId: error %d", client.Addr, answer.ErrorCode)
	}
	return answer.ProducerID, answer.ProducerEpoch
}

// records are those of a batch, of which the first is number first of its topic.
func records(first int, b batch) []ledger.Record {
	var out []ledger.Record
	for i, ts := range b {
		out = append(out, ledger.Record{Timestamp: ts, Key: fmt.Appendf(nil, "k%d", first+i),
			Value: fmt.Appendf(nil, "v%d", first+i)})
	}
	return out
}
