package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/txn"
)

// AddPartitionsToTxn (24).
//
// v1: throttling. v2: PRODUCER_FENCED. v3: flexible. v4: from brokers only, several transactions at once, verification
// (KIP-890). v5: TRANSACTION_ABORTABLE.

// brokersOnly is the first version that only brokers send.
const brokersOnly = 4

// addition is one transaction of a request.
type addition struct {
	id         string
	producer   txn.Producer
	verifyOnly bool
	partitions []checkpoint.TopicPartition
}

func (a *API) addPartitionsToTxn(c *call, request *kmsg.AddPartitionsToTxnRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.AddPartitionsToTxnResponse](request)
	if request.Version < brokersOnly {
		one := addition{id: request.TransactionalID,
			producer: txn.Producer{ID: request.ProducerID, Epoch: request.ProducerEpoch},
			partitions: topicPartitions(request.Topics, func(t kmsg.AddPartitionsToTxnRequestTopic) (string, []int32) {
				return t.Topic, t.Partitions
			})}
		a.add(c, one, func(codes []int16) {
			response.Topics = addedTopics(one.partitions, codes)
			for _, t := range request.Topics {
				if len(t.Partitions) == 0 {
					response.Topics = append(response.Topics, kmsg.AddPartitionsToTxnResponseTopic{Topic: t.Topic})
				}
			}
			done(response)
		})
		return
	}
	if !a.allowed(c, auth.ClusterAction, auth.Cluster) {
		response.ErrorCode = a.failed(c, kerr.ClusterAuthorizationFailed)
		done(response)
		return
	}
	a.addAll(c, request, response, done)
}

// addAll answers when every transaction of the request has its answer.
func (a *API) addAll(c *call, request *kmsg.AddPartitionsToTxnRequest, response *kmsg.AddPartitionsToTxnResponse,
	done func(kmsg.Response)) {
	response.Transactions = make([]kmsg.AddPartitionsToTxnResponseTransaction, len(request.Transactions))
	var left sync.WaitGroup
	left.Add(len(request.Transactions))
	for i, t := range request.Transactions {
		one := addition{id: t.TransactionalID, producer: txn.Producer{ID: t.ProducerID, Epoch: t.ProducerEpoch},
			verifyOnly: t.VerifyOnly,
			partitions: topicPartitions(t.Topics, func(t kmsg.AddPartitionsToTxnRequestTransactionTopic) (string, []int32) {
				return t.Topic, t.Partitions
			})}
		a.add(c, one, func(codes []int16) {
			out := &response.Transactions[i]
			*out = kmsg.NewAddPartitionsToTxnResponseTransaction()
			out.TransactionalID, out.Topics = one.id, addedTransactionTopics(one.partitions, codes)
			left.Done()
		})
	}
	go func() {
		left.Wait()
		done(response)
	}()
}

// add adds the partitions of one transaction, or verifies that they are in it, and tells the error code of each.
func (a *API) add(c *call, one addition, done func(codes []int16)) {
	if codes := a.refusedPartitions(c, one); codes != nil {
		done(codes)
		return
	}
	if one.verifyOnly {
		a.Transactions.Verify(one.id, one.producer, one.partitions, func(each []error, err error) {
			codes := make([]int16, len(one.partitions))
			for i := range codes {
				if err != nil {
					codes[i] = a.failed(c, err)
					continue
				}
				codes[i] = a.failed(c, each[i])
			}
			done(codes)
		})
		return
	}
	version := int16(0)
	if c.version() >= brokersOnly {
		version = transactionsV2
	}
	a.Transactions.Add(one.id, one.producer, one.partitions, version, func(err error) {
		done(sameCode(a.fencedSince(c, 2, err), len(one.partitions)))
	})
}

// transactionsV2 is the level of transaction.version from which each end of a transaction raises the epoch.
const transactionsV2 = 2

func sameCode(code int16, n int) []int16 {
	codes := make([]int16, n)
	for i := range codes {
		codes[i] = code
	}
	return codes
}

// refusedPartitions are the codes of a transaction that is refused as a whole since it, or one of its partitions, may
// not be written or does not exist; nil: all may.
func (a *API) refusedPartitions(c *call, one addition) []int16 {
	client := c.version() < brokersOnly
	if client && !a.allowed(c, auth.Write, auth.TransactionalID(one.id)) {
		return sameCode(a.failed(c, kerr.TransactionalIDAuthorizationFailed), len(one.partitions))
	}
	codes := sameCode(kerr.OperationNotAttempted.Code, len(one.partitions))
	refused := false
	image := a.Metadata.Image()
	for i, tp := range one.partitions {
		topic := image.Topic(tp.Topic)
		switch {
		case client && (isInternal(tp.Topic) || !a.allowed(c, auth.Write, auth.Topic(tp.Topic))):
			codes[i], refused = a.failed(c, kerr.TopicAuthorizationFailed), true
		case topic == nil || topic.Partition(tp.Partition) == nil:
			codes[i], refused = a.failed(c, kerr.UnknownTopicOrPartition), true
		}
	}
	if !refused {
		return nil
	}
	return codes
}

func addedTopics(partitions []checkpoint.TopicPartition, codes []int16) []kmsg.AddPartitionsToTxnResponseTopic {
	names, byName := groupByTopic(partitions)
	out := make([]kmsg.AddPartitionsToTxnResponseTopic, len(names))
	for i, name := range names {
		out[i].Topic = name
		for _, j := range byName[name] {
			out[i].Partitions = append(out[i].Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{
				Partition: partitions[j].Partition, ErrorCode: codes[j]})
		}
	}
	return out
}

func addedTransactionTopics(partitions []checkpoint.TopicPartition, codes []int16,
) []kmsg.AddPartitionsToTxnResponseTransactionTopic {
	topics := addedTopics(partitions, codes)
	out := make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, len(topics))
	for i, t := range topics {
		out[i].Topic = t.Topic
		for _, p := range t.Partitions {
			out[i].Partitions = append(out[i].Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{
				Partition: p.Partition, ErrorCode: p.ErrorCode})
		}
	}
	return out
}
