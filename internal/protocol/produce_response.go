package protocol

import (
	"tidemark/internal/wire"
)

// ProduceResponse is the body of a Produce response, version 0 to 13.
//
//	topics               array
//	  name               string          v0-12
//	  id                 uuid            v13+
//	  partitions         array
//	    index            i32
//	    error            i16
//	    base offset      i64
//	    log append time  i64             v2+
//	    log start offset i64             v5+
//	    record errors    array           v8+
//	      batch index    i32
//	      message        string, null
//	    message          string, null    v8+
//	    tag 0            i32, i32, tags  v10+  current leader and epoch
//	throttle ms          i32             v1+
//	tag 0                array           v10+  node endpoints
//
// From version 9 on lengths are compact, and each element, topic and the whole
// end with tagged fields.
type ProduceResponse struct {
	Topics        []ProduceTopicResponse
	ThrottleMs    int32
	NodeEndpoints []NodeEndpoint
}

// ProduceTopicResponse is the outcome for one topic of the request.
type ProduceTopicResponse struct {
	Name       string
	ID         [16]byte
	Partitions []ProducePartitionResponse
}

// ProducePartitionResponse is the outcome for one partition.
type ProducePartitionResponse struct {
	Index     int32
	ErrorCode int16
	// BaseOffset is that of the first record, −1 with an error.
	BaseOffset int64
	// LogAppendTimeMs is −1 with CreateTime.
	LogAppendTimeMs int64
	// LogStartOffset is −1 when unknown.
	LogStartOffset int64
	RecordErrors   []RecordError
	ErrorMessage   *string
	// CurrentLeader is nil when there is nothing to tell.
	CurrentLeader *LeaderAndEpoch
}

// RecordError says which record made a batch be refused.
type RecordError struct {
	BatchIndex int32
	Message    *string
}

// AppendTo appends the body in the form of a version.
func (r *ProduceResponse) AppendTo(dst []byte, version int16) []byte {
	flex := version >= produceFlexible
	dst = appendArrayLen(dst, len(r.Topics), flex)
	for i := range r.Topics {
		t := &r.Topics[i]
		if version >= 13 {
			dst = wire.AppendUUID(dst, t.ID)
		} else {
			dst = appendString(dst, t.Name, flex)
		}
		dst = appendArrayLen(dst, len(t.Partitions), flex)
		for j := range t.Partitions {
			dst = t.Partitions[j].appendTo(dst, version)
		}
		dst = appendNoTags(dst, flex)
	}
	if version >= 1 {
		dst = wire.AppendInt32(dst, r.ThrottleMs)
	}
	if version >= 10 {
		return appendEndpoints(dst, r.NodeEndpoints)
	}
	return appendNoTags(dst, flex)
}

func (p *ProducePartitionResponse) appendTo(dst []byte, version int16) []byte {
	flex := version >= produceFlexible
	dst = wire.AppendInt32(dst, p.Index)
	dst = wire.AppendInt16(dst, p.ErrorCode)
	dst = wire.AppendInt64(dst, p.BaseOffset)
	if version >= 2 {
		dst = wire.AppendInt64(dst, p.LogAppendTimeMs)
	}
	if version >= 5 {
		dst = wire.AppendInt64(dst, p.LogStartOffset)
	}
	if version >= 8 {
		dst = appendArrayLen(dst, len(p.RecordErrors), flex)
		for i := range p.RecordErrors {
			dst = wire.AppendInt32(dst, p.RecordErrors[i].BatchIndex)
			dst = appendNullableString(dst, p.RecordErrors[i].Message, flex)
			dst = appendNoTags(dst, flex)
		}
		dst = appendNullableString(dst, p.ErrorMessage, flex)
	}
	if version >= 10 && p.CurrentLeader != nil {
		return appendLeaderTag(append(dst, 1), 0, p.CurrentLeader)
	}
	return appendNoTags(dst, flex)
}
