package controller

import (
	"slices"

	"tidemark/internal/metadata"
)

// MorePartitions says how many partitions a topic is to have.
type MorePartitions struct {
	Topic       string
	Count       int32     // in all
	Assignments [][]int32 // replicas of the new ones; nil: the controller places them
}

// CreatePartitions adds partitions to topics. Its result is a
// [CreatePartitionsResult].
type CreatePartitions struct {
	Topics       []MorePartitions
	ValidateOnly bool
}

// TopicOutcome is one topic of a result.
type TopicOutcome struct {
	Topic string
	Err   *Error
}

// CreatePartitionsResult has names given more than once first, then the others
// in the order of the command.
type CreatePartitionsResult struct {
	Topics []TopicOutcome
}

func (c CreatePartitions) decide(d *decider) (any, error) {
	var res CreatePartitionsResult
	count := map[string]int{}
	for _, t := range c.Topics {
		if count[t.Topic]++; count[t.Topic] == 2 {
			res.Topics = append(res.Topics, TopicOutcome{t.Topic, refuse(ErrInvalidRequest, "Duplicate topic name.")})
		}
	}
	for _, t := range c.Topics {
		if count[t.Topic] == 1 {
			err := d.createPartitions(t)
			res.Topics = append(res.Topics, TopicOutcome{t.Topic, asError(err, ErrUnknownServerError)})
		}
	}
	if c.ValidateOnly {
		d.records = nil
	}
	return res, nil
}

func (d *decider) createPartitions(m MorePartitions) error {
	t := d.Image.Topic(m.Topic)
	if t == nil {
		return &Error{Reason: ErrUnknownTopic}
	}
	have := int32(t.NumPartitions())
	switch {
	case m.Count == have:
		return refuse(ErrInvalidPartitions, "Topic already has %d partition(s).", have)
	case m.Count < have:
		return refuse(ErrInvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.",
			m.Topic, have, m.Count)
	case m.Assignments != nil && len(m.Assignments) != int(m.Count-have):
		return refuse(ErrInvalidReplicaAssignment, "Attempted to add %d additional partition(s), but only %d "+
			"assignment(s) were specified.", m.Count-have, len(m.Assignments))
	case len(d.records)+int(m.Count-have) > MaxRecords:
		// Kafka: 4.3.1 answers UNKNOWN_SERVER_ERROR here, yet adds the partitions up
		// to the limit. Nothing is added.
		return refuse(ErrPolicyViolation, "Unable to perform excessively large batch operation.")
	}
	factor := replicationFactor(t)
	if factor == 0 {
		return refuse(ErrUnknownServerError, "Invalid state: topic %s appears to have no partitions.", m.Topic)
	}
	partitions, err := d.morePartitions(m, have, factor)
	if err != nil {
		return err
	}
	for i, p := range partitions {
		d.records = append(d.records, p.Record(t.ID, have+int32(i), d.level))
	}
	return nil
}

// replicationFactor is that of the topic's first partition, 0 without one.
func replicationFactor(t *metadata.Topic) int {
	for _, p := range t.Partitions() {
		return len(p.Replicas)
	}
	return 0
}

func (d *decider) morePartitions(m MorePartitions, first int32, factor int) ([]*metadata.Partition, error) {
	if m.Assignments == nil {
		partitions, err := d.place(int(m.Count-first), factor)
		if err != nil {
			return nil, refuse(ErrInvalidReplicationFactor, "%s", err.Error())
		}
		return partitions, nil
	}
	partitions := make([]*metadata.Partition, 0, len(m.Assignments))
	for i, brokers := range m.Assignments {
		p, err := d.assigned(Assignment{first + int32(i), brokers}, factor)
		if err != nil {
			return nil, err
		}
		partitions = append(partitions, p)
	}
	return partitions, nil
}

// newPartitions returns the partitions of a new topic, at least one.
func (d *decider) newPartitions(t NewTopic) ([]*metadata.Partition, error) {
	switch {
	case len(t.Assignments) > 0:
		return d.assignedPartitions(t)
	case t.ReplicationFactor < -1 || t.ReplicationFactor == 0:
		return nil, refuse(ErrInvalidReplicationFactor,
			"Replication factor must be larger than 0, or -1 to use the default value.")
	case t.Partitions < -1 || t.Partitions == 0:
		return nil, refuse(ErrInvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	partitions, factor := t.Partitions, t.ReplicationFactor
	if partitions == -1 {
		partitions = d.DefaultPartitions
	}
	if factor == -1 {
		factor = d.DefaultReplicationFactor
	}
	placed, err := d.place(int(partitions), int(factor))
	if err != nil {
		return nil, refuse(ErrInvalidReplicationFactor,
			"Unable to replicate the partition %d time(s): %s", factor, err.Error())
	}
	return placed, nil
}

// assignedPartitions places replicas where the client says.
func (d *decider) assignedPartitions(t NewTopic) ([]*metadata.Partition, error) {
	switch {
	case t.ReplicationFactor != -1:
		return nil, refuse(ErrInvalidRequest,
			"A manual partition assignment was specified, but replication factor was not set to -1.")
	case t.Partitions != -1:
		return nil, refuse(ErrInvalidRequest,
			"A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byID := map[int32]*metadata.Partition{}
	factor := 0
	for _, a := range t.Assignments {
		if byID[a.Partition] != nil {
			return nil, refuse(ErrInvalidReplicaAssignment,
				"Found multiple manual partition assignments for partition %d", a.Partition)
		}
		p, err := d.assigned(a, factor)
		if err != nil {
			return nil, err
		}
		byID[a.Partition], factor = p, len(a.Brokers)
	}
	partitions := make([]*metadata.Partition, len(byID))
	for i := range partitions {
		if partitions[i] = byID[int32(i)]; partitions[i] == nil {
			return nil, refuse(ErrInvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
	}
	return partitions, nil
}

// assigned checks one assignment; factor is the replication factor it must have,
// 0 for any.
func (d *decider) assigned(a Assignment, factor int) (*metadata.Partition, error) {
	if err := d.checkReplicas(a.Brokers, factor); err != nil {
		return nil, err
	}
	p := d.newPartition(a.Brokers)
	if len(p.ISR) == 0 {
		return nil, refuse(ErrInvalidReplicaAssignment, "All brokers specified in the manual partition assignment for "+
			"partition %d are fenced or in controlled shutdown.", a.Partition)
	}
	return p, nil
}

// checkReplicas checks the replicas that a partition is to have; factor is how many, 0 for any number.
func (d *decider) checkReplicas(brokers []int32, factor int) error {
	if len(brokers) == 0 {
		return refuse(ErrInvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(brokers))
	for i, b := range sorted {
		if d.Image.Broker(b) == nil {
			return refuse(ErrInvalidReplicaAssignment,
				"The manual partition assignment includes broker %d, but no such broker is registered.", b)
		}
		if i > 0 && sorted[i-1] == b {
			return refuse(ErrInvalidReplicaAssignment,
				"The manual partition assignment includes the broker %d more than once.", b)
		}
	}
	if factor > 0 && len(sorted) != factor {
		return refuse(ErrInvalidReplicaAssignment, "The manual partition assignment includes a partition with %d "+
			"replica(s), but this is not consistent with previous partitions, which have %d replica(s).",
			len(sorted), factor)
	}
	return nil
}

// newPartition is a partition with the active ones of its replicas in sync; the
// ISR is empty when none is.
func (d *decider) newPartition(replicas []int32) *metadata.Partition {
	p := &metadata.Partition{Replicas: replicas, Leader: metadata.NoLeader}
	for _, b := range replicas {
		p.Directories = append(p.Directories, d.defaultDirectory(b))
		if d.isActive(b) {
			p.ISR = append(p.ISR, b)
		}
	}
	if len(p.ISR) > 0 {
		p.Leader = p.ISR[0]
	}
	return p
}

// defaultDirectory is the log directory of a new replica: that of the broker
// when it has but one, else the broker is to choose.
func (d *decider) defaultDirectory(broker int32) metadata.UUID {
	b := d.Image.Broker(broker)
	switch {
	case b == nil:
		return metadata.DirUnassigned
	case len(b.LogDirs) == 0:
		return metadata.ZeroUUID
	case len(b.LogDirs) == 1:
		return b.LogDirs[0]
	default:
		return metadata.DirUnassigned
	}
}
