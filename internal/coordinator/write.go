package coordinator

import (
	"errors"
	"fmt"
	"math"

	"tidemark/record"
)

// run runs a command. What it wants written is appended with the writes of the commands around it; a command that
// may see what they change has them appended first.
func (p *partition[S]) run(c Command[S]) {
	if c.Key == "" || p.open.keys[c.Key] {
		p.flush()
	}
	w := c.Run(p.shard)
	switch {
	case w == nil:
		answer(c.Done, nil)
	case !w.joins():
		p.flush()
		p.append([]openWrite{{w, c.Done}})
	default:
		if p.open.sizeBytes+w.sizeBytes() > maxJointBytes {
			p.flush()
		}
		p.open.add(c.Key, w, c.Done)
		if c.Key == "" {
			p.flush()
		}
	}
}

// execute runs a command of the shard's own.
func (p *partition[S]) execute(key string, run func() *Write, done func(error)) {
	p.run(Command[S]{Key: key, Run: func(S) *Write { return run() }, Done: done})
}

// maxJointBytes bounds the records of a batch with the writes of several commands.
const maxJointBytes = 256 << 10

// joins tells whether a write may share a batch with others: those of transactions have a producer of their own.
func (w *Write) joins() bool { return !w.Transactional && w.Marker == nil }

// sizeBytes is about what a write's records take in a batch.
func (w *Write) sizeBytes() int {
	const overhead = 20
	n := 0
	for i := range w.Records {
		n += len(w.Records[i].Key) + len(w.Records[i].Value) + overhead
	}
	return n
}

// openWrites are the writes of commands that have run and are not appended yet. The shard has not taken them in, so
// that nothing has to be undone when the append fails: no two are of the same key, and no command that could see their
// outcome has run since.
type openWrites struct {
	writes    []openWrite
	keys      map[string]bool
	sizeBytes int
}

type openWrite struct {
	*Write
	done func(error)
}

func (o *openWrites) add(key string, w *Write, done func(error)) {
	o.writes = append(o.writes, openWrite{w, done})
	o.keys[key] = true
	o.sizeBytes += w.sizeBytes()
}

// flush appends the open writes, as one batch. If that is too large for the log, each becomes a batch of its own.
func (p *partition[S]) flush() {
	if len(p.open.writes) == 0 {
		return
	}
	p.append(p.open.writes)
	clear(p.open.writes)
	clear(p.open.keys)
	p.open.writes, p.open.sizeBytes = p.open.writes[:0], 0
}

// append appends writes as one batch, takes them into the shard and has them wait for the high watermark; or it answers
// them all with the error. Only writes that join may be more than one.
func (p *partition[S]) append(writes []openWrite) {
	base, last, err := p.appendBatch(writes)
	if errors.Is(err, ErrCannotWrite) && len(writes) > 1 {
		for i := range writes {
			p.append(writes[i : i+1])
		}
		return
	}
	if err != nil {
		for _, w := range writes {
			answer(w.done, err)
		}
		return
	}
	deadline := p.now().Add(p.o.WriteTimeout)
	for _, w := range writes {
		p.apply(w.Write, base)
		base += int64(len(w.Records))
		p.waiting = append(p.waiting, waiting{last: last, committed: w.Committed, done: w.done, deadline: deadline})
	}
	p.advance()
}

func (p *partition[S]) appendBatch(writes []openWrite) (base, last int64, err error) {
	batch, err := p.batch(writes)
	if err != nil {
		return -1, -1, err
	}
	first := writes[0]
	base, last, err = p.log.Append(batch, AppendOptions{Verification: first.Verification,
		TransactionVersion: first.TransactionVersion})
	if err != nil {
		err = appendError(err)
	}
	return base, last, err
}

// batch makes the batch of writes. It is valid until the next call.
func (p *partition[S]) batch(writes []openWrite) ([]byte, error) {
	nowMs := p.now().UnixMilli()
	o := record.DefaultBuilderOptions()
	first := writes[0]
	if !first.joins() {
		o.Transactional, o.ProducerID, o.ProducerEpoch = true, first.ProducerID, first.ProducerEpoch
	}
	if first.Marker != nil {
		return record.EndTxnMarker(o, nowMs, *first.Marker)
	}
	b := &p.builder
	if b.SizeBytes() > maxJointBytes {
		*b = record.Builder{} // such a batch is rare: its memory is not kept
	}
	b.Reset(o)
	for _, w := range writes {
		for _, r := range w.Records {
			if err := b.Append(nowMs, r.Key, r.Value, nil); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrCannotWrite, err)
			}
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
		p.enqueue(p.advance)
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
