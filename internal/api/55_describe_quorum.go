package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/metadata"
)

// DescribeQuorum (55): this node is the only voter.
//
// v0: KIP-595. v1: times of the last fetches (KIP-836). v2: error texts, ids of directories, endpoints (KIP-853).

// Quorum is the state of the metadata quorum.
type Quorum struct {
	LeaderEpoch int32
	EndOffset   int64
	// DirectoryID is the voter's log directory where voters are known by it, else the zero id.
	DirectoryID metadata.UUID
}

const metadataTopic = "__cluster_metadata"

func (a *API) describeQuorum(c *call, request *kmsg.DescribeQuorumRequest) kmsg.Response {
	response := answerTo[*kmsg.DescribeQuorumResponse](request)
	response.ErrorMessage = kmsg.StringPtr("")
	if !a.allowed(c, auth.Describe, auth.Cluster) {
		response.ErrorCode = a.failed(c, kerr.ClusterAuthorizationFailed)
		response.ErrorMessage = errorText(kerr.ClusterAuthorizationFailed)
		return response
	}
	if t := request.Topics; len(t) != 1 || t[0].Topic != metadataTopic ||
		len(t[0].Partitions) != 1 || t[0].Partitions[0].Partition != 0 {
		return a.refuseQuorum(c, request, response)
	}
	out := kmsg.NewDescribeQuorumResponseTopicPartition()
	out.ErrorMessage = kmsg.StringPtr("")
	q, now := a.Quorum(), a.Clock().UnixMilli()
	out.LeaderID, out.LeaderEpoch, out.HighWatermark = a.NodeID, q.LeaderEpoch, q.EndOffset
	self := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
	self.ReplicaID, self.ReplicaDirectoryID, self.LogEndOffset = a.NodeID, q.DirectoryID, q.EndOffset
	self.LastFetchTimestamp, self.LastCaughtUpTimestamp = now, now
	out.CurrentVoters = append(out.CurrentVoters, self)
	topic := kmsg.NewDescribeQuorumResponseTopic()
	topic.Topic, topic.Partitions = metadataTopic, append(topic.Partitions, out)
	response.Topics = append(response.Topics, topic)
	node := kmsg.NewDescribeQuorumResponseNode()
	node.NodeID = a.NodeID
	for controller := range a.Metadata.Image().Controllers() {
		if controller.ID != a.NodeID {
			continue
		}
		for _, e := range controller.Endpoints {
			node.Listeners = append(node.Listeners,
				kmsg.DescribeQuorumResponseNodeListener{Name: e.Name, Host: e.Host, Port: e.Port})
		}
	}
	response.Nodes = append(response.Nodes, node)
	return response
}

// refuseQuorum answers for everything but the one partition that there is.
func (a *API) refuseQuorum(c *call, request *kmsg.DescribeQuorumRequest, response *kmsg.DescribeQuorumResponse,
) kmsg.Response {
	for _, t := range request.Topics {
		topic := kmsg.NewDescribeQuorumResponseTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			out := kmsg.NewDescribeQuorumResponseTopicPartition()
			out.Partition, out.ErrorCode = p.Partition, a.failed(c, kerr.UnknownTopicOrPartition)
			out.ErrorMessage = errorText(kerr.UnknownTopicOrPartition)
			topic.Partitions = append(topic.Partitions, out)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}
