package inspect

import (
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/commitlog"
	"tidemark/vfs"
)

// VerifyOptions say how [Verify] works.
type VerifyOptions struct {
	Settings *Settings // required
	Jobs     int       // segments checked side by side; 0: one for each processor
	// Report is called with each finding, one call at a time, partition by partition in the order of the targets.
	Report func(Finding)
	// Progress is called with numbers of bytes checked, from several goroutines; may be nil.
	Progress func(bytes int64)
	// Unreadable is called, in turn with Report, with the disk's error for each file or folder that cannot be read; the
	// others are checked all the same. nil: the first such error ends all.
	Unreadable func(t Target, err error)

	// keep gets what the segments of a partition told, where something was found.
	keep func(t Target, reports []segmentReport)
	// ends gets where the log of each partition ends that was checked as a whole.
	ends func(t Target, end int64)
	// locked says that the locks of the log directories are the caller's own: nobody else is at work.
	locked bool
}

// Summary is what [Verify] looked at.
type Summary struct {
	Type       string             `json:"type"` // "summary"
	Partitions int                `json:"partitions"`
	Segments   int                `json:"segments"`
	Batches    int64              `json:"batches"`
	Records    int64              `json:"records"`
	Bytes      int64              `json:"bytes"`
	Findings   map[Severity]int64 `json:"findings"`
	InUse      bool               `json:"inUse"`      // a process held the lock of a log directory
	Unreadable int                `json:"unreadable"` // files and folders that could not be read
	// Unproven is how many segments that take no more appends have no seal: a broker of this program reads such a segment
	// once, in the background or when it is first used. Kafka makes no seals.
	Unproven int `json:"unproven"`
}

// Found is the number of findings of all kinds.
func (s *Summary) Found() (n int64) {
	for _, count := range s.Findings {
		n += count
	}
	return n
}

// Verify checks every batch, index and small file of the targets, and the log directories that were named as a whole.
// It reads only. Memory does not grow with the size of the logs. Errors are the disk's.
func Verify(ctx context.Context, fsys vfs.FS, targets []Target, o VerifyOptions) (*Summary, error) {
	v := &verifier{fs: fsys, o: o, dirs: make(map[string]*dirState),
		summary: Summary{Type: "summary", Findings: map[Severity]int64{}}}
	jobs := o.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	v.group, v.ctx = errgroup.WithContext(ctx)
	v.group.SetLimit(jobs)
	ordered := make(chan *partitionCheck, 4*jobs) // bounds the partitions that wait for their turn
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		v.collect(ordered)
	}()
	err := v.plan(targets, ordered)
	close(ordered)
	if groupErr := v.group.Wait(); err == nil || groupErr != nil {
		err = groupErr
	}
	<-collected
	return &v.summary, err
}

type verifier struct {
	fs      vfs.FS
	o       VerifyOptions
	ctx     context.Context
	group   *errgroup.Group
	dirs    map[string]*dirState
	summary Summary
}

// partitionCheck is one partition whose segments are being checked.
type partitionCheck struct {
	target     Target
	folder     *folderCheck
	before     []Finding // of the log directory
	dir        *dirState
	reports    []segmentReport
	left       chan struct{} // gets a token for each segment done
	compacting bool
	interval   int64
	failed     []error // of the segments; of the folder alone when there is no folder
}

// closed tells whether the clean marker says that the partition was closed.
//
// Kafka: 4.4 does not close its metadata log when it stops in good order; its indexes keep their full size.
func (p *partitionCheck) closed() bool {
	return p.dir != nil && p.dir.clean && !p.target.isMetadata()
}

// plan starts the checks of all segments, in order.
func (v *verifier) plan(targets []Target, ordered chan<- *partitionCheck) error {
	for _, t := range targets {
		p, err := v.begin(t)
		if err != nil {
			if v.o.Unreadable == nil || v.ctx.Err() != nil {
				return err
			}
			p = &partitionCheck{target: t, failed: []error{err}}
		}
		if p == nil {
			continue
		}
		wanted := v.segments(p)
		select {
		case ordered <- p:
		case <-v.ctx.Done():
			return v.ctx.Err()
		}
		v.start(p, wanted)
	}
	return nil
}

// begin looks at the folder of a partition; nil when it is gone from a directory in use.
func (v *verifier) begin(t Target) (*partitionCheck, error) {
	p := &partitionCheck{target: t}
	inUse, _, err := InUse(v.fs, t)
	if err != nil {
		return nil, err
	}
	inUse = inUse && !v.o.locked
	v.summary.InUse = v.summary.InUse || inUse
	if t.LogDir != "" {
		if v.dirs[t.LogDir] == nil {
			state, found, err := checkDir(v.fs, t.LogDir)
			if err != nil {
				return nil, err
			}
			v.dirs[t.LogDir] = state
			if t.whole {
				p.before = found
			}
		}
		p.dir = v.dirs[t.LogDir]
	}
	f, err := readFolder(v.fs, t.Dir)
	if err != nil {
		if isAbsent(err) && inUse {
			return nil, nil
		}
		return nil, err
	}
	if p.folder, err = checkFolder(v.fs, t, f, inUse, v.o.Settings); err != nil {
		return nil, err
	}
	cfg, set := v.o.Settings.Topic(t)
	p.compacting = cfg.CleanupPolicy.Compact()
	if p.dir != nil {
		_, cleaned := p.dir.cleaner[t.key()]
		p.compacting = p.compacting || cleaned
	}
	if _, known := set["index.interval.bytes"]; known {
		p.interval = int64(cfg.IndexIntervalBytes)
	} else if !slices.ContainsFunc(f.logs, func(base int64) bool { return hasEntries(v.fs, t.Dir, base) }) {
		p.interval = int64(cfg.IndexIntervalBytes)
	}
	if t.isMetadata() {
		if err := p.folder.checkMetadata(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// segments numbers the segments of a partition that are to be checked.
func (v *verifier) segments(p *partitionCheck) (wanted []int) {
	if p.folder == nil {
		return nil
	}
	for i, base := range p.folder.folder.logs {
		if p.target.wants(base) {
			wanted = append(wanted, i)
		}
	}
	p.reports = make([]segmentReport, len(wanted))
	p.failed = make([]error, len(wanted))
	p.left = make(chan struct{}, len(wanted))
	return wanted
}

// start has the segments checked; it blocks while all workers are busy.
func (v *verifier) start(p *partitionCheck, wanted []int) {
	if p.folder == nil {
		return
	}
	f := p.folder.folder
	for i, at := range wanted {
		plan := &segmentPlan{
			fs: v.fs, target: p.target, base: f.logs[at], nextBase: f.nextBase(at), first: at == 0,
			inUse: p.folder.inUse, clean: p.closed(), epochs: p.folder.epochs, snapshots: f.snapshots,
			progress: v.o.Progress,
		}
		v.group.Go(func() error {
			defer func() { p.left <- struct{}{} }()
			if err := v.ctx.Err(); err != nil {
				return err
			}
			r, err := plan.check()
			if err != nil && v.o.Unreadable != nil && v.ctx.Err() == nil {
				p.failed[i], err = err, nil
			}
			p.reports[i] = r
			return err
		})
	}
}

// collect waits for the partitions in order and reports their findings. Every segment of a partition that it is given
// comes to its end.
func (v *verifier) collect(ordered <-chan *partitionCheck) {
	for p := range ordered {
		for range cap(p.left) {
			<-p.left
		}
		v.finish(p)
	}
}

// unproven counts the segments without a seal, of a partition that was checked as a whole.
func (v *verifier) unproven(p *partitionCheck) (n int) {
	if p.target.Segments != nil || len(p.reports) == 0 {
		return 0
	}
	seals, err := commitlog.ReadSeals(v.fs, p.target.Dir)
	for _, r := range p.reports[:len(p.reports)-1] {
		if seal, ok := seals[r.base]; err != nil || !ok || seal.SizeBytes < r.bytes {
			n++
		}
	}
	return n
}

// tellUnreadable tells what of a partition could not be read, and whether there was any.
func (v *verifier) tellUnreadable(p *partitionCheck) (any bool) {
	for _, err := range p.failed {
		if err != nil {
			any = true
			v.summary.Unreadable++
			v.o.Unreadable(p.target, err)
		}
	}
	return any
}

func (v *verifier) finish(p *partitionCheck) {
	unreadable := v.tellUnreadable(p)
	if p.folder == nil {
		return
	}
	v.summary.Partitions++
	first, end := int64(-1), int64(0)
	for i := range p.reports {
		r := &p.reports[i]
		v.summary.Segments++
		v.summary.Batches += r.batches
		v.summary.Records += r.records
		v.summary.Bytes += r.bytes
		if first < 0 {
			first = r.base
		}
		end = max(end, r.next)
	}
	v.summary.Unproven += v.unproven(p)
	if !unreadable {
		p.folder.wholeLog(p.reports, p.compacting, p.closed(), p.interval)
	}
	all := slices.Concat(p.before, p.folder.finds.sorted())
	for i := range p.reports {
		all = append(all, p.reports[i].findings...)
	}
	if p.dir != nil && len(p.reports) > 0 && p.target.Segments == nil && !p.folder.inUse && !unreadable {
		all = append(all, p.dir.checkOffsets(p.target, first, end)...)
	}
	if v.o.ends != nil && !unreadable && p.target.Segments == nil && p.target.Mark == "" {
		v.o.ends(p.target, end)
	}
	if len(all) > 0 && v.o.keep != nil {
		v.o.keep(p.target, p.reports)
	}
	for _, f := range all {
		v.summary.Findings[f.Severity]++
		if v.o.Report != nil {
			v.o.Report(f)
		}
	}
}
