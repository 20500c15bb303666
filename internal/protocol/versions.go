package protocol

import (
	"fmt"
	"slices"
)

// KeyApiVersions is the API that a client may ask in any version.
const KeyApiVersions = 18

const (
	keyProduce = 0
	keyFetch   = 1
)

// Range is the versions of one API, both ends included.
type Range struct{ Key, Min, Max int16 }

// Profile chooses between the two tables of supported versions.
type Profile int

const (
	// Full serves, besides all of Kafka 4.3.1, the versions that KIP-896
	// removed and that old clients still send.
	Full Profile = iota
	// Strict43 is the table of a Kafka 4.3.1 broker.
	Strict43
)

// ParseProfile reads the value of protocol.compat: "full" or "strict-4.3".
func ParseProfile(s string) (Profile, error) {
	switch s {
	case "full":
		return Full, nil
	case "strict-4.3":
		return Strict43, nil
	}
	return 0, fmt.Errorf("protocol profile %q is neither full nor strict-4.3", s)
}

// none marks the first flexible version of an API that has none.
const none = 1<<15 - 1

// api is what is known about one key. min and max are what the broker listener
// of Kafka 4.3.1 accepts, fullMin is where [Full] begins, flexible the first
// flexible version. broker is false for APIs of the controller listener only.
type api struct {
	key, min, max, fullMin, flexible int16
	broker                           bool
}

// apis lists every key of Kafka 4.3.1, ascending. The maxima are Kafka's, not
// those of kmsg, which runs ahead.
var apis = []api{
	{keyProduce, 3, 13, 0, 9, true},
	{keyFetch, 4, 18, 0, 12, true},
	{2, 1, 11, 0, 6, true},             // ListOffsets
	{3, 0, 13, 0, 9, true},             // Metadata
	{8, 2, 10, 0, 8, true},             // OffsetCommit
	{9, 1, 10, 0, 6, true},             // OffsetFetch
	{10, 0, 6, 0, 3, true},             // FindCoordinator
	{11, 0, 9, 0, 6, true},             // JoinGroup
	{12, 0, 4, 0, 4, true},             // Heartbeat
	{13, 0, 5, 0, 4, true},             // LeaveGroup
	{14, 0, 5, 0, 4, true},             // SyncGroup
	{15, 0, 6, 0, 5, true},             // DescribeGroups
	{16, 0, 5, 0, 3, true},             // ListGroups
	{17, 0, 1, 0, none, true},          // SaslHandshake
	{KeyApiVersions, 0, 4, 0, 3, true}, // ApiVersions
	{19, 2, 7, 0, 5, true},             // CreateTopics
	{20, 1, 6, 0, 4, true},             // DeleteTopics
	{21, 0, 2, 0, 2, true},             // DeleteRecords
	{22, 0, 5, 0, 2, true},             // InitProducerId
	{23, 2, 4, 0, 4, true},             // OffsetForLeaderEpoch
	{24, 0, 5, 0, 3, true},             // AddPartitionsToTxn
	{25, 0, 4, 0, 3, true},             // AddOffsetsToTxn
	{26, 0, 5, 0, 3, true},             // EndTxn
	{27, 1, 2, 1, 1, true},             // WriteTxnMarkers
	{28, 0, 5, 0, 3, true},             // TxnOffsetCommit
	{29, 1, 3, 0, 2, true},             // DescribeAcls
	{30, 1, 3, 0, 2, true},             // CreateAcls
	{31, 1, 3, 0, 2, true},             // DeleteAcls
	{32, 1, 4, 0, 4, true},             // DescribeConfigs
	{33, 0, 2, 0, 2, true},             // AlterConfigs
	{34, 1, 2, 0, 2, true},             // AlterReplicaLogDirs
	{35, 1, 5, 0, 2, true},             // DescribeLogDirs
	{36, 0, 2, 0, 2, true},             // SaslAuthenticate
	{37, 0, 3, 0, 2, true},             // CreatePartitions
	{38, 1, 3, 1, 2, true},             // CreateDelegationToken
	{39, 1, 2, 1, 2, true},             // RenewDelegationToken
	{40, 1, 2, 1, 2, true},             // ExpireDelegationToken
	{41, 1, 3, 1, 2, true},             // DescribeDelegationToken
	{42, 0, 2, 0, 2, true},             // DeleteGroups
	{43, 0, 2, 0, 2, true},             // ElectLeaders
	{44, 0, 1, 0, 1, true},             // IncrementalAlterConfigs
	{45, 0, 1, 0, 0, true},             // AlterPartitionReassignments
	{46, 0, 0, 0, 0, true},             // ListPartitionReassignments
	{47, 0, 0, 0, none, true},          // OffsetDelete
	{48, 0, 1, 0, 1, true},             // DescribeClientQuotas
	{49, 0, 1, 0, 1, true},             // AlterClientQuotas
	{50, 0, 0, 0, 0, true},             // DescribeUserScramCredentials
	{51, 0, 0, 0, 0, true},             // AlterUserScramCredentials
	{52, 0, 2, 0, 0, false},            // Vote
	{53, 0, 1, 0, 1, false},            // BeginQuorumEpoch
	{54, 0, 1, 0, 1, false},            // EndQuorumEpoch
	{55, 0, 2, 0, 0, true},             // DescribeQuorum
	{56, 2, 3, 2, 0, false},            // AlterPartition
	{57, 0, 2, 0, 0, true},             // UpdateFeatures
	{58, 0, 0, 0, 0, false},            // Envelope
	{59, 0, 1, 0, 0, false},            // FetchSnapshot
	{60, 0, 2, 0, 0, true},             // DescribeCluster
	{61, 0, 0, 0, 0, true},             // DescribeProducers
	{62, 0, 4, 0, 0, false},            // BrokerRegistration
	{63, 0, 2, 0, 0, false},            // BrokerHeartbeat
	{64, 0, 0, 0, 0, true},             // UnregisterBroker
	{65, 0, 0, 0, 0, true},             // DescribeTransactions
	{66, 0, 2, 0, 0, true},             // ListTransactions
	{67, 0, 0, 0, 0, false},            // AllocateProducerIds
	{68, 0, 1, 0, 0, true},             // ConsumerGroupHeartbeat
	{69, 0, 1, 0, 0, true},             // ConsumerGroupDescribe
	{70, 0, 0, 0, 0, false},            // ControllerRegistration
	{71, 0, 0, 0, 0, true},             // GetTelemetrySubscriptions
	{72, 0, 0, 0, 0, true},             // PushTelemetry
	{73, 0, 0, 0, 0, false},            // AssignReplicasToDirs
	{74, 0, 1, 0, 0, true},             // ListConfigResources
	{75, 0, 0, 0, 0, true},             // DescribeTopicPartitions
	{76, 1, 1, 1, 0, true},             // ShareGroupHeartbeat
	{77, 1, 1, 1, 0, true},             // ShareGroupDescribe
	{78, 1, 2, 1, 0, true},             // ShareFetch
	{79, 1, 2, 1, 0, true},             // ShareAcknowledge
	{80, 0, 1, 0, 0, true},             // AddRaftVoter
	{81, 0, 0, 0, 0, true},             // RemoveRaftVoter
	{82, 0, 0, 0, 0, false},            // UpdateRaftVoter
	{83, 0, 0, 0, 0, true},             // InitializeShareGroupState
	{84, 0, 0, 0, 0, true},             // ReadShareGroupState
	{85, 0, 1, 0, 0, true},             // WriteShareGroupState
	{86, 0, 0, 0, 0, true},             // DeleteShareGroupState
	{87, 0, 1, 0, 0, true},             // ReadShareGroupStateSummary
	{88, 0, 0, 0, 0, true},             // StreamsGroupHeartbeat
	{89, 0, 0, 0, 0, true},             // StreamsGroupDescribe
	{90, 0, 1, 0, 0, true},             // DescribeShareGroupOffsets
	{91, 0, 0, 0, 0, true},             // AlterShareGroupOffsets
	{92, 0, 0, 0, 0, true},             // DeleteShareGroupOffsets
}

func lookup(key int16) (api, bool) {
	i, ok := slices.BinarySearchFunc(apis, key, func(a api, k int16) int { return int(a.key) - int(k) })
	if !ok {
		return api{}, false
	}
	return apis[i], true
}

// Known says whether Kafka 4.3.1 has an API of this key.
func Known(key int16) bool {
	_, ok := lookup(key)
	return ok
}

// IsFlexible says whether requests and responses of this key and version have
// compact lengths and tagged fields (KIP-482). Versions above the highest
// known one count as flexible where the highest one is.
func IsFlexible(key, version int16) bool {
	a, ok := lookup(key)
	return ok && version >= a.flexible
}

// Table says which versions of which APIs a broker accepts and advertises. It
// is immutable.
type Table struct {
	accepted   []Range
	advertised []Range
}

// NewTable cuts the ranges of a profile down to what has been built: built
// lists the versions for which handlers exist. Keys outside the profile are
// left out, so that a range of built may safely run ahead of it.
func NewTable(p Profile, built []Range) *Table {
	t := &Table{}
	for _, a := range apis {
		i := slices.IndexFunc(built, func(r Range) bool { return r.Key == a.key })
		if i < 0 || !a.broker {
			continue
		}
		low := a.min
		if p == Full {
			low = a.fullMin
		}
		r := Range{Key: a.key, Min: max(low, built[i].Min), Max: min(a.max, built[i].Max)}
		if r.Min > r.Max {
			continue
		}
		t.accepted = append(t.accepted, r)
		// Kafka: Produce is advertised from 0 although 0 to 2 are refused,
		// because librdkafka derives from the low end which codecs it may use
		// (KAFKA-18659).
		if r.Key == keyProduce && r.Min == a.min {
			r.Min = 0
		}
		t.advertised = append(t.advertised, r)
	}
	return t
}

// Accepts says whether a request of this key and version may be handled. Kafka
// closes the connection on any other, except for ApiVersions
// ([UnsupportedApiVersions]).
func (t *Table) Accepts(key, version int16) bool {
	i, ok := slices.BinarySearchFunc(t.accepted, key, func(r Range, k int16) int { return int(r.Key) - int(k) })
	return ok && t.accepted[i].Min <= version && version <= t.accepted[i].Max
}

// Advertised lists what ApiVersions shows, ascending by key. The caller may
// not change it.
func (t *Table) Advertised() []Range { return t.advertised }
