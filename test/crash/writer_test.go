package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/record"
	"tidemark/test/ledger"
)

// inFlight is how many batches are sent ahead of their answers, as idempotent producers do.
const inFlight = 5

// sent is a batch on its way.
type sent struct {
	ledger.Batch
	bytes []byte
}

// writer is the idempotent producer of one partition, through all lives of the server.
type writer struct {
	book    *ledger.Partition
	id      int64
	next    int32 // sequence of the next new batch
	clock   int64 // timestamp of the next record
	rng     *rand.Rand
	codecs  []record.Codec
	pending []sent  // sent or to be sent again, in order, none acknowledged
	last    *sent   // the last that is known to be stored
	base    int64   // its base offset
	acked   int     // batches acknowledged in this life
	trouble []error // answers that must not be
}

// batch makes a new batch.
func (w *writer) batch() (sent, error) {
	b := ledger.Batch{Codec: w.codecs[w.rng.IntN(len(w.codecs))], ProducerID: w.id, Sequence: w.next}
	for range 1 + w.rng.IntN(8) {
		w.clock += int64(w.rng.IntN(20))
		value := make([]byte, w.rng.IntN(200))
		for i := range value {
			value[i] = byte(w.rng.IntN(256))
		}
		b.Records = append(b.Records, ledger.Record{Timestamp: w.clock - int64(w.rng.IntN(50)), Value: value,
			Key:     fmt.Appendf(nil, "%d", len(w.book.Records)),
			Headers: []kgo.RecordHeader{{Key: "n", Value: []byte{byte(w.rng.IntN(256))}}}})
	}
	w.next += int32(len(b.Records))
	bytes, err := b.Encode()
	return sent{b, bytes}, err
}

// run sends until the server dies, or limit batches are acknowledged. What is pending then is sent again in the next
// life.
func (w *writer) run(addr string, limit int) {
	p, err := dialPipe(addr)
	if err != nil {
		return
	}
	defer p.conn.Close()
	flying := 0
	for w.acked = 0; w.acked < limit; {
		for flying < inFlight {
			if flying == len(w.pending) {
				b, err := w.batch()
				if err != nil {
					w.trouble = append(w.trouble, err)
					return
				}
				w.pending = append(w.pending, b)
			}
			if err := p.send(w.book.Topic, w.book.ID, w.pending[flying].bytes); err != nil {
				return
			}
			flying++
		}
		if !w.acknowledge(p) {
			return
		}
		flying--
	}
}

// acknowledge takes the answer to the first batch on its way. It is false at the end of the connection.
func (w *writer) acknowledge(p *pipe) bool {
	answer, err := p.receive()
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		w.trouble = append(w.trouble, fmt.Errorf("no answer in %v", answerTimeout))
	}
	if err != nil {
		return false
	}
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		w.trouble = append(w.trouble, fmt.Errorf("batch of sequence %d, expected at %d: %w", w.pending[0].Sequence,
			w.book.End,
			err))
		return false
	}
	if answer.BaseOffset != w.book.End {
		w.trouble = append(w.trouble, fmt.Errorf("batch of sequence %d at %d, expected at %d", w.pending[0].Sequence,
			answer.BaseOffset, w.book.End))
		return false
	}
	w.stored()
	w.acked++
	return true
}

// stored notes that the first pending batch is in the log.
func (w *writer) stored() {
	b := w.pending[0]
	w.pending = w.pending[1:]
	w.last, w.base = &b, w.book.End
	w.book.Added(b.Batch, ledger.Produced{Base: w.book.End, LogAppendTime: -1})
}

// reconcile finds out which pending batches a server that was killed has stored, from the log end offset after its
// restart: all that were acknowledged, and a prefix of the pending ones, each whole.
func (w *writer) reconcile(end int64) error {
	for len(w.pending) > 0 && w.book.End+int64(len(w.pending[0].Records)) <= end {
		w.stored()
	}
	if w.book.End != end {
		return fmt.Errorf("%s ends at %d after the kill; acknowledged and whole batches end at %d", w.book.Name(), end,
			w.book.End)
	}
	return nil
}

func newWriter(p *ledger.Partition, id int64, seed uint64, codecs []record.Codec) *writer {
	return &writer{book: p, id: id, rng: rand.New(rand.NewPCG(seed, uint64(id))), codecs: codecs,
		clock: time.Now().Add(-time.Hour).UnixMilli()}
}
