package txn

import (
	"fmt"
	"slices"

	"tidemark/internal/checkpoint"
	"tidemark/internal/wire"
)

// State is where a transactional id stands; the numbers are those in the log.
type State int8

// States of a transactional id. Dead and PrepareEpochFence are never written.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
	Dead
	PrepareEpochFence
)

var stateNames = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort",
	"Dead", "PrepareEpochFence"}

// String is the name by which DescribeTransactions tells of the state.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return stateNames[s]
}

// ParseState finds a state by its name.
func ParseState(name string) (State, bool) {
	i := slices.Index(stateNames[:], name)
	return State(i), i >= 0
}

// preparing tells whether the outcome is decided and markers are being written.
func (s State) preparing() bool { return s == PrepareCommit || s == PrepareAbort }

// complete tells whether the last transaction was ended.
func (s State) complete() bool { return s == CompleteCommit || s == CompleteAbort }

// resting tells whether no transaction is open.
func (s State) resting() bool { return s == Empty || s.complete() }

// No producer id, no producer epoch.
const (
	NoProducerID    = -1
	NoProducerEpoch = -1
)

// Producer is a producer id with its epoch.
type Producer struct {
	ID    int64
	Epoch int16
}

// NoProducer stands for none.
var NoProducer = Producer{ID: NoProducerID, Epoch: NoProducerEpoch}

// Value is the state of a transactional id, as its last record in the log tells it.
type Value struct {
	Producer
	// PreviousProducerID is the producer id before the last change of the state; NoProducerID: not known.
	PreviousProducerID int64
	// NextProducerID takes over when the transaction is complete, since the epochs are used up.
	NextProducerID    int64
	NextProducerEpoch int16
	// LastEpoch is the epoch before the last raise, so that a repeated request is recognised. It is not stored.
	LastEpoch     int16
	TimeoutMs     int32
	State         State
	Partitions    []checkpoint.TopicPartition // in the order they were added
	LastUpdateMs  int64
	StartMs       int64 // -1: no transaction yet
	ClientVersion int16 // transaction.version by which the client works; 0 or 2
}

func newValue() Value {
	return Value{Producer: NoProducer, PreviousProducerID: NoProducerID, NextProducerID: NoProducerID,
		NextProducerEpoch: NoProducerEpoch, LastEpoch: NoProducerEpoch, StartMs: -1}
}

// The tags of a value's flexible version.
const (
	tagPreviousProducerID = 0
	tagNextProducerID     = 1
	tagClientVersion      = 2
	tagNextProducerEpoch  = 3
)

const (
	keyVersion         = 0
	classicVersion     = 0
	flexibleVersion    = 1
	minTopicBytes      = 2 + 4 // smallest classic entry of the list of topics
	minFlexTopicBytes  = 1 + 1 + 1
	partitionSizeBytes = 4
)

// EncodeKey makes the key of an id's records:
//
//	int16 version 0 | STRING transactional id
func EncodeKey(id string) []byte {
	return wire.AppendString(wire.AppendInt16(make([]byte, 0, 4+len(id)), keyVersion), id)
}

// DecodeKey reads a record's key.
//
// Errors: ErrUnknownKey, and those of package wire.
func DecodeKey(b []byte) (id string, err error) {
	r := wire.NewReader(b)
	version := r.Int16()
	if r.Err() == nil && version != keyVersion {
		return "", fmt.Errorf("%w: %d", ErrUnknownKey, version)
	}
	id = r.Str()
	return id, r.Err()
}

// AppendTo appends the value of a record, in version 0 (classic) or 1 (flexible):
//
//	int16 version | int64 producer id | int16 epoch | int32 time-out ms | int8 state
//	| [] { STRING topic, [] int32 partition } (null when Empty) | int64 last update ms | int64 start ms
//	| v1: tags 0 int64 previous producer id, 1 int64 next producer id, 2 int16 client transaction version
//
// Version 0 cannot hold what the tags tell.
func (v Value) AppendTo(b []byte, version int16) []byte {
	b = wire.AppendInt16(b, version)
	b = wire.AppendInt64(b, v.ID)
	b = wire.AppendInt16(b, v.Epoch)
	b = wire.AppendInt32(b, v.TimeoutMs)
	b = wire.AppendInt8(b, int8(v.State))
	b = v.appendPartitions(b, version >= flexibleVersion)
	b = wire.AppendInt64(b, v.LastUpdateMs)
	b = wire.AppendInt64(b, v.StartMs)
	if version < flexibleVersion {
		return b
	}
	return wire.AppendTags(b, v.tags()...)
}

func (v Value) tags() []wire.Tag {
	var tags []wire.Tag
	if v.PreviousProducerID != NoProducerID {
		tags = append(tags, wire.Tag{Tag: tagPreviousProducerID, Data: wire.AppendInt64(nil, v.PreviousProducerID)})
	}
	if v.NextProducerID != NoProducerID {
		tags = append(tags, wire.Tag{Tag: tagNextProducerID, Data: wire.AppendInt64(nil, v.NextProducerID)})
	}
	if v.ClientVersion != 0 {
		tags = append(tags, wire.Tag{Tag: tagClientVersion, Data: wire.AppendInt16(nil, v.ClientVersion)})
	}
	if v.NextProducerEpoch != NoProducerEpoch {
		tags = append(tags, wire.Tag{Tag: tagNextProducerEpoch, Data: wire.AppendInt16(nil, v.NextProducerEpoch)})
	}
	return tags
}

func (v Value) appendPartitions(b []byte, flexible bool) []byte {
	length, text := wire.AppendArrayLen, wire.AppendString
	if flexible {
		length, text = wire.AppendCompactArrayLen, wire.AppendCompactString
	}
	if v.State == Empty {
		return length(b, -1)
	}
	topics := byTopic(v.Partitions)
	b = length(b, len(topics))
	for _, t := range topics {
		b = text(b, t.name)
		b = length(b, len(t.partitions))
		for _, p := range t.partitions {
			b = wire.AppendInt32(b, p)
		}
		if flexible {
			b = wire.AppendTags(b)
		}
	}
	return b
}

// DecodeValue reads a record's value. LastEpoch is not in the log and comes back as NoProducerEpoch.
//
// Errors: a version or state that is not known; those of package wire.
func DecodeValue(b []byte) (Value, error) {
	v := newValue()
	r := wire.NewReader(b)
	version := r.Int16()
	if r.Err() == nil && (version < classicVersion || version > flexibleVersion) {
		return v, fmt.Errorf("version %d of a transaction's record is not known", version)
	}
	v.ID = r.Int64()
	v.Epoch = r.Int16()
	v.TimeoutMs = r.Int32()
	v.State = State(r.Int8())
	if r.Err() == nil && (v.State < Empty || v.State > PrepareEpochFence) {
		return v, fmt.Errorf("state %d of a transaction is not known", v.State)
	}
	v.readPartitions(r, version >= flexibleVersion)
	v.LastUpdateMs = r.Int64()
	v.StartMs = r.Int64()
	if version >= flexibleVersion {
		v.readTags(r)
	}
	return v, r.Err()
}

func (v *Value) readPartitions(r *wire.Reader, flexible bool) {
	length, text, smallest := r.ArrayLen, r.Str, minTopicBytes
	if flexible {
		length, text, smallest = r.CompactArrayLen, r.CompactString, minFlexTopicBytes
	}
	topics := length(smallest)
	for range topics {
		topic := text()
		partitions := length(partitionSizeBytes)
		for range partitions {
			v.Partitions = append(v.Partitions, checkpoint.TopicPartition{Topic: topic, Partition: r.Int32()})
		}
		if flexible {
			r.Tags(func(uint32, []byte) {})
		}
		if r.Err() != nil {
			return
		}
	}
	if v.State == Empty {
		v.Partitions = nil
	}
}

func (v *Value) readTags(r *wire.Reader) {
	r.Tags(func(tag uint32, data []byte) {
		d := wire.NewReader(data)
		switch tag {
		case tagPreviousProducerID:
			v.PreviousProducerID = d.Int64()
		case tagNextProducerID:
			v.NextProducerID = d.Int64()
		case tagClientVersion:
			v.ClientVersion = d.Int16()
		case tagNextProducerEpoch:
			v.NextProducerEpoch = d.Int16()
		}
		if d.Err() != nil {
			r.Fail(d.Err())
		}
	})
}
