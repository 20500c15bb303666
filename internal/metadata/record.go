package metadata

import (
	"fmt"

	"tidemark/internal/wire"
)

// frameVersion is the only version of the frame around a record.
const frameVersion = 1

// Kind is the type number of a record, Kafka's "apiKey" of it.
type Kind int16

// The kinds of records in `__cluster_metadata`; 6, 13 and 16 do not exist.
const (
	KindRegisterBroker            Kind = 0
	KindUnregisterBroker          Kind = 1
	KindTopic                     Kind = 2
	KindPartition                 Kind = 3
	KindConfig                    Kind = 4
	KindPartitionChange           Kind = 5
	KindFenceBroker               Kind = 7
	KindUnfenceBroker             Kind = 8
	KindRemoveTopic               Kind = 9
	KindDelegationToken           Kind = 10
	KindUserScramCredential       Kind = 11
	KindFeatureLevel              Kind = 12
	KindClientQuota               Kind = 14
	KindProducerIDs               Kind = 15
	KindBrokerRegistrationChange  Kind = 17
	KindAccessControlEntry        Kind = 18
	KindRemoveAccessControlEntry  Kind = 19
	KindNoOp                      Kind = 20
	KindZkMigrationState          Kind = 21
	KindRemoveUserScramCredential Kind = 22
	KindBeginTransaction          Kind = 23
	KindEndTransaction            Kind = 24
	KindAbortTransaction          Kind = 25
	KindRemoveDelegationToken     Kind = 26
	KindRegisterController        Kind = 27
	KindClearELR                  Kind = 28
	KindUnregisterController      Kind = 29 // since Kafka 4.4
)

// kinds describes every kind: Kafka's name of it in dumps, its newest version
// (the oldest is 0 for all) and how to make an empty one with its defaults.
var kinds = map[Kind]struct {
	name   string
	newest int16
	empty  func() Body
}{
	KindRegisterBroker:            {"REGISTER_BROKER_RECORD", 4, empty[RegisterBrokerRecord]},
	KindUnregisterBroker:          {"UNREGISTER_BROKER_RECORD", 0, empty[UnregisterBrokerRecord]},
	KindTopic:                     {"TOPIC_RECORD", 0, empty[TopicRecord]},
	KindPartition:                 {"PARTITION_RECORD", 2, empty[PartitionRecord]},
	KindConfig:                    {"CONFIG_RECORD", 0, empty[ConfigRecord]},
	KindPartitionChange:           {"PARTITION_CHANGE_RECORD", 2, emptyPartitionChange},
	KindFenceBroker:               {"FENCE_BROKER_RECORD", 0, empty[FenceBrokerRecord]},
	KindUnfenceBroker:             {"UNFENCE_BROKER_RECORD", 0, empty[UnfenceBrokerRecord]},
	KindRemoveTopic:               {"REMOVE_TOPIC_RECORD", 0, empty[RemoveTopicRecord]},
	KindDelegationToken:           {"DELEGATION_TOKEN_RECORD", 0, empty[DelegationTokenRecord]},
	KindUserScramCredential:       {"USER_SCRAM_CREDENTIAL_RECORD", 0, empty[UserScramCredentialRecord]},
	KindFeatureLevel:              {"FEATURE_LEVEL_RECORD", 0, empty[FeatureLevelRecord]},
	KindClientQuota:               {"CLIENT_QUOTA_RECORD", 0, empty[ClientQuotaRecord]},
	KindProducerIDs:               {"PRODUCER_IDS_RECORD", 0, empty[ProducerIDsRecord]},
	KindBrokerRegistrationChange:  {"BROKER_REGISTRATION_CHANGE_RECORD", 3, empty[BrokerRegistrationChangeRecord]},
	KindAccessControlEntry:        {"ACCESS_CONTROL_ENTRY_RECORD", 0, empty[AccessControlEntryRecord]},
	KindRemoveAccessControlEntry:  {"REMOVE_ACCESS_CONTROL_ENTRY_RECORD", 0, empty[RemoveAccessControlEntryRecord]},
	KindNoOp:                      {"NO_OP_RECORD", 0, empty[NoOpRecord]},
	KindZkMigrationState:          {"ZK_MIGRATION_STATE_RECORD", 0, empty[ZkMigrationStateRecord]},
	KindRemoveUserScramCredential: {"REMOVE_USER_SCRAM_CREDENTIAL_RECORD", 0, empty[RemoveUserScramCredentialRecord]},
	KindBeginTransaction:          {"BEGIN_TRANSACTION_RECORD", 0, empty[BeginTransactionRecord]},
	KindEndTransaction:            {"END_TRANSACTION_RECORD", 0, empty[EndTransactionRecord]},
	KindAbortTransaction:          {"ABORT_TRANSACTION_RECORD", 0, empty[AbortTransactionRecord]},
	KindRemoveDelegationToken:     {"REMOVE_DELEGATION_TOKEN_RECORD", 0, empty[RemoveDelegationTokenRecord]},
	KindRegisterController:        {"REGISTER_CONTROLLER_RECORD", 0, empty[RegisterControllerRecord]},
	KindClearELR:                  {"CLEAR_ELR_RECORD", 0, empty[ClearELRRecord]},
	KindUnregisterController:      {"UNREGISTER_CONTROLLER_RECORD", 0, empty[UnregisterControllerRecord]},
}

func empty[T any, P interface {
	*T
	Body
}]() Body {
	return P(new(T))
}

func emptyPartitionChange() Body { return NewPartitionChange(ZeroUUID, 0) }

// String is the name that Kafka's dump tool prints.
func (k Kind) String() string {
	if d, ok := kinds[k]; ok {
		return d.name
	}
	return fmt.Sprintf("record type %d", int16(k))
}

// NewestVersion is the highest version of k that is known, -1 for an unknown
// kind.
func (k Kind) NewestVersion() int16 {
	if d, ok := kinds[k]; ok {
		return d.newest
	}
	return -1
}

// Body is the content of a record: a pointer to one of the …Record structs.
// It must not be changed once it was handed on.
type Body interface {
	// Kind is the record's type.
	Kind() Kind
	fields(*codec)
}

// Record is one metadata record with the version it is or shall be written in.
type Record struct {
	Version int16
	Body    Body
}

// UnknownRecordError means a record whose type or version this program does not
// know. Replay must stop there: going on would lose what it says.
type UnknownRecordError struct {
	Kind    Kind
	Version int16
}

// Error names the type and version.
func (e *UnknownRecordError) Error() string {
	return fmt.Sprintf("unknown metadata record: %v, version %d", e.Kind, e.Version)
}

// MalformedRecordError means bytes that are not a metadata record.
type MalformedRecordError struct {
	Kind   Kind // -1 when the frame itself cannot be read
	Reason error
}

// Error names the type and what is wrong.
func (e *MalformedRecordError) Error() string {
	if e.Kind < 0 {
		return fmt.Sprintf("malformed metadata record: %v", e.Reason)
	}
	return fmt.Sprintf("malformed metadata record: %v: %v", e.Kind, e.Reason)
}

// Unwrap is the reason.
func (e *MalformedRecordError) Unwrap() error { return e.Reason }

// DecodeRecord decodes the value of one data record of the metadata log or of a
// snapshot. Nothing in the result aliases value. The error is a
// *[MalformedRecordError] or an *[UnknownRecordError].
//
//	uvarint frame version (1), uvarint type, uvarint version, body (flexible)
func DecodeRecord(value []byte) (Record, error) {
	r := wire.NewReader(value)
	frame, kind, version := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if err := r.Err(); err != nil {
		return Record{}, &MalformedRecordError{Kind: -1, Reason: err}
	}
	if frame != frameVersion {
		return Record{}, &MalformedRecordError{Kind: -1, Reason: fmt.Errorf("frame version %d", frame)}
	}
	d, ok := kinds[Kind(min(kind, 1<<15-1))]
	if !ok || version > uint32(d.newest) {
		return Record{}, &UnknownRecordError{Kind: Kind(min(kind, 1<<15-1)), Version: int16(min(version, 1<<15-1))}
	}
	rec := Record{Version: int16(version), Body: d.empty()}
	c := codec{version: rec.Version, r: r}
	rec.Body.fields(&c)
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(fmt.Errorf("%d bytes follow the record", r.Len()))
	}
	if err := r.Err(); err != nil {
		return Record{}, &MalformedRecordError{Kind: Kind(kind), Reason: err}
	}
	return rec, nil
}

// AppendTo appends the record as [DecodeRecord] reads it. It fails when the
// version is unknown or cannot carry a field that is set.
func (rec Record) AppendTo(dst []byte) ([]byte, error) {
	kind := rec.Body.Kind()
	if rec.Version < 0 || rec.Version > kind.NewestVersion() {
		return dst, &UnknownRecordError{Kind: kind, Version: rec.Version}
	}
	dst = wire.AppendUvarint(dst, frameVersion)
	dst = wire.AppendUvarint(dst, uint32(kind))
	c := codec{version: rec.Version, w: wire.AppendUvarint(dst, uint32(rec.Version))}
	rec.Body.fields(&c)
	if c.err != nil {
		return dst, fmt.Errorf("encode %v: %w", kind, c.err)
	}
	return c.w, nil
}
