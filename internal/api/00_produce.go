package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/auth"
	"tidemark/internal/commitlog"
	"tidemark/internal/protocol"
	"tidemark/internal/replica"
)

// Produce (0).
//
// v1: throttle time. v2: log append time. v3: magic 2 only, transactional id. v5: log start offset. v7: zstd.
// v8: record errors and message (KIP-467). v9: flexible. v10: current leader (KIP-951). v11, v12: transactions v2
// (KIP-890). v13: topic ids (KIP-516). Kafka 4 advertises v0 but answers from v3 on; v0 to v2 are served here.

// The values of acks.
const (
	acksNone   = 0
	acksLeader = 1
	acksAll    = -1
)

// The first Produce versions with a rule of their own.
const (
	firstBatchVersion = 3  // record batches (magic 2)
	idProduceVersion  = 13 // topics by id
)

// produced is one partition of a produce request on its way to an answer.
type produced struct {
	partition *replica.Partition // nil: refused before it was found
	info      commitlog.AppendInfo
	answer    *protocol.ProducePartitionResponse
}

func (a *API) produce(c *call) {
	var request protocol.ProduceRequest
	if err := request.Parse(c.version(), c.request.Body, c.request.Conn.Names()); err != nil {
		a.malformed(c, err)
		return
	}
	admitted, err := a.admitTransaction(c, &request)
	if err != nil {
		a.acknowledge(c, &request, a.refuseProduce(c, &request, err), nil, true)
		return
	}
	response := &protocol.ProduceResponse{Topics: make([]protocol.ProduceTopicResponse, len(request.Topics))}
	var appended []produced
	failed := false
	for i, topic := range request.Topics {
		response.Topics[i] = protocol.ProduceTopicResponse{Name: topic.Name, ID: topic.ID,
			Partitions: make([]protocol.ProducePartitionResponse, len(topic.Partitions))}
		for j := range topic.Partitions {
			one := a.producePartition(c, &request, topic, &topic.Partitions[j], admitted[partitionAt{i, j}])
			response.Topics[i].Partitions[j] = *one.answer
			one.answer = &response.Topics[i].Partitions[j]
			failed = failed || one.answer.ErrorCode != none
			appended = append(appended, one)
		}
	}
	a.acknowledge(c, &request, response, appended, failed)
}

// acknowledge answers at once, or when the appended batches are on all in-sync replicas.
func (a *API) acknowledge(c *call, request *protocol.ProduceRequest, response *protocol.ProduceResponse,
	appended []produced, failed bool) {
	if request.Acks == acksNone {
		c.reply(protocol.Response{NoReply: true, Close: failed})
		return
	}
	version := c.version()
	send := func() {
		c.reply(protocol.Response{Body: protocol.Parts{protocol.BytesPart(response.AppendTo(nil, version))}})
	}
	var waiting []produced
	if request.Acks == acksAll {
		waiting = notYetReplicated(appended)
	}
	if len(waiting) == 0 {
		send()
		return
	}
	c.request.ReleaseBody()
	partitions := make([]*replica.Partition, len(waiting))
	for i, w := range waiting {
		partitions[i] = w.partition
	}
	timeout := time.Duration(request.TimeoutMs) * time.Millisecond
	a.Replicas.Park(c.ctx, partitions, timeout, func() bool { return len(notYetReplicated(waiting)) == 0 },
		func(expired bool) {
			for _, w := range notYetReplicated(waiting) {
				*w.answer = refusedProduce(w.answer.Index, kerr.RequestTimedOut.Code)
			}
			send()
		})
}

// notYetReplicated picks the appended batches that some in-sync replica lacks.
func notYetReplicated(all []produced) []produced {
	var waiting []produced
	for _, one := range all {
		if one.answer.ErrorCode == none && one.partition != nil &&
			one.partition.HighWatermark() <= one.info.LastOffset {
			waiting = append(waiting, one)
		}
	}
	return waiting
}

func refusedProduce(index int32, errorCode int16) protocol.ProducePartitionResponse {
	return protocol.ProducePartitionResponse{Index: index, ErrorCode: errorCode,
		BaseOffset: -1, LogAppendTimeMs: -1, LogStartOffset: -1}
}

func (a *API) producePartition(c *call, request *protocol.ProduceRequest, topic protocol.ProduceTopic,
	in *protocol.ProducePartition, admitted admission) produced {
	refuse := func(err error) produced {
		answer := refusedProduce(in.Index, a.failed(c, err))
		describeRefusal(&answer, err, commitlog.AppendInfo{LogStartOffset: -1})
		return produced{answer: &answer}
	}
	if request.Acks < acksAll || request.Acks > acksLeader {
		return refuse(kerr.InvalidRequiredAcks)
	}
	p, err := a.partitionToProduce(c.version(), topic, in.Index)
	if err != nil {
		return refuse(err)
	}
	if !a.allowed(c, auth.Write, auth.Topic(p.Topic)) {
		return refuse(kerr.TopicAuthorizationFailed)
	}
	batch, err := singleBatch(in.Records, c.version())
	if err != nil {
		return refuse(err)
	}
	if batch == nil {
		return produced{answer: &protocol.ProducePartitionResponse{Index: in.Index, BaseOffset: -1, LogAppendTimeMs: -1,
			LogStartOffset: -1}}
	}
	if isInternal(p.Topic) && c.caller.ClientID != adminClientID {
		return refuse(kerr.InvalidTopicException)
	}
	if admitted.err != nil {
		refused := refuse(admitted.err)
		if admitted.text != "" {
			refused.answer.ErrorMessage = &admitted.text
		}
		return refused
	}
	return a.appendBatch(c, request, p, batch, in.Index, admitted.verification)
}

// partitionToProduce finds a partition by the id of its topic from v13 on.
func (a *API) partitionToProduce(version int16, topic protocol.ProduceTopic, index int32) (*replica.Partition, error) {
	if version >= idProduceVersion {
		return a.partitionByID(topic.ID, index)
	}
	return a.partitionByName(topic.Name, index)
}

func (a *API) appendBatch(c *call, request *protocol.ProduceRequest, p *replica.Partition, batch []byte,
	index int32, verification *replica.Verification) produced {
	info, err := p.Append(batch, replica.AppendOptions{Origin: commitlog.OriginClient,
		AllInSync: request.Acks == acksAll, LeaderEpoch: replica.NoEpoch, Verification: verification})
	if err != nil {
		answer := refusedProduce(index, a.failed(c, err))
		describeRefusal(&answer, err, info)
		return produced{answer: &answer}
	}
	return produced{partition: p, info: info, answer: &protocol.ProducePartitionResponse{Index: index,
		BaseOffset: info.BaseOffset, LogAppendTimeMs: info.LogAppendTime, LogStartOffset: info.LogStartOffset}}
}
