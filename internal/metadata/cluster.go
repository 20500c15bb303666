package metadata

import (
	"slices"
	"strings"
)

// Broker is the registration of a broker; read only.
type Broker struct {
	ID                   int32
	Epoch                int64 // offset of the record that registered this incarnation
	IncarnationID        UUID
	Endpoints            []Endpoint     // by name
	Features             []FeatureRange // by name
	Rack                 *string
	Fenced               bool
	InControlledShutdown bool
	IsMigratingZkBroker  bool
	LogDirs              []UUID // online directories, ascending
	CordonedLogDirs      []UUID // nil = not said
}

// Active reports whether the broker may lead and be given replicas.
func (b *Broker) Active() bool { return !b.Fenced && !b.InControlledShutdown }

// Endpoint returns the endpoint of a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Name == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Feature returns what the broker supports of a feature; both 0 when it did not
// say.
func (b *Broker) Feature(name string) FeatureRange {
	for _, f := range b.Features {
		if f.Name == name {
			return f
		}
	}
	return FeatureRange{Name: name}
}

// HasLogDir reports whether the broker has a directory online, which the ids
// for unassigned and migrating always are.
func (b *Broker) HasLogDir(dir UUID) bool {
	return dir == DirUnassigned || dir == ZeroUUID || slices.Contains(b.LogDirs, dir)
}

func newBroker(r *RegisterBrokerRecord) *Broker {
	return &Broker{
		ID: r.BrokerID, Epoch: r.BrokerEpoch, IncarnationID: r.IncarnationID,
		Endpoints: sortedEndpoints(r.EndPoints), Features: sortedFeatures(r.Features),
		Rack: r.Rack, Fenced: r.Fenced, InControlledShutdown: r.InControlledShutdown,
		IsMigratingZkBroker: r.IsMigratingZkBroker,
		LogDirs:             sortedDirs(r.LogDirs), CordonedLogDirs: sortedDirs(r.CordonedLogDirs),
	}
}

// with returns the broker after a registration change.
func (b *Broker) with(r *BrokerRegistrationChangeRecord) *Broker {
	next := *b
	if r.Fenced != NoFencingChange {
		next.Fenced = r.Fenced == Fence
	}
	if r.InControlledShutdown == InControlledShutdown {
		next.InControlledShutdown = true
	}
	if len(r.LogDirs) > 0 {
		next.LogDirs = sortedDirs(r.LogDirs)
	}
	if r.CordonedLogDirs != nil {
		next.CordonedLogDirs = sortedDirs(r.CordonedLogDirs)
	}
	return &next
}

// record returns the record that registers the broker as it is.
func (b *Broker) record(level int16) Record {
	version := RegisterBrokerVersion(level)
	r := &RegisterBrokerRecord{
		BrokerID: b.ID, IncarnationID: b.IncarnationID, BrokerEpoch: b.Epoch,
		EndPoints: b.Endpoints, Features: b.Features, Rack: b.Rack,
		Fenced: b.Fenced, InControlledShutdown: b.InControlledShutdown,
	}
	if version >= 2 {
		r.IsMigratingZkBroker = b.IsMigratingZkBroker
	}
	if version >= 3 {
		r.LogDirs = b.LogDirs
	}
	if version >= 4 {
		r.CordonedLogDirs = b.CordonedLogDirs
	}
	return Record{Version: version, Body: r}
}

// Controller is the registration of a controller; read only.
type Controller struct {
	ID               int32
	IncarnationID    UUID
	ZkMigrationReady bool
	Endpoints        []Endpoint     // by name
	Features         []FeatureRange // by name
}

func newController(r *RegisterControllerRecord) *Controller {
	return &Controller{
		ID: r.ControllerID, IncarnationID: r.IncarnationID, ZkMigrationReady: r.ZkMigrationReady,
		Endpoints: sortedEndpoints(r.EndPoints), Features: sortedFeatures(r.Features),
	}
}

func (c *Controller) record() Record {
	return Record{Body: &RegisterControllerRecord{
		ControllerID: c.ID, IncarnationID: c.IncarnationID, ZkMigrationReady: c.ZkMigrationReady,
		EndPoints: c.Endpoints, Features: c.Features,
	}}
}

// sortedEndpoints sorts by name; of two with one name the later stays.
func sortedEndpoints(list []Endpoint) []Endpoint {
	return sortedBy(list, func(a, b Endpoint) int { return strings.Compare(a.Name, b.Name) })
}

func sortedFeatures(list []FeatureRange) []FeatureRange {
	return sortedBy(list, func(a, b FeatureRange) int { return strings.Compare(a.Name, b.Name) })
}

func sortedBy[T any](list []T, compare func(a, b T) int) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	slices.SortStableFunc(list, compare)
	return slices.CompactFunc(list, func(a, b T) bool { return compare(a, b) == 0 })
}

func sortedDirs(list []UUID) []UUID {
	if list == nil {
		return nil
	}
	list = append([]UUID{}, list...)
	slices.SortFunc(list, UUID.Compare)
	return list
}
