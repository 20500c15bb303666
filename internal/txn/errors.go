package txn

import "errors"

// Errors of commands. The wire code of Kafka stands behind each.
var (
	// ErrInvalidRequest: the transactional id is empty. INVALID_REQUEST (42).
	ErrInvalidRequest = errors.New("transactional id is empty")
	// ErrInvalidTimeout: the time-out is not positive or above the limit. INVALID_TRANSACTION_TIMEOUT (50).
	ErrInvalidTimeout = errors.New("transaction time-out is out of range")
	// ErrConcurrent: the id has a write or a transaction's end under way. CONCURRENT_TRANSACTIONS (51).
	ErrConcurrent = errors.New("another operation of the transactional id is under way")
	// ErrFenced: the epoch is not the id's. PRODUCER_FENCED (90), or INVALID_PRODUCER_EPOCH (47) for old versions.
	ErrFenced = errors.New("producer epoch is not the transactional id's")
	// ErrInvalidMapping: the id is unknown or has another producer id. INVALID_PRODUCER_ID_MAPPING (49).
	ErrInvalidMapping = errors.New("producer id is not the transactional id's")
	// ErrInvalidState: the transaction is not in a state that allows this. INVALID_TXN_STATE (48).
	ErrInvalidState = errors.New("transaction state does not allow the operation")
	// ErrAbortable: the partition is not in the transaction. TRANSACTION_ABORTABLE (120).
	ErrAbortable = errors.New("partition is not part of the transaction")
	// ErrNotFound: the transactional id is unknown. TRANSACTIONAL_ID_NOT_FOUND (105).
	ErrNotFound = errors.New("transactional id is unknown")
	// ErrExhausted: the epoch cannot be raised, and the request forbids a new producer id.
	// UNKNOWN_SERVER_ERROR (-1), as in Kafka.
	ErrExhausted = errors.New("producer epochs are used up")
	// ErrUnknownKey: the key of a record is not of a known version; Kafka skips such records.
	ErrUnknownKey = errors.New("record key is not of a known version")
)
