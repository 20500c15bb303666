package group

import (
	"fmt"

	"tidemark/internal/wire"
)

// Offset is what a group committed for one partition.
type Offset struct {
	Offset      int64
	LeaderEpoch int32 // of the last record read; -1: not known
	Metadata    string
	CommitMs    int64
	ExpireMs    int64     // -1: by the group's retention
	TopicID     wire.UUID // zero: not known

	record int64 // offset of the record in __consumer_offsets
}

// Versions of an offset's value.
const (
	offsetWithExpiry   = 1 // what is written when the client asked for a retention of its own
	offsetWithEpoch    = 3
	offsetFlexible     = 4
	tagTopicID         = 0
	newestOffset       = offsetFlexible
	unknownLeaderEpoch = -1
	noExpiry           = -1
)

// AppendTo appends the value of an offset's record. Version 1 is written for one with a time of expiry, else 4:
//
//	int16 1 | int64 offset | STRING metadata | int64 commit ms | int64 expire ms
//	int16 4 | int64 offset | int32 leader epoch | COMPACT_STRING metadata | int64 commit ms | tag 0: UUID topic id
//
// Kafka: OffsetCommitValue; 0 lacks the expiry of 1, as 2 does, and 3 is 4 without tags.
func (o Offset) AppendTo(b []byte) []byte {
	if o.ExpireMs != noExpiry {
		b = wire.AppendInt16(b, offsetWithExpiry)
		b = wire.AppendInt64(b, o.Offset)
		b = wire.AppendString(b, o.Metadata)
		b = wire.AppendInt64(b, o.CommitMs)
		return wire.AppendInt64(b, o.ExpireMs)
	}
	b = wire.AppendInt16(b, newestOffset)
	b = wire.AppendInt64(b, o.Offset)
	b = wire.AppendInt32(b, o.LeaderEpoch)
	b = wire.AppendCompactString(b, o.Metadata)
	b = wire.AppendInt64(b, o.CommitMs)
	if o.TopicID == (wire.UUID{}) {
		return wire.AppendTags(b)
	}
	return wire.AppendTags(b, wire.Tag{Tag: tagTopicID, Data: wire.AppendUUID(nil, o.TopicID)})
}

// DecodeOffset reads the value of an offset's record, of any version.
//
// Errors: a version that is not known; those of package wire.
func DecodeOffset(b []byte) (Offset, error) {
	r := wire.NewReader(b)
	version := r.Int16()
	o := Offset{LeaderEpoch: unknownLeaderEpoch, ExpireMs: noExpiry}
	if r.Err() == nil && (version < 0 || version > newestOffset) {
		return o, fmt.Errorf("version %d of an offset's record is not known", version)
	}
	o.Offset = r.Int64()
	if version >= offsetWithEpoch {
		o.LeaderEpoch = r.Int32()
	}
	if version >= offsetFlexible {
		o.Metadata = r.CompactString()
	} else {
		o.Metadata = r.Str()
	}
	o.CommitMs = r.Int64()
	if version == offsetWithExpiry {
		o.ExpireMs = r.Int64()
	}
	if version >= offsetFlexible {
		r.Tags(func(tag uint32, data []byte) {
			if tag == tagTopicID && len(data) == len(o.TopicID) {
				copy(o.TopicID[:], data)
			}
		})
	}
	return o, r.Err()
}
