package coordinator

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"tidemark/internal/group"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
	"tidemark/record"
)

// GroupsOptions are what the group coordinator needs. All but Go, Logger, LoadBytes and Loaded are required.
type GroupsOptions struct {
	// Machine is what groups work by. Its Image and TopicsCreatedAt are set by NewGroups.
	Machine group.Options
	// Image is the newest metadata.
	Image func() *metadata.Image
	Clock func() time.Time
	Timer replica.Timer
	// ExpireEvery is the time between two looks for offsets and groups to forget
	// (offsets.retention.check.interval.ms).
	ExpireEvery  time.Duration
	WriteTimeout time.Duration // for the replication of a record (offsets.commit.timeout.ms)
	LoadBytes    int           // read at once (offsets.load.buffer.size)
	Go           func(task func())
	Logger       *slog.Logger
	Loaded       func(partition int32, records int, took time.Duration)
}

// Groups is the group coordinator of this broker. Its methods return at once; done is called once, on any goroutine,
// and must not block. Besides the errors that are named, each may answer ErrLoading, ErrNotCoordinator,
// ErrNotAvailable and ErrCannotWrite.
type Groups struct {
	o             GroupsOptions
	runtime       *Runtime[*groupShard]
	topicsCreated atomic.Int64 // offset of the metadata
}

// NewGroups makes a coordinator without partitions; Leadership brings them.
func NewGroups(o GroupsOptions) *Groups {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Groups{o: o}
	g.topicsCreated.Store(-1)
	g.o.Machine.Logger, g.o.Machine.Image, g.o.Machine.TopicsCreatedAt = o.Logger, o.Image, g.topicsCreated.Load
	g.runtime = NewRuntime(Options[*groupShard]{
		Topic: OffsetsTopic, Clock: o.Clock, Timer: o.Timer, Go: o.Go, Logger: o.Logger, WriteTimeout: o.WriteTimeout,
		LoadBytes: o.LoadBytes, Loaded: o.Loaded, NewShard: g.newShard,
	})
	return g
}

// Leadership takes note of who leads a partition of any topic; see replica.Options.Leadership.
func (g *Groups) Leadership(p *replica.Partition, leaderEpoch int32, leads bool) {
	switch {
	case p.Topic != OffsetsTopic:
	case leads:
		g.runtime.Elect(p.ID, leaderEpoch, PartitionLog(p, leaderEpoch))
	default:
		g.runtime.Resign(p.ID)
	}
}

// Close gives up all partitions; what waits is answered with ErrNotCoordinator.
func (g *Groups) Close() { g.runtime.Close() }

// Partition is the partition of __consumer_offsets that a group belongs to; not ok when the topic does not exist.
func (g *Groups) Partition(id string) (partition int32, ok bool) {
	topic := g.o.Image().Topic(OffsetsTopic)
	if topic == nil || topic.NumPartitions() == 0 {
		return 0, false
	}
	return PartitionFor(id, int32(topic.NumPartitions())), true
}

// command runs a command on the machine of a group.
func (g *Groups) command(id string, run func(m *group.Machine) *group.Write, done func(error)) {
	partition, ok := g.Partition(id)
	if !ok {
		done(ErrNotCoordinator)
		return
	}
	g.commandOn(partition, id, run, done)
}

// commandOn runs a command on the machine of a partition; key is that of [Command].
func (g *Groups) commandOn(partition int32, key string, run func(m *group.Machine) *group.Write, done func(error)) {
	var w *group.Write
	g.runtime.Do(partition, Command[*groupShard]{
		Key: key,
		Run: func(s *groupShard) *Write {
			w = run(s.machine)
			return s.write(w)
		},
		Done: func(err error) {
			if w != nil {
				w.Stored(err)
			}
			done(err)
		},
	})
}

// Join takes a member into a group; see group.Machine.Join. Other errors: those of group.JoinRequest.Check.
func (g *Groups) Join(r *group.JoinRequest, done func(group.JoinResponse)) {
	refuse := func(err error) {
		done(group.JoinResponse{Err: err, MemberID: r.MemberID, Generation: group.NoGeneration})
	}
	if err := r.Check(g.o.Machine.Config()); err != nil {
		refuse(err)
		return
	}
	ran := false
	g.command(r.Group, func(m *group.Machine) *group.Write {
		ran = true
		return m.Join(r, done)
	}, func(err error) {
		if !ran {
			done(group.JoinResponse{Err: err, Generation: group.NoGeneration})
		}
	})
}

// Sync gives a member its assignment; see group.Machine.Sync. Other errors: group.ErrInvalidGroupID.
func (g *Groups) Sync(r *group.SyncRequest, done func(group.SyncResponse)) {
	if r.Group == "" {
		done(group.SyncResponse{Err: group.ErrInvalidGroupID})
		return
	}
	ran := false
	g.command(r.Group, func(m *group.Machine) *group.Write {
		ran = true
		return m.Sync(r, done)
	}, func(err error) {
		if !ran {
			done(group.SyncResponse{Err: err})
		}
	})
}

// Heartbeat is a member's sign of life; see group.Machine.Heartbeat. While the partition is loaded all is well.
// Other errors: group.ErrInvalidGroupID.
func (g *Groups) Heartbeat(id, memberID string, instanceID *string, generation int32, done func(error)) {
	if id == "" {
		done(group.ErrInvalidGroupID)
		return
	}
	var refused error
	g.command(id, func(m *group.Machine) *group.Write {
		refused = m.Heartbeat(id, memberID, instanceID, generation)
		return nil
	}, func(err error) {
		if errors.Is(err, ErrLoading) {
			err = nil // Kafka: members that are not known after the load learn it from the next heartbeat
		}
		done(first(err, refused))
	})
}

// Leave removes members from a group; see group.Machine.Leave. Other errors: group.ErrInvalidGroupID.
func (g *Groups) Leave(id string, members []group.Leaving, done func(each []error, err error)) {
	if id == "" {
		done(nil, group.ErrInvalidGroupID)
		return
	}
	var each []error
	var refused error
	g.command(id, func(m *group.Machine) (w *group.Write) {
		each, w, refused = m.Leave(id, members)
		return w
	}, func(err error) { done(each, first(err, refused)) })
}

// Commit commits offsets; see group.Machine.Commit.
func (g *Groups) Commit(r *group.CommitRequest, done func(each []error, err error)) {
	var each []error
	var refused error
	g.command(r.Group, func(m *group.Machine) (w *group.Write) {
		each, w, refused = m.Commit(r)
		return w
	}, func(err error) { done(each, first(err, refused)) })
}

// Transaction is the transaction of which a commit of offsets is a part.
type Transaction struct {
	ProducerID    int64
	ProducerEpoch int16
	Verification  *replica.Verification
}

// CommitTransactional commits offsets as a part of a transaction; see group.Machine.CommitTransactional. Other
// errors: group.ErrInvalidGroupID and those of replica.Partition.Append.
func (g *Groups) CommitTransactional(r *group.CommitRequest, t Transaction, done func(each []error, err error)) {
	partition, ok := g.Partition(r.Group)
	switch {
	case r.Group == "":
		done(nil, group.ErrInvalidGroupID)
		return
	case !ok:
		done(nil, ErrNotCoordinator)
		return
	}
	var each []error
	var refused error
	g.runtime.Do(partition, Command[*groupShard]{
		Key: r.Group,
		Run: func(s *groupShard) *Write {
			var w *group.Write
			each, w, refused = s.machine.CommitTransactional(r, t.ProducerID)
			write := s.write(w)
			if write != nil {
				write.Transactional, write.Verification = true, t.Verification
				write.ProducerID, write.ProducerEpoch = t.ProducerID, t.ProducerEpoch
			}
			return write
		},
		Done: func(err error) { done(each, first(err, refused)) },
	})
}

// EndTransaction writes the marker of a transaction to a partition of __consumer_offsets and takes note of it; see
// LocalMarkers.Offsets. Errors: also those of replica.Partition.Append.
func (g *Groups) EndTransaction(partition int32, m Marker, done func(error)) {
	if m.Producer.ID == txn.NoProducerID || m.Producer.Epoch == txn.NoProducerEpoch {
		done(fmt.Errorf("%w: a marker without a producer", ErrCannotWrite))
		return
	}
	g.runtime.Do(partition, Command[*groupShard]{
		Run: func(*groupShard) *Write {
			return &Write{ProducerID: m.Producer.ID, ProducerEpoch: m.Producer.Epoch, TransactionVersion: m.Version,
				Marker: &record.EndTxn{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch}}
		},
		Done: done,
	})
}

// Fetch tells the offsets of a group; see group.Machine.Fetch.
func (g *Groups) Fetch(r *group.FetchRequest, done func([]group.FetchedTopic, error)) {
	var fetched []group.FetchedTopic
	var refused error
	g.command(r.Group, func(m *group.Machine) *group.Write {
		fetched, refused = m.Fetch(r)
		return nil
	}, func(err error) { done(fetched, first(err, refused)) })
}

// ConsumerHeartbeat takes a member of a consumer group a step on; see group.Machine.ConsumerHeartbeat. Other errors:
// those of group.ConsumerHeartbeat.Check.
func (g *Groups) ConsumerHeartbeat(r *group.ConsumerHeartbeat, done func(group.ConsumerAnswer, error)) {
	if err := r.Check(g.o.Machine.Config().ConsumerAssignors); err != nil {
		done(group.ConsumerAnswer{}, err)
		return
	}
	var answer group.ConsumerAnswer
	var refused error
	g.command(r.Group, func(m *group.Machine) (w *group.Write) {
		answer, w, refused = m.ConsumerHeartbeat(r)
		return w
	}, func(err error) { done(answer, first(err, refused)) })
}

// DescribeConsumers tells of a consumer group; see group.Machine.DescribeConsumers. Other errors:
// group.ErrInvalidGroupID.
func (g *Groups) DescribeConsumers(id string, done func(group.ConsumerDescription, error)) {
	if id == "" {
		done(group.ConsumerDescription{}, group.ErrInvalidGroupID)
		return
	}
	var d group.ConsumerDescription
	var refused error
	g.command(id, func(m *group.Machine) *group.Write {
		d, refused = m.DescribeConsumers(id)
		return nil
	}, func(err error) { done(d, first(err, refused)) })
}

// DeleteOffsets removes offsets of a group; see group.Machine.DeleteOffsets. Other errors: group.ErrInvalidGroupID.
func (g *Groups) DeleteOffsets(id string, topics []group.TopicPartitions, done func(each []error, err error)) {
	if id == "" {
		done(nil, group.ErrInvalidGroupID)
		return
	}
	var each []error
	var refused error
	g.command(id, func(m *group.Machine) (w *group.Write) {
		each, w, refused = m.DeleteOffsets(id, topics)
		return w
	}, func(err error) { done(each, first(err, refused)) })
}

// Delete removes a group; see group.Machine.Delete.
func (g *Groups) Delete(id string, done func(error)) {
	var refused error
	g.command(id, func(m *group.Machine) *group.Write {
		each, w := m.Delete([]string{id})
		refused = each[0]
		return w
	}, func(err error) { done(first(err, refused)) })
}

// Describe tells of a classic group; see group.Machine.Describe.
func (g *Groups) Describe(id string, done func(group.Description, error)) {
	var d group.Description
	var refused error
	g.command(id, func(m *group.Machine) *group.Write {
		d, refused = m.Describe(id)
		return nil
	}, func(err error) { done(d, first(err, refused)) })
}

// List tells of the groups of all partitions that this broker coordinates. Errors: ErrLoading while one of them is
// loading.
func (g *Groups) List(f group.Filter, done func([]group.Listed, error)) {
	partitions := g.runtime.Partitions()
	lists := make([][]group.Listed, len(partitions))
	gathered := newGathering(len(partitions), func(errs []error) {
		var all []group.Listed
		for i, err := range errs {
			if errors.Is(err, ErrLoading) {
				done(nil, err)
				return
			}
			all = append(all, lists[i]...)
		}
		done(all, nil)
	})
	for i, partition := range partitions {
		g.commandOn(partition, "", func(m *group.Machine) *group.Write {
			lists[i] = m.List(f)
			return nil
		}, func(err error) { gathered.set(i, err) })
	}
}

// TopicsCreated takes note that the metadata at an offset brought topics, which patterns may match.
func (g *Groups) TopicsCreated(offset int64) { g.topicsCreated.Store(offset) }

// TopicsDeleted removes the offsets of topics that are gone.
func (g *Groups) TopicsDeleted(topics []group.DeletedTopic) {
	for _, partition := range g.runtime.Partitions() {
		g.runtime.Do(partition, Command[*groupShard]{Run: func(s *groupShard) *Write {
			s.writeAll(s.machine.TopicsDeleted(topics, tombstoneBatchBytes))
			return nil
		}})
	}
}
