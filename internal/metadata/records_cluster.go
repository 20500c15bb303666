package metadata

// RegisterBrokerRecord begins a broker's registration, or replaces it.
type RegisterBrokerRecord struct {
	BrokerID             int32
	IsMigratingZkBroker  bool // since version 2
	IncarnationID        UUID
	BrokerEpoch          int64
	EndPoints            []Endpoint
	Features             []FeatureRange
	Rack                 *string
	Fenced               bool
	InControlledShutdown bool   // since version 1
	LogDirs              []UUID // since version 3
	CordonedLogDirs      []UUID // since version 4; nil = not said
}

// Endpoint is one listener of a broker or controller.
type Endpoint struct {
	Name             string
	Host             string
	Port             uint16
	SecurityProtocol int16 // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// FeatureRange is what a node supports of one feature, inclusive.
type FeatureRange struct {
	Name string
	Min  int16
	Max  int16
}

// Kind implements [Body].
func (*RegisterBrokerRecord) Kind() Kind { return KindRegisterBroker }

func (r *RegisterBrokerRecord) fields(c *codec) {
	c.int32(&r.BrokerID)
	c.since(2, r.IsMigratingZkBroker, func() { c.bool(&r.IsMigratingZkBroker) })
	c.uuid(&r.IncarnationID)
	c.int64(&r.BrokerEpoch)
	c.endpoints(&r.EndPoints)
	c.features(&r.Features)
	c.nullableString(&r.Rack)
	c.bool(&r.Fenced)
	c.since(1, r.InControlledShutdown, func() { c.bool(&r.InControlledShutdown) })
	c.tags(
		tag{0, 3, len(r.LogDirs) > 0, func() { c.uuids(&r.LogDirs) }},
		tag{1, 4, r.CordonedLogDirs != nil, func() { c.nullableUUIDs(&r.CordonedLogDirs) }},
	)
}

func (c *codec) endpoints(v *[]Endpoint) {
	array(c, v, false, 7, func(c *codec, e *Endpoint) {
		c.string(&e.Name)
		c.string(&e.Host)
		c.uint16(&e.Port)
		c.int16(&e.SecurityProtocol)
		c.tags()
	})
}

func (c *codec) features(v *[]FeatureRange) {
	array(c, v, false, 6, func(c *codec, f *FeatureRange) {
		c.string(&f.Name)
		c.int16(&f.Min)
		c.int16(&f.Max)
		c.tags()
	})
}

// UnregisterBrokerRecord ends a broker's registration.
type UnregisterBrokerRecord struct {
	BrokerID    int32
	BrokerEpoch int64
}

// Kind implements [Body].
func (*UnregisterBrokerRecord) Kind() Kind { return KindUnregisterBroker }

func (r *UnregisterBrokerRecord) fields(c *codec) {
	c.int32(&r.BrokerID)
	c.int64(&r.BrokerEpoch)
	c.tags()
}

// FenceBrokerRecord fences a broker; logs of older feature levels hold it.
type FenceBrokerRecord struct {
	ID    int32
	Epoch int64
}

// Kind implements [Body].
func (*FenceBrokerRecord) Kind() Kind { return KindFenceBroker }

func (r *FenceBrokerRecord) fields(c *codec) {
	c.int32(&r.ID)
	c.int64(&r.Epoch)
	c.tags()
}

// UnfenceBrokerRecord lets a broker serve; logs of older feature levels hold it.
type UnfenceBrokerRecord struct {
	ID    int32
	Epoch int64
}

// Kind implements [Body].
func (*UnfenceBrokerRecord) Kind() Kind { return KindUnfenceBroker }

func (r *UnfenceBrokerRecord) fields(c *codec) {
	c.int32(&r.ID)
	c.int64(&r.Epoch)
	c.tags()
}

// Values of the Fenced and InControlledShutdown fields of a
// [BrokerRegistrationChangeRecord].
const (
	Unfence              int8 = -1
	NoFencingChange      int8 = 0
	Fence                int8 = 1
	InControlledShutdown int8 = 1
)

// BrokerRegistrationChangeRecord changes parts of a broker's registration.
type BrokerRegistrationChangeRecord struct {
	BrokerID             int32
	BrokerEpoch          int64
	Fenced               int8   // -1 unfence, 0 no change, 1 fence
	InControlledShutdown int8   // 0 no change, 1 yes; since version 1
	LogDirs              []UUID // empty = no change; since version 2
	CordonedLogDirs      []UUID // nil = no change; since version 3
}

// Kind implements [Body].
func (*BrokerRegistrationChangeRecord) Kind() Kind { return KindBrokerRegistrationChange }

func (r *BrokerRegistrationChangeRecord) fields(c *codec) {
	c.int32(&r.BrokerID)
	c.int64(&r.BrokerEpoch)
	c.tags(
		tag{0, 0, r.Fenced != 0, func() { c.int8(&r.Fenced) }},
		tag{1, 1, r.InControlledShutdown != 0, func() { c.int8(&r.InControlledShutdown) }},
		tag{2, 2, len(r.LogDirs) > 0, func() { c.uuids(&r.LogDirs) }},
		tag{3, 3, r.CordonedLogDirs != nil, func() { c.nullableUUIDs(&r.CordonedLogDirs) }},
	)
}

// RegisterControllerRecord says how a controller is reached.
type RegisterControllerRecord struct {
	ControllerID     int32
	IncarnationID    UUID
	ZkMigrationReady bool
	EndPoints        []Endpoint
	Features         []FeatureRange
}

// Kind implements [Body].
func (*RegisterControllerRecord) Kind() Kind { return KindRegisterController }

func (r *RegisterControllerRecord) fields(c *codec) {
	c.int32(&r.ControllerID)
	c.uuid(&r.IncarnationID)
	c.bool(&r.ZkMigrationReady)
	c.endpoints(&r.EndPoints)
	c.features(&r.Features)
	c.tags()
}

// UnregisterControllerRecord ends a controller's registration.
type UnregisterControllerRecord struct {
	ControllerID int32
}

// Kind implements [Body].
func (*UnregisterControllerRecord) Kind() Kind { return KindUnregisterController }

func (r *UnregisterControllerRecord) fields(c *codec) {
	c.int32(&r.ControllerID)
	c.tags()
}

// FeatureLevelRecord sets the finalized level of a feature; 0 removes it.
type FeatureLevelRecord struct {
	Name         string
	FeatureLevel int16
}

// Kind implements [Body].
func (*FeatureLevelRecord) Kind() Kind { return KindFeatureLevel }

func (r *FeatureLevelRecord) fields(c *codec) {
	c.string(&r.Name)
	c.int16(&r.FeatureLevel)
	c.tags()
}

// ZkMigrationStateRecord is a leftover of clusters that once used ZooKeeper.
type ZkMigrationStateRecord struct {
	State int8
}

// Kind implements [Body].
func (*ZkMigrationStateRecord) Kind() Kind { return KindZkMigrationState }

func (r *ZkMigrationStateRecord) fields(c *codec) {
	c.int8(&r.State)
	c.tags()
}

// ProducerIDsRecord gives a block of producer ids to a broker.
type ProducerIDsRecord struct {
	BrokerID       int32
	BrokerEpoch    int64
	NextProducerID int64 // first id of the next block to be given out
}

// Kind implements [Body].
func (*ProducerIDsRecord) Kind() Kind { return KindProducerIDs }

func (r *ProducerIDsRecord) fields(c *codec) {
	c.int32(&r.BrokerID)
	c.int64(&r.BrokerEpoch)
	c.int64(&r.NextProducerID)
	c.tags()
}

// NoOpRecord changes nothing; it moves the log's end while the cluster idles.
type NoOpRecord struct{}

// Kind implements [Body].
func (*NoOpRecord) Kind() Kind { return KindNoOp }

func (*NoOpRecord) fields(c *codec) { c.tags() }

// BeginTransactionRecord begins a metadata transaction: what follows counts only
// once it ends.
type BeginTransactionRecord struct {
	Name *string
}

// Kind implements [Body].
func (*BeginTransactionRecord) Kind() Kind { return KindBeginTransaction }

func (r *BeginTransactionRecord) fields(c *codec) {
	c.tags(tag{0, 0, r.Name != nil, func() { c.nullableString(&r.Name) }})
}

// EndTransactionRecord makes the records of a metadata transaction count.
type EndTransactionRecord struct{}

// Kind implements [Body].
func (*EndTransactionRecord) Kind() Kind { return KindEndTransaction }

func (*EndTransactionRecord) fields(c *codec) { c.tags() }

// AbortTransactionRecord drops the records of a metadata transaction.
type AbortTransactionRecord struct {
	Reason *string
}

// Kind implements [Body].
func (*AbortTransactionRecord) Kind() Kind { return KindAbortTransaction }

func (r *AbortTransactionRecord) fields(c *codec) {
	c.tags(tag{0, 0, r.Reason != nil, func() { c.nullableString(&r.Reason) }})
}
