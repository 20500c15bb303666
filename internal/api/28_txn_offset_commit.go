package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/coordinator"
	"tidemark/internal/group"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
)

// TxnOffsetCommit (28): offsets of a group that count when the producer's transaction commits.
//
// v1: throttling. v2: leader epochs, COORDINATOR_LOAD_IN_PROGRESS. v3: flexible, members of the group (KIP-447).
// v4: TRANSACTION_ABORTABLE. v5: the request adds its partition of __consumer_offsets to the transaction (KIP-890).

// Versions of TxnOffsetCommit that differ.
const (
	loadingTxnOffsets   = 2 // the client knows COORDINATOR_LOAD_IN_PROGRESS
	abortableTxnOffsets = 4 // the client knows TRANSACTION_ABORTABLE
	addingTxnOffsets    = 5
)

func (a *API) txnOffsetCommit(c *call, request *kmsg.TxnOffsetCommitRequest, done func(kmsg.Response)) {
	answer := &txnOffsetsAnswer{response: answerTo[*kmsg.TxnOffsetCommitResponse](request)}
	refuseAll := func(err error) {
		code := a.failed(c, err)
		for _, t := range request.Topics {
			answer.refuse(t, code)
		}
		done(answer.response)
	}
	switch {
	case !a.allowed(c, auth.Write, auth.TransactionalID(request.TransactionalID)):
		refuseAll(kerr.TransactionalIDAuthorizationFailed)
		return
	case !a.allowed(c, auth.Read, auth.Group(request.Group)):
		refuseAll(kerr.GroupAuthorizationFailed)
		return
	}
	commit := &group.CommitRequest{Group: request.Group, MemberID: request.MemberID, InstanceID: request.InstanceID,
		Generation: request.Generation, Version: request.Version, RetentionMs: -1}
	for _, t := range request.Topics {
		if valid, ok := a.committableInTxn(c, t, answer); ok {
			commit.Topics = append(commit.Topics, valid)
		}
	}
	if len(commit.Topics) == 0 {
		done(answer.response)
		return
	}
	finish := func(each []error, err error) {
		a.answerTxnOffsets(c, commit, answer, each, err)
		done(answer.response)
	}
	producer := txn.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch}
	a.admitOffsets(c, request, producer, func(v *replica.Verification, err error) {
		if err != nil {
			finish(nil, err)
			return
		}
		a.Groups.CommitTransactional(commit, coordinator.Transaction{ProducerID: producer.ID,
			ProducerEpoch: producer.Epoch, Verification: v}, finish)
	})
}

// committableInTxn is the part of a topic that can be committed; see committable.
func (a *API) committableInTxn(c *call, t kmsg.TxnOffsetCommitRequestTopic, answer *txnOffsetsAnswer,
) (group.CommitTopic, bool) {
	topic := a.Metadata.Image().Topic(t.Topic)
	switch {
	case !a.allowed(c, auth.Read, auth.Topic(t.Topic)):
		answer.refuse(t, a.failed(c, kerr.TopicAuthorizationFailed))
		return group.CommitTopic{}, false
	case topic == nil:
		answer.refuse(t, a.failed(c, kerr.UnknownTopicOrPartition))
		return group.CommitTopic{}, false
	}
	valid := group.CommitTopic{Topic: topic.Name, TopicID: topic.ID}
	for _, p := range t.Partitions {
		if topic.Partition(p.Partition) == nil {
			answer.set(topic.Name, p.Partition, a.failed(c, kerr.UnknownTopicOrPartition))
			continue
		}
		valid.Partitions = append(valid.Partitions, group.CommitPartition{Partition: p.Partition, Offset: p.Offset,
			LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, CommitMs: -1})
	}
	return valid, len(valid.Partitions) > 0
}

// admitOffsets asks the transaction coordinator about the group's partition of __consumer_offsets, as a produce
// request does about its partitions.
func (a *API) admitOffsets(c *call, request *kmsg.TxnOffsetCommitRequest, producer txn.Producer,
	done func(*replica.Verification, error)) {
	if request.Group == "" {
		done(nil, group.ErrInvalidGroupID)
		return
	}
	adding := c.version() >= addingTxnOffsets
	tp := a.offsetsPartition(request.Group)
	p, err := a.partitionOf(tp.Topic, metadata.ZeroUUID, tp.Partition)
	if err != nil {
		done(nil, coordinator.ErrNotCoordinator)
		return
	}
	v, err := p.BeginVerification(producer.ID, producer.Epoch, -1, adding)
	if err != nil || v == nil || !adding && !a.Node().Broker().Transactions.VerifyPartitions {
		done(v, err)
		return
	}
	question := coordinator.Admission{ID: request.TransactionalID, Producer: producer, Adding: adding,
		Partitions: []checkpoint.TopicPartition{tp}}
	a.Transactions.Admit(question, func(each []error) { done(v, a.refusedOffsets(c, each[0])) })
}

// refusedOffsets says a coordinator's refusal in the terms of the client's version.
func (a *API) refusedOffsets(c *call, err error) error {
	switch {
	case errors.Is(err, txn.ErrFenced):
		return kerr.InvalidProducerEpoch
	case errors.Is(err, txn.ErrAbortable) && c.version() < abortableTxnOffsets:
		return kerr.InvalidTxnState
	}
	return err
}

// answerTxnOffsets fills in the outcome of the partitions that could be committed.
//
// Kafka: GroupCoordinatorService.commitTransactionalOffsets; errors of the log are told as a coordinator's.
func (a *API) answerTxnOffsets(c *call, commit *group.CommitRequest, answer *txnOffsetsAnswer, each []error,
	err error) {
	switch {
	case errors.Is(err, coordinator.ErrLoading) && c.version() < loadingTxnOffsets:
		err = coordinator.ErrNotAvailable
	case errors.Is(err, commitlog.ErrFailed), errors.Is(err, replica.ErrNotLeader):
		err = coordinator.ErrNotCoordinator
	}
	i := 0
	for _, t := range commit.Topics {
		for _, p := range t.Partitions {
			code := a.failed(c, err)
			if err == nil {
				code = a.failed(c, each[i])
			}
			answer.set(t.Topic, p.Partition, code)
			i++
		}
	}
}

// txnOffsetsAnswer gathers the outcome of partitions by topic: those that were refused come first.
type txnOffsetsAnswer struct {
	response *kmsg.TxnOffsetCommitResponse
	byTopic  map[string]int
}

func (r *txnOffsetsAnswer) set(topic string, partition int32, code int16) {
	i, ok := r.byTopic[topic]
	if !ok {
		if r.byTopic == nil {
			r.byTopic = map[string]int{}
		}
		t := kmsg.NewTxnOffsetCommitResponseTopic()
		t.Topic = topic
		i = len(r.response.Topics)
		r.byTopic[topic] = i
		r.response.Topics = append(r.response.Topics, t)
	}
	p := kmsg.NewTxnOffsetCommitResponseTopicPartition()
	p.Partition, p.ErrorCode = partition, code
	r.response.Topics[i].Partitions = append(r.response.Topics[i].Partitions, p)
}

// refuse gives all partitions of a topic one error.
func (r *txnOffsetsAnswer) refuse(t kmsg.TxnOffsetCommitRequestTopic, code int16) {
	for _, p := range t.Partitions {
		r.set(t.Topic, p.Partition, code)
	}
}
