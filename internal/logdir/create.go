package logdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
)

// New is a partition to be made.
type New struct {
	Partition checkpoint.TopicPartition
	TopicID   [16]byte
	Config    commitlog.Config
}

// Created is what became of a [New]: its log, or why there is none.
type Created struct {
	Log *commitlog.Log
	Err error
}

// Create makes the log of a new partition in the online directory with the fewest partitions, or returns the log
// that exists.
//
// Errors: ErrNoDirectory; *OfflineError when the partition is in a failed directory; one of the disk, which takes
// the directory offline.
func (s *Set) Create(tp checkpoint.TopicPartition, topicID [16]byte, c commitlog.Config) (*commitlog.Log, error) {
	made := s.CreateAll([]New{{Partition: tp, TopicID: topicID, Config: c}})[0]
	return made.Log, made.Err
}

// creation is a partition that is being made.
type creation struct {
	New
	dir  *directory
	path string
	made *Created
}

// CreateAll is Create for many partitions, several side by side, with one sync of each directory. The results are in
// the order of the partitions, no two of which are the same.
func (s *Set) CreateAll(all []New) []Created {
	results := make([]Created, len(all))
	choose := s.chooser()
	var begun []*creation
	for i, n := range all {
		c := &creation{New: n, made: &results[i]}
		if s.place(c, choose) {
			begun = append(begun, c)
		}
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, c := range begun {
		group.Go(func() error {
			c.made.Log, c.made.Err = s.makeLog(c)
			return nil
		})
	}
	_ = group.Wait()
	s.settle(begun)
	return results
}

// place finds the directory for a partition; false: there is nothing to make.
func (s *Set) place(c *creation, choose func() *directory) bool {
	if s.isClosed() {
		c.made.Err = ErrNoDirectory
		return false
	}
	if c.made.Log, c.made.Err = s.Log(c.Partition); !errors.Is(c.made.Err, ErrUnknownPartition) {
		return false
	}
	if c.made.Err = s.inFailed(c.Partition); c.made.Err != nil {
		return false
	}
	if c.dir = choose(); c.dir == nil {
		c.made.Err = ErrNoDirectory
		return false
	}
	c.path = filepath.Join(c.dir.path, c.Partition.String())
	return true
}

// makeLog makes the folder of a partition and opens the log in it; nothing of it is durable yet.
func (s *Set) makeLog(c *creation) (*commitlog.Log, error) {
	if err := s.opts.FS.MkdirAll(c.path, 0o755); err != nil {
		return nil, fmt.Errorf("create partition: %w", err)
	}
	f := found{dir: c.dir, folder: c.Partition.String(), tp: c.Partition}
	o := s.logOptions(f, c.path, Assignment{Assigned: true, TopicID: c.TopicID, Config: c.Config})
	o.RecoveryPoint, o.StartOffset, o.Clean = 0, 0, true
	log, err := commitlog.Open(o)
	if err != nil {
		return nil, fmt.Errorf("create partition %s: %w", c.Partition, err)
	}
	return log, nil
}

// settle makes the folders of new partitions durable and takes their logs into the set.
func (s *Set) settle(begun []*creation) {
	synced := map[*directory]error{}
	for _, c := range begun {
		if _, done := synced[c.dir]; !done {
			synced[c.dir] = s.opts.FS.SyncDir(c.dir.path)
		}
		if err := synced[c.dir]; err != nil && c.made.Err == nil {
			_ = c.made.Log.Abandon()
			c.made.Err = fmt.Errorf("create partition %s: %w", c.Partition, err)
		}
		if c.made.Err != nil {
			*c.made = Created{Err: s.notCreated(c.dir, c.Partition, c.path, c.made.Err)}
			continue
		}
		s.mu.Lock()
		s.logs[c.Partition] = &entry{log: c.made.Log, dir: c.dir}
		s.mu.Unlock()
	}
}

// chooser returns a function that gives the online directory with the fewest partitions, those that it was given for
// before counted; nil: none is online. Cordoned ones are for want of others.
func (s *Set) chooser() func() *directory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	count := map[*directory]int{}
	for _, e := range s.logs {
		count[e.dir]++
	}
	var online, cordoned []*directory
	for _, d := range s.dirs {
		switch {
		case d.failure != nil:
		case slices.Contains(s.cordoned, d.path):
			cordoned = append(cordoned, d)
		default:
			online = append(online, d)
		}
	}
	if len(online) == 0 {
		online = cordoned
	}
	return func() *directory {
		if len(online) == 0 {
			return nil
		}
		best := slices.MinFunc(online, func(a, b *directory) int { return count[a] - count[b] })
		count[best]++
		return best
	}
}
