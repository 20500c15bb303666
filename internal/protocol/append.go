package protocol

import (
	"tidemark/internal/wire"
)

// NodeEndpoint is where a leader named in a response can be reached (KIP-951).
type NodeEndpoint struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string // nil = null
}

// LeaderAndEpoch is the current leader of a partition, −1 for none or unknown.
type LeaderAndEpoch struct {
	LeaderID, LeaderEpoch int32
}

func appendArrayLen(dst []byte, n int, flex bool) []byte {
	if flex {
		return wire.AppendCompactArrayLen(dst, n)
	}
	return wire.AppendArrayLen(dst, n)
}

func appendString(dst []byte, s string, flex bool) []byte {
	if flex {
		return wire.AppendCompactString(dst, s)
	}
	return wire.AppendString(dst, s)
}

func appendNullableString(dst []byte, s *string, flex bool) []byte {
	if flex {
		return wire.AppendCompactNullableString(dst, s)
	}
	return wire.AppendNullableString(dst, s)
}

// appendNoTags ends an element that has no tagged fields to show.
func appendNoTags(dst []byte, flex bool) []byte {
	if flex {
		return append(dst, 0)
	}
	return dst
}

// appendLeaderTag appends tagged field: tag, size, leader id, epoch, no tags.
func appendLeaderTag(dst []byte, tag byte, l *LeaderAndEpoch) []byte {
	dst = append(dst, tag, 4+4+1)
	dst = wire.AppendInt32(dst, l.LeaderID)
	dst = wire.AppendInt32(dst, l.LeaderEpoch)
	return append(dst, 0)
}

// appendEndpoints ends a Produce or Fetch response that may carry endpoints as
// tagged field 0.
func appendEndpoints(dst []byte, nodes []NodeEndpoint) []byte {
	if len(nodes) == 0 {
		return append(dst, 0)
	}
	size := wire.SizeUvarint(uint32(len(nodes) + 1))
	for i := range nodes {
		size += nodes[i].sizeBytes()
	}
	dst = append(dst, 1, 0)
	dst = wire.AppendUvarint(dst, uint32(size))
	dst = wire.AppendCompactArrayLen(dst, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		dst = wire.AppendInt32(dst, n.NodeID)
		dst = wire.AppendCompactString(dst, n.Host)
		dst = wire.AppendInt32(dst, n.Port)
		dst = wire.AppendCompactNullableString(dst, n.Rack)
		dst = append(dst, 0)
	}
	return dst
}

func (n *NodeEndpoint) sizeBytes() int {
	size := 4 + wire.SizeUvarint(uint32(len(n.Host)+1)) + len(n.Host) + 4 + 1 + 1
	if n.Rack != nil {
		size += wire.SizeUvarint(uint32(len(*n.Rack)+1)) + len(*n.Rack) - 1
	}
	return size
}

// endpointsSize is an upper bound of what appendEndpoints adds.
func endpointsSize(nodes []NodeEndpoint) int {
	size := 16
	for i := range nodes {
		size += nodes[i].sizeBytes()
	}
	return size
}
