package api

import "tidemark/internal/protocol"

// handlers lists what is built, by key. The versions are the widest; the profile narrows them.
func handlers() []handler {
	return []handler{
		{protocol.Range{Key: 0, Min: 0, Max: 13}, (*API).produce},
		{protocol.Range{Key: 1, Min: 0, Max: 18}, (*API).fetch},
		message(2, 0, 11, (*API).listOffsets),
		message(3, 0, 13, (*API).metadata),
		message(10, 0, 6, (*API).findCoordinator),
		message(18, 0, 4, (*API).apiVersions),
		message(19, 0, 7, (*API).createTopics),
		message(20, 0, 6, (*API).deleteTopics),
		later(22, 0, 5, (*API).initProducerID),
		message(23, 0, 4, (*API).offsetForLeaderEpoch),
		later(24, 0, 5, (*API).addPartitionsToTxn),
		later(25, 0, 4, (*API).addOffsetsToTxn),
		later(26, 0, 5, (*API).endTxn),
		later(27, 0, 2, (*API).writeTxnMarkers),
		message(32, 0, 4, (*API).describeConfigs),
		message(33, 0, 2, (*API).alterConfigs),
		message(37, 0, 3, (*API).createPartitions),
		message(44, 0, 1, (*API).incrementalAlterConfigs),
		message(60, 0, 2, (*API).describeCluster),
		message(61, 0, 0, (*API).describeProducers),
		later(65, 0, 0, (*API).describeTransactions),
		later(66, 0, 2, (*API).listTransactions),
		message(75, 0, 0, (*API).describeTopicPartitions),
	}
}
