package commitlog

// AssignEpoch notes that this log's leader has a new epoch from the log end offset on, and makes that durable. It is
// called on becoming leader, whether or not anything is appended then.
func (l *Log) AssignEpoch(epoch int32) error {
	changed, err := l.noteEpoch(epoch)
	if err != nil || !changed {
		return err
	}
	return l.flushEpochsAside("assign leader epoch in ")
}

func (l *Log) noteEpoch(epoch int32) (changed bool, err error) {
	l.mu.Lock()
	defer l.unlock()
	if err := l.writable(); err != nil {
		return false, err
	}
	changed, err = l.epochs.Note(epoch, l.EndOffset())
	if err != nil {
		return changed, l.fail("assign leader epoch in "+l.name, err)
	}
	return changed, nil
}

// flushEpochsAside writes the leader epochs while appends go on.
func (l *Log) flushEpochsAside(what string) error {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	if l.closed.Load() {
		return nil
	}
	err := l.epochs.Flush()
	if IsFull(err) {
		l.mu.Lock()
		l.epochsLate = true
		l.mu.Unlock()
		return nil
	}
	if err != nil {
		return l.fail(what+l.name, err)
	}
	return nil
}

// LatestEpoch is the newest leader epoch known; false when none is.
func (l *Log) LatestEpoch() (int32, bool) {
	e, ok := l.epochs.Latest()
	return e.Epoch, ok
}

// StartEpoch is the leader epoch that ListOffsets gives beside the log start offset: the oldest one known, unless it
// began later than that; -1 then.
func (l *Log) StartEpoch() int32 {
	if e, ok := l.epochs.Earliest(); ok && e.StartOffset <= l.StartOffset() {
		return e.Epoch
	}
	return -1
}

// EpochEnd answers OffsetForLeaderEpoch: the largest leader epoch known that is not above epoch, and the offset at
// which the next one began, or the log end offset for the newest. (-1, -1): not known.
func (l *Log) EpochEnd(epoch int32) (int32, int64) {
	return l.epochs.EndOffsetFor(epoch, l.EndOffset())
}

// UpdateHighWatermark tells the log how far its records are replicated. Retention stays below it, and transactions
// that ended above it still hold back the last stable offset.
func (l *Log) UpdateHighWatermark(hw int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.highWatermark.Store(hw)
	l.producers.UpdateHighWatermark(hw)
	l.refreshFirstUnstable()
}

// LastStableOffset is the offset below which every transaction is decided, at most the high watermark hw.
func (l *Log) LastStableOffset(hw int64) int64 {
	if first := l.firstUnstable.Load(); first >= 0 && first < hw {
		return first
	}
	return hw
}

// refreshFirstUnstable takes the first unstable offset over from the producer state. The caller holds mu.
func (l *Log) refreshFirstUnstable() {
	first, ok := l.producers.FirstUnstableOffset()
	if !ok {
		l.firstUnstable.Store(-1)
		return
	}
	l.firstUnstable.Store(max(first, l.StartOffset()))
}
