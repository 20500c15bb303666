package segment

import (
	"sync"

	"tidemark/record"
)

var scanners = sync.Pool{New: func() any { return new(record.Scanner) }}

// scanner walks batch headers of a part of the log and counts them. close gives its buffer back; batches that it
// returned before are no longer valid then.
type scanner struct {
	*record.Scanner
	h       record.Header // of the last batch met
	batches int
	end     int64
}

// scan starts before the batch at pos; nothing at or behind end is looked at.
func (s *Segment) scan(pos, end int64) scanner {
	f := s.files()
	sc := scanners.Get().(*record.Scanner)
	sc.File = f.log.Name()
	sc.Reset(f.log, pos, end)
	return scanner{Scanner: sc, end: end}
}

func (sc *scanner) close() {
	if sc.Scanner != nil {
		sc.Reset(nil, 0, 0)
		scanners.Put(sc.Scanner)
		sc.Scanner = nil
	}
}

// next goes to the next batch. It is false at the end, and at the first bytes that are no batch.
func (sc *scanner) next() bool {
	if !sc.Next() {
		return false
	}
	sc.h = sc.Header()
	sc.batches++
	return true
}

// nextOffset is the offset after the last batch met, or the one given.
func (sc *scanner) nextOffset(base int64) int64 {
	if sc.batches == 0 {
		return base
	}
	return sc.h.NextOffset()
}
