package metadata

// NoLeader is the leader of a partition that has none.
const NoLeader int32 = -1

// NoLeaderChange in a [PartitionChangeRecord] leaves leader and leader epoch as
// they are.
const NoLeaderChange int32 = -2

// NoRecoveryChange in a [PartitionChangeRecord] leaves the recovery state as it
// is.
const NoRecoveryChange int8 = -1

// Leader recovery states (KIP-704).
const (
	LeaderRecovered  int8 = 0
	LeaderRecovering int8 = 1 // elected uncleanly
)

// TopicRecord creates a topic, at first without partitions.
type TopicRecord struct {
	Name    string
	TopicID UUID
}

// Kind implements [Body].
func (*TopicRecord) Kind() Kind { return KindTopic }

func (r *TopicRecord) fields(c *codec) {
	c.string(&r.Name)
	c.uuid(&r.TopicID)
	c.tags()
}

// RemoveTopicRecord deletes a topic with its partitions and configuration.
type RemoveTopicRecord struct {
	TopicID UUID
}

// Kind implements [Body].
func (*RemoveTopicRecord) Kind() Kind { return KindRemoveTopic }

func (r *RemoveTopicRecord) fields(c *codec) {
	c.uuid(&r.TopicID)
	c.tags()
}

// PartitionRecord creates a partition or replaces all that is known of it.
type PartitionRecord struct {
	PartitionID            int32
	TopicID                UUID
	Replicas               []int32
	ISR                    []int32
	RemovingReplicas       []int32
	AddingReplicas         []int32
	Leader                 int32
	LeaderRecoveryState    int8
	LeaderEpoch            int32
	PartitionEpoch         int32
	Directories            []UUID  // one for each replica; since version 1
	EligibleLeaderReplicas []int32 // nil = none; since version 2
	LastKnownELR           []int32 // nil = none; since version 2
}

// Kind implements [Body].
func (*PartitionRecord) Kind() Kind { return KindPartition }

func (r *PartitionRecord) fields(c *codec) {
	c.int32(&r.PartitionID)
	c.uuid(&r.TopicID)
	c.int32s(&r.Replicas)
	c.int32s(&r.ISR)
	c.int32s(&r.RemovingReplicas)
	c.int32s(&r.AddingReplicas)
	c.int32(&r.Leader)
	c.int32(&r.LeaderEpoch)
	c.int32(&r.PartitionEpoch)
	c.since(1, len(r.Directories) > 0, func() { c.uuids(&r.Directories) })
	c.tags(
		tag{0, 0, r.LeaderRecoveryState != LeaderRecovered, func() { c.int8(&r.LeaderRecoveryState) }},
		tag{1, 2, r.EligibleLeaderReplicas != nil, func() { c.nullableInt32s(&r.EligibleLeaderReplicas) }},
		tag{2, 2, r.LastKnownELR != nil, func() { c.nullableInt32s(&r.LastKnownELR) }},
	)
}

// PartitionChangeRecord changes parts of a partition; what is nil, or one of the
// No…Change values, stays. Make one with [NewPartitionChange].
type PartitionChangeRecord struct {
	PartitionID            int32
	TopicID                UUID
	ISR                    []int32
	Leader                 int32 // NoLeaderChange, NoLeader or a broker
	Replicas               []int32
	RemovingReplicas       []int32
	AddingReplicas         []int32
	LeaderRecoveryState    int8
	EligibleLeaderReplicas []int32 // since version 2
	LastKnownELR           []int32 // since version 2
	Directories            []UUID  // since version 1
}

// NewPartitionChange returns a change of nothing.
func NewPartitionChange(topic UUID, partition int32) *PartitionChangeRecord {
	return &PartitionChangeRecord{
		TopicID: topic, PartitionID: partition,
		Leader: NoLeaderChange, LeaderRecoveryState: NoRecoveryChange,
	}
}

// IsNoOp reports whether the record changes nothing.
func (r *PartitionChangeRecord) IsNoOp() bool {
	return r.ISR == nil && r.Leader == NoLeaderChange && r.Replicas == nil && r.RemovingReplicas == nil &&
		r.AddingReplicas == nil && r.LeaderRecoveryState == NoRecoveryChange &&
		r.EligibleLeaderReplicas == nil && r.LastKnownELR == nil && r.Directories == nil
}

// Kind implements [Body].
func (*PartitionChangeRecord) Kind() Kind { return KindPartitionChange }

func (r *PartitionChangeRecord) fields(c *codec) {
	c.int32(&r.PartitionID)
	c.uuid(&r.TopicID)
	c.tags(
		tag{0, 0, r.ISR != nil, func() { c.nullableInt32s(&r.ISR) }},
		tag{1, 0, r.Leader != NoLeaderChange, func() { c.int32(&r.Leader) }},
		tag{2, 0, r.Replicas != nil, func() { c.nullableInt32s(&r.Replicas) }},
		tag{3, 0, r.RemovingReplicas != nil, func() { c.nullableInt32s(&r.RemovingReplicas) }},
		tag{4, 0, r.AddingReplicas != nil, func() { c.nullableInt32s(&r.AddingReplicas) }},
		tag{5, 0, r.LeaderRecoveryState != NoRecoveryChange, func() { c.int8(&r.LeaderRecoveryState) }},
		tag{6, 2, r.EligibleLeaderReplicas != nil, func() { c.nullableInt32s(&r.EligibleLeaderReplicas) }},
		tag{7, 2, r.LastKnownELR != nil, func() { c.nullableInt32s(&r.LastKnownELR) }},
		tag{8, 1, r.Directories != nil, func() { c.nullableUUIDs(&r.Directories) }},
	)
}

// ClearELRRecord empties the eligible and last known leader replicas of a topic,
// or of all topics.
type ClearELRRecord struct {
	TopicName string // "" = all topics
}

// Kind implements [Body].
func (*ClearELRRecord) Kind() Kind { return KindClearELR }

func (r *ClearELRRecord) fields(c *codec) {
	c.string(&r.TopicName)
	c.tags()
}

// ConfigRecord sets or removes one configuration key of a resource.
type ConfigRecord struct {
	ResourceType ResourceType
	ResourceName string
	Name         string
	Value        *string // nil removes it
}

// Kind implements [Body].
func (*ConfigRecord) Kind() Kind { return KindConfig }

func (r *ConfigRecord) fields(c *codec) {
	c.int8((*int8)(&r.ResourceType))
	c.string(&r.ResourceName)
	c.string(&r.Name)
	c.nullableString(&r.Value)
	c.tags()
}
