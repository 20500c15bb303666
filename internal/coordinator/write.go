package coordinator

import (
	"fmt"
	"math"

	"tidemark/record"
)

// execute runs a command and appends what it wants.
func (p *partition[S]) execute(run func() *Write, done func(error)) {
	defer p.arm()
	w := run()
	if w == nil {
		answer(done, nil)
		return
	}
	batch, err := p.batch(w)
	if err != nil {
		answer(done, err)
		return
	}
	base, last, err := p.log.Append(batch, AppendOptions{Verification: w.Verification,
		TransactionVersion: w.TransactionVersion})
	if err != nil {
		answer(done, appendError(err))
		return
	}
	p.apply(w, base)
	p.waiting = append(p.waiting, waiting{last: last, committed: w.Committed, done: done,
		deadline: p.now().Add(p.o.WriteTimeout)})
	p.advance()
}

// batch makes the batch of a write.
func (p *partition[S]) batch(w *Write) ([]byte, error) {
	nowMs := p.now().UnixMilli()
	o := record.DefaultBuilderOptions()
	if w.Transactional || w.Marker != nil {
		o.Transactional, o.ProducerID, o.ProducerEpoch = true, w.ProducerID, w.ProducerEpoch
	}
	if w.Marker != nil {
		return record.EndTxnMarker(o, nowMs, *w.Marker)
	}
	b := record.NewBuilder(o)
	for _, r := range w.Records {
		if err := b.Append(nowMs, r.Key, r.Value, nil); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCannotWrite, err)
		}
	}
	return b.Bytes(), nil
}

// apply takes what was appended into the shard.
func (p *partition[S]) apply(w *Write, base int64) {
	switch {
	case w.Apply != nil:
		w.Apply(base)
	case w.Marker != nil:
		p.shard.ReplayMarker(w.ProducerID, w.ProducerEpoch, w.Marker.Commit)
	default:
		p.replayOwn(w, base)
	}
}

func (p *partition[S]) replayOwn(w *Write, base int64) {
	nowMs := p.now().UnixMilli()
	r := Replayed{Timestamp: nowMs, ProducerID: -1, ProducerEpoch: -1}
	if w.Transactional {
		r.ProducerID, r.ProducerEpoch = w.ProducerID, w.ProducerEpoch
	}
	for i, one := range w.Records {
		r.Offset, r.Key, r.Value = base+int64(i), one.Key, one.Value
		if err := p.shard.Replay(r); err != nil {
			panic(fmt.Sprintf("%s-%d: own record at %d cannot be replayed: %v", p.o.Topic, p.env.partition, r.Offset, err))
		}
	}
}

// advance tells of the writes that are below the high watermark.
func (p *partition[S]) advance() {
	mark := p.log.HighWatermark()
	n := 0
	for n < len(p.waiting) && p.waiting[n].last < mark {
		w := p.waiting[n]
		n++
		if w.committed != nil {
			w.committed()
		}
		answer(w.done, nil)
	}
	p.waiting = append(p.waiting[:0], p.waiting[n:]...)
	first := int64(math.MaxInt64)
	if len(p.waiting) > 0 {
		first = p.waiting[0].last
	}
	p.firstWaiting.Store(first)
	p.minWait()
}

// moved is the log's watcher: it wakes the loop when a write that waits is below the high watermark.
func (p *partition[S]) moved() {
	if p.log.HighWatermark() <= p.firstWaiting.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == active {
		p.enqueue(func() {
			p.advance()
			p.arm()
		})
	}
}

// expireWaiting answers the writes that were not replicated in time. They stay appended and may still be.
func (p *partition[S]) expireWaiting() {
	now := p.now()
	for i := range p.waiting {
		w := &p.waiting[i]
		if w.deadline.After(now) {
			break
		}
		answer(w.done, fmt.Errorf("%w: not replicated in time", ErrNotAvailable))
		w.done = nil
	}
	p.minWait()
}

// minWait sets the timer for the first write that is not answered yet.
func (p *partition[S]) minWait() {
	for _, w := range p.waiting {
		if w.done != nil {
			p.timers.set(replicationTimer, w.deadline)
			return
		}
	}
	p.timers.remove(replicationTimer)
}

// replicationTimer is the key of the runtime's own timer; shards do not use keys that begin with a zero byte.
const replicationTimer = "\x00replication"
