package commitlog

// FirstBaseOffset is the base offset of the first segment: without a checkpointed log start offset, the log starts
// there.
func (l *Log) FirstBaseOffset() int64 { return l.view.Load().segments[0].BaseOffset() }

// ActiveBaseOffset is the base offset of the segment that is appended to.
func (l *Log) ActiveBaseOffset() int64 { return l.view.Load().active().BaseOffset() }
