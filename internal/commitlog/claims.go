package commitlog

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// passedOver says that the first n segments of a log opened for reading hold no record of a time ts (ms) or later.
type passedOver struct {
	ts int64
	n  int
}

// PassOver finds out how many segments at the start of the log hold no record of the time ts (ms) or later, for one
// look-up in a log opened with [OpenTolerant]: [Log.OffsetForTime] of that time begins behind them. Instead of checking
// each segment's indexes against its log, as a first look-up does, it believes a time index whose last entry the last
// batch of the log confirms (see [segment.Segment.Claim]), and asks for the truth where that cannot be. A time index
// that claims more than the truth only has the search begin early. Errors are the disk's.
func (l *Log) PassOver(ts int64) error {
	segments := l.view.Load().segments
	n := atomic.Int64{}
	n.Store(int64(len(segments) - 1))
	err := inParallel(len(segments)-1, func(i int) error {
		if int64(i) >= n.Load() {
			return nil
		}
		largest, plain, err := segments[i].Claim(segments[i+1].BaseOffset(), ts)
		if err == nil && !plain {
			if largest, err = segments[i].Largest(); err == nil {
				err = segments[i].Rest()
			}
		}
		if err != nil || largest < ts {
			return err
		}
		for now := n.Load(); int64(i) < now && !n.CompareAndSwap(now, int64(i)); now = n.Load() { //nolint:revive // it does
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.passed.Store(&passedOver{ts, int(n.Load())})
	return nil
}

// inParallel calls a function for 0 … n-1, several at once, until one fails.
func inParallel(n int, each func(i int) error) error { return inParallelBy(maximaReaders, n, each) }

// inParallelBy is inParallel with so many at once at most.
func inParallelBy(most, n int, each func(i int) error) error {
	if n == 1 {
		return each(0)
	}
	var group errgroup.Group
	var next atomic.Int64
	for range min(n, most) {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := each(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
