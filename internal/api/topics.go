package api

import (
	"slices"

	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
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
	if id != metadata.ZeroUUID {
		return a.partitionByID(id, partition)
	}
	return a.partitionByName(name, partition)
}

// partitionByName is partitionOf by name.
func (a *API) partitionByName(name string, partition int32) (*replica.Partition, error) {
	p, err := a.Replicas.Partition(name, partition)
	if err == nil {
		return p, nil
	}
	if topic := a.Metadata.Image().Topic(name); topic != nil && topic.Partition(partition) != nil {
		return nil, replica.ErrNotLeader
	}
	return nil, replica.ErrUnknownPartition
}

// partitionByID is partitionOf by id; no topic has the zero id.
func (a *API) partitionByID(id metadata.UUID, partition int32) (*replica.Partition, error) {
	p, err := a.Replicas.PartitionByID(id, partition)
	if err == nil {
		return p, nil
	}
	topic := a.Metadata.Image().TopicByID(id)
	switch {
	case topic == nil:
		return nil, replica.ErrUnknownTopicID
	case topic.Partition(partition) != nil:
		return nil, replica.ErrNotLeader
	}
	return nil, replica.ErrUnknownPartition
}

// currentLeader is who leads a partition, as the metadata says.
func (a *API) currentLeader(name string, id metadata.UUID, partition int32) *protocol.LeaderAndEpoch {
	image := a.Metadata.Image()
	topic := image.Topic(name)
	if id != metadata.ZeroUUID {
		topic = image.TopicByID(id)
	}
	if topic == nil || topic.Partition(partition) == nil {
		return &protocol.LeaderAndEpoch{LeaderID: -1, LeaderEpoch: -1}
	}
	p := topic.Partition(partition)
	return &protocol.LeaderAndEpoch{LeaderID: p.Leader, LeaderEpoch: p.LeaderEpoch}
}

// addEndpoint adds where a broker can be reached, once, if it can.
func (a *API) addEndpoint(c *call, list []protocol.NodeEndpoint, broker int32) []protocol.NodeEndpoint {
	known := slices.ContainsFunc(list, func(e protocol.NodeEndpoint) bool { return e.NodeID == broker })
	b := a.Metadata.Image().Broker(broker)
	if known || b == nil || b.Fenced {
		return list
	}
	endpoint, ok := b.Endpoint(c.caller.Listener)
	if !ok {
		return list
	}
	return append(list, protocol.NodeEndpoint{NodeID: broker, Host: endpoint.Host, Port: int32(endpoint.Port),
		Rack: b.Rack})
}
