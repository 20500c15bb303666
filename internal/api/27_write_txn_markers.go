package api

import (
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/coordinator"
	"tidemark/internal/metadata"
	"tidemark/internal/txn"
)

// WriteTxnMarkers (27), from brokers and from the tool that aborts hanging transactions.
//
// v1: flexible; Kafka 4 does not know v0. v2: the version of the transaction (KIP-1228).

func (a *API) writeTxnMarkers(c *call, request *kmsg.WriteTxnMarkersRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.WriteTxnMarkersResponse](request)
	if !a.allowed(c, auth.Alter, auth.Cluster) && !a.allowed(c, auth.ClusterAction, auth.Cluster) {
		response.Markers = writtenMarkers(a.refusedMarkers(c, request.Markers, kerr.ClusterAuthorizationFailed))
		done(response)
		return
	}
	markers, broken := possibleMarkers(request.Markers, a.Metadata.Image())
	results := make([]markerResults, len(markers))
	var left sync.WaitGroup
	left.Add(len(markers))
	for i, m := range markers {
		partitions := markerPartitions(m)
		marker := coordinator.Marker{Producer: txn.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch},
			Commit: m.Committed, CoordinatorEpoch: m.CoordinatorEpoch, Version: int16(m.TransactionVersion)}
		a.Markers.Write(marker, partitions, func(errs []error) {
			codes := make([]int16, len(errs))
			for j, err := range errs {
				codes[j] = a.markerCode(c, err)
			}
			results[i] = markerResults{m.ProducerID, partitions, codes}
			left.Done()
		})
	}
	go func() {
		left.Wait()
		if broken {
			results = a.refusedMarkers(c, request.Markers, kerr.UnknownServerError)
		}
		response.Markers = writtenMarkers(results)
		done(response)
	}()
}

// possibleMarkers are the markers before the first that cannot be made, since it has no producer id or no epoch; broken
// tells that there is one.
//
// Kafka: MemoryRecordsBuilder refuses such a marker with an exception that ends the whole request, after the markers
// before it were appended.
func possibleMarkers(all []kmsg.WriteTxnMarkersRequestMarker, image *metadata.Image,
) (markers []kmsg.WriteTxnMarkersRequestMarker, broken bool) {
	for i, m := range all {
		if m.ProducerID != txn.NoProducerID && m.ProducerEpoch != txn.NoProducerEpoch {
			continue
		}
		for _, tp := range markerPartitions(m) {
			topic := image.Topic(tp.Topic)
			if tp.Topic != coordinator.OffsetsTopic && topic != nil && topic.Partition(tp.Partition) != nil {
				return all[:i], true
			}
		}
	}
	return all, false
}

// refusedMarkers are the results of a request that is refused as a whole.
func (a *API) refusedMarkers(c *call, markers []kmsg.WriteTxnMarkersRequestMarker, err error) []markerResults {
	results := make([]markerResults, len(markers))
	for i, m := range markers {
		partitions := markerPartitions(m)
		results[i] = markerResults{m.ProducerID, partitions, sameCode(a.failed(c, err), len(partitions))}
	}
	return results
}

// markerCode is the code of a marker that was not written. The transaction coordinator that asks does not know the
// errors of a group coordinator: they mean to it that the partition is not ready.
func (a *API) markerCode(c *call, err error) int16 {
	if errors.Is(err, coordinator.ErrLoading) || errors.Is(err, coordinator.ErrNotAvailable) ||
		errors.Is(err, coordinator.ErrNotCoordinator) {
		err = kerr.NotLeaderForPartition
	}
	return a.failed(c, err)
}

func markerPartitions(m kmsg.WriteTxnMarkersRequestMarker) []checkpoint.TopicPartition {
	return topicPartitions(m.Topics, func(t kmsg.WriteTxnMarkersRequestMarkerTopic) (string, []int32) {
		return t.Topic, t.Partitions
	})
}

// markerResults are the codes of one marker, by partition.
type markerResults struct {
	producerID int64
	partitions []checkpoint.TopicPartition
	codes      []int16
}

// writtenMarkers puts the results of each producer together.
func writtenMarkers(results []markerResults) []kmsg.WriteTxnMarkersResponseMarker {
	var merged []markerResults
	index := map[int64]int{}
	for _, r := range results {
		i, ok := index[r.producerID]
		if !ok {
			i = len(merged)
			index[r.producerID] = i
			merged = append(merged, markerResults{producerID: r.producerID})
		}
		merged[i].partitions = append(merged[i].partitions, r.partitions...)
		merged[i].codes = append(merged[i].codes, r.codes...)
	}
	out := make([]kmsg.WriteTxnMarkersResponseMarker, len(merged))
	for i, m := range merged {
		out[i] = writtenMarker(m)
	}
	return out
}

func writtenMarker(m markerResults) kmsg.WriteTxnMarkersResponseMarker {
	out := kmsg.NewWriteTxnMarkersResponseMarker()
	out.ProducerID = m.producerID
	for _, t := range addedTopics(m.partitions, m.codes) {
		topic := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
		topic.Topic = t.Topic
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, kmsg.WriteTxnMarkersResponseMarkerTopicPartition{
				Partition: p.Partition, ErrorCode: p.ErrorCode})
		}
		out.Topics = append(out.Topics, topic)
	}
	return out
}
