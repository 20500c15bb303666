package metadata

// Versions of records by level of metadata.version, as Kafka 4.3.1 writes them.

// RegisterBrokerVersion is the version of a [RegisterBrokerRecord].
func RegisterBrokerVersion(level int16) int16 {
	switch {
	case level >= 30: // 4.3-IV0
		return 4
	case level >= 17: // 3.7-IV2
		return 3
	case level >= 8: // 3.4-IV0
		return 2
	default:
		return 1
	}
}

// PartitionVersion is the version of a [PartitionRecord] and of a
// [PartitionChangeRecord].
func PartitionVersion(level int16) int16 {
	switch {
	case level >= 23: // 4.0-IV1
		return 2
	case level >= 17: // 3.7-IV2
		return 1
	default:
		return 0
	}
}

// SupportsDirectories reports whether registrations and partitions carry log
// directories at that level.
func SupportsDirectories(level int16) bool { return level >= 17 }

// SupportsCordonedDirectories reports whether registrations carry cordoned log
// directories at that level.
func SupportsCordonedDirectories(level int16) bool { return level >= 30 }

// SupportsScram reports whether SCRAM credentials exist at that level.
func SupportsScram(level int16) bool { return level >= 11 } // 3.5-IV2

// SupportsTransactions reports whether metadata transactions exist at that level.
func SupportsTransactions(level int16) bool { return level >= 13 }

// SupportsControllerRegistration reports whether controllers register at that
// level.
func SupportsControllerRegistration(level int16) bool { return level >= 15 }
