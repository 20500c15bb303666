package segment

import (
	"math"
	"slices"
)

// maxSpans bounds the parts of a segment that are remembered as proven.
const maxSpans = 64

// span is a part [from, to) of the log whose batches were read and have the right checksums, or are known as damage.
type span struct{ from, to int64 }

// Prove reads the batches in [pos, upTo) that were not read in this run yet and verifies their checksums; what fails is
// noted as damage. pos is the start of a batch, and no batch reaches over end. It returns upTo, or where the first
// damage before it starts. Errors are the disk's.
func (s *Segment) Prove(pos, upTo, end int64) (int64, error) {
	if !s.proven.Load() {
		stop, err := s.prove(pos, upTo, end)
		if err != nil {
			return pos, err
		}
		upTo = min(upTo, stop)
	}
	return s.damaged().from(pos, upTo), nil
}

// prove returns where the log ends in damage that is not noted; upTo when it does not.
func (s *Segment) prove(pos, upTo, end int64) (int64, error) {
	start := s.provenTo(pos)
	if start >= upTo {
		return upTo, nil
	}
	sc := s.scanWith(start, end, walk{checksums: true, order: true})
	defer sc.close()
	for sc.Scanner.End() < upTo && sc.next() { //nolint:revive // next does it
	}
	if err := notDamage(sc.Err()); err != nil {
		return start, err
	}
	if sc.Err() == nil {
		s.noteProven(start, sc.End())
		return upTo, nil
	}
	s.noteProven(start, sc.stopPos)
	return max(sc.stopPos, pos), nil
}

// provenTo is up to where the log is proven from pos on.
func (s *Segment) provenTo(pos int64) int64 {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	for _, one := range s.spans {
		if one.from <= pos && pos < one.to {
			return one.to
		}
	}
	return pos
}

// intact verifies the checksum of the scanner's batch, unless that is known.
func (s *Segment) intact(sc *scanner) (bool, error) {
	if s.proven.Load() || s.provenTo(sc.Pos()) >= sc.Scanner.End() {
		return true, nil
	}
	return sc.ValidCRC()
}

// noteProven remembers a part as proven.
func (s *Segment) noteProven(from, to int64) {
	if from >= to {
		return
	}
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	all := append(slices.Clone(s.spans), span{from, to})
	slices.SortFunc(all, func(a, b span) int { return int(max(min(a.from-b.from, 1), -1)) })
	merged := all[:1]
	for _, one := range all[1:] {
		if last := &merged[len(merged)-1]; one.from <= last.to {
			last.to = max(last.to, one.to)
		} else {
			merged = append(merged, one)
		}
	}
	for len(merged) > maxSpans {
		least := 0
		for i, one := range merged {
			if one.to-one.from < merged[least].to-merged[least].from {
				least = i
			}
		}
		merged = slices.Delete(merged, least, least+1)
	}
	s.spans = merged
	s.refreshProvenLocked()
}

// refreshProvenLocked sets proven when the whole log is. What is appended from here on was verified before.
func (s *Segment) refreshProvenLocked() {
	if len(s.spans) != 1 || s.spans[0].from != 0 {
		return
	}
	to := s.spans[0].to
	if to == math.MaxInt64 || !s.growing.Load() && s.size.Load() >= 0 && to >= s.size.Load() {
		s.proven.Store(true)
	}
}

// provenFrom says that what will be written from pos on needs no proof.
func (s *Segment) provenFrom(pos int64) { s.noteProven(pos, math.MaxInt64) }

// Proven reports whether every batch of the segment was read and its checksum found right, or noted as damage.
func (s *Segment) Proven() bool { return s.proven.Load() }
