//go:build oracle

package demo

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
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
		options := idempotent(t, client)
		options.Codec = s.codec
		for _, b := range s.batches {
			if s.clock {
				time.Sleep(2 * time.Millisecond) // so that no two batches get the same time
			}
			sent, err := client.Produce(s.topic, 0, encode(t, options, b))
			if err != nil || sent.Err() != nil {
				t.Fatalf("%s, topic %s, sequence %d: %v, %v", to.Name, s.topic, options.BaseSequence, err, sent.Err())
			}
			options.BaseSequence += int32(len(b))
		}
	}
}

// idempotent returns the header fields of a new idempotent producer's first batch.
func idempotent(t *testing.T, client *ledger.Client) record.BuilderOptions {
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
	options := record.DefaultBuilderOptions()
	options.ProducerID, options.ProducerEpoch, options.BaseSequence = answer.ProducerID, answer.ProducerEpoch, 0
	return options
}

// encode returns the batch whose first record is number BaseSequence of its topic.
func encode(t *testing.T, options record.BuilderOptions, b batch) []byte {
	t.Helper()
	builder := record.NewBuilder(options)
	for i, ts := range b {
		n := int(options.BaseSequence) + i
		if err := builder.Append(ts, fmt.Appendf(nil, "k%d", n), fmt.Appendf(nil, "v%d", n), nil); err != nil {
			t.Fatal(err)
		}
	}
	return builder.Bytes()
}
