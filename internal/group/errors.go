package group

import (
	"errors"
	"fmt"
)

// Errors of commands. The wire code of Kafka stands behind each.
var (
	// ErrInvalidGroupID: the group id is empty. INVALID_GROUP_ID (24).
	ErrInvalidGroupID = errors.New("group id is empty")
	// ErrInvalidSessionTimeout: the session timeout is out of bounds. INVALID_SESSION_TIMEOUT (26).
	ErrInvalidSessionTimeout = errors.New("session timeout is out of bounds")
	// ErrInconsistentProtocol: the member has no protocol that all others have too. INCONSISTENT_GROUP_PROTOCOL (23).
	ErrInconsistentProtocol = errors.New("no protocol is common to all members")
	// ErrUnknownMember: the member is not in the group. UNKNOWN_MEMBER_ID (25).
	ErrUnknownMember = errors.New("member is not known")
	// ErrIllegalGeneration: the generation is not the group's. ILLEGAL_GENERATION (22).
	ErrIllegalGeneration = errors.New("generation is not the group's")
	// ErrRebalance: members must join again. REBALANCE_IN_PROGRESS (27).
	ErrRebalance = errors.New("group is rebalancing")
	// ErrMemberIDRequired: the member has to join again with the id it is given. MEMBER_ID_REQUIRED (79).
	ErrMemberIDRequired = errors.New("member must join again with its id")
	// ErrMaxSize: the group has as many members as it may have. GROUP_MAX_SIZE_REACHED (81).
	ErrMaxSize = errors.New("group is full")
	// ErrFencedInstance: another member took over the instance id. FENCED_INSTANCE_ID (82).
	ErrFencedInstance = errors.New("another member has the instance id")
	// ErrNotFound: there is no such group. GROUP_ID_NOT_FOUND (69).
	ErrNotFound = errors.New("group does not exist")
	// ErrNotEmpty: the group has members. NON_EMPTY_GROUP (68).
	ErrNotEmpty = errors.New("group is not empty")
	// ErrSubscribed: members are subscribed to the topic. GROUP_SUBSCRIBED_TO_TOPIC (86).
	ErrSubscribed = errors.New("group is subscribed to the topic")
	// ErrMetadataTooLarge: the metadata of a commit is too long. OFFSET_METADATA_TOO_LARGE (12).
	ErrMetadataTooLarge = errors.New("metadata of the offset is too long")
	// ErrUnstableOffset: a transaction that commits the offset is open. UNSTABLE_OFFSET_COMMIT (88).
	ErrUnstableOffset = errors.New("an open transaction commits the offset")
	// ErrUnexpected: the request makes no sense in the state that the group is in. UNKNOWN_SERVER_ERROR (-1), as in
	// Kafka.
	ErrUnexpected = errors.New("request does not fit the state of the group")

	// ErrInvalidRequest: fields of the request do not go together. INVALID_REQUEST (42).
	ErrInvalidRequest = errors.New("fields of the request do not go together")
	// ErrUnsupportedVersion: the member must use a later version. UNSUPPORTED_VERSION (35).
	ErrUnsupportedVersion = errors.New("request is too old for the member's protocol")
	// ErrFencedMemberEpoch: the member epoch is not the member's. FENCED_MEMBER_EPOCH (110).
	ErrFencedMemberEpoch = errors.New("member epoch is not the member's")
	// ErrUnreleasedInstance: another member has the instance id and did not leave. UNRELEASED_INSTANCE_ID (111).
	ErrUnreleasedInstance = errors.New("another member has the instance id and did not leave")
	// ErrUnsupportedAssignor: the assignor is not offered. UNSUPPORTED_ASSIGNOR (112).
	ErrUnsupportedAssignor = errors.New("assignor is not offered")
	// ErrStaleMemberEpoch: the member epoch is not the member's any more. STALE_MEMBER_EPOCH (113).
	ErrStaleMemberEpoch = errors.New("member epoch is out of date")
	// ErrInvalidRegex: the pattern of topics is none. INVALID_REGULAR_EXPRESSION (128).
	ErrInvalidRegex = errors.New("pattern of topics is not a regular expression")

	// ErrUnknownRecord: the record is of a kind that this version does not know. Such records are skipped.
	ErrUnknownRecord = errors.New("kind of record is not known")
)

// Refusal is an error of a command with the text that goes to the client. errors.Is tells its kind.
type Refusal struct {
	Kind    error // one of the package's errors
	Message string
}

// Error is the message.
func (e *Refusal) Error() string { return e.Message }

// Unwrap is the kind.
func (e *Refusal) Unwrap() error { return e.Kind }

func refuse(kind error, format string, args ...any) error {
	return &Refusal{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// notFound says that there is no such group.
func notFound(id string) error { return refuse(ErrNotFound, "Group %s not found.", id) }
