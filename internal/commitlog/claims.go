package commitlog

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/segment"
)

// passedOver says that the first n segments of a log opened for reading hold no record of a time ts (ms) or later.
type passedOver struct {
	ts int64
	n  int
}

// claim is what is known of a segment's largest timestamp.
type claim struct {
	ts     int64
	proven bool // compared with the log
}

// PassOver finds out how many segments at the start of the log hold no record of the time ts (ms) or later, for one
// look-up in a log opened with [OpenTolerant]: [Log.OffsetForTime] of that time begins behind them. Instead of checking
// each segment's indexes against its log, as a first look-up does, it reads the end of each time index, which is one
// file of three.
//
// A time index that claims less than the truth would hide records. So a claim is believed only when it is plain (see
// [segment.Segment.Claim]) and the claims rise from segment to segment, and the last segment passed over is checked all
// the same: when it holds such a record, so is the one before it. What goes unseen is one flipped bit in the last
// timestamp of an index that makes it fit between its neighbours, in a segment that ends with a record later than whole
// segments behind it. Errors are the disk's.
func (l *Log) PassOver(ts int64) error {
	segments := l.view.Load().segments
	sealed := segments[:len(segments)-1]
	claims, err := readClaims(segments)
	if err != nil {
		return err
	}
	n := countOlder(claims, ts)
	if !slices.IsSortedFunc(claims[:n], func(a, b claim) int { return int(max(min(a.ts-b.ts, 1), -1)) }) {
		if err := inParallel(n, func(i int) error { return prove(&claims[i], sealed[i]) }); err != nil {
			return err
		}
		n = countOlder(claims, ts)
	}
	for ; n > 0; n-- {
		if err := prove(&claims[n-1], sealed[n-1]); err != nil {
			return err
		}
		if claims[n-1].ts < ts {
			break
		}
	}
	l.passed.Store(&passedOver{ts, n})
	return nil
}

// readClaims reads what the time indexes of all segments but the last claim, and proves the claims that are not plain.
func readClaims(segments []*segment.Segment) ([]claim, error) {
	claims := make([]claim, len(segments)-1)
	err := inParallel(len(claims), func(i int) error {
		ts, plain, err := segments[i].Claim(segments[i+1].BaseOffset())
		if err != nil {
			return err
		}
		if claims[i].ts = ts; plain {
			return nil
		}
		return prove(&claims[i], segments[i])
	})
	return claims, err
}

func prove(c *claim, s *segment.Segment) (err error) {
	if !c.proven {
		c.ts, err = s.Largest()
		c.proven = err == nil
	}
	return err
}

// countOlder counts the claims before the first one that reaches ts.
func countOlder(claims []claim, ts int64) int {
	if i := slices.IndexFunc(claims, func(c claim) bool { return c.ts >= ts }); i >= 0 {
		return i
	}
	return len(claims)
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
