package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics asks for all topics, in the order of the broker's answer.
func (a *Admin) Topics(ctx context.Context) ([]kmsg.MetadataResponseTopic, error) {
	request := kmsg.NewPtrMetadataRequest()
	response, err := Ask[*kmsg.MetadataResponse](ctx, a, "listTopics", request)
	if err != nil {
		return nil, err
	}
	return response.Topics, nil
}

// TopicNames lists the names of all topics, sorted; internal ones are left out on demand.
func (a *Admin) TopicNames(ctx context.Context, excludeInternal bool) ([]string, error) {
	topics, err := a.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range topics {
		if t.Topic != nil && !(excludeInternal && t.IsInternal) {
			names = append(names, *t.Topic)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Partition names one partition of a topic and the node that leads it, −1 for none.
type Partition struct {
	Topic  string
	ID     int32
	Leader int32
}

// Offset is the answer to one look-up: the offset found, −1 for none, or the error.
type Offset struct {
	Partition
	Offset int64
	Err    *Failure
}

// ListOffsets looks up one timestamp (or special value below 0) in each partition.
// Partitions whose leader moves or is missing are asked again until the API timeout.
// The answers come in the order of the partitions.
func (a *Admin) ListOffsets(ctx context.Context, partitions []Partition, timestamp int64) ([]Offset, error) {
	found := make([]Offset, len(partitions))
	open := make([]int, len(partitions))
	for i, p := range partitions {
		found[i].Partition = p
		open[i] = i
	}
	deadline := time.Now().Add(a.timeout)
	for tries := 1; ; tries++ {
		again := a.listOffsetsOnce(ctx, found, open, timestamp)
		if len(again) == 0 || time.Now().After(deadline) {
			return found, nil // each partition still open keeps its last error
		}
		time.Sleep(Backoff(tries))
		if err := a.refreshLeaders(ctx, found); err != nil {
			return nil, err
		}
		open = again
	}
}

// listOffsetsOnce asks each leader once; it returns the partitions to ask again.
func (a *Admin) listOffsetsOnce(ctx context.Context, found []Offset, open []int, timestamp int64) []int {
	byLeader := map[int32][]int{}
	var again []int
	for _, i := range open {
		if found[i].Leader < 0 {
			found[i].Err = APIFailure(5, nil)
			again = append(again, i)
			continue
		}
		byLeader[found[i].Leader] = append(byLeader[found[i].Leader], i)
	}
	for leader, items := range byLeader {
		request := listOffsetsRequest(found, items, timestamp)
		response, err := AskBroker[*kmsg.ListOffsetsResponse](ctx, a, leader, "listOffsets", request)
		if err != nil {
			for _, i := range items {
				found[i].Err = AsFailure(err)
			}
			continue
		}
		again = append(again, takeOffsets(found, items, response)...)
	}
	return again
}

func listOffsetsRequest(found []Offset, items []int, timestamp int64) *kmsg.ListOffsetsRequest {
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	request.TimeoutMillis = defaultAPITimeoutMs
	index := map[string]int{}
	for _, i := range items {
		at, ok := index[found[i].Topic]
		if !ok {
			at = len(request.Topics)
			index[found[i].Topic] = at
			topic := kmsg.NewListOffsetsRequestTopic()
			topic.Topic = found[i].Topic
			request.Topics = append(request.Topics, topic)
		}
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp, partition.CurrentLeaderEpoch = found[i].ID, timestamp, -1
		request.Topics[at].Partitions = append(request.Topics[at].Partitions, partition)
	}
	return request
}

func takeOffsets(found []Offset, items []int, response *kmsg.ListOffsetsResponse) (again []int) {
	for _, i := range items {
		answer := partitionAnswer(response, found[i].Partition)
		if answer == nil {
			found[i].Err = APIFailure(-1, nil)
			continue
		}
		found[i].Offset, found[i].Err = answer.Offset, APIFailure(answer.ErrorCode, nil)
		if Retriable(answer.ErrorCode) {
			again = append(again, i)
		}
	}
	return again
}

func partitionAnswer(response *kmsg.ListOffsetsResponse, p Partition) *kmsg.ListOffsetsResponseTopicPartition {
	for i := range response.Topics {
		if response.Topics[i].Topic != p.Topic {
			continue
		}
		for j := range response.Topics[i].Partitions {
			if response.Topics[i].Partitions[j].Partition == p.ID {
				return &response.Topics[i].Partitions[j]
			}
		}
	}
	return nil
}

func (a *Admin) refreshLeaders(ctx context.Context, found []Offset) error {
	topics, err := a.Topics(ctx)
	if err != nil {
		return err
	}
	leaders := map[Partition]int32{}
	for _, p := range Partitions(topics) {
		leaders[Partition{Topic: p.Topic, ID: p.ID}] = p.Leader
	}
	for i := range found {
		if leader, ok := leaders[Partition{Topic: found[i].Topic, ID: found[i].ID}]; ok {
			found[i].Leader = leader
		}
	}
	return nil
}

// Partitions lists the partitions of topics, by number within each.
func Partitions(topics []kmsg.MetadataResponseTopic) []Partition {
	var all []Partition
	for _, t := range topics {
		if t.Topic == nil {
			continue
		}
		from := len(all)
		for _, p := range t.Partitions {
			all = append(all, Partition{Topic: strings.Clone(*t.Topic), ID: p.Partition, Leader: p.Leader})
		}
		slices.SortFunc(all[from:], func(x, y Partition) int { return int(x.ID) - int(y.ID) })
	}
	return all
}

// Topic is one topic of a broker's metadata.
type Topic = kmsg.MetadataResponseTopic

// Nodes lists the ids of the brokers that are up, in the order of the answer.
func (a *Admin) Nodes(ctx context.Context) ([]int32, error) {
	request := kmsg.NewPtrDescribeClusterRequest()
	response, err := Ask[*kmsg.DescribeClusterResponse](ctx, a, "listNodes", request)
	if err != nil {
		return nil, err
	}
	if f := APIFailure(response.ErrorCode, response.ErrorMessage); f != nil {
		return nil, f
	}
	var nodes []int32
	for _, b := range response.Brokers {
		nodes = append(nodes, b.NodeID)
	}
	return nodes, nil
}

// OrNull is the text, or "null" when there is none, as Java prints it.
func OrNull(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}
