package api

import (
	"context"
	"errors"
	"io/fs"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/coordinator"
	"tidemark/internal/logdir"
	"tidemark/internal/producerstate"
	"tidemark/internal/quorum"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
	"tidemark/record"
)

// none is the code of success.
const none int16 = 0

// errorCode is an error of a lower layer and Kafka's code for it.
type errorCode struct {
	err  error
	code int16
}

// codes maps the errors of the layers below to Kafka's error codes. The first that errors.Is counts.
var codes = []errorCode{
	// These wrap those of the log.
	{coordinator.ErrLoading, kerr.CoordinatorLoadInProgress.Code},
	{coordinator.ErrNotAvailable, kerr.CoordinatorNotAvailable.Code},
	{coordinator.ErrNotCoordinator, kerr.NotCoordinator.Code},
	{coordinator.ErrCannotWrite, kerr.UnknownServerError.Code},
	{coordinator.ErrTimedOut, kerr.RequestTimedOut.Code},

	{replica.ErrUnknownPartition, kerr.UnknownTopicOrPartition.Code},
	{replica.ErrUnknownTopicID, kerr.UnknownTopicID.Code},
	{replica.ErrNotLeader, kerr.NotLeaderForPartition.Code},
	{replica.ErrFencedLeaderEpoch, kerr.FencedLeaderEpoch.Code},
	{replica.ErrUnknownLeaderEpoch, kerr.UnknownLeaderEpoch.Code},
	{replica.ErrNotEnoughReplicas, kerr.NotEnoughReplicas.Code},
	{replica.ErrTooFewAfterAppend, kerr.NotEnoughReplicasAfterAppend.Code},
	{replica.ErrNotDeletable, kerr.PolicyViolation.Code},
	{replica.ErrOffsetNotAvailable, kerr.OffsetNotAvailable.Code},

	{commitlog.ErrInvalidRecord, kerr.InvalidRecord.Code},
	{commitlog.ErrCorruptMessage, kerr.CorruptMessage.Code},
	{commitlog.ErrMessageTooLarge, kerr.MessageTooLarge.Code},
	{commitlog.ErrRecordListTooLarge, kerr.RecordListTooLarge.Code},
	{commitlog.ErrInvalidTimestamp, kerr.InvalidTimestamp.Code},
	{commitlog.ErrUndecodable, kerr.UnknownServerError.Code},
	{commitlog.ErrUnsupportedCodec, kerr.UnsupportedCompressionType.Code},
	{commitlog.ErrInvalidTxnState, kerr.InvalidTxnState.Code},
	{commitlog.ErrFailed, kerr.KafkaStorageError.Code},
	{commitlog.ErrDiskFull, kerr.KafkaStorageError.Code},
	{commitlog.ErrClosed, kerr.NotLeaderForPartition.Code},
	{record.ErrUnsupportedCodec, kerr.UnsupportedCompressionType.Code},
	{logdir.ErrNoDirectory, kerr.KafkaStorageError.Code},

	{txn.ErrInvalidRequest, kerr.InvalidRequest.Code},
	{txn.ErrInvalidTimeout, kerr.InvalidTransactionTimeout.Code},
	{txn.ErrConcurrent, kerr.ConcurrentTransactions.Code},
	{txn.ErrFenced, kerr.ProducerFenced.Code},
	{txn.ErrInvalidMapping, kerr.InvalidProducerIDMapping.Code},
	{txn.ErrInvalidState, kerr.InvalidTxnState.Code},
	{txn.ErrAbortable, kerr.TransactionAbortable.Code},
	{txn.ErrNotFound, kerr.TransactionalIDNotFound.Code},
	{txn.ErrExhausted, kerr.UnknownServerError.Code},

	{config.ErrInvalidConfig, kerr.InvalidConfig.Code},
	{config.ErrInvalidRequest, kerr.InvalidRequest.Code},
	{config.ErrInvalidTopic, kerr.InvalidTopicException.Code},

	{controller.ErrTopicExists, kerr.TopicAlreadyExists.Code},
	{controller.ErrInvalidTopic, kerr.InvalidTopicException.Code},
	{controller.ErrInvalidPartitions, kerr.InvalidPartitions.Code},
	{controller.ErrInvalidReplicationFactor, kerr.InvalidReplicationFactor.Code},
	{controller.ErrInvalidReplicaAssignment, kerr.InvalidReplicaAssignment.Code},
	{controller.ErrInvalidConfig, kerr.InvalidConfig.Code},
	{controller.ErrInvalidRequest, kerr.InvalidRequest.Code},
	{controller.ErrUnknownTopic, kerr.UnknownTopicOrPartition.Code},
	{controller.ErrUnknownTopicID, kerr.UnknownTopicID.Code},
	{controller.ErrPolicyViolation, kerr.PolicyViolation.Code},
	{controller.ErrStaleBrokerEpoch, kerr.StaleBrokerEpoch.Code},
	{controller.ErrBrokerNotRegistered, kerr.BrokerIDNotRegistered.Code},
	{controller.ErrDuplicateBrokerRegistration, kerr.DuplicateBrokerRegistration.Code},
	{controller.ErrInconsistentClusterID, kerr.InconsistentClusterID.Code},
	{controller.ErrInvalidRegistration, kerr.InvalidRegistration.Code},
	{controller.ErrInvalidUpdateVersion, kerr.InvalidUpdateVersion.Code},
	{controller.ErrNotLeaderOrFollower, kerr.NotLeaderForPartition.Code},
	{controller.ErrElectionNotNeeded, kerr.ElectionNotNeeded.Code},
	{controller.ErrPreferredLeader, kerr.PreferredLeaderNotAvailable.Code},
	{controller.ErrEligibleLeaders, kerr.EligibleLeadersNotAvailable.Code},
	{controller.ErrNoReassignment, kerr.NoReassignmentInProgress.Code},
	{controller.ErrTopicDeletionDisabled, kerr.TopicDeletionDisabled.Code},
	{controller.ErrDuplicateResource, kerr.DuplicateResource.Code},
	{controller.ErrResourceNotFound, kerr.ResourceNotFound.Code},
	{controller.ErrUnacceptableCredential, kerr.UnacceptableCredential.Code},
	{controller.ErrUnsupportedSaslMechanism, kerr.UnsupportedSaslMechanism.Code},
	{controller.ErrUnknownServerError, kerr.UnknownServerError.Code},
	{controller.ErrUnsupportedVersion, kerr.UnsupportedVersion.Code},

	{quorum.ErrFailed, kerr.KafkaStorageError.Code},
	{quorum.ErrClosed, kerr.NotController.Code},
	{quorum.ErrNotSoleVoter, kerr.NotController.Code},
}

// code is Kafka's error code for an error of a lower layer; UNKNOWN_SERVER_ERROR for one that no rule knows.
func code(err error) int16 {
	if err == nil {
		return none
	}
	for _, table := range [][]errorCode{codes, groupCodes} {
		for _, c := range table {
			if errors.Is(err, c.err) {
				return c.code
			}
		}
	}
	var wireErr *kerr.Error
	if errors.As(err, &wireErr) {
		return wireErr.Code
	}
	return codeOfType(err)
}

// codeOfType is code for the errors that are types.
func codeOfType(err error) int16 {
	switch {
	case isA[*commitlog.OffsetOutOfRangeError](err):
		return kerr.OffsetOutOfRange.Code
	case isA[*producerstate.OutOfOrderSequenceError](err):
		return kerr.OutOfOrderSequenceNumber.Code
	case isA[*producerstate.InvalidProducerEpochError](err):
		return kerr.InvalidProducerEpoch.Code
	case isA[*producerstate.InvalidTxnStateError](err):
		return kerr.InvalidTxnState.Code
	case isA[*producerstate.TransactionCoordinatorFencedError](err):
		return kerr.TransactionCoordinatorFenced.Code
	case isA[*record.CorruptError](err):
		return kerr.CorruptMessage.Code
	case isA[*record.InvalidRecordError](err):
		return kerr.InvalidRecord.Code
	case isA[*logdir.OfflineError](err), isA[*fs.PathError](err):
		return kerr.KafkaStorageError.Code
	}
	return kerr.UnknownServerError.Code
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// failed counts and returns the code of an error; unexpected ones are logged.
func (a *API) failed(c *call, err error) int16 {
	n := code(err)
	if n == none {
		return n
	}
	if a.Metrics.Error != nil {
		a.Metrics.Error(c.key(), n)
	}
	if n == kerr.UnknownServerError.Code && !errors.Is(err, context.Canceled) {
		a.Logger.Error("request failed", "key", c.key(), "client", c.request.Conn.Remote.String(), "error", err)
	}
	return n
}
