package protocol

import (
	"tidemark/internal/wire"
)

// FetchResponse is the body of a Fetch response, version 0 to 18.
//
//	throttle ms            i32             v1+
//	error                  i16             v7+
//	session id             i32             v7+
//	topics                 array
//	  name                 string          v0-12
//	  id                   uuid            v13+
//	  partitions           array
//	    index              i32
//	    error              i16
//	    high watermark     i64
//	    last stable offset i64             v4+
//	    log start offset   i64             v5+
//	    aborted            array, null     v4+
//	      producer id      i64
//	      first offset     i64
//	    preferred replica  i32             v11+
//	    records            bytes
//	    tag 0              i32, i64, tags  v12+  diverging epoch and its end
//	    tag 1              i32, i32, tags  v12+  current leader and epoch
//	    tag 2              i64, i32, tags  v12+  snapshot: end offset and epoch
//	tag 0                  array           v16+  node endpoints
//
// From version 12 on lengths are compact, and each element, topic and the whole
// end with tagged fields.
type FetchResponse struct {
	ThrottleMs    int32
	ErrorCode     int16
	SessionID     int32
	Topics        []FetchTopicResponse
	NodeEndpoints []NodeEndpoint
}

// FetchTopicResponse is the answer for one topic.
type FetchTopicResponse struct {
	Name       string
	ID         [16]byte
	Partitions []FetchPartitionResponse
}

// FetchPartitionResponse is the answer for one partition.
type FetchPartitionResponse struct {
	Index     int32
	ErrorCode int16
	// HighWatermark, LastStableOffset and LogStartOffset are −1 when unknown.
	HighWatermark, LastStableOffset, LogStartOffset int64
	// AbortedTransactions is nil for null: read_uncommitted.
	AbortedTransactions []AbortedTransaction
	// PreferredReadReplica is −1 for none.
	PreferredReadReplica int32
	// Records is empty when there are none; Kafka never sends null here.
	Records Part
	// The rest is nil when there is nothing to tell.
	DivergingEpoch *EpochEnd
	CurrentLeader  *LeaderAndEpoch
	SnapshotID     *EpochEnd
}

// AbortedTransaction is a transaction whose records a reader must drop.
type AbortedTransaction struct {
	ProducerID, FirstOffset int64
}

// EpochEnd is a leader epoch and the offset after its last record.
type EpochEnd struct {
	Epoch     int32
	EndOffset int64
}

// FetchError is the answer for a partition that cannot be read.
func FetchError(index int32, code int16) FetchPartitionResponse {
	return FetchPartitionResponse{
		Index: index, ErrorCode: code,
		HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1, PreferredReadReplica: -1,
	}
}

// Encode gives the body in the form of a version. Everything but the records
// is in one new buffer; the records are those of the response, not copied, so
// what they alias must stay until the response was released.
func (r *FetchResponse) Encode(version int16) Parts {
	e := fetchEncoder{version: version, flex: version >= fetchFlexible}
	capacity, partitions := r.headerBound()
	e.buf = make([]byte, 0, capacity)
	e.parts = make(Parts, 0, 2*partitions+1)
	e.response(r)
	e.cut()
	return e.parts
}

// headerBound is an upper bound of the bytes besides records, and the number of
// partitions with records.
func (r *FetchResponse) headerBound() (size, partitions int) {
	const head, topic, partition, aborted, tags = 24, 30, 64, 17, 64
	size = head + endpointsSize(r.NodeEndpoints)
	for i := range r.Topics {
		size += topic + len(r.Topics[i].Name)
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			size += partition + aborted*len(p.AbortedTransactions)
			if p.DivergingEpoch != nil || p.CurrentLeader != nil || p.SnapshotID != nil {
				size += tags
			}
			if p.Records.SizeBytes() > 0 {
				partitions++
			}
		}
	}
	return size, partitions
}

// fetchEncoder writes header bytes to buf and hands them to parts whenever
// records come in between. buf never grows beyond its first capacity, so the
// parts stay where they are.
type fetchEncoder struct {
	version int16
	flex    bool
	buf     []byte
	from    int // where in buf the next part begins
	parts   Parts
}

// cut ends the run of header bytes.
func (e *fetchEncoder) cut() {
	if e.from < len(e.buf) {
		e.parts = append(e.parts, BytesPart(e.buf[e.from:len(e.buf):len(e.buf)]))
		e.from = len(e.buf)
	}
}

func (e *fetchEncoder) response(r *FetchResponse) {
	if e.version >= 1 {
		e.buf = wire.AppendInt32(e.buf, r.ThrottleMs)
	}
	if e.version >= 7 {
		e.buf = wire.AppendInt16(e.buf, r.ErrorCode)
		e.buf = wire.AppendInt32(e.buf, r.SessionID)
	}
	e.buf = appendArrayLen(e.buf, len(r.Topics), e.flex)
	for i := range r.Topics {
		t := &r.Topics[i]
		if e.version >= 13 {
			e.buf = wire.AppendUUID(e.buf, t.ID)
		} else {
			e.buf = appendString(e.buf, t.Name, e.flex)
		}
		e.buf = appendArrayLen(e.buf, len(t.Partitions), e.flex)
		for j := range t.Partitions {
			e.partition(&t.Partitions[j])
		}
		e.buf = appendNoTags(e.buf, e.flex)
	}
	if e.version >= 16 {
		e.buf = appendEndpoints(e.buf, r.NodeEndpoints)
	} else {
		e.buf = appendNoTags(e.buf, e.flex)
	}
}

func (e *fetchEncoder) partition(p *FetchPartitionResponse) {
	e.buf = wire.AppendInt32(e.buf, p.Index)
	e.buf = wire.AppendInt16(e.buf, p.ErrorCode)
	e.buf = wire.AppendInt64(e.buf, p.HighWatermark)
	if e.version >= 4 {
		e.buf = wire.AppendInt64(e.buf, p.LastStableOffset)
	}
	if e.version >= 5 {
		e.buf = wire.AppendInt64(e.buf, p.LogStartOffset)
	}
	if e.version >= 4 {
		e.aborted(p.AbortedTransactions)
	}
	if e.version >= 11 {
		e.buf = wire.AppendInt32(e.buf, p.PreferredReadReplica)
	}
	e.records(p.Records)
	if e.flex {
		e.partitionTags(p)
	}
}

func (e *fetchEncoder) aborted(list []AbortedTransaction) {
	n := len(list)
	if list == nil {
		n = -1
	}
	e.buf = appendArrayLen(e.buf, n, e.flex)
	for i := range list {
		e.buf = wire.AppendInt64(e.buf, list[i].ProducerID)
		e.buf = wire.AppendInt64(e.buf, list[i].FirstOffset)
		e.buf = appendNoTags(e.buf, e.flex)
	}
}

func (e *fetchEncoder) records(p Part) {
	size := p.SizeBytes()
	if e.flex {
		e.buf = wire.AppendUvarint(e.buf, uint32(size+1))
	} else {
		e.buf = wire.AppendInt32(e.buf, int32(size))
	}
	if size > 0 {
		e.cut()
		e.parts = append(e.parts, p)
	}
}

func (e *fetchEncoder) partitionTags(p *FetchPartitionResponse) {
	n := byte(0)
	for _, has := range [...]bool{p.DivergingEpoch != nil, p.CurrentLeader != nil, p.SnapshotID != nil} {
		if has {
			n++
		}
	}
	e.buf = append(e.buf, n)
	if d := p.DivergingEpoch; d != nil {
		e.buf = append(e.buf, 0, 4+8+1)
		e.buf = wire.AppendInt32(e.buf, d.Epoch)
		e.buf = wire.AppendInt64(e.buf, d.EndOffset)
		e.buf = append(e.buf, 0)
	}
	if p.CurrentLeader != nil {
		e.buf = appendLeaderTag(e.buf, 1, p.CurrentLeader)
	}
	if s := p.SnapshotID; s != nil {
		e.buf = append(e.buf, 2, 8+4+1)
		e.buf = wire.AppendInt64(e.buf, s.EndOffset)
		e.buf = wire.AppendInt32(e.buf, s.Epoch)
		e.buf = append(e.buf, 0)
	}
}
