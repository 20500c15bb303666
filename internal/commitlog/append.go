package commitlog

import (
	"errors"
	"fmt"

	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
)

// noInfo is the result of an append that failed.
func (l *Log) noInfo() AppendInfo {
	return AppendInfo{
		BaseOffset: -1, LastOffset: -1, LogAppendTime: -1, MaxTimestamp: -1, LeaderEpoch: -1,
		LogStartOffset: l.StartOffset(),
	}
}

// AppendAsLeader checks one magic-2 batch, gives it offsets and appends it. The bytes of batch are rewritten: base
// offset, leader epoch and, where the topic asks for it, timestamp; they are not kept.
//
// A batch that its producer sent before is not appended again: the result tells of the first time. A refused batch
// is an *AppendError, or a *producerstate error for its sequence number, epoch or transaction; nothing was appended
// then, though a segment may have been rolled. After an error of the disk, see [ErrFailed]. It blocks while another
// append is under way.
func (l *Log) AppendAsLeader(batch []byte, o AppendOptions) (AppendInfo, error) {
	cfg := l.cfg.Load()
	c := checker{cfg: cfg, name: l.name, opts: o, nowMs: l.now(),
		decode: record.IterOptions{MaxBytes: l.o.MaxDecompressedBytes, Memory: l.o.Memory}}
	good, err := c.check(batch)
	if err != nil {
		info := l.noInfo()
		var refused *AppendError
		if errors.As(err, &refused) {
			info.RecordErrors = refused.RecordErrors
		}
		return info, err
	}
	l.mu.Lock()
	defer l.unlock()
	if err := l.writable(); err != nil {
		return l.noInfo(), err
	}
	return l.appendChecked(good, o, cfg)
}

// appendChecked gives a batch what depends on the log, and stores it.
func (l *Log) appendChecked(g checked, o AppendOptions, cfg *Config) (AppendInfo, error) {
	info := l.noInfo()
	b := g.batch
	nowMs := l.now()
	b.SetLastOffset(l.EndOffset() + g.count - 1)
	b.SetLeaderEpoch(o.LeaderEpoch)
	if cfg.MessageTimestampType == record.LogAppendTime {
		b.SetMaxTimestamp(nowMs, record.LogAppendTime)
		info.LogAppendTime = nowMs
	} else {
		b.SetMaxTimestamp(g.maxTs, record.CreateTime)
	}
	w := write{bytes: b, first: b.Header(), lastOffset: b.LastOffset(), maxTs: b.MaxTimestamp(), nowMs: nowMs}
	if err := l.before(&w, cfg); err != nil {
		return l.noInfo(), err
	}
	pb, err := producerBatch(w.first, b)
	if err != nil {
		return l.noInfo(), reject(ErrInvalidRecord, "%v", err)
	}
	if pb.ProducerID >= 0 && o.Origin == OriginClient {
		if stored, ok := l.producers.Duplicate(pb); ok {
			return l.duplicate(stored, info), nil
		}
	}
	update, err := l.producerUpdate(pb, o)
	if err != nil {
		return l.noInfo(), err
	}
	if err := l.store(&w, update); err != nil {
		return l.noInfo(), err
	}
	info.BaseOffset, info.LastOffset = w.first.BaseOffset, w.lastOffset
	info.MaxTimestamp, info.LeaderEpoch, info.SizeBytes = w.maxTs, o.LeaderEpoch, len(b)
	return info, nil
}

// duplicate is the answer for a batch that was appended before.
//
// Kafka: the append time is the stored batch's largest timestamp, on CreateTime topics too.
func (l *Log) duplicate(stored producerstate.StoredBatch, info AppendInfo) AppendInfo {
	info.Duplicate = true
	info.BaseOffset, info.LastOffset = stored.BaseOffset(), stored.LastOffset
	info.LogAppendTime = stored.Timestamp
	info.LogStartOffset = l.StartOffset()
	return info
}

// write is one append of whole batches that have their offsets.
type write struct {
	bytes      []byte
	first      record.Header
	lastOffset int64
	maxTs      int64 // the largest of the batches
	nowMs      int64
	segment    *segment.Segment
	pos        int64
}

// before does what comes before the producers' turn: the leader epoch is noted, the batches have a segment to go to. A
// batch that is refused after it has left these traces, as in Kafka.
func (l *Log) before(w *write, cfg *Config) error {
	if err := l.noteEpochs(w); err != nil {
		return l.failUnlessFull("append to "+l.name, err)
	}
	if len(w.bytes) > int(cfg.SegmentBytes) {
		return reject(ErrRecordListTooLarge, "Message batch size is %d bytes in append to partition %s, "+
			"which exceeds the maximum configured segment size of %d.", len(w.bytes), l.name, cfg.SegmentBytes)
	}
	if err := l.maybeRoll(w, cfg); err != nil {
		return l.failUnlessFull("roll "+l.name, err)
	}
	w.segment = l.view.Load().active()
	w.pos = l.view.Load().endPos
	return nil
}

// noteEpochs enters the leader epochs of the batches into the epoch cache. A batch of an old magic has none: the
// cache is emptied then, as it could not tell where such data ends.
func (l *Log) noteEpochs(w *write) error {
	if l.epochsLate {
		if err := l.epochs.Flush(); err != nil {
			return err
		}
		l.epochsLate = false
	}
	for rest := w.bytes; len(rest) > 0; {
		h, _, more, err := record.NextEntry(rest)
		if err != nil {
			return err
		}
		rest = more
		if h.Magic >= 2 {
			if _, err := l.epochs.Assign(h.LeaderEpoch, h.BaseOffset); err != nil {
				l.epochsLate = true
				return err
			}
			continue
		}
		if _, ok := l.epochs.Latest(); ok {
			l.o.Logger.Warn("forget leader epochs: a batch of an old format was appended", "magic", h.Magic)
			l.epochs.Clear()
			if err := l.epochs.Flush(); err != nil {
				l.epochsLate = true
				return err
			}
		}
	}
	return nil
}

// producerBatch is what the producer state needs to know of a batch.
func producerBatch(h record.Header, entry []byte) (producerstate.Batch, error) {
	b := producerstate.Batch{
		ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch,
		BaseSequence: h.BaseSequence, LastSequence: h.LastSequence(),
		BaseOffset: h.BaseOffset, LastOffset: h.LastOffset, MaxTimestamp: h.MaxTimestamp,
		Transactional: h.IsTransactional(), Control: h.IsControl(),
	}
	if !b.Control || h.ProducerID < 0 {
		return b, nil
	}
	var err error
	b.Marker, err = marker(entry)
	return b, err
}

// marker is the end of a transaction that a control batch tells of; nil when compaction took its record.
func marker(entry []byte) (*producerstate.Marker, error) {
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.Next() {
		return nil, it.Err()
	}
	r := it.Record()
	kind, message, err := record.ParseControl(r.Key, r.Value)
	if err != nil {
		return nil, err
	}
	end, ok := message.(record.EndTxn)
	if !ok {
		return nil, fmt.Errorf("a control record of type %v has a producer id", kind)
	}
	return &producerstate.Marker{
		Abort: kind == record.ControlAbort, CoordinatorEpoch: end.CoordinatorEpoch, Timestamp: r.Timestamp,
	}, nil
}

// producerUpdate checks a batch against what is known of its producer. nil: the batch has no producer.
func (l *Log) producerUpdate(b producerstate.Batch, o AppendOptions) (*producerstate.Update, error) {
	if b.ProducerID < 0 {
		return nil, nil
	}
	if l.o.VerifyTransactions && b.Transactional && !b.Control && !o.VerifiedTransaction && o.Origin != OriginRaft &&
		l.opensTransaction(b) {
		return nil, reject(ErrInvalidTxnState, "Record was not part of an ongoing transaction")
	}
	if b.Marker != nil {
		b.Marker.TransactionVersion = o.TransactionVersion
	}
	update := l.producers.Begin(producerOrigin(o.Origin))
	if err := update.Add(b); err != nil {
		return nil, err
	}
	return update, nil
}

// opensTransaction tells whether a batch would begin a transaction in this partition. A batch of an epoch that is
// over does not: it is refused for its epoch.
func (l *Log) opensTransaction(b producerstate.Batch) bool {
	e, known := l.producers.Get(b.ProducerID)
	return !known || b.ProducerEpoch > e.ProducerEpoch ||
		b.ProducerEpoch == e.ProducerEpoch && e.CurrentTxnFirstOffset < 0
}

func producerOrigin(o Origin) producerstate.Origin {
	switch o {
	case OriginCoordinator:
		return producerstate.Coordinator
	case OriginRaft:
		return producerstate.RaftLeader
	default:
		return producerstate.Client
	}
}

// store writes the batches and makes them visible. The log end offset moves before the transaction index is written,
// so that an error there cannot make offsets be given twice.
func (l *Log) store(w *write, update *producerstate.Update) error {
	what := "append to " + l.name
	mark, err := w.segment.Mark()
	if err != nil {
		return l.fail(what, err)
	}
	pos, err := w.segment.Write(w.bytes, w.maxTs)
	if err == nil {
		err = l.index(w, pos)
	}
	if err != nil {
		return l.undo(w, mark, what, err)
	}
	l.roomAgain()
	v := *l.view.Load()
	v.end, v.endPos = w.lastOffset+1, pos+int64(len(w.bytes))
	l.view.Store(&v)
	if update != nil {
		l.producers.Apply(update)
		for _, done := range update.Completed() {
			if err := l.completeTxn(w.segment, done); err != nil {
				return l.fail(what, err)
			}
		}
	}
	l.producers.SetEndOffset(v.end)
	l.refreshFirstUnstable()
	if v.end-l.RecoveryPoint() >= l.cfg.Load().FlushMessages {
		if err := l.flushHeld(v.end); err != nil {
			return l.fail(what, err)
		}
	}
	return nil
}

// index enters every batch of a write into the indexes.
func (l *Log) index(w *write, pos int64) error {
	for rest := w.bytes; len(rest) > 0; {
		h, _, more, err := record.NextEntry(rest)
		if err != nil {
			return err
		}
		if err := w.segment.Index(segment.BatchOf(h, pos)); err != nil {
			return err
		}
		pos += int64(h.SizeBytes)
		rest = more
	}
	return nil
}

func (l *Log) completeTxn(s *segment.Segment, done producerstate.CompletedTxn) error {
	if done.Aborted {
		if err := s.AppendAborted(abortedTxn(done, l.producers.LastStableOffset(done))); err != nil {
			return err
		}
	}
	return l.producers.CompleteTxn(done)
}

// AppendAsFollower appends whole batches as the leader stored them: only their order, checksums and frames are
// checked. Errors: *AppendError with ErrCorruptMessage, ErrOffsetsOutOfOrder or ErrUnexpectedOffset; errors of the
// disk as for [Log.AppendAsLeader].
func (l *Log) AppendAsFollower(batches []byte) (AppendInfo, error) {
	w, err := l.followerWrite(batches)
	if err != nil || len(batches) == 0 {
		return l.noInfo(), err
	}
	l.mu.Lock()
	defer l.unlock()
	if err := l.writable(); err != nil {
		return l.noInfo(), err
	}
	if end := l.EndOffset(); w.first.BaseOffset < end {
		return l.noInfo(), reject(ErrUnexpectedOffset, "Unexpected offset in append to %s. First offset %d is less "+
			"than the next offset %d. Last offset in append: %d. Log start offset = %d",
			l.name, w.first.BaseOffset, end, w.lastOffset, l.StartOffset())
	}
	if err := l.before(&w, l.cfg.Load()); err != nil {
		return l.noInfo(), err
	}
	update, err := l.followerUpdate(batches)
	if err != nil {
		return l.noInfo(), err
	}
	if err := l.store(&w, update); err != nil {
		return l.noInfo(), err
	}
	info := l.noInfo()
	info.BaseOffset, info.LastOffset = w.first.BaseOffset, w.lastOffset
	info.MaxTimestamp, info.LeaderEpoch, info.SizeBytes = w.maxTs, w.first.LeaderEpoch, len(batches)
	return info, nil
}

// followerWrite checks batches that a leader sent.
func (l *Log) followerWrite(batches []byte) (write, error) {
	w := write{bytes: batches, lastOffset: -1, maxTs: record.NoTimestamp, nowMs: l.now()}
	for rest := batches; len(rest) > 0; {
		h, entry, more, err := record.NextEntry(rest)
		if err != nil {
			return w, reject(ErrCorruptMessage, "Record is corrupt in topic partition %s: %v", l.name, err)
		}
		if !record.ValidCRC(entry) {
			return w, reject(ErrCorruptMessage, "Record is corrupt (stored crc = %d) in topic partition %s.", h.CRC, l.name)
		}
		if w.first.SizeBytes == 0 {
			w.first = h
		} else if h.LastOffset <= w.lastOffset {
			return w, reject(ErrOffsetsOutOfOrder, "Out of order offsets found in append to %s: %d after %d",
				l.name, h.LastOffset, w.lastOffset)
		}
		w.lastOffset, w.maxTs = h.LastOffset, max(w.maxTs, h.MaxTimestamp)
		rest = more
	}
	return w, nil
}

func (l *Log) followerUpdate(batches []byte) (*producerstate.Update, error) {
	update := l.producers.Begin(producerstate.Replication)
	for rest := batches; len(rest) > 0; {
		h, entry, more, err := record.NextEntry(rest)
		if err != nil {
			return nil, fmt.Errorf("append to %s: %w", l.name, err)
		}
		rest = more
		if !h.HasProducerID() {
			continue
		}
		b, err := producerBatch(h, entry)
		if err != nil {
			return nil, reject(ErrCorruptMessage, "%v", err)
		}
		if err := update.Add(b); err != nil {
			return nil, err
		}
	}
	return update, nil
}
