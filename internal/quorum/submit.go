package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tidemark/internal/auth"
	"tidemark/internal/commitlog"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/record"
)

// Door is where commands are handed in.
type Door interface {
	// Submit decides a command for principal and returns its result once the
	// image with the change is published.
	Submit(ctx context.Context, cmd controller.Command, principal auth.Principal) (any, error)
}

// Ask submits a command whose result is an R, as the command's documentation
// names it.
func Ask[R any](ctx context.Context, door Door, cmd controller.Command, principal auth.Principal) (R, error) {
	result, err := door.Submit(ctx, cmd, principal)
	if err != nil {
		var zero R
		return zero, err
	}
	return result.(R), nil
}

// Submit implements [Door]. It blocks while other commands are decided, and
// while the log is synced. The error is a *[controller.Error] when the command
// was refused, wraps ErrFailed or ErrClosed, wraps commitlog.ErrDiskFull when
// it may succeed later, or is that of ctx: the command was then not looked at.
// A command that was begun is carried through.
//
// The principal is not judged here: handlers ask the authorizer. It goes along
// for the day when the controller is another node.
func (q *Quorum) Submit(ctx context.Context, cmd controller.Command, _ auth.Principal) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-q.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { q.turn <- struct{}{} }()
	if q.failure != nil {
		return nil, q.failure
	}
	d, err := q.decide(cmd)
	if err != nil {
		return nil, err
	}
	if len(d.Records) == 0 {
		return d.Result, nil
	}
	end := q.log.EndOffset()
	err = q.commit(d)
	var replay *metadata.ReplayError
	switch {
	case err == nil:
		return d.Result, nil
	case errors.As(err, &replay) && q.log.EndOffset() == end:
		q.loader = metadata.NewLoader(q.Image())
		return nil, fmt.Errorf("the records of a %T do not fit the metadata: %w", cmd, err)
	case errors.Is(err, commitlog.ErrDiskFull):
		if reload := q.reload(); reload != nil {
			q.failure = fmt.Errorf("%w: %w", ErrFailed, errors.Join(err, reload))
			return nil, q.failure
		}
		return nil, fmt.Errorf("the metadata cannot be changed now: %w", err)
	default:
		q.failure = fmt.Errorf("%w: %w", ErrFailed, err)
		return nil, q.failure
	}
}

// reload forgets what was replayed and did not get into the log, and publishes what did of a decision of several
// batches.
func (q *Quorum) reload() error {
	before := q.Image()
	q.loader = metadata.NewLoader(before)
	if q.log.EndOffset() <= before.Offset()+1 {
		return nil
	}
	if err := q.replayLog(before.Offset() + 1); err != nil {
		return err
	}
	q.publish(q.loader.Publish())
	return nil
}

func (q *Quorum) decide(cmd controller.Command) (controller.Decision, error) {
	return q.o.Controller.Decide(
		controller.State{Image: q.Image(), NextOffset: q.log.EndOffset(), Random: q.o.Random}, cmd)
}

// commit appends a decision and publishes what it leads to.
func (q *Quorum) commit(d controller.Decision) error {
	if err := q.append(d); err != nil {
		return err
	}
	q.publish(q.loader.Publish())
	return nil
}

// append replays the records of a decision, which nobody sees yet, writes them
// and makes them durable.
func (q *Quorum) append(d controller.Decision) error {
	for len(d.Records) > 0 {
		batch, n, err := q.encode(d)
		if err != nil {
			return err
		}
		if err := q.appendBatch(batch); err != nil {
			return err
		}
		d.Records = d.Records[n:]
	}
	return nil
}

// encode makes one batch of the first records of a decision and says of how
// many.
func (q *Quorum) encode(d controller.Decision) (record.Batch, int, error) {
	b := record.NewBuilder(q.batchOptions())
	now := q.o.Clock().UnixMilli()
	var value []byte
	for i, rec := range d.Records {
		var err error
		if value, err = rec.AppendTo(value[:0]); err != nil {
			return nil, 0, err
		}
		if b.SizeBytes()+len(value)+recordOverhead > maxBatchBytes || i == controller.MaxRecords {
			if d.Atomic || i == 0 {
				return nil, 0, fmt.Errorf("%d records do not fit into one batch", len(d.Records))
			}
			break
		}
		if err := b.Append(now, nil, value, nil); err != nil {
			return nil, 0, err
		}
	}
	return b.Bytes(), int(b.Count()), nil
}

func (q *Quorum) batchOptions() record.BuilderOptions {
	o := record.DefaultBuilderOptions()
	o.BaseOffset, o.LeaderEpoch = q.log.EndOffset(), q.epoch
	return o
}

// appendLeaderChange writes the batch that begins an epoch. Voters that are
// known from a snapshot alone go into the log with it.
func (q *Quorum) appendLeaderChange() error {
	self := []record.Voter{{ID: q.o.NodeID}}
	messages := []record.ControlMessage{record.LeaderChange{LeaderID: q.o.NodeID, Voters: self, GrantingVoters: self}}
	if q.log.EndOffset() == 0 {
		messages = append(messages, q.voters.messages()...)
	}
	batch, err := record.ControlBatch(q.batchOptions(), q.o.Clock().UnixMilli(), messages...)
	if err != nil {
		return err
	}
	return q.appendBatch(batch)
}

// appendBatch replays one batch, by the code that replays the log at the start,
// then appends it and makes it durable: what does not replay never gets into the
// log, and no batch follows one that is not on the disk (see checkInside).
func (q *Quorum) appendBatch(batch record.Batch) error {
	h := batch.Header()
	if err := q.replayBatch(h, batch); err != nil {
		return err
	}
	info, err := q.log.AppendAsLeader(batch, commitlog.AppendOptions{LeaderEpoch: q.epoch, Origin: commitlog.OriginRaft})
	if err != nil {
		return err
	}
	if info.BaseOffset != h.BaseOffset {
		return fmt.Errorf("batch for offset %d was appended at %d", h.BaseOffset, info.BaseOffset)
	}
	q.snapshots.bytesSince += int64(len(batch))
	if err := q.log.Flush(); err != nil {
		return err
	}
	q.log.UpdateHighWatermark(q.log.EndOffset())
	return nil
}

type subscriber struct {
	f func(*metadata.Delta, *metadata.Image)
}

// Subscribe calls f with all there is, as a change from nothing, and then with
// every change, in order and before the command that made it is answered. f runs
// on the goroutine of the command: it must be quick and must not call Submit.
// After cancel returned, f is not called any more.
func (q *Quorum) Subscribe(f func(d *metadata.Delta, i *metadata.Image)) (cancel func()) {
	<-q.turn
	defer func() { q.turn <- struct{}{} }()
	s := &subscriber{f}
	q.subscribers = append(q.subscribers, s)
	f(metadata.FullDelta(q.Image()), q.Image())
	return func() {
		<-q.turn
		defer func() { q.turn <- struct{}{} }()
		q.subscribers = slices.DeleteFunc(q.subscribers, func(o *subscriber) bool { return o == s })
	}
}

func (q *Quorum) publish(d *metadata.Delta) {
	image := d.Image()
	q.image.Store(image)
	for _, s := range q.subscribers {
		s.f(d, image)
	}
}

// Err is why commands are refused: nil, or an error that wraps ErrFailed or
// ErrClosed. It waits for the command in progress.
func (q *Quorum) Err() error {
	<-q.turn
	defer func() { q.turn <- struct{}{} }()
	return q.failure
}

// IsFailure reports whether err says that the quorum can do no more.
func IsFailure(err error) bool { return errors.Is(err, ErrFailed) || errors.Is(err, ErrClosed) }
