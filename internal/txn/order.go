package txn

import (
	"slices"

	"tidemark/internal/checkpoint"
	"tidemark/internal/wire"
)

// topicPartitions are the partitions of one topic in a record.
type topicPartitions struct {
	name       string
	partitions []int32
}

// byTopic groups partitions by topic, in the order in which Kafka writes them.
//
// Kafka: TransactionLog walks a HashSet of partitions and groups them in a HashMap, so the order follows from
// Java's hash codes; partitions that share a bucket stay in the order of insertion.
func byTopic(all []checkpoint.TopicPartition) []topicPartitions {
	ordered := inHashOrder(all, hashCode)
	var topics []topicPartitions
	index := make(map[string]int)
	for _, tp := range ordered {
		i, ok := index[tp.Topic]
		if !ok {
			i = len(topics)
			index[tp.Topic] = i
			topics = append(topics, topicPartitions{name: tp.Topic})
		}
		topics[i].partitions = append(topics[i].partitions, tp.Partition)
	}
	return inHashOrder(topics, func(t topicPartitions) int32 { return wire.JavaHash(t.name) })
}

// hashCode is that of Kafka's TopicPartition.
func hashCode(tp checkpoint.TopicPartition) int32 {
	return 31*(31+tp.Partition) + wire.JavaHash(tp.Topic)
}

// inHashOrder sorts elements as java.util.HashMap walks them.
func inHashOrder[T any](elements []T, hash func(T) int32) []T {
	if len(elements) < 2 {
		return elements
	}
	buckets := uint32(16)
	for len(elements) > int(buckets)*3/4 {
		buckets *= 2
	}
	bucket := func(e T) uint32 {
		h := uint32(hash(e))
		return (h ^ h>>16) & (buckets - 1)
	}
	out := slices.Clone(elements)
	slices.SortStableFunc(out, func(a, b T) int { return int(bucket(a)) - int(bucket(b)) })
	return out
}
