package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/auth"
	"tidemark/internal/coordinator"
	"tidemark/internal/protocol"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
	"tidemark/record"
)

// Produce versions that differ for transactions (KIP-890).
const (
	abortableProduce = 11 // the client knows TRANSACTION_ABORTABLE
	addingProduce    = 12 // the request adds its partitions to the transaction
)

// partitionAt is a partition by its place in a produce request.
type partitionAt struct{ topic, partition int }

// admission is what the transaction coordinator said of a partition.
type admission struct {
	verification *replica.Verification
	err          error
	text         string // goes with the error; "": none
}

// admissions are the partitions of a request whose producer begins a transaction in them.
type admissions map[partitionAt]admission

// transactionalBatch is the header of a transactional batch in a produce request.
func transactionalBatch(p *protocol.ProducePartition) (record.Batch, bool) {
	if len(p.Records) < record.HeaderSize {
		return nil, false
	}
	b := record.Batch(p.Records)
	return b, b.Magic() == 2 && b.IsTransactional()
}

// admitTransaction asks the transaction coordinator about the partitions in which a transaction begins, and waits for
// it: the requests of a connection go on in order. The error refuses the whole request.
//
// Kafka: KafkaApis.handleProduceRequest, ReplicaManager.handleProduceAppend.
func (a *API) admitTransaction(c *call, request *protocol.ProduceRequest) (admissions, error) {
	var batches map[partitionAt]record.Batch
	producer := txn.NoProducer
	for i, t := range request.Topics {
		for j := range t.Partitions {
			b, ok := transactionalBatch(&t.Partitions[j])
			if !ok {
				continue
			}
			p := txn.Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch()}
			if producer != txn.NoProducer && producer != p {
				return nil, txn.ErrInvalidMapping
			}
			producer = p
			if batches == nil {
				batches = map[partitionAt]record.Batch{}
			}
			batches[partitionAt{i, j}] = b
		}
	}
	if len(batches) == 0 {
		return nil, nil
	}
	id := request.TransactionalID
	if id == nil || !a.allowed(c, auth.Write, auth.TransactionalID(*id)) {
		return nil, kerr.TransactionalIDAuthorizationFailed
	}
	adding := c.version() >= addingProduce
	if !adding && !a.Node().Broker().Transactions.VerifyPartitions {
		return nil, nil
	}
	question := coordinator.Admission{ID: *id, Producer: producer, Adding: adding}
	return a.askAdmission(c, request, batches, question), nil
}

// askAdmission asks about those partitions in which the transaction is not open yet.
func (a *API) askAdmission(c *call, request *protocol.ProduceRequest, batches map[partitionAt]record.Batch,
	question coordinator.Admission) admissions {
	all := admissions{}
	var asked []partitionAt
	for at, b := range batches {
		topic := request.Topics[at.topic]
		p, err := a.partitionOf(topic.Name, topic.ID, topic.Partitions[at.partition].Index)
		if err != nil {
			continue // refused for that later
		}
		v, err := p.BeginVerification(question.Producer.ID, question.Producer.Epoch, b.BaseSequence(), question.Adding)
		switch {
		case err != nil:
			all[at] = admission{err: err}
		case v != nil:
			all[at] = admission{verification: v}
			asked = append(asked, at)
			question.Partitions = append(question.Partitions, p.Name())
		}
	}
	if len(asked) == 0 {
		return all
	}
	for i, err := range a.waitAdmission(c.ctx, question) {
		if err != nil {
			all[asked[i]] = a.refusedAdmission(c, err)
		}
	}
	return all
}

// waitAdmission is the coordinator's answer; the end of the connection ends the wait.
func (a *API) waitAdmission(ctx context.Context, question coordinator.Admission) []error {
	answer := make(chan []error, 1)
	a.Transactions.Admit(question, func(each []error) { answer <- each })
	select {
	case each := <-answer:
		return each
	case <-ctx.Done():
		gone := make([]error, len(question.Partitions))
		for i := range gone {
			gone[i] = kerr.NetworkException
		}
		return gone
	}
}

// refusedAdmission says a coordinator's refusal in the terms of the client's version. Errors that pass become
// NOT_ENOUGH_REPLICAS, with which every client tries again without looking for another leader.
func (a *API) refusedAdmission(c *call, err error) admission {
	const unable = "Unable to verify the partition has been added to the transaction. Underlying error: "
	switch {
	case errors.Is(err, txn.ErrFenced):
		return admission{err: kerr.InvalidProducerEpoch}
	case errors.Is(err, txn.ErrAbortable) && c.version() < abortableProduce, errors.Is(err, txn.ErrInvalidState):
		return admission{err: kerr.InvalidTxnState, text: "Partition was not added to the transaction"}
	case errors.Is(err, txn.ErrConcurrent) && c.version() >= addingProduce:
		return admission{err: err}
	}
	switch passing := kerr.TypedErrorForCode(code(err)); passing {
	case kerr.NetworkException, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator,
		kerr.ConcurrentTransactions:
		return admission{err: kerr.NotEnoughReplicas, text: unable + passing.Message}
	}
	return admission{err: err}
}
