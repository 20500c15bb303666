package controller

import (
	"slices"

	"tidemark/internal/metadata"
)

// Registration is what a broker says of itself when it starts.
type Registration struct {
	BrokerID      int32
	ClusterID     string
	IncarnationID metadata.UUID // random for each process
	Endpoints     []metadata.Endpoint
	Features      []metadata.FeatureRange // must include metadata.version
	Rack          *string
	LogDirs       []metadata.UUID // all online directories
	// PreviousEpoch is the broker epoch that the last clean stop wrote down, -1
	// when the broker was not stopped cleanly.
	PreviousEpoch int64
}

// RegisterBroker begins a new incarnation of a broker, fenced at first. Its
// result is a [BrokerRegistered].
type RegisterBroker struct {
	Registration
	// HasSession means that another incarnation of the broker was heard of lately.
	HasSession bool
}

// BrokerRegistered has the broker's new epoch.
type BrokerRegistered struct {
	Epoch int64
}

func (c RegisterBroker) decide(d *decider) (any, error) {
	d.atomic = false
	if c.ClusterID != d.ClusterID {
		return nil, refuse(ErrInconsistentClusterID, "Expected cluster ID %s, but got cluster ID %s",
			d.ClusterID, c.ClusterID)
	}
	existing := d.Image.Broker(c.BrokerID)
	same := existing != nil && existing.IncarnationID == c.IncarnationID
	if existing != nil && c.HasSession && !same {
		return nil, refuse(ErrDuplicateBrokerRegistration, "Another broker is registered with that broker id. If the "+
			"broker was recently restarted this should self-resolve once the heartbeat manager expires the broker's session.")
	}
	if err := d.checkDirectories(c.Registration); err != nil {
		return nil, err
	}
	if err := d.checkFeatures(c.Features); err != nil {
		return nil, err
	}
	record := &metadata.RegisterBrokerRecord{
		BrokerID: c.BrokerID, IncarnationID: c.IncarnationID, BrokerEpoch: d.NextOffset,
		EndPoints: c.Endpoints, Features: c.Features, Rack: c.Rack, Fenced: true,
	}
	if metadata.SupportsDirectories(d.level) {
		record.LogDirs = c.LogDirs
	}
	if same {
		record.Fenced, record.InControlledShutdown = existing.Fenced, existing.InControlledShutdown
		record.BrokerEpoch = existing.Epoch
	} else {
		d.endIncarnation(c.BrokerID, existing != nil && existing.Epoch == c.PreviousEpoch)
	}
	d.add(metadata.RegisterBrokerVersion(d.level), record)
	return BrokerRegistered{record.BrokerEpoch}, nil
}

// endIncarnation takes a broker out of the in-sync sets it is still in. After an
// unclean stop it may have lost records, so it is no longer eligible either.
func (d *decider) endIncarnation(broker int32, clean bool) {
	if clean || !d.elrEnabled() {
		d.reassess(broker, metadata.NoLeader, metadata.NoLeader, inISR(broker))
		return
	}
	d.reassess(metadata.NoLeader, metadata.NoLeader, broker, inISR(broker))
	d.reassess(metadata.NoLeader, metadata.NoLeader, broker, inELR(broker))
}

func (d *decider) checkDirectories(r Registration) error {
	if !metadata.SupportsDirectories(d.level) {
		return nil
	}
	if len(r.LogDirs) == 0 {
		return refuse(ErrInvalidRegistration, "No directories specified in request")
	}
	for _, dir := range r.LogDirs {
		if dir.Reserved() {
			return refuse(ErrInvalidRegistration, "Reserved directory ID in request")
		}
	}
	if len(unique(r.LogDirs)) != len(r.LogDirs) {
		return refuse(ErrInvalidRegistration, "Duplicate directory ID in request")
	}
	for b := range d.Image.Brokers() {
		for _, dir := range r.LogDirs {
			if b.ID != r.BrokerID && slices.Contains(b.LogDirs, dir) {
				return refuse(ErrInvalidRegistration, "Broker %d is already registered with directory %v", b.ID, dir)
			}
		}
	}
	return nil
}

// checkFeatures refuses a broker that cannot follow a finalized feature.
func (d *decider) checkFeatures(supported []metadata.FeatureRange) error {
	ranges := map[string]metadata.FeatureRange{}
	for _, f := range supported {
		ranges[f.Name] = f
	}
	for _, f := range supported {
		if err := checkFinalized(f, d.Image.FeatureLevel(f.Name)); err != nil {
			return err
		}
	}
	if _, ok := ranges[metadata.MetadataVersionFeature]; !ok {
		return refuse(ErrInvalidRegistration, "Request features do not contain 'metadata.version'")
	}
	for name, level := range d.Image.Features() {
		if _, ok := ranges[name]; !ok {
			if err := checkFinalized(metadata.FeatureRange{Name: name}, level); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkFinalized(f metadata.FeatureRange, level int16) error {
	if level < f.Min || level > f.Max {
		return refuse(ErrUnsupportedVersion, "Unable to register because the broker does not support finalized version "+
			"%d of %s. The broker wants a version between %d and %d, inclusive.", level, f.Name, f.Min, f.Max)
	}
	return nil
}

// BrokerHeartbeat says what state a broker is in and wants to be in. Its result
// is a [HeartbeatReply].
type BrokerHeartbeat struct {
	BrokerID      int32
	BrokerEpoch   int64
	CurrentOffset int64 // of the last metadata record that the broker replayed
	WantFence     bool
	WantShutdown  bool
	OfflineDirs   []metadata.UUID
	CordonedDirs  []metadata.UUID // nil = not said
}

// HeartbeatReply is the state a broker is in after its heartbeat.
type HeartbeatReply struct {
	IsCaughtUp           bool
	IsFenced             bool
	InControlledShutdown bool
	ShouldShutDown       bool
}

func (c BrokerHeartbeat) decide(d *decider) (any, error) {
	d.atomic = false
	b, err := d.checkEpoch(c.BrokerID, c.BrokerEpoch)
	if err != nil {
		return nil, err
	}
	reply := c.nextState(d, b)
	reply.IsCaughtUp = c.CurrentOffset >= b.Epoch
	if metadata.SupportsDirectories(d.level) {
		d.directoriesOffline(b, c.OfflineDirs)
	}
	if metadata.SupportsCordonedDirectories(d.level) && c.CordonedDirs != nil && cordonedChange(b, c.CordonedDirs) {
		d.add(3, &metadata.BrokerRegistrationChangeRecord{
			BrokerID: b.ID, BrokerEpoch: b.Epoch, CordonedLogDirs: c.CordonedDirs,
		})
	}
	return reply, nil
}

// nextState moves the broker between fenced, unfenced, controlled shutdown and
// gone.
func (c BrokerHeartbeat) nextState(d *decider, b *metadata.Broker) HeartbeatReply {
	switch {
	case b.Fenced && c.WantShutdown:
		return HeartbeatReply{IsFenced: true, ShouldShutDown: true, InControlledShutdown: b.InControlledShutdown}
	case b.Fenced:
		if c.WantFence || c.CurrentOffset < b.Epoch {
			return HeartbeatReply{IsFenced: true}
		}
		d.unfence(b)
		return HeartbeatReply{}
	case c.WantShutdown && !c.WantFence && d.leads(b.ID):
		d.beginShutdown(b)
		return HeartbeatReply{InControlledShutdown: true}
	case c.WantShutdown:
		d.fence(b)
		return HeartbeatReply{IsFenced: true, InControlledShutdown: b.InControlledShutdown, ShouldShutDown: true}
	case c.WantFence:
		d.fence(b)
		return HeartbeatReply{IsFenced: true}
	default:
		return HeartbeatReply{InControlledShutdown: b.InControlledShutdown}
	}
}

func (d *decider) leads(broker int32) bool {
	for t := range d.Image.Topics() {
		for _, p := range t.Partitions() {
			if p.Leader == broker {
				return true
			}
		}
	}
	return false
}

func (d *decider) unfence(b *metadata.Broker) {
	d.add(0, &metadata.BrokerRegistrationChangeRecord{BrokerID: b.ID, BrokerEpoch: b.Epoch, Fenced: metadata.Unfence})
	d.reassess(metadata.NoLeader, b.ID, metadata.NoLeader, leaderless)
}

func (d *decider) fence(b *metadata.Broker) {
	d.reassess(b.ID, metadata.NoLeader, metadata.NoLeader, inISR(b.ID))
	d.add(0, &metadata.BrokerRegistrationChangeRecord{BrokerID: b.ID, BrokerEpoch: b.Epoch, Fenced: metadata.Fence})
}

// beginShutdown moves all leaderships away from a broker, where they can go.
func (d *decider) beginShutdown(b *metadata.Broker) {
	if !b.InControlledShutdown {
		d.add(1, &metadata.BrokerRegistrationChangeRecord{
			BrokerID: b.ID, BrokerEpoch: b.Epoch, InControlledShutdown: metadata.InControlledShutdown,
		})
	}
	d.reassess(b.ID, metadata.NoLeader, metadata.NoLeader, inISR(b.ID))
}

// directoriesOffline takes a broker out of the in-sync sets of partitions in
// directories that failed.
func (d *decider) directoriesOffline(b *metadata.Broker, offline []metadata.UUID) {
	var online []metadata.UUID
	failed := map[metadata.UUID]bool{}
	for _, dir := range b.LogDirs {
		if slices.Contains(offline, dir) {
			failed[dir] = true
		} else {
			online = append(online, dir)
		}
	}
	if len(failed) == 0 {
		return
	}
	d.reassess(b.ID, metadata.NoLeader, metadata.NoLeader, func(p *metadata.Partition) bool {
		dir, ok := p.Directory(b.ID)
		return ok && failed[dir]
	})
	d.add(2, &metadata.BrokerRegistrationChangeRecord{BrokerID: b.ID, BrokerEpoch: b.Epoch, LogDirs: online})
}

func cordonedChange(b *metadata.Broker, dirs []metadata.UUID) bool {
	if b.CordonedLogDirs == nil {
		return true
	}
	sorted := slices.SortedFunc(slices.Values(dirs), metadata.UUID.Compare)
	return !slices.Equal(sorted, b.CordonedLogDirs)
}

// UnregisterBroker forgets a broker that will not come back. It has no result.
type UnregisterBroker struct {
	BrokerID int32
}

func (c UnregisterBroker) decide(d *decider) (any, error) {
	d.atomic = false
	b := d.Image.Broker(c.BrokerID)
	if b == nil {
		return nil, refuse(ErrBrokerNotRegistered, "Broker ID %d is not currently registered", c.BrokerID)
	}
	d.reassess(b.ID, metadata.NoLeader, metadata.NoLeader, inISR(b.ID))
	d.reassess(b.ID, metadata.NoLeader, metadata.NoLeader, inELR(b.ID))
	d.add(0, &metadata.UnregisterBrokerRecord{BrokerID: b.ID, BrokerEpoch: b.Epoch})
	return nil, nil
}

// RegisterController says how this node is reached as a controller. It has no
// result.
type RegisterController struct {
	ControllerID  int32
	IncarnationID metadata.UUID
	Endpoints     []metadata.Endpoint
	Features      []metadata.FeatureRange
}

func (c RegisterController) decide(d *decider) (any, error) {
	if !metadata.SupportsControllerRegistration(d.level) {
		return nil, refuse(ErrUnsupportedVersion,
			"The current MetadataVersion is too old to support controller registrations.")
	}
	d.add(0, &metadata.RegisterControllerRecord{
		ControllerID: c.ControllerID, IncarnationID: c.IncarnationID, EndPoints: c.Endpoints, Features: c.Features,
	})
	return nil, nil
}
