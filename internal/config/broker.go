package config

import (
	"math"
	"slices"
	"time"
)

// Broker is the settings of a broker that the program obeys, resolved and in Go types. A time that Kafka holds in ms,
// s, minutes or hours is a Duration; one too long for a Duration is the longest Duration. Sizes are bytes.
type Broker struct {
	NodeID       int32
	ProcessRoles []string // broker, controller
	Rack         string   // "" when the broker has none

	LogDirs         []string // never empty
	CordonedLogDirs []string // "*" resolved
	MetadataLogDir  string   // the first log directory unless set

	Listeners               []Listener
	AdvertisedListeners     []Listener // of the broker role; hosts may be empty
	ControllerListenerNames []string
	InterBrokerListenerName string
	QuorumVoters            []Voter
	QuorumBootstrapServers  []string // HOST:PORT

	SocketSendBufferBytes        int32 // -1: the system's default
	SocketReceiveBufferBytes     int32 // likewise, and so it is when the key is not set
	SocketRequestMaxBytes        int32
	MaxConnections               int32
	MaxConnectionsPerIP          int32
	MaxConnectionsPerIPOverrides map[string]int32
	MaxConnectionCreationRate    int32 // per second
	QuotaWindows                 int32 // over which rates are measured
	QuotaWindow                  time.Duration
	ConnectionsMaxIdle           time.Duration
	QueuedMaxRequestBytes        int64 // ≤ 0: no limit
	RequestTimeout               time.Duration

	AutoCreateTopicsEnable               bool
	DeleteTopicEnable                    bool
	NumPartitions                        int32
	DefaultReplicationFactor             int32
	FetchMaxBytes                        int32
	MaxIncrementalFetchSessionCacheSlots int32
	MaxRequestPartitionSizeLimit         int32

	ReplicaHighWatermarkCheckpointInterval time.Duration

	NumRecoveryThreadsPerDataDir          int32
	LogInitialTaskDelay                   time.Duration
	LogRetentionCheckInterval             time.Duration
	LogFlushSchedulerInterval             time.Duration
	LogFlushOffsetCheckpointInterval      time.Duration
	LogFlushStartOffsetCheckpointInterval time.Duration

	LogCleanerEnable           bool
	LogCleanerThreads          int32
	LogCleanerBackoff          time.Duration
	LogCleanerDedupeBufferSize int64
	LogCleanerIOBufferSize     int32
	LogCleanerLoadFactor       float64
	LogCleanerMaxBytesPerSec   float64

	ProducerIDExpiration              time.Duration
	ProducerIDExpirationCheckInterval time.Duration
	Transactions                      Transactions
	Groups                            GroupCoordinator

	MetadataLogMaxRecordBytesBetweenSnapshots int64
	MetadataLogMaxSnapshotInterval            time.Duration // 0: never by time
	MetadataLogSegmentBytes                   int32
	MetadataLogSegmentAge                     time.Duration
	MetadataMaxRetentionBytes                 int64
	MetadataMaxRetention                      time.Duration

	OffsetsTopic     InternalTopic
	TransactionTopic InternalTopic
	ShareStateTopic  InternalTopic

	AdminListener string        // "" for none
	APIVersions   string        // wide or kafka
	LookupSlow    time.Duration // negative: never
	MemoryBytes   int64
	OpenFiles     int32

	ScrubInterval       time.Duration // 0: none
	ScrubBytesPerSecond int64
}

// InternalTopic is how an internal topic is created.
type InternalTopic struct {
	NumPartitions     int32
	ReplicationFactor int16
	SegmentBytes      int32
	MinInsyncReplicas int32 // 0: the broker's default
}

// Broker returns the resolved settings. They must not be changed.
func (n *Node) Broker() *Broker { return n.broker }

func (n *Node) int(name string) int32     { return int32(n.values[name].i) }
func (n *Node) long(name string) int64    { return n.values[name].i }
func (n *Node) bool(name string) bool     { return n.values[name].b }
func (n *Node) text(name string) string   { return n.values[name].s }
func (n *Node) list(name string) []string { return n.values[name].list }

// intIfSet returns -1 for a key that is not set: its default in Kafka is better left to the system.
func (n *Node) intIfSet(name string) int32 {
	if _, set := n.effective[name]; !set {
		return -1
	}
	return n.int(name)
}

// PerListener are the values of an integer key that listeners may have for themselves (listener.name.NAME.KEY), by
// name.
func (n *Node) PerListener(key string) map[string]int {
	out := make(map[string]int, len(n.broker.Listeners))
	for _, l := range n.broker.Listeners {
		out[l.Name] = int(n.ofListener(l, key))
	}
	return out
}

// duration returns a time given in the unit, cut off at the longest and shortest Duration.
func (n *Node) duration(name string, unit time.Duration) time.Duration {
	v := n.values[name].i
	switch {
	case v > math.MaxInt64/int64(unit):
		return math.MaxInt64
	case v < math.MinInt64/int64(unit):
		return math.MinInt64
	default:
		return time.Duration(v) * unit
	}
}

func (n *Node) ms(name string) time.Duration { return n.duration(name, time.Millisecond) }

func newBroker(n *Node) (*Broker, error) {
	b := &Broker{
		NodeID:       n.int("node.id"),
		ProcessRoles: n.list("process.roles"),
		Rack:         n.text("broker.rack"),
	}
	b.fillDirs(n)
	b.fillLimits(n)
	b.fillLog(n)
	b.fillMetadata(n)
	b.fillTopics(n)
	b.fillOwn(n)
	if err := n.checkCoordinators(); err != nil {
		return nil, err
	}
	return b, b.fillListeners(n)
}

func (b *Broker) fillDirs(n *Node) {
	b.LogDirs = n.list("log.dirs")
	if n.values["log.dirs"].null {
		b.LogDirs = n.list("log.dir")
	}
	b.CordonedLogDirs = n.list("cordoned.log.dirs")
	if slices.Contains(b.CordonedLogDirs, "*") {
		b.CordonedLogDirs = b.LogDirs
	}
	b.MetadataLogDir = n.text("metadata.log.dir")
	if n.values["metadata.log.dir"].null && len(b.LogDirs) > 0 {
		b.MetadataLogDir = b.LogDirs[0]
	}
}

func (b *Broker) fillLimits(n *Node) {
	b.SocketSendBufferBytes = n.int("socket.send.buffer.bytes")
	b.SocketReceiveBufferBytes = n.intIfSet("socket.receive.buffer.bytes")
	b.SocketRequestMaxBytes = n.int("socket.request.max.bytes")
	b.MaxConnections = n.int("max.connections")
	b.MaxConnectionsPerIP = n.int("max.connections.per.ip")
	b.MaxConnectionCreationRate = n.int("max.connection.creation.rate")
	b.QuotaWindows = n.int("quota.window.num")
	b.QuotaWindow = n.duration("quota.window.size.seconds", time.Second)
	b.ConnectionsMaxIdle = n.ms("connections.max.idle.ms")
	b.QueuedMaxRequestBytes = n.long("queued.max.request.bytes")
	b.RequestTimeout = n.ms("request.timeout.ms")
	b.AutoCreateTopicsEnable = n.bool("auto.create.topics.enable")
	b.DeleteTopicEnable = n.bool("delete.topic.enable")
	b.NumPartitions = n.int("num.partitions")
	b.DefaultReplicationFactor = n.int("default.replication.factor")
	b.FetchMaxBytes = n.int("fetch.max.bytes")
	b.MaxIncrementalFetchSessionCacheSlots = n.int("max.incremental.fetch.session.cache.slots")
	b.MaxRequestPartitionSizeLimit = n.int("max.request.partition.size.limit")
	b.ReplicaHighWatermarkCheckpointInterval = n.ms("replica.high.watermark.checkpoint.interval.ms")
}

func (b *Broker) fillLog(n *Node) {
	b.NumRecoveryThreadsPerDataDir = n.int("num.recovery.threads.per.data.dir")
	b.LogInitialTaskDelay = n.ms("log.initial.task.delay.ms")
	b.LogRetentionCheckInterval = n.ms("log.retention.check.interval.ms")
	b.LogFlushSchedulerInterval = n.ms("log.flush.scheduler.interval.ms")
	b.LogFlushOffsetCheckpointInterval = n.ms("log.flush.offset.checkpoint.interval.ms")
	b.LogFlushStartOffsetCheckpointInterval = n.ms("log.flush.start.offset.checkpoint.interval.ms")
	b.LogCleanerEnable = n.bool("log.cleaner.enable")
	b.LogCleanerThreads = n.int("log.cleaner.threads")
	b.LogCleanerBackoff = n.ms("log.cleaner.backoff.ms")
	b.LogCleanerDedupeBufferSize = n.long("log.cleaner.dedupe.buffer.size")
	b.LogCleanerIOBufferSize = n.int("log.cleaner.io.buffer.size")
	b.LogCleanerLoadFactor = n.values["log.cleaner.io.buffer.load.factor"].f
	b.LogCleanerMaxBytesPerSec = n.values["log.cleaner.io.max.bytes.per.second"].f
	b.ProducerIDExpiration = n.ms("producer.id.expiration.ms")
	b.ProducerIDExpirationCheckInterval = n.ms("producer.id.expiration.check.interval.ms")
	b.Transactions = n.transactions()
	b.Groups = n.groups()
}

func (b *Broker) fillMetadata(n *Node) {
	b.MetadataLogMaxRecordBytesBetweenSnapshots = n.long("metadata.log.max.record.bytes.between.snapshots")
	b.MetadataLogMaxSnapshotInterval = n.ms("metadata.log.max.snapshot.interval.ms")
	b.MetadataLogSegmentBytes = n.int("metadata.log.segment.bytes")
	if v := n.values["internal.metadata.log.segment.bytes"]; !v.null {
		b.MetadataLogSegmentBytes = int32(v.i)
	}
	b.MetadataLogSegmentAge = n.ms("metadata.log.segment.ms")
	b.MetadataMaxRetentionBytes = n.long("metadata.max.retention.bytes")
	b.MetadataMaxRetention = n.ms("metadata.max.retention.ms")
}

func (b *Broker) fillTopics(n *Node) {
	b.OffsetsTopic = InternalTopic{
		NumPartitions:     n.int("offsets.topic.num.partitions"),
		ReplicationFactor: int16(n.int("offsets.topic.replication.factor")),
		SegmentBytes:      n.int("offsets.topic.segment.bytes"),
	}
	b.TransactionTopic = InternalTopic{
		NumPartitions:     n.int("transaction.state.log.num.partitions"),
		ReplicationFactor: int16(n.int("transaction.state.log.replication.factor")),
		SegmentBytes:      n.int("transaction.state.log.segment.bytes"),
		MinInsyncReplicas: n.int("transaction.state.log.min.isr"),
	}
	b.ShareStateTopic = InternalTopic{
		NumPartitions:     n.int("share.coordinator.state.topic.num.partitions"),
		ReplicationFactor: int16(n.int("share.coordinator.state.topic.replication.factor")),
		SegmentBytes:      n.int("share.coordinator.state.topic.segment.bytes"),
		MinInsyncReplicas: n.int("share.coordinator.state.topic.min.isr"),
	}
}

func (b *Broker) fillOwn(n *Node) {
	b.AdminListener = n.text("tidemark.admin.listener")
	b.APIVersions = n.text("tidemark.api.versions")
	b.LookupSlow = n.ms("tidemark.lookup.slow.ms")
	b.MemoryBytes = n.long("tidemark.memory.bytes")
	b.OpenFiles = n.int("tidemark.open.files")
	b.ScrubInterval = n.ms("tidemark.scrub.interval.ms")
	b.ScrubBytesPerSecond = n.long("tidemark.scrub.bytes.per.second")
}
