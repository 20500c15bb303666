package api

import "tidemark/internal/protocol"

// handlers lists what is built, by key. The versions are the widest; the profile narrows them.
func handlers() []handler {
	return []handler{
		{protocol.Range{Key: 0, Min: 0, Max: 13}, (*API).produce},
		{protocol.Range{Key: 1, Min: 0, Max: 18}, (*API).fetch},
		message(2, 0, 11, (*API).listOffsets),
		message(3, 0, 13, (*API).metadata),
		later(8, 0, 10, (*API).offsetCommit),
		later(9, 0, 10, (*API).offsetFetch),
		message(10, 0, 6, (*API).findCoordinator),
		later(11, 0, 9, (*API).joinGroup),
		later(12, 0, 4, (*API).heartbeat),
		later(13, 0, 5, (*API).leaveGroup),
		later(14, 0, 5, (*API).syncGroup),
		later(15, 0, 6, (*API).describeGroups),
		later(16, 0, 5, (*API).listGroups),
		message(18, 0, 4, (*API).apiVersions),
		message(19, 0, 7, (*API).createTopics),
		message(20, 0, 6, (*API).deleteTopics),
		message(21, 0, 2, (*API).deleteRecords),
		later(22, 0, 5, (*API).initProducerID),
		message(23, 0, 4, (*API).offsetForLeaderEpoch),
		later(24, 0, 5, (*API).addPartitionsToTxn),
		later(25, 0, 4, (*API).addOffsetsToTxn),
		later(26, 0, 5, (*API).endTxn),
		later(27, 0, 2, (*API).writeTxnMarkers),
		later(28, 0, 5, (*API).txnOffsetCommit),
		message(32, 0, 4, (*API).describeConfigs),
		message(33, 0, 2, (*API).alterConfigs),
		message(37, 0, 3, (*API).createPartitions),
		later(42, 0, 2, (*API).deleteGroups),
		message(44, 0, 1, (*API).incrementalAlterConfigs),
		later(47, 0, 0, (*API).offsetDelete),
		message(60, 0, 2, (*API).describeCluster),
		message(61, 0, 0, (*API).describeProducers),
		later(65, 0, 0, (*API).describeTransactions),
		later(66, 0, 2, (*API).listTransactions),
		later(68, 0, 1, (*API).consumerGroupHeartbeat),
		later(69, 0, 1, (*API).consumerGroupDescribe),
		message(75, 0, 0, (*API).describeTopicPartitions),
	}
}
