package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/commitlog"
	"tidemark/internal/replica"
)

// ListOffsets (2).
//
// v0: an array of segment base offsets, newest first. v1: one offset and timestamp (KIP-79). v2: isolation level
// (KIP-98). v4: leader epochs (KIP-320). v5: OFFSET_NOT_AVAILABLE. v6: flexible. v7: −3, largest timestamp
// (KIP-734). v8: −4, earliest local (KIP-405). v9: −5, latest tiered (KIP-1005). v10: timeout (KIP-1075).
// v11: −6, earliest pending upload (KIP-1023).

// specialSince is the first version in which a special timestamp may be asked for.
var specialSince = map[int64]int16{
	replica.Latest: 1, replica.Earliest: 1, replica.MaxTimestamp: 7, replica.EarliestLocal: 8,
	replica.LatestTiered: 9, replica.EarliestPendingUpload: 11,
}

type topicPartition struct {
	topic     string
	partition int32
}

func (a *API) listOffsets(c *call, request *kmsg.ListOffsetsRequest) kmsg.Response {
	response := answerTo[*kmsg.ListOffsetsResponse](request)
	known := request.IsolationLevel == 0 || request.IsolationLevel == int8(commitlog.ReadCommitted)
	asked := map[topicPartition]int{}
	for _, t := range request.Topics {
		for _, p := range t.Partitions {
			asked[topicPartition{t.Topic, p.Partition}]++
		}
	}
	for _, t := range request.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			key := topicPartition{t.Topic, p.Partition}
			switch n := asked[key]; {
			case !known:
				out.Partitions = append(out.Partitions, a.noOffset(c, request, p, kerr.UnknownServerError))
			case n == 1 || request.Version == 0:
				out.Partitions = append(out.Partitions, a.listOffset(c, request, t.Topic, p))
			case n > 1: // asked several times: refused once
				asked[key] = 0
				out.Partitions = append(out.Partitions, a.noOffset(c, request, p, kerr.InvalidRequest))
			}
		}
		response.Topics = append(response.Topics, out)
	}
	return response
}

// noOffset is the answer without an offset.
func (a *API) noOffset(c *call, request *kmsg.ListOffsetsRequest, in kmsg.ListOffsetsRequestTopicPartition, why error,
) kmsg.ListOffsetsResponseTopicPartition {
	out := kmsg.NewListOffsetsResponseTopicPartition()
	out.Partition, out.Timestamp, out.Offset, out.LeaderEpoch = in.Partition, -1, -1, -1
	if request.Version == 0 {
		out.OldStyleOffsets = []int64{}
	}
	out.ErrorCode = a.failed(c, why)
	return out
}

func (a *API) listOffset(c *call, request *kmsg.ListOffsetsRequest, topic string,
	in kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	refuse := func(err error) kmsg.ListOffsetsResponseTopicPartition { return a.noOffset(c, request, in, err) }
	if !a.allowed(c, auth.Describe, auth.Topic(topic)) {
		return refuse(kerr.TopicAuthorizationFailed)
	}
	if request.Version == 0 {
		return a.legacyOffsets(c, request, topic, in)
	}
	if since, known := specialSince[in.Timestamp]; in.Timestamp < 0 && (!known || request.Version < since) {
		return refuse(kerr.UnsupportedVersion)
	}
	p, err := a.partitionByName(topic, in.Partition)
	if err != nil {
		return refuse(err)
	}
	epoch := int32(replica.NoEpoch)
	if request.Version >= 4 {
		epoch = in.CurrentLeaderEpoch
	}
	found, err := a.lookUp(p, replica.OffsetQuery{Timestamp: in.Timestamp, LeaderEpoch: epoch,
		Replica: request.ReplicaID, Isolation: commitlog.Isolation(request.IsolationLevel)})
	if err != nil {
		if errors.Is(err, replica.ErrOffsetNotAvailable) && request.Version < 5 {
			err = kerr.LeaderNotAvailable
		}
		return refuse(err)
	}
	out := a.noOffset(c, request, in, nil)
	out.Timestamp, out.Offset, out.LeaderEpoch = found.Timestamp, found.Offset, found.LeaderEpoch
	return out
}

// lookUp asks the partition, measures look-ups by time and logs slow ones with the way they took.
func (a *API) lookUp(p *replica.Partition, q replica.OffsetQuery) (commitlog.Found, error) {
	if q.Timestamp < 0 {
		return p.ListOffset(q)
	}
	trace := commitlog.Trace{}
	q.Trace = &trace
	start := a.Clock()
	found, err := p.ListOffset(q)
	took := a.Clock().Sub(start)
	if a.Metrics.Lookup != nil {
		a.Metrics.Lookup(trace.SegmentsConsidered, trace.BytesScanned, took)
	}
	if a.SlowLookup > 0 && took >= a.SlowLookup {
		a.Logger.Warn("slow look-up by time", "partition", p.Name().String(), "timestamp", q.Timestamp,
			"took", took, "offset", found.Offset, "segments_considered", trace.SegmentsConsidered,
			"segments_searched", trace.SegmentsSearched, "segment", trace.SegmentBase,
			"time_entry", trace.TimeEntryTimestamp, "time_entry_offset", trace.TimeEntryOffset,
			"offset_entry", trace.OffsetEntryOffset, "position", trace.Position,
			"batches_scanned", trace.BatchesScanned, "bytes_scanned", trace.BytesScanned)
	}
	return found, err
}

// legacyOffsets answers version 0.
func (a *API) legacyOffsets(c *call, request *kmsg.ListOffsetsRequest, topic string,
	in kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	out := a.noOffset(c, request, in, nil)
	if in.Timestamp < replica.Earliest {
		out.ErrorCode = a.failed(c, kerr.UnsupportedVersion)
		return out
	}
	p, err := a.partitionByName(topic, in.Partition)
	if err == nil && in.MaxNumOffsets < 0 {
		err = kerr.UnknownServerError
	}
	if err == nil {
		var offsets []int64
		offsets, err = p.LegacyOffsets(in.Timestamp, int(in.MaxNumOffsets), request.ReplicaID)
		out.OldStyleOffsets = append(out.OldStyleOffsets, offsets...)
	}
	out.ErrorCode = a.failed(c, err)
	return out
}
