package group

import "errors"

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

	// ErrUnknownRecord: the record is of a kind that this version does not know. Such records are skipped.
	ErrUnknownRecord = errors.New("kind of record is not known")
)
