package api

import (
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/coordinator"
	"tidemark/internal/txn"
)

// WriteTxnMarkers (27), from brokers and from the tool that aborts hanging transactions.
//
// v1: flexible; Kafka 4 does not know v0. v2: the version of the transaction (KIP-1228).

func (a *API) writeTxnMarkers(c *call, request *kmsg.WriteTxnMarkersRequest, done func(kmsg.Response)) {
	response := answerTo[*kmsg.WriteTxnMarkersResponse](request)
	if !a.allowed(c, auth.Alter, auth.Cluster) && !a.allowed(c, auth.ClusterAction, auth.Cluster) {
		for _, m := range request.Markers {
			partitions := markerPartitions(m)
			codes := sameCode(a.failed(c, kerr.ClusterAuthorizationFailed), len(partitions))
			response.Markers = append(response.Markers, writtenMarker(m, partitions, codes))
		}
		done(response)
		return
	}
	response.Markers = make([]kmsg.WriteTxnMarkersResponseMarker, len(request.Markers))
	var left sync.WaitGroup
	left.Add(len(request.Markers))
	for i, m := range request.Markers {
		partitions := markerPartitions(m)
		marker := coordinator.Marker{Producer: txn.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch},
			Commit: m.Committed, CoordinatorEpoch: m.CoordinatorEpoch, Version: int16(m.TransactionVersion)}
		a.Markers.Write(marker, partitions, func(errs []error) {
			codes := make([]int16, len(errs))
			for j, err := range errs {
				codes[j] = a.markerCode(c, err)
			}
			response.Markers[i] = writtenMarker(m, partitions, codes)
			left.Done()
		})
	}
	go func() {
		left.Wait()
		done(response)
	}()
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

func writtenMarker(m kmsg.WriteTxnMarkersRequestMarker, partitions []checkpoint.TopicPartition, codes []int16,
) kmsg.WriteTxnMarkersResponseMarker {
	out := kmsg.NewWriteTxnMarkersResponseMarker()
	out.ProducerID = m.ProducerID
	for _, t := range addedTopics(partitions, codes) {
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
