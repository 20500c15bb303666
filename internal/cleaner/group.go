package cleaner

import (
	"math"

	"tidemark/internal/segment"
)

// limits bound the segments that are put together, by what they have before the round.
type limits struct {
	logBytes   int64 // segment.bytes
	indexBytes int64 // segment.index.bytes
}

// group counts the first of the segments that go into one: as many as fit, one at least. end is the first offset that
// the round leaves alone: no record of the last segment reaches it.
func (l limits) group(segments []*segment.Segment, end int64) (int, error) {
	var sum sums
	if err := sum.add(segments[0]); err != nil {
		return 0, err
	}
	n := 1
	for ; n < len(segments); n++ {
		before := sum
		if err := sum.add(segments[n]); err != nil {
			return 0, err
		}
		next := end
		if n+1 < len(segments) {
			next = segments[n+1].BaseOffset()
		}
		// An empty segment has no offset that would have to be told from the base of the group.
		far := sum.log > before.log && next-1-segments[0].BaseOffset() > math.MaxInt32
		if sum.log > l.logBytes || sum.offsets > l.indexBytes || sum.times > l.indexBytes || far {
			break
		}
	}
	return n, nil
}

// sums are the sizes of segments in bytes.
type sums struct{ log, offsets, times int64 }

func (s *sums) add(one *segment.Segment) error {
	size, err := one.Size()
	if err != nil {
		return err
	}
	offsets, times, err := one.IndexSizes()
	if err != nil {
		return err
	}
	s.log, s.offsets, s.times = s.log+size, s.offsets+offsets, s.times+times
	return nil
}
