package group

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"tidemark/internal/wire"
)

// The values of a consumer group's records are all of version 0, which is flexible.
const (
	consumerValueVersion  = 0
	tagMetadataHash       = 0
	tagAssignmentTime     = 0
	tagClassicMember      = 0
	tagAssignmentEpochs   = 0
	smallestTopicEntry    = 16 + 1 + 1
	smallestProtocolEntry = 1 + 1 + 1
	partitionBytes        = 4
)

// valueReader begins to read a consumer group's value.
func valueReader(b []byte) (*wire.Reader, framing, error) {
	r := wire.NewReader(b)
	if version := r.Int16(); r.Err() == nil && version != consumerValueVersion {
		return nil, framing{}, fmt.Errorf("version %d of a consumer group's record is not known", version)
	}
	return r, newFraming(r, true), nil
}

func newValue() []byte { return wire.AppendInt16(nil, consumerValueVersion) }

// encodeEpoch makes the value of a group's epoch:
//
//	int16 0 | int32 epoch | tag 0: int64 hash of the topics' metadata
func encodeEpoch(epoch int32, metadataHash int64) []byte {
	b := wire.AppendInt32(newValue(), epoch)
	if metadataHash == 0 {
		return wire.AppendTags(b)
	}
	return wire.AppendTags(b, wire.Tag{Tag: tagMetadataHash, Data: wire.AppendInt64(nil, metadataHash)})
}

func decodeEpoch(b []byte) (epoch int32, metadataHash int64, err error) {
	r, _, err := valueReader(b)
	if err != nil {
		return 0, 0, err
	}
	epoch = r.Int32()
	r.Tags(func(tag uint32, data []byte) {
		if tag == tagMetadataHash {
			metadataHash = wire.NewReader(data).Int64()
		}
	})
	return epoch, metadataHash, r.Err()
}

// encodeTargetEpoch makes the value of the epoch of a target assignment:
//
//	int16 0 | int32 epoch | tag 0: int64 computed at ms
func encodeTargetEpoch(epoch int32, atMs int64) []byte { return encodeEpoch(epoch, atMs) }

func decodeTargetEpoch(b []byte) (epoch int32, atMs int64, err error) { return decodeEpoch(b) }

// appendTo appends what is kept of a member's wishes:
//
//	int16 0 | STRING? instance id | STRING? rack | STRING client id | STRING client host | [] STRING topic
//	| STRING? pattern | int32 rebalance time-out ms | STRING? assignor
//	| tag 0: 0, or 1 and of a member of the classic protocol: int32 session time-out ms,
//	|        [] { STRING name, BYTES metadata }
//
// All strings are compact.
func (m *consumerMember) appendTo(b []byte) []byte {
	b = append(b, newValue()...)
	b = wire.AppendCompactNullableString(b, m.instanceID)
	b = wire.AppendCompactNullableString(b, m.rackID)
	b = wire.AppendCompactString(b, m.clientID)
	b = wire.AppendCompactString(b, m.clientHost)
	b = wire.AppendCompactArrayLen(b, len(m.topics))
	for _, t := range m.topics {
		b = wire.AppendCompactString(b, t)
	}
	b = wire.AppendCompactNullableString(b, m.regex)
	b = wire.AppendInt32(b, m.rebalanceTimeoutMs)
	b = wire.AppendCompactNullableString(b, m.assignor)
	classic := []byte{0}
	if m.classic != nil {
		classic = wire.AppendInt32([]byte{1}, m.classic.sessionTimeoutMs)
		classic = wire.AppendCompactArrayLen(classic, len(m.classic.protocols))
		for _, p := range m.classic.protocols {
			classic = wire.AppendCompactString(classic, p.Name)
			classic = wire.AppendTags(wire.AppendCompactBytes(classic, notNil(p.Metadata)))
		}
		classic = wire.AppendTags(classic)
	}
	return wire.AppendTags(b, wire.Tag{Tag: tagClassicMember, Data: classic})
}

// decodeWishes reads what is kept of a member's wishes into m.
func (m *consumerMember) decodeWishes(b []byte) error {
	r, f, err := valueReader(b)
	if err != nil {
		return err
	}
	m.instanceID, m.rackID = f.textOrNil(), f.textOrNil()
	m.clientID, m.clientHost = f.text(), f.text()
	m.topics = nil
	for range max(0, f.length(1)) {
		m.topics = append(m.topics, f.text())
	}
	m.topics = sortedTopics(m.topics)
	m.regex = f.textOrNil()
	m.rebalanceTimeoutMs = r.Int32()
	m.assignor = f.textOrNil()
	m.classic = nil
	r.Tags(func(tag uint32, data []byte) {
		if tag == tagClassicMember {
			if m.classic, err = decodeClassicMember(data); err != nil {
				r.Fail(err)
			}
		}
	})
	return r.Err()
}

func decodeClassicMember(b []byte) (*classicMetadata, error) {
	r := wire.NewReader(b)
	f := newFraming(r, true)
	if r.Uvarint() == 0 {
		return nil, r.Err()
	}
	c := &classicMetadata{sessionTimeoutMs: r.Int32()}
	for range max(0, f.length(smallestProtocolEntry)) {
		c.protocols = append(c.protocols, Protocol{Name: f.text(), Metadata: f.bytes()})
		f.tags()
	}
	f.tags()
	return c, r.Err()
}

// encodeTarget makes the value of a member's target assignment:
//
//	int16 0 | [] { UUID topic id, [] int32 partition }
func encodeTarget(t target) []byte {
	b := wire.AppendCompactArrayLen(newValue(), len(t))
	for _, id := range sortedIDs(t) {
		b = appendPartitions(wire.AppendUUID(b, id), t[id])
		b = wire.AppendTags(b)
	}
	return wire.AppendTags(b)
}

func appendPartitions(b []byte, partitions []int32) []byte {
	b = wire.AppendCompactArrayLen(b, len(partitions))
	for _, p := range partitions {
		b = wire.AppendInt32(b, p)
	}
	return b
}

func decodeTarget(b []byte) (target, error) {
	r, f, err := valueReader(b)
	if err != nil {
		return nil, err
	}
	t := target{}
	for range max(0, f.length(smallestTopicEntry)) {
		id := r.UUID()
		partitions := readPartitions(r, f)
		slices.Sort(partitions)
		t[id] = slices.Compact(partitions)
		f.tags()
	}
	f.tags()
	return t, r.Err()
}

func readPartitions(r *wire.Reader, f framing) (partitions []int32) {
	for range max(0, f.length(partitionBytes)) {
		partitions = append(partitions, r.Int32())
	}
	return partitions
}

// encodeCurrent makes the value of a member's current assignment:
//
//	int16 0 | int32 member epoch | int32 previous one | int8 state
//	| twice, for what it has and what it is to give up: [] { UUID topic id, [] int32 partition,
//	  tag 0: [] int32 epoch since which it has the partition }
func (m *consumerMember) encodeCurrent() []byte {
	b := wire.AppendInt32(newValue(), m.epoch)
	b = wire.AppendInt32(b, m.previousEpoch)
	b = wire.AppendInt8(b, m.state)
	b = appendOwned(b, m.assigned)
	return wire.AppendTags(appendOwned(b, m.revoking))
}

func appendOwned(b []byte, o owned) []byte {
	b = wire.AppendCompactArrayLen(b, len(o))
	for _, id := range sortedIDs(o) {
		partitions := slices.Sorted(maps.Keys(o[id]))
		epochs := make([]int32, len(partitions))
		for i, p := range partitions {
			epochs[i] = o[id][p]
		}
		b = appendPartitions(wire.AppendUUID(b, id), partitions)
		b = wire.AppendTags(b, wire.Tag{Tag: tagAssignmentEpochs, Data: appendPartitions(nil, epochs)})
	}
	return b
}

// decodeCurrent reads a member's current assignment into m.
func (m *consumerMember) decodeCurrent(b []byte) error {
	r, f, err := valueReader(b)
	if err != nil {
		return err
	}
	m.epoch, m.previousEpoch, m.state = r.Int32(), r.Int32(), r.Int8()
	if m.state != memberStable && m.state != memberUnrevoked && m.state != memberUnreleased {
		m.state = memberUnknown
	}
	m.assigned = readOwned(r, f, m.epoch)
	m.revoking = readOwned(r, f, m.epoch)
	f.tags()
	return r.Err()
}

func readOwned(r *wire.Reader, f framing, epoch int32) owned {
	o := owned{}
	for range max(0, f.length(smallestTopicEntry)) {
		id := r.UUID()
		partitions := readPartitions(r, f)
		var epochs []int32
		r.Tags(func(tag uint32, data []byte) {
			if tag == tagAssignmentEpochs {
				d := wire.NewReader(data)
				epochs = readPartitions(d, newFraming(d, true))
			}
		})
		since := map[int32]int32{}
		for i, p := range partitions {
			since[p] = max(epoch, 0)
			if len(epochs) == len(partitions) {
				since[p] = epochs[i]
			}
		}
		o[id] = since
	}
	return o
}

// resolved are the topics that match a pattern.
type resolved struct {
	topics      []string // sorted
	version     int64    // of the metadata
	timestampMs int64
}

// encode makes the value of a pattern's record:
//
//	int16 0 | [] STRING topic | int64 version of the metadata | int64 time ms
func (p resolved) encode() []byte {
	b := wire.AppendCompactArrayLen(newValue(), len(p.topics))
	for _, t := range p.topics {
		b = wire.AppendCompactString(b, t)
	}
	b = wire.AppendInt64(b, p.version)
	return wire.AppendTags(wire.AppendInt64(b, p.timestampMs))
}

func decodeResolved(b []byte) (p resolved, err error) {
	r, f, err := valueReader(b)
	if err != nil {
		return p, err
	}
	for range max(0, f.length(1)) {
		p.topics = append(p.topics, f.text())
	}
	p.topics = sortedTopics(p.topics)
	p.version, p.timestampMs = r.Int64(), r.Int64()
	f.tags()
	return p, r.Err()
}

// sortedTopics is a set of names, in order.
func sortedTopics(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

func sortedIDs[V any](m map[wire.UUID]V) []wire.UUID {
	return slices.SortedFunc(maps.Keys(m), compareIDs)
}

func compareIDs(a, b wire.UUID) int {
	for i := range a {
		if c := cmp.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}
