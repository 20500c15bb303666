package inspect

import (
	"fmt"
	"path/filepath"
	"slices"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/vfs"
)

// partitionPlan is the repair of one partition.
type partitionPlan struct {
	fs       vfs.FS
	target   Target
	cfg      commitlog.Config
	found    []Finding
	answered []bool // by finding: a step deals with it
	reports  []segmentReport
	folder   *folder
	steps    []step
	settings *Settings
	epochs   bool // leader epochs are restored in the batches: the checkpoint is right
}

func newPartitionPlan(fsys vfs.FS, t Target, s *Settings, found []Finding, reports []segmentReport) *partitionPlan {
	p := &partitionPlan{fs: fsys, target: t, found: found, answered: make([]bool, len(found)), reports: reports,
		settings: s}
	cfg, set := s.Topic(t)
	if _, known := set["index.interval.bytes"]; !known {
		whole := slices.DeleteFunc(slices.Clone(reports), func(r segmentReport) bool { return p.has(r.base, IndexSparse) })
		cfg.IndexIntervalBytes = int32(guessInterval(whole, int64(cfg.IndexIntervalBytes)))
	}
	p.cfg = cfg
	return p
}

// unanswered counts the errors and warnings that no step deals with.
func (p *partitionPlan) unanswered() (n int64) {
	for i, f := range p.found {
		if f.Severity != Note && !p.answered[i] {
			n++
		}
	}
	return n
}

// answer marks the findings that a function picks.
func (p *partitionPlan) answer(pick func(f Finding) bool) {
	for i, f := range p.found {
		p.answered[i] = p.answered[i] || pick(f)
	}
}

// has reports whether something of the kinds was found; in a segment, unless base is -1.
func (p *partitionPlan) has(base int64, kinds ...Kind) bool {
	return slices.ContainsFunc(p.found, func(f Finding) bool {
		return slices.Contains(kinds, f.Kind) && (base < 0 || f.base == base)
	})
}

// compacted reports whether the cleaner has taken records out of the log.
func (p *partitionPlan) compacted() bool {
	return slices.ContainsFunc(p.reports, func(r segmentReport) bool { return r.compacted })
}

func (p *partitionPlan) make() (err error) {
	if p.folder, err = readFolder(p.fs, p.target.Dir); err != nil {
		return err
	}
	for i := range p.reports {
		if err := p.planSegment(&p.reports[i], i); err != nil {
			return fmt.Errorf("segment %020d: %w", p.reports[i].base, err)
		}
	}
	p.planOrphans()
	p.planSnapshots()
	p.planEpochs()
	p.planTopicID()
	p.planSeals()
	return nil
}

// planSeals removes, before anything else is done, what vouches for segments as they were.
func (p *partitionPlan) planSeals() {
	if len(p.steps) == 0 || !slices.Contains(p.folder.others, commitlog.SealsFile) {
		return
	}
	name := p.path(commitlog.SealsFile)
	p.steps = slices.Insert(p.steps, 0, step{
		action: Action{File: name, What: "remove it: a broker makes it anew"},
		do: func(fsys vfs.FS) error {
			if err := fsys.Remove(name); err != nil && !isAbsent(err) {
				return err
			}
			return fsys.SyncDir(p.target.Dir)
		},
	})
}

func (p *partitionPlan) path(name string) string { return filepath.Join(p.target.Dir, name) }

// planOrphans removes indexes whose log is missing, as a start does.
func (p *partitionPlan) planOrphans() {
	for _, f := range p.found {
		if f.Kind != Orphan {
			continue
		}
		p.steps = append(p.steps, step{
			action: Action{File: f.File, What: "remove the index whose log is missing"},
			do: func(fsys vfs.FS) error {
				if err := fsys.Remove(f.File); err != nil && !isAbsent(err) {
					return err
				}
				return fsys.SyncDir(p.target.Dir)
			},
		})
	}
	p.answer(func(f Finding) bool { return f.Kind == Orphan })
}

// planTopicID writes partition.metadata anew where the metadata log knows the topic's id.
func (p *partitionPlan) planTopicID() {
	id, known := p.settings.topicID(p.target)
	if !known || !p.has(-1, MetadataWrong) {
		return
	}
	name := p.path(checkpoint.PartitionMetadataFile)
	p.steps = append(p.steps, step{
		action: Action{File: name, What: "write it anew with the topic's id in the metadata log", WriteBytes: 43},
		do:     func(fsys vfs.FS) error { return checkpoint.WritePartitionMetadata(fsys, name, id) },
	})
	p.answer(func(f Finding) bool { return f.Kind == MetadataWrong })
}

// planSnapshots writes producer snapshots anew from the log, where a known state to begin with is there.
func (p *partitionPlan) planSnapshots() {
	var needed []int64
	for _, f := range p.found {
		if f.Kind == SnapshotMissing || f.Kind == SnapshotCorrupt || f.Kind == SnapshotStale {
			needed = append(needed, f.Offset)
		}
	}
	if len(needed) == 0 || len(p.folder.logs) == 0 || p.target.Segments != nil {
		return
	}
	slices.Sort(needed)
	start, known := p.goodSnapshot(needed)
	if !known {
		return
	}
	for _, at := range needed {
		p.steps = append(p.steps, step{
			action: Action{
				File: p.path(producerstate.SnapshotName(at)), WriteBytes: 64 << 10,
				What: fmt.Sprintf("write the producer snapshot anew from the log, offsets %d on", start),
			},
			do: func(fsys vfs.FS) error { return writeSnapshot(fsys, p.target, start, at) },
		})
	}
	p.answer(func(f Finding) bool {
		return f.Kind == SnapshotMissing || f.Kind == SnapshotCorrupt || f.Kind == SnapshotStale
	})
}

// goodSnapshot is the newest usable snapshot at the start of a segment below those needed, or the start of a log that
// begins at 0.
func (p *partitionPlan) goodSnapshot(needed []int64) (at int64, ok bool) {
	for _, base := range slices.Backward(p.folder.logs) {
		if base >= needed[0] || !slices.Contains(p.folder.snapshots, base) {
			continue
		}
		if _, err := readSnapshot(p.fs, p.target.Dir, base); err == nil {
			return base, true
		}
	}
	return 0, p.folder.logs[0] == 0
}

// guessInterval finds the index interval that the indexes of whole segments were made with, rounded to a number that
// somebody may have configured; otherwise where they do not tell.
func guessInterval(reports []segmentReport, otherwise int64) int64 {
	least, most := int64(0), int64(0)
	for i := range reports {
		r := &reports[i]
		if r.damaged || r.leastStep == 0 || r.told(IndexZeros, IndexEntry, IndexTorn, IndexMissing) {
			continue
		}
		least = max(least, r.longestRun)
		if most == 0 || r.leastStep-1 < most {
			most = r.leastStep - 1
		}
	}
	switch {
	case most == 0, otherwise >= least && otherwise <= most:
		return otherwise
	case least > most:
		return most
	}
	for step := int64(1 << 30); step > 1; step /= 2 {
		if n := most / step * step; n >= least && step >= 1024 {
			return n
		}
	}
	for _, step := range []int64{1000, 500, 100, 50, 10} {
		if n := most / step * step; n >= least {
			return n
		}
	}
	return most
}

// cutName is the name of the file that keeps bytes of a segment from a position on.
func cutName(base, pos int64) string {
	return fmt.Sprintf("cut-%s.%d", segment.Name(base, segment.LogSuffix), pos)
}
