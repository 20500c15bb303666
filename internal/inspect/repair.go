package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

// RepairOptions say how [Repair] works.
type RepairOptions struct {
	Settings *Settings // required
	// Apply makes the changes; without it they are only told.
	Apply bool
	// Report is called with each change, before it is made; may be nil.
	Report func(Action)
	// Left is called with what is still found afterwards, when Apply is set; may be nil.
	Left func(Finding)
	Jobs int // as of VerifyOptions
	// Progress is called with numbers of bytes checked, from several goroutines, first before and with Apply again after
	// the changes; may be nil.
	Progress func(bytes int64)
}

// Action is one change of a repair.
type Action struct {
	Type      string `json:"type"` // "action"
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	File      string `json:"file"`
	What      string `json:"what"`
	// Kept is the file in which the old bytes stay, "" when nothing is lost.
	Kept string `json:"kept,omitempty"`
	// WriteBytes is how much is written.
	WriteBytes int64 `json:"writeBytes"`
	Applied    bool  `json:"applied"`
}

// RepairSummary is what came of a repair.
type RepairSummary struct {
	Type    string `json:"type"` // "summary"
	Applied bool   `json:"applied"`
	Actions int    `json:"actions"`
	Found   int64  `json:"found"` // findings before
	Left    int64  `json:"left"`  // errors and warnings that no action answers, or that are still found after applying
}

// ErrInUse is wrapped by the error of a repair of a directory that a broker has in use.
var ErrInUse = errors.New("the log directory is in use")

// SpaceError is a repair that does not fit on the disk.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
}

// Error tells the numbers.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("%s: the repair writes %d bytes, the disk has %d free; nothing was changed", e.Dir, e.Need, e.Free)
}

// spareBytes stay free on the disk.
const spareBytes = 16 << 20

// Repair mends what [Verify] finds, as far as the bytes allow: it restores a flipped bit where the checksum proves it,
// takes bytes that are no batch out of logs (keeping them in cut-* files), rebuilds indexes and transaction indexes as
// Kafka would, and writes producer snapshots and leader epochs anew from the batches. What it cannot improve it leaves
// alone. Every step leaves a directory that a broker can open, also when the next one does not happen.
//
// Errors: one that wraps ErrInUse, *SpaceError, both before anything was changed; those of the disk.
func Repair(ctx context.Context, fsys vfs.FS, targets []Target, o RepairOptions) (*RepairSummary, error) {
	r := &repairer{fs: fsys, o: o, summary: RepairSummary{Type: "summary", Applied: o.Apply}}
	locks, err := r.lock(targets)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, l := range locks {
			l.release(fsys, r.summary.Actions == 0)
		}
	}()
	for pass := 0; ; pass++ {
		plans, err := r.plan(ctx, targets, pass == 0)
		if err != nil {
			return nil, err
		}
		steps := 0
		for _, p := range plans {
			steps += len(p.steps)
		}
		if pass > 0 && (steps == 0 || pass == maxPasses) {
			r.tellLeft()
			return &r.summary, nil
		}
		if err := r.checkSpace(plans); err != nil {
			return nil, err
		}
		for _, p := range plans {
			if err := r.runAll(p); err != nil {
				return nil, fmt.Errorf("repair %s: %w", p.target.Dir, err)
			}
		}
		if !o.Apply {
			return &r.summary, nil
		}
	}
}

// maxPasses is how often it is looked for more to repair: what is mended may bring to light what it hid, as behind
// bytes that are no batch a wrong offset.
const maxPasses = 4

type repairer struct {
	fs      vfs.FS
	o       RepairOptions
	summary RepairSummary
	found   []Finding // by the last look
}

// heldLock is the lock of a log directory.
type heldLock struct {
	io.Closer
	name string
	made bool // the file was not there before
}

// release gives the lock back. When nothing was changed no file is left behind either.
func (l heldLock) release(fsys vfs.FS, unchanged bool) {
	if l.made && unchanged {
		_ = fsys.Remove(l.name) // it is empty, and harmless where it stays
	}
	_ = l.Close() // nothing was written to it
}

// step is one change: what is told of it, and what makes it.
type step struct {
	action Action
	do     func(fsys vfs.FS) error
}

// lock refuses directories in use; those that are to be changed it locks against brokers.
func (r *repairer) lock(targets []Target) (locks []heldLock, err error) {
	seen := make(map[string]bool)
	for _, t := range targets {
		if t.LogDir == "" || seen[t.LogDir] {
			continue
		}
		seen[t.LogDir] = true
		held, pid, err := InUse(r.fs, t)
		if err == nil && held && r.o.Apply {
			err = fmt.Errorf("%s: %w (%s is held by process %d); stop the broker first", t.LogDir, ErrInUse, lockFile, pid)
		}
		if err == nil && r.o.Apply {
			l := heldLock{name: filepath.Join(t.LogDir, lockFile)}
			_, statErr := r.fs.Stat(l.name)
			l.made = isAbsent(statErr)
			if l.Closer, err = r.fs.Lock(l.name); err == nil {
				locks = append(locks, l)
			} else if errors.Is(err, vfs.ErrLocked) {
				err = fmt.Errorf("%s: %w: %w", t.LogDir, ErrInUse, err)
			}
		}
		if err != nil {
			for _, l := range locks {
				l.release(r.fs, true)
			}
			return nil, err
		}
	}
	return locks, nil
}

// plan finds what is wrong and what to do about it, without changing anything.
func (r *repairer) plan(ctx context.Context, targets []Target, first bool) ([]*partitionPlan, error) {
	r.found = r.found[:0]
	byDir, reports := make(map[string][]Finding), make(map[string][]segmentReport)
	ends := make(checkpoint.Offsets)
	_, err := Verify(ctx, r.fs, targets, VerifyOptions{
		Progress: r.o.Progress,
		Settings: r.o.Settings, Jobs: r.o.Jobs, locked: r.o.Apply,
		keep: func(t Target, all []segmentReport) { reports[t.Dir] = all },
		ends: func(t Target, end int64) { ends[t.key()] = end },
		Report: func(f Finding) {
			if first {
				r.summary.Found++
			}
			r.found = append(r.found, f)
			byDir[filepath.Dir(f.File)] = append(byDir[filepath.Dir(f.File)], f)
		},
	})
	if err != nil {
		return nil, err
	}
	plans, err := r.planDirs(targets, byDir, ends)
	if err != nil {
		return nil, fmt.Errorf("plan the repair of checkpoints: %w", err)
	}
	for _, t := range targets {
		found := byDir[filepath.Clean(t.Dir)]
		if len(found) == 0 {
			continue
		}
		p := newPartitionPlan(r.fs, t, r.o.Settings, found, reports[t.Dir])
		if err := p.make(); err != nil {
			return nil, fmt.Errorf("plan the repair of %s: %w", t.Dir, err)
		}
		plans = append(plans, p)
	}
	for _, p := range plans {
		if !r.o.Apply {
			r.summary.Left += p.unanswered()
		}
	}
	return plans, nil
}

// checkSpace compares what will be written with what the disks have free.
func (r *repairer) checkSpace(plans []*partitionPlan) error {
	if !r.o.Apply {
		return nil
	}
	need := make(map[string]int64)
	for _, p := range plans {
		dir := p.target.LogDir
		if dir == "" {
			dir = p.target.Dir
		}
		for _, s := range p.steps {
			need[dir] += s.action.WriteBytes
		}
	}
	for dir, bytes := range need {
		free, known, err := vfs.FreeBytes(r.fs, dir)
		if err != nil {
			return err
		}
		if known && bytes > 0 && free < bytes+spareBytes {
			return &SpaceError{Dir: dir, Need: bytes, Free: free}
		}
	}
	return nil
}

func (r *repairer) runAll(p *partitionPlan) error {
	for _, s := range p.steps {
		if err := r.run(p, s); err != nil {
			return err
		}
	}
	return nil
}

func (r *repairer) run(p *partitionPlan, s step) error {
	s.action.Type, s.action.Topic, s.action.Partition = "action", p.target.Topic, p.target.Partition
	s.action.Applied = r.o.Apply
	r.summary.Actions++
	if r.o.Report != nil {
		r.o.Report(s.action)
	}
	if !r.o.Apply {
		return nil
	}
	return s.do(r.fs)
}

// tellLeft tells what is left after the repair. Notes are not counted.
func (r *repairer) tellLeft() {
	for _, f := range r.found {
		if f.Severity != Note {
			r.summary.Left++
		}
		if r.o.Left != nil {
			r.o.Left(f)
		}
	}
}
