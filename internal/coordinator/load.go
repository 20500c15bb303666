package coordinator

import (
	"errors"
	"fmt"

	"tidemark/record"
)

// load reads the log into the shard and begins to take commands.
//
// A log that cannot be read leaves the partition loading for good: its commands answer ErrLoading until another
// election. Records that the shard does not understand are skipped.
func (p *partition[S]) load() {
	start := p.now()
	records, err := p.replayLog()
	name := fmt.Sprintf("%s-%d", p.o.Topic, p.env.partition)
	if err != nil && p.isUnloaded() {
		return // what fails beside an unloading tells nothing
	}
	if err != nil {
		p.o.Logger.Error("coordinator cannot load its partition", "partition", name, "epoch", p.env.epoch, "error", err)
		return
	}
	if !p.activate() {
		return
	}
	took := p.now().Sub(start)
	p.o.Logger.Debug("coordinator loaded", "partition", name, "epoch", p.env.epoch, "records", records, "took", took)
	if p.o.Loaded != nil {
		p.o.Loaded(p.env.partition, records, took)
	}
}

// errUnloaded ends a load that nobody wants any more.
var errUnloaded = errors.New("partition was unloaded while it was loaded")

func (p *partition[S]) replayLog() (records int, err error) {
	offset, end, err := p.log.Bounds()
	if err != nil {
		return 0, err
	}
	l := loader[S]{p: p, next: offset}
	var buf []byte
	for l.next < end {
		if p.isUnloaded() {
			return l.records, errUnloaded
		}
		before := l.next
		if buf, err = p.log.Read(buf[:0], l.next, p.o.LoadBytes); err != nil {
			return l.records, err
		}
		if err := l.batches(buf); err != nil {
			return l.records, err
		}
		if l.next == before {
			return l.records, nil // compaction left nothing up to the end
		}
	}
	return l.records, nil
}

func (p *partition[S]) isUnloaded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == unloaded
}

// loader replays batches into a shard.
type loader[S Shard] struct {
	p       *partition[S]
	it      record.Iterator
	next    int64 // offset
	records int
}

// batches replays whole batches; a cut one at the end is left.
func (l *loader[S]) batches(b []byte) error {
	for len(b) > 0 {
		h, entry, rest, err := record.NextEntry(b)
		if errors.Is(err, record.ErrShort) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.LastOffset >= l.next {
			if err := l.batch(h, entry); err != nil {
				return fmt.Errorf("batch at offset %d: %w", h.BaseOffset, err)
			}
			l.next = h.LastOffset + 1
		}
		b = rest
	}
	return nil
}

func (l *loader[S]) batch(h record.Header, entry []byte) error {
	if err := l.it.Reset(entry, record.IterOptions{}); err != nil {
		return err
	}
	defer l.it.Close()
	for l.it.Next() {
		r := l.it.Record()
		switch {
		case h.IsControl():
			l.marker(h, r)
		default:
			l.record(h, r)
		}
	}
	return l.it.Err()
}

func (l *loader[S]) marker(h record.Header, r *record.Record) {
	_, message, err := record.ParseControl(r.Key, r.Value)
	if end, ok := message.(record.EndTxn); ok && err == nil {
		l.p.shard.ReplayMarker(h.ProducerID, h.ProducerEpoch, end.Commit)
	}
}

func (l *loader[S]) record(h record.Header, r *record.Record) {
	l.records++
	one := Replayed{Offset: r.Offset, Timestamp: r.Timestamp, ProducerID: -1, ProducerEpoch: -1,
		Key: r.Key, Value: r.Value}
	if h.IsTransactional() {
		one.ProducerID, one.ProducerEpoch = h.ProducerID, h.ProducerEpoch
	}
	if err := l.p.shard.Replay(one); err != nil {
		l.p.o.Logger.Warn("record of a coordinator is skipped", "partition",
			fmt.Sprintf("%s-%d", l.p.o.Topic, l.p.env.partition), "offset", r.Offset, "error", err)
	}
}
