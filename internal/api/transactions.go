package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/checkpoint"
	"tidemark/internal/protocol"
	"tidemark/internal/txn"
)

// later makes a handler of a function that answers when it can, from any goroutine.
func later[Q kmsg.Request](key, minVersion, maxVersion int16,
	answer func(a *API, c *call, request Q, done func(kmsg.Response))) handler {
	serve := func(a *API, c *call) {
		decoded, err := protocol.DecodeRequest(c.request.Header, c.request.Body)
		if err != nil {
			a.malformed(c, err)
			return
		}
		answer(a, c, decoded.(Q), func(r kmsg.Response) { c.reply(protocol.Reply(r)) })
	}
	return handler{Range: protocol.Range{Key: key, Min: minVersion, Max: maxVersion}, serve: serve}
}

// fencedSince is the error of a transactional request: before the version that brought PRODUCER_FENCED, clients know
// INVALID_PRODUCER_EPOCH.
func (a *API) fencedSince(c *call, version int16, err error) int16 {
	if errors.Is(err, txn.ErrFenced) && c.version() < version {
		err = kerr.InvalidProducerEpoch
	}
	return a.failed(c, err)
}

// topicPartitions lists the partitions of topics.
func topicPartitions[T any](topics []T, each func(T) (string, []int32)) []checkpoint.TopicPartition {
	var all []checkpoint.TopicPartition
	for _, t := range topics {
		name, partitions := each(t)
		for _, p := range partitions {
			all = append(all, checkpoint.TopicPartition{Topic: name, Partition: p})
		}
	}
	return all
}

// groupByTopic groups partitions by topic, in the order in which topics come first.
func groupByTopic(all []checkpoint.TopicPartition) (names []string, byName map[string][]int) {
	byName = map[string][]int{}
	for i, tp := range all {
		if byName[tp.Topic] == nil {
			names = append(names, tp.Topic)
		}
		byName[tp.Topic] = append(byName[tp.Topic], i)
	}
	return names, byName
}
