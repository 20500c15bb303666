package coordinator

import (
	"errors"
	"fmt"

	"tidemark/internal/commitlog"
	"tidemark/internal/logdir"
	"tidemark/internal/replica"
)

// Errors of coordinators.
var (
	// ErrLoading: the partition is being loaded. COORDINATOR_LOAD_IN_PROGRESS (14).
	ErrLoading = errors.New("coordinator is loading its partition")
	// ErrNotAvailable: the internal topic does not exist, or a write did not reach enough replicas in time.
	// COORDINATOR_NOT_AVAILABLE (15).
	ErrNotAvailable = errors.New("coordinator is not available")
	// ErrNotCoordinator: this broker does not lead the partition. NOT_COORDINATOR (16).
	ErrNotCoordinator = errors.New("not the coordinator")
	// ErrCannotWrite: the log refuses the records for good, as too large. UNKNOWN_SERVER_ERROR (-1).
	ErrCannotWrite = errors.New("records of the coordinator cannot be written")
)

// appendError says in a coordinator's terms why an append was refused.
//
// Kafka: TransactionStateManager.appendTransactionToLog, CoordinatorOperationExceptionHelper.
func appendError(err error) error {
	var offline *logdir.OfflineError
	switch {
	case errors.Is(err, replica.ErrUnknownPartition), errors.Is(err, replica.ErrNotEnoughReplicas):
		return fmt.Errorf("%w: %w", ErrNotAvailable, err)
	case errors.Is(err, replica.ErrNotLeader), errors.Is(err, replica.ErrFencedLeaderEpoch),
		errors.Is(err, commitlog.ErrFailed), errors.Is(err, commitlog.ErrClosed), errors.As(err, &offline):
		return fmt.Errorf("%w: %w", ErrNotCoordinator, err)
	case errors.Is(err, commitlog.ErrMessageTooLarge), errors.Is(err, commitlog.ErrRecordListTooLarge):
		return fmt.Errorf("%w: %w", ErrCannotWrite, err)
	default:
		return err
	}
}
