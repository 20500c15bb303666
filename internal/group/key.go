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
)

// Key is the key of a record: what it is about.
type Key struct {
	Kind      int16
	Group     string
	Topic     string // of an offset
	Partition int32  // of an offset
}

// AppendTo appends the key:
//
//	int16 kind | STRING group | of an offset: STRING topic, int32 partition
func (k Key) AppendTo(b []byte) []byte {
	b = wire.AppendInt16(b, k.Kind)
	b = wire.AppendString(b, k.Group)
	if k.isOffset() {
		b = wire.AppendString(b, k.Topic)
		b = wire.AppendInt32(b, k.Partition)
	}
	return b
}

func (k Key) isOffset() bool { return k.Kind == kindLegacyOffset || k.Kind == kindOffset }

// DecodeKey reads a record's key.
//
// Errors: ErrUnknownRecord, and those of package wire.
func DecodeKey(b []byte) (Key, error) {
	r := wire.NewReader(b)
	k := Key{Kind: r.Int16()}
	if r.Err() == nil && (k.Kind < kindLegacyOffset || k.Kind > kindClassic) {
		return k, fmt.Errorf("%w: %d", ErrUnknownRecord, k.Kind)
	}
	k.Group = r.Str()
	if k.isOffset() {
		k.Topic = r.Str()
		k.Partition = r.Int32()
	}
	return k, r.Err()
}

func offsetKey(group, topic string, partition int32) []byte {
	return Key{Kind: kindOffset, Group: group, Topic: topic, Partition: partition}.AppendTo(nil)
}

func classicKey(group string) []byte { return Key{Kind: kindClassic, Group: group}.AppendTo(nil) }
