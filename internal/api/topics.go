package api

import (
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
)

// The internal topics, which clients may read but not write (except for Kafka's own tools).
const (
	offsetsTopic = "__consumer_offsets"
	txnTopic     = "__transaction_state"
	shareTopic   = "__share_group_state"
)

// adminClientID is the client id with which Kafka lets tools write to internal topics.
const adminClientID = "__admin_client"

func isInternal(topic string) bool {
	return topic == offsetsTopic || topic == txnTopic || topic == shareTopic
}

// partitionOf finds a partition by the id of its topic, or by name where the id is zero.
//
// Errors: replica.ErrUnknownTopicID, replica.ErrUnknownPartition, replica.ErrNotLeader when another broker has it.
func (a *API) partitionOf(name string, id metadata.UUID, partition int32) (*replica.Partition, error) {
	byID := id != metadata.ZeroUUID
	var p *replica.Partition
	var err error
	if byID {
		p, err = a.Replicas.PartitionByID(id, partition)
	} else {
		p, err = a.Replicas.Partition(name, partition)
	}
	if err == nil {
		return p, nil
	}
	image := a.Metadata.Image()
	topic := image.Topic(name)
	if byID {
		if topic = image.TopicByID(id); topic == nil {
			return nil, replica.ErrUnknownTopicID
		}
	}
	if topic != nil && topic.Partition(partition) != nil {
		return nil, replica.ErrNotLeader
	}
	return nil, replica.ErrUnknownPartition
}
