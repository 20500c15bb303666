package group

import (
	"fmt"

	"tidemark/internal/wire"
)

// classicValue is the value of a classic group's record.
type classicValue struct {
	protocolType   string
	generation     int32
	protocol       *string
	leader         *string
	currentStateMs int64 // -1: not known
	members        []classicMember
}

// classicMember is a member in a classic group's record.
type classicMember struct {
	id, clientID, clientHost string
	instanceID               *string
	rebalanceTimeoutMs       int32 // -1: not known
	sessionTimeoutMs         int32
	subscription, assignment []byte
}

// Versions of a classic group's value.
const (
	classicWithRebalanceTimeout = 1
	classicWithStateTime        = 2
	classicWithInstance         = 3 // what is written
	classicFlexible             = 4
	smallestMember              = 2 + 2 + 2 + 4 + 4 + 4
	smallestFlexibleMember      = 1 + 1 + 1 + 1 + 4 + 4 + 1 + 1 + 1
)

// appendTo appends the value in version 3:
//
//	int16 3 | STRING protocol type | int32 generation | STRING? protocol | STRING? leader | int64 state since ms
//	| [] { STRING member id, STRING? instance id, STRING client id, STRING client host,
//	       int32 rebalance time-out ms, int32 session time-out ms, BYTES subscription, BYTES assignment }
//
// Kafka: GroupMetadataValue; 0 lacks rebalance time-outs, 1 the time of the state, 2 instance ids, 4 is flexible.
func (v *classicValue) appendTo(b []byte) []byte {
	b = wire.AppendInt16(b, classicWithInstance)
	b = wire.AppendString(b, v.protocolType)
	b = wire.AppendInt32(b, v.generation)
	b = wire.AppendNullableString(b, v.protocol)
	b = wire.AppendNullableString(b, v.leader)
	b = wire.AppendInt64(b, v.currentStateMs)
	b = wire.AppendArrayLen(b, len(v.members))
	for _, m := range v.members {
		b = wire.AppendString(b, m.id)
		b = wire.AppendNullableString(b, m.instanceID)
		b = wire.AppendString(b, m.clientID)
		b = wire.AppendString(b, m.clientHost)
		b = wire.AppendInt32(b, m.rebalanceTimeoutMs)
		b = wire.AppendInt32(b, m.sessionTimeoutMs)
		b = wire.AppendBytes(b, notNil(m.subscription))
		b = wire.AppendBytes(b, notNil(m.assignment))
	}
	return b
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// decodeClassic reads the value of a classic group's record, of any version.
//
// Errors: a version that is not known; those of package wire.
func decodeClassic(b []byte) (*classicValue, error) {
	r := wire.NewReader(b)
	version := r.Int16()
	if r.Err() == nil && (version < 0 || version > classicFlexible) {
		return nil, fmt.Errorf("version %d of a group's record is not known", version)
	}
	f := newFraming(r, version >= classicFlexible)
	v := &classicValue{currentStateMs: -1}
	v.protocolType = f.text()
	v.generation = r.Int32()
	v.protocol = f.textOrNil()
	v.leader = f.textOrNil()
	if version >= classicWithStateTime {
		v.currentStateMs = r.Int64()
	}
	smallest := smallestMember
	if f.flexible {
		smallest = smallestFlexibleMember
	}
	for range max(0, f.length(smallest)) {
		v.members = append(v.members, readClassicMember(r, f, version))
		if r.Err() != nil {
			break
		}
	}
	f.tags()
	return v, r.Err()
}

func readClassicMember(r *wire.Reader, f framing, version int16) classicMember {
	m := classicMember{rebalanceTimeoutMs: -1}
	m.id = f.text()
	if version >= classicWithInstance {
		m.instanceID = f.textOrNil()
	}
	m.clientID = f.text()
	m.clientHost = f.text()
	if version >= classicWithRebalanceTimeout {
		m.rebalanceTimeoutMs = r.Int32()
	}
	m.sessionTimeoutMs = r.Int32()
	m.subscription = f.bytes()
	m.assignment = f.bytes()
	f.tags()
	return m
}

// framing reads strings, bytes and arrays as a classic or a flexible version has them. Bytes are copies.
type framing struct {
	r        *wire.Reader
	flexible bool
}

func newFraming(r *wire.Reader, flexible bool) framing { return framing{r, flexible} }

func (f framing) text() string {
	if f.flexible {
		return f.r.CompactString()
	}
	return f.r.Str()
}

func (f framing) textOrNil() *string {
	if f.flexible {
		return f.r.CompactNullableString()
	}
	return f.r.NullableString()
}

func (f framing) bytes() []byte {
	if f.flexible {
		return append([]byte{}, f.r.CompactBytes()...)
	}
	return append([]byte{}, f.r.Bytes()...)
}

func (f framing) length(smallest int) int {
	if f.flexible {
		return f.r.CompactArrayLen(smallest)
	}
	return f.r.ArrayLen(smallest)
}

func (f framing) tags() {
	if f.flexible {
		f.r.Tags(func(uint32, []byte) {})
	}
}
