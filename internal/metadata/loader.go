package metadata

import "errors"

// Batch is the records of one batch of the metadata log, decoded.
type Batch struct {
	BaseOffset  int64
	LastOffset  int64
	Epoch       int32 // the quorum's leader epoch
	TimestampMs int64 // append time
	Records     []Record
}

// Loader replays batches in log order. Records of a metadata transaction count
// only when it ends, all at once; an aborted one leaves nothing.
type Loader struct {
	published *Image
	open      *Delta // on top of published, without the transaction in progress
	tx        *Delta // on top of open.Image(); nil outside of a transaction
	txStart   int64
}

// NewLoader returns a Loader that goes on after base, which holds no unfinished
// transaction.
func NewLoader(base *Image) *Loader {
	return &Loader{published: base, open: NewDelta(base)}
}

// Replay adds a batch. An error is a *[ReplayError]; the loader is of no use
// after it.
func (l *Loader) Replay(b Batch) error {
	for i, rec := range b.Records {
		if err := l.replay(rec, b.BaseOffset+int64(i)); err != nil {
			return err
		}
	}
	if l.tx == nil {
		l.open.Advance(b.LastOffset, b.Epoch, b.TimestampMs)
	}
	return nil
}

func (l *Loader) replay(rec Record, offset int64) error {
	switch rec.Body.(type) {
	case *BeginTransactionRecord:
		if l.tx != nil {
			return &ReplayError{rec, errors.New("a metadata transaction is in progress already")}
		}
		l.tx, l.txStart = NewDelta(l.open.Image()), offset
	case *EndTransactionRecord:
		if l.tx == nil {
			return &ReplayError{rec, errors.New("no metadata transaction is in progress")}
		}
		l.open.absorb(l.tx)
		l.tx = nil
	case *AbortTransactionRecord:
		if l.tx == nil {
			return &ReplayError{rec, errors.New("no metadata transaction is in progress")}
		}
		l.tx = nil
	default:
		if l.tx != nil {
			return l.tx.Replay(rec)
		}
		return l.open.Replay(rec)
	}
	return nil
}

// TransactionStart is the offset at which the metadata transaction in progress
// began, -1 when there is none.
func (l *Loader) TransactionStart() int64 {
	if l.tx == nil {
		return -1
	}
	return l.txStart
}

// Publish returns what came together since the last call, and begins anew on
// top of its image. It holds nothing of a transaction in progress.
func (l *Loader) Publish() *Delta {
	d := l.open
	l.published = d.Image()
	l.open = NewDelta(l.published)
	return d
}
