package replica

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
)

// TopicConfig is what a partition needs of its topic's configs.
type TopicConfig struct {
	Log               commitlog.Config
	MinInSyncReplicas int
}

// Options say how a [Manager] works. All but Logger are required.
type Options struct {
	NodeID int32
	Dirs   *logdir.Set
	// TopicConfig resolves the configs of a topic in an image, the broker's defaults included.
	TopicConfig func(i *metadata.Image, topic string) TopicConfig
	Timer       Timer
	// Leadership is told when this broker became the leader of a partition in a new leader epoch (leads), and when
	// it is not the leader any more: another is, the partition was deleted, its log directory failed. It must not
	// block. May be nil.
	Leadership func(p *Partition, leaderEpoch int32, leads bool)
	Logger     *slog.Logger // nil: silent
}

// Manager holds the partitions of which this broker has a replica, as the newest applied image has them.
type Manager struct {
	opts Options

	changing sync.Mutex                         // held while an image is applied or a log is made later; taken before mu
	applied  bool                               // an image was; guarded by changing
	lost     map[metadata.UUID]logdir.Directory // that had failed when the first image is applied; nil afterwards

	mu         sync.RWMutex
	partitions map[checkpoint.TopicPartition]*Partition
	byID       map[idPartition]*Partition

	wakeUps atomic.Int64
}

type idPartition struct {
	topic     metadata.UUID
	partition int32
}

// NewManager makes a manager without partitions; Apply brings them.
func NewManager(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{opts: o, partitions: map[checkpoint.TopicPartition]*Partition{},
		byID: map[idPartition]*Partition{}}
}

// Partition is a partition by the name of its topic.
//
// Errors: ErrUnknownPartition.
func (m *Manager) Partition(topic string, partition int32) (*Partition, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.partitions[checkpoint.TopicPartition{Topic: topic, Partition: partition}]; p != nil {
		return p, nil
	}
	return nil, ErrUnknownPartition
}

// PartitionByID is a partition by the id of its topic.
//
// Errors: ErrUnknownPartition; whether the topic is known at all, the metadata image tells.
func (m *Manager) PartitionByID(topic metadata.UUID, partition int32) (*Partition, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.byID[idPartition{topic, partition}]; p != nil {
		return p, nil
	}
	return nil, ErrUnknownPartition
}

// Partitions lists all partitions, in no order.
func (m *Manager) Partitions() []*Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*Partition, 0, len(m.partitions))
	for _, p := range m.partitions {
		out = append(out, p)
	}
	return out
}

// WakeUps counts how often a parked operation was looked at again since the start.
func (m *Manager) WakeUps() int64 { return m.wakeUps.Load() }

func (m *Manager) woken() { m.wakeUps.Add(1) }

// Apply brings the partitions to what a new image says: deleted ones go, new ones get a log, roles and configs
// change. Calls must not overlap. A partition whose directory fails is offline; that is not an error of Apply.
func (m *Manager) Apply(d *metadata.Delta) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.noteLost()
	defer func() { m.lost = nil }()
	var errs []error
	changes := d.LocalChanges(m.opts.NodeID)
	errs = append(errs, m.remove(changes.Deleted))
	a := applying{image: d.Image(), configs: map[string]TopicConfig{}}
	m.createAll(&a, changes)
	for _, list := range [][]metadata.LocalPartition{changes.Leaders, changes.Followers} {
		for _, changed := range list {
			errs = append(errs, m.change(&a, changed))
		}
	}
	m.reconfigure(d)
	return errors.Join(errs...)
}

// noteLost notes which log directories have failed, for the first image.
func (m *Manager) noteLost() {
	if m.applied {
		return
	}
	m.applied, m.lost = true, map[metadata.UUID]logdir.Directory{}
	for _, d := range m.opts.Dirs.Directories() {
		if d.Err != nil {
			m.lost[metadata.UUID(d.ID)] = d
		}
	}
}

// remove forgets partitions and has their logs deleted.
func (m *Manager) remove(gone []metadata.LocalPartition) error {
	var names []checkpoint.TopicPartition
	for _, tp := range gone {
		name := checkpoint.TopicPartition{Topic: tp.Topic.Name, Partition: tp.ID}
		m.mu.Lock()
		p := m.partitions[name]
		if p != nil {
			delete(m.partitions, name)
			delete(m.byID, idPartition{p.TopicID, p.ID})
		}
		m.mu.Unlock()
		if p == nil {
			continue
		}
		p.fail(ErrUnknownPartition)
		m.leads(p, false)
		names = append(names, name)
	}
	var errs []error
	for _, err := range m.opts.Dirs.DeleteAll(names) {
		if !errors.Is(err, logdir.ErrUnknownPartition) && !errors.As(err, new(*logdir.OfflineError)) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// applying is an image that is being applied.
type applying struct {
	image   *metadata.Image
	configs map[string]TopicConfig // by topic, as they are asked for
	created map[checkpoint.TopicPartition]logdir.Created
}

func (m *Manager) config(a *applying, topic string) TopicConfig {
	c, known := a.configs[topic]
	if !known {
		c = m.opts.TopicConfig(a.image, topic)
		a.configs[topic] = c
	}
	return c
}

// createAll makes or finds the logs of the partitions that are new to the manager, all together. While the first image
// is applied, all are there already: one whose log directory failed must not be made anew in another.
func (m *Manager) createAll(a *applying, changes metadata.LocalChanges) {
	a.created = map[checkpoint.TopicPartition]logdir.Created{}
	var all []logdir.New
	for _, list := range [][]metadata.LocalPartition{changes.Leaders, changes.Followers} {
		for _, tp := range list {
			name := checkpoint.TopicPartition{Topic: tp.Topic.Name, Partition: tp.ID}
			if _, err := m.Partition(name.Topic, name.Partition); err == nil {
				continue
			}
			if err := m.lostWith(tp); err != nil {
				a.created[name] = logdir.Created{Err: err}
				continue
			}
			all = append(all, logdir.New{Partition: name, TopicID: tp.Topic.ID, Config: m.config(a, name.Topic).Log})
		}
	}
	for i, made := range m.opts.Dirs.CreateAll(all) {
		a.created[all[i].Partition] = made
	}
	a.beginEpochs(changes.Leaders)
}

// epochsAtOnce is how many logs write their leader epochs side by side: most of the time they wait for the disk.
const epochsAtOnce = 16

// beginEpochs has the new logs that this broker leads note their epoch, before there is anybody to append. What fails
// here fails again when the partition takes on its role.
func (a *applying) beginEpochs(leaders []metadata.LocalPartition) {
	var group errgroup.Group
	group.SetLimit(epochsAtOnce)
	for _, tp := range leaders {
		made := a.created[checkpoint.TopicPartition{Topic: tp.Topic.Name, Partition: tp.ID}]
		if made.Log != nil && made.Err == nil {
			group.Go(func() error {
				_ = made.Log.AssignEpoch(tp.Partition.LeaderEpoch)
				return nil
			})
		}
	}
	_ = group.Wait()
}

// change gives a partition its role, and makes it if it is new.
func (m *Manager) change(a *applying, tp metadata.LocalPartition) error {
	c := m.config(a, tp.Topic.Name)
	p, err := m.obtain(a, tp)
	if err != nil {
		return err
	}
	state := State{Leader: tp.Partition.Leader, LeaderEpoch: tp.Partition.LeaderEpoch,
		PartitionEpoch: tp.Partition.PartitionEpoch, Replicas: tp.Partition.Replicas, ISR: tp.Partition.ISR,
		MinInSyncReplicas: c.MinInSyncReplicas}
	before := p.State()
	if err := p.apply(state); err != nil {
		return fmt.Errorf("change role of %s: %w", p.Name(), err)
	}
	led, leads := before.Leader == m.opts.NodeID, state.Leader == m.opts.NodeID
	if led != leads || leads && before.LeaderEpoch != state.LeaderEpoch {
		m.leads(p, leads)
	}
	return nil
}

// leads tells the observer of leadership.
func (m *Manager) leads(p *Partition, leads bool) {
	if m.opts.Leadership != nil {
		_, err := p.Log()
		m.opts.Leadership(p, p.State().LeaderEpoch, leads && err == nil)
	}
}

func (m *Manager) obtain(a *applying, tp metadata.LocalPartition) (*Partition, error) {
	name := checkpoint.TopicPartition{Topic: tp.Topic.Name, Partition: tp.ID}
	m.mu.RLock()
	p := m.partitions[name]
	m.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	p = newPartition(tp.Topic.Name, tp.Topic.ID, tp.ID, m.opts.NodeID)
	log, err := a.created[name].Log, a.created[name].Err
	var offline *logdir.OfflineError
	switch {
	case errors.As(err, &offline) || errors.Is(err, logdir.ErrNoDirectory):
		p.offline, p.config = err, m.config(a, tp.Topic.Name)
		m.createLater(p, err)
	case err != nil:
		return nil, fmt.Errorf("create log of %s: %w", name, err)
	default:
		p.open(log, m.opts.Dirs.HighWatermark(name))
	}
	m.mu.Lock()
	m.partitions[name] = p
	m.byID[idPartition{p.TopicID, p.ID}] = p
	m.mu.Unlock()
	return p, nil
}

// lostWith is the error of a partition whose log directory had failed before the first image was applied.
func (m *Manager) lostWith(tp metadata.LocalPartition) error {
	own := slices.Index(tp.Partition.Replicas, m.opts.NodeID)
	if own >= 0 && own < len(tp.Partition.Directories) {
		if d, failed := m.lost[tp.Partition.Directories[own]]; failed {
			return &logdir.OfflineError{Dir: d.Path, Cause: d.Err}
		}
	}
	return nil
}

// createAgain is how long after a full disk it is tried again to make a partition's log.
const createAgain = 2 * time.Second

// createLater has the log of a partition made when there is room, if that was all that was missing.
func (m *Manager) createLater(p *Partition, err error) {
	if commitlog.IsFull(err) {
		m.opts.Timer(createAgain, func() { m.tryAgain(p) })
	}
}

// tryAgain makes the log of a partition for which there was no room, and gives the partition its role.
func (m *Manager) tryAgain(p *Partition) {
	m.changing.Lock()
	defer m.changing.Unlock()
	if known, err := m.Partition(p.Topic, p.ID); err != nil || known != p {
		return // deleted meanwhile
	}
	p.mu.RLock()
	config, state := p.config, p.state
	p.mu.RUnlock()
	log, err := m.opts.Dirs.Create(p.Name(), p.TopicID, config.Log)
	if err != nil {
		m.createLater(p, err)
		return
	}
	p.mu.Lock()
	p.state = noState()
	p.mu.Unlock()
	p.open(log, m.opts.Dirs.HighWatermark(p.Name()))
	if err := p.apply(state); err != nil {
		m.opts.Logger.Error("partition does not take on its role", "partition", p.Name().String(), "error", err)
		return
	}
	m.opts.Logger.Info("there is room for a partition that had none", "partition", p.Name().String())
	m.leads(p, state.Leader == m.opts.NodeID)
}

// reconfigure hands changed configs to the logs: those of the topics named, or of all when the broker's changed.
func (m *Manager) reconfigure(d *metadata.Delta) {
	topics := map[string]bool{}
	all := false
	for _, r := range d.Configs() {
		switch r.Type {
		case metadata.ResourceTopic:
			topics[r.Name] = true
		case metadata.ResourceBroker:
			all = true
		}
	}
	if !all && len(topics) == 0 {
		return
	}
	for _, p := range m.Partitions() {
		if all || topics[p.Topic] {
			p.reconfigure(m.opts.TopicConfig(d.Image(), p.Topic))
		}
	}
}

func (p *Partition) reconfigure(c TopicConfig) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.MinInSyncReplicas = c.MinInSyncReplicas
	p.config = c
	if p.log != nil {
		p.log.UpdateConfig(c.Log)
	}
}

// Offline takes the partitions of a failed log directory offline; see logdir.Options.Offline.
func (m *Manager) Offline(dir string, partitions []checkpoint.TopicPartition, cause error) {
	for _, tp := range partitions {
		m.mu.RLock()
		p := m.partitions[tp]
		m.mu.RUnlock()
		if p != nil {
			p.fail(&logdir.OfflineError{Dir: dir, Cause: cause})
			m.leads(p, false)
		}
	}
}

// CheckpointHighWatermarks writes the high watermarks of all partitions. The broker calls it every
// replica.high.watermark.checkpoint.interval.ms and at a clean stop.
func (m *Manager) CheckpointHighWatermarks() {
	m.opts.Dirs.WriteHighWatermarks(func(tp checkpoint.TopicPartition) (int64, bool) {
		p, err := m.Partition(tp.Topic, tp.Partition)
		if err != nil {
			return 0, false
		}
		return p.HighWatermark(), true
	})
}

// RealTimer is the Timer of the real clock.
func RealTimer(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}
