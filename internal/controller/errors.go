package controller

import (
	"errors"
	"fmt"
)

// Reasons why a change is refused. Each stands for one error code of the wire
// protocol.
var (
	ErrBrokerNotRegistered         = errors.New("broker is not registered")
	ErrDuplicateBrokerRegistration = errors.New("another broker is registered with that id")
	ErrDuplicateResource           = errors.New("the resource comes twice")
	ErrElectionNotNeeded           = errors.New("the wanted leader leads already")
	ErrEligibleLeaders             = errors.New("no replica can lead")
	ErrInconsistentClusterID       = errors.New("cluster id is not the one of this cluster")
	ErrInvalidConfig               = errors.New("invalid configuration")
	ErrInvalidPartitions           = errors.New("invalid number of partitions")
	ErrInvalidRegistration         = errors.New("invalid registration")
	ErrInvalidReplicaAssignment    = errors.New("invalid replica assignment")
	ErrInvalidReplicationFactor    = errors.New("invalid replication factor")
	ErrInvalidRequest              = errors.New("invalid request")
	ErrInvalidTopic                = errors.New("invalid topic name")
	ErrInvalidUpdateVersion        = errors.New("invalid update version")
	ErrNoReassignment              = errors.New("the partition is not being reassigned")
	ErrNotLeaderOrFollower         = errors.New("broker has no replica of the partition")
	ErrPolicyViolation             = errors.New("request violates a policy")
	ErrPreferredLeader             = errors.New("the preferred leader cannot lead")
	ErrResourceNotFound            = errors.New("the resource is not there")
	ErrStaleBrokerEpoch            = errors.New("stale broker epoch")
	ErrTopicDeletionDisabled       = errors.New("topic deletion is disabled")
	ErrTopicExists                 = errors.New("topic exists already")
	ErrUnacceptableCredential      = errors.New("unacceptable credential")
	ErrUnknownServerError          = errors.New("unknown server error")
	ErrUnknownTopic                = errors.New("unknown topic or partition")
	ErrUnknownTopicID              = errors.New("unknown topic id")
	ErrUnsupportedSaslMechanism    = errors.New("unknown SASL mechanism")
	ErrUnsupportedVersion          = errors.New("unsupported version")
)

// Error is a refused change.
type Error struct {
	Reason  error  // one of the Err… variables
	Message string // Kafka's text; "" = none, null on the wire
}

// Error is the text, or the reason when there is none.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Reason.Error()
	}
	return e.Message
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Reason }

func refuse(reason error, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// asError makes an *Error of any error; what is no refusal has reason otherwise.
func asError(err error, otherwise error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	default:
		return &Error{Reason: otherwise, Message: err.Error()}
	}
}
