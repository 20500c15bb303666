package api

import (
	"slices"
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
	firstBatchVersion    = 3  // record batches (magic 2)
	leaderProduceVersion = 10 // the current leader with NOT_LEADER_OR_FOLLOWER
	idProduceVersion     = 13 // topics by id
)

// producing is one produce request on its way to an answer.
type producing struct {
	c        *call
	request  protocol.ProduceRequest
	response protocol.ProduceResponse
	failed   bool       // a partition was refused
	appended []appended // what acks=all may have to wait for
}

// appended is a batch that was appended.
type appended struct {
	partition  *replica.Partition
	lastOffset int64
	answer     *protocol.ProducePartitionResponse
}

func (a *API) produce(c *call) {
	p := &producing{c: c}
	if err := p.request.Parse(c.version(), c.request.Body, c.request.Conn.Names()); err != nil {
		a.malformed(c, err)
		return
	}
	mergeRepeats(&p.request)
	p.makeAnswers()
	admitted, err := a.admitProduce(p)
	if err != nil {
		a.refuseProduce(p, err)
		return
	}
	for i := range p.request.Topics {
		topic := &p.request.Topics[i]
		for j := range topic.Partitions {
			answer := &p.response.Topics[i].Partitions[j]
			a.producePartition(p, topic, &topic.Partitions[j], admitted[partitionAt{i, j}], answer)
			p.failed = p.failed || answer.ErrorCode != none
		}
	}
	a.acknowledge(p)
}

// admitProduce is what is checked before any partition is looked at. An error refuses the whole request.
func (a *API) admitProduce(p *producing) (admissions, error) {
	for _, t := range p.request.Topics {
		for i := range t.Partitions {
			if err := commitlog.CheckFirst(t.Partitions[i].Records); err != nil {
				return nil, err
			}
		}
	}
	return a.admitTransaction(p.c, &p.request)
}

// mergeRepeats keeps the last of the batches for a partition that is named again, as Kafka does, and puts the
// partitions of a topic that is named again to the first place.
func mergeRepeats(r *protocol.ProduceRequest) {
	again := repeats(len(r.Topics), func(i int) topicKey { return topicKey{r.Topics[i].Name, r.Topics[i].ID} })
	for _, t := range r.Topics {
		again = again || repeats(len(t.Partitions), func(i int) int32 { return t.Partitions[i].Index })
	}
	if !again {
		return
	}
	type place struct{ topic, partition int }
	topics := map[topicKey]int{}
	places := map[place]int{} // topic of the result and index → place in the topic
	var merged []protocol.ProduceTopic
	for _, t := range r.Topics {
		key := topicKey{t.Name, t.ID}
		i, known := topics[key]
		if !known {
			i = len(merged)
			topics[key] = i
			merged = append(merged, protocol.ProduceTopic{Name: t.Name, ID: t.ID})
		}
		for _, p := range t.Partitions {
			at := place{i, int(p.Index)}
			if j, known := places[at]; known {
				merged[i].Partitions[j] = p
				continue
			}
			places[at] = len(merged[i].Partitions)
			merged[i].Partitions = append(merged[i].Partitions, p)
		}
	}
	r.Topics = merged
}

// repeats tells whether two of n elements have the same key.
func repeats[K comparable](n int, key func(int) K) bool {
	if n > 16 {
		seen := make(map[K]struct{}, n)
		for i := range n {
			seen[key(i)] = struct{}{}
		}
		return len(seen) < n
	}
	for i := range n {
		for j := range i {
			if key(i) == key(j) {
				return true
			}
		}
	}
	return false
}

// makeAnswers makes room for the answers, one for each partition.
func (p *producing) makeAnswers() {
	n := 0
	for i := range p.request.Topics {
		n += len(p.request.Topics[i].Partitions)
	}
	answers := make([]protocol.ProducePartitionResponse, n)
	p.response.Topics = make([]protocol.ProduceTopicResponse, len(p.request.Topics))
	for i := range p.request.Topics {
		t := &p.request.Topics[i]
		n := len(t.Partitions)
		p.response.Topics[i] = protocol.ProduceTopicResponse{Name: t.Name, ID: t.ID, Partitions: answers[:n:n]}
		answers = answers[n:]
		for j := range t.Partitions {
			p.response.Topics[i].Partitions[j] = protocol.ProducePartitionResponse{Index: t.Partitions[j].Index,
				BaseOffset: -1, LogAppendTimeMs: -1, LogStartOffset: -1}
		}
	}
}

// refuseProduce refuses every partition for the same reason.
func (a *API) refuseProduce(p *producing, err error) {
	for i := range p.response.Topics {
		for j := range p.response.Topics[i].Partitions {
			a.refusePartition(p, &p.response.Topics[i].Partitions[j], err)
		}
	}
	p.failed = true
	a.acknowledge(p)
}

func (a *API) refusePartition(p *producing, answer *protocol.ProducePartitionResponse, err error) {
	answer.ErrorCode = a.failed(p.c, err)
	describeRefusal(answer, err)
}

// acknowledge answers at once, or when the appended batches are on all in-sync replicas.
func (a *API) acknowledge(p *producing) {
	if p.request.Acks == acksNone {
		p.c.reply(protocol.Response{NoReply: true, Close: p.failed})
		return
	}
	if p.request.Acks != acksAll || !a.mustWait(p) {
		p.send()
		return
	}
	p.c.request.ReleaseBody()
	partitions := make([]*replica.Partition, len(p.appended))
	for i := range p.appended {
		partitions[i] = p.appended[i].partition
	}
	timeout := time.Duration(p.request.TimeoutMs) * time.Millisecond
	a.Replicas.Park(p.c.ctx, partitions, timeout, func() bool { return !a.mustWait(p) }, func(expired bool) {
		for _, one := range p.appended {
			one.answer.ErrorCode = a.failed(p.c, kerr.RequestTimedOut)
		}
		p.send()
	})
}

// mustWait settles what is on all in-sync replicas, or will never be, and tells whether anything is left. What is
// refused now keeps its offset in the answer: it is in the log.
func (a *API) mustWait(p *producing) bool {
	p.appended = slices.DeleteFunc(p.appended, func(one appended) bool {
		done, err := one.partition.Replicated(one.lastOffset)
		if err != nil {
			one.answer.ErrorCode = a.failed(p.c, err)
		}
		return done || err != nil
	})
	return len(p.appended) > 0
}

func (p *producing) send() {
	body := protocol.BytesPart(p.response.AppendTo(nil, p.c.version()))
	p.c.reply(protocol.Response{Body: protocol.Parts{body}})
}

// producePartition appends the batch for one partition and fills in its answer.
func (a *API) producePartition(p *producing, topic *protocol.ProduceTopic, in *protocol.ProducePartition,
	admitted admission, answer *protocol.ProducePartitionResponse) {
	partition, batch, err := a.checkProduce(p, topic, in, admitted)
	if err == nil && batch != nil {
		err = p.append(partition, batch, admitted.verification, answer)
	}
	if err == nil {
		return
	}
	a.refusePartition(p, answer, err)
	if admitted.text != "" {
		answer.ErrorMessage = &admitted.text
	}
	if answer.ErrorCode == kerr.NotLeaderForPartition.Code && p.c.version() >= leaderProduceVersion {
		answer.CurrentLeader = a.currentLeader(topic.Name, topic.ID, in.Index)
		p.response.NodeEndpoints = a.addEndpoint(p.c, p.response.NodeEndpoints, answer.CurrentLeader.LeaderID)
	}
}

// checkProduce finds the partition and the batch in the records for it; nil when old messages hold none.
func (a *API) checkProduce(p *producing, topic *protocol.ProduceTopic, in *protocol.ProducePartition,
	admitted admission) (*replica.Partition, []byte, error) {
	version := p.c.version()
	partition, err := a.partitionToProduce(version, topic, in.Index)
	if err != nil {
		return nil, nil, err
	}
	if !a.allowed(p.c, auth.Write, auth.Topic(partition.Topic)) {
		return nil, nil, kerr.TopicAuthorizationFailed
	}
	batch, err := singleBatch(in.Records, version)
	switch {
	case err != nil:
		return nil, nil, err
	case p.request.Acks < acksAll || p.request.Acks > acksLeader:
		return nil, nil, kerr.InvalidRequiredAcks
	case isInternal(partition.Topic) && p.c.caller.ClientID != adminClientID:
		return nil, nil, kerr.InvalidTopicException
	}
	return partition, batch, admitted.err
}

// partitionToProduce finds a partition by the id of its topic from v13 on.
func (a *API) partitionToProduce(version int16, topic *protocol.ProduceTopic, index int32) (*replica.Partition, error) {
	if version >= idProduceVersion {
		return a.partitionByID(topic.ID, index)
	}
	return a.partitionByName(topic.Name, index)
}

// append appends a batch and fills in its answer; where it is refused only the log start offset.
func (p *producing) append(partition *replica.Partition, batch []byte, verification *replica.Verification,
	answer *protocol.ProducePartitionResponse) error {
	info, err := partition.Append(batch, replica.AppendOptions{Origin: commitlog.OriginClient,
		AllInSync: p.request.Acks == acksAll, LeaderEpoch: replica.NoEpoch, Verification: verification})
	answer.LogStartOffset = info.LogStartOffset
	if err != nil {
		return err
	}
	answer.BaseOffset, answer.LogAppendTimeMs = info.BaseOffset, info.LogAppendTime
	if p.request.Acks == acksAll {
		p.appended = append(p.appended, appended{partition, info.LastOffset, answer})
	}
	return nil
}
