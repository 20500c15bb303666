package group

import (
	"fmt"

	"tidemark/internal/wire"
)

// Kinds of records in __consumer_offsets: the first two bytes of a key.
const (
	kindLegacyOffset = 0
	kindOffset       = 1
	kindClassic      = 2

	kindEpoch             = 3
	kindPartitionMetadata = 4 // before Kafka 4.1
	kindMember            = 5
	kindTargetEpoch       = 6
	kindTarget            = 7
	kindCurrent           = 8
	kindRegex             = 16
)

// Key is the key of a record: what it is about.
type Key struct {
	Kind      int16
	Group     string
	Topic     string // of an offset
	Partition int32  // of an offset
	Member    string // of what a consumer group keeps for a member
	Regex     string // of a pattern of topics
}

// AppendTo appends the key:
//
//	int16 kind | STRING group | of an offset: STRING topic, int32 partition | of a member: STRING member
//	| of a pattern: STRING regular expression
func (k Key) AppendTo(b []byte) []byte {
	b = wire.AppendInt16(b, k.Kind)
	b = wire.AppendString(b, k.Group)
	switch {
	case k.isOffset():
		b = wire.AppendString(b, k.Topic)
		b = wire.AppendInt32(b, k.Partition)
	case k.isMember():
		b = wire.AppendString(b, k.Member)
	case k.Kind == kindRegex:
		b = wire.AppendString(b, k.Regex)
	}
	return b
}

func (k Key) isOffset() bool { return k.Kind == kindLegacyOffset || k.Kind == kindOffset }
func (k Key) isMember() bool {
	return k.Kind == kindMember || k.Kind == kindTarget || k.Kind == kindCurrent
}
func (k Key) isConsumer() bool {
	return k.Kind >= kindEpoch && k.Kind <= kindCurrent || k.Kind == kindRegex
}
func (k Key) isKnown() bool {
	return k.isOffset() || k.Kind == kindClassic || k.isConsumer()
}

// DecodeKey reads a record's key.
//
// Errors: ErrUnknownRecord, and those of package wire.
func DecodeKey(b []byte) (Key, error) {
	r := wire.NewReader(b)
	k := Key{Kind: r.Int16()}
	if r.Err() == nil && !k.isKnown() {
		return k, fmt.Errorf("%w: %d", ErrUnknownRecord, k.Kind)
	}
	k.Group = r.Str()
	switch {
	case k.isOffset():
		k.Topic = r.Str()
		k.Partition = r.Int32()
	case k.isMember():
		k.Member = r.Str()
	case k.Kind == kindRegex:
		k.Regex = r.Str()
	}
	return k, r.Err()
}

func offsetKey(group, topic string, partition int32) []byte {
	return Key{Kind: kindOffset, Group: group, Topic: topic, Partition: partition}.AppendTo(nil)
}

// offsetRecord is the record of an offset. Key and value share an array.
func offsetRecord(group, topic string, partition int32, o Offset) Record {
	const fixed = 80 // more than what takes the same in each
	b := make([]byte, 0, fixed+len(group)+len(topic)+len(o.Metadata))
	b = Key{Kind: kindOffset, Group: group, Topic: topic, Partition: partition}.AppendTo(b)
	n := len(b)
	b = o.AppendTo(b)
	return Record{Key: b[:n:n], Value: b[n:]}
}

func classicKey(group string) []byte { return Key{Kind: kindClassic, Group: group}.AppendTo(nil) }
