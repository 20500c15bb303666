package config

import (
	"strings"
	"time"
)

// GroupCoordinator is how the group coordinator works.
type GroupCoordinator struct {
	MinSessionTimeout          time.Duration // group.min.session.timeout.ms
	MaxSessionTimeout          time.Duration // group.max.session.timeout.ms
	InitialRebalanceDelay      time.Duration // group.initial.rebalance.delay.ms
	MaxSize                    int32         // group.max.size
	OffsetMetadataMaxBytes     int32         // offset.metadata.max.bytes
	OffsetsRetention           time.Duration // offsets.retention.minutes
	OffsetsRetentionCheck      time.Duration // offsets.retention.check.interval.ms
	OffsetsCommitTimeout       time.Duration // offsets.commit.timeout.ms
	OffsetsLoadBufferSizeBytes int32         // offsets.load.buffer.size

	Protocols                  []string      // group.coordinator.rebalance.protocols
	ConsumerSessionTimeout     time.Duration // group.consumer.session.timeout.ms
	ConsumerHeartbeatInterval  time.Duration // group.consumer.heartbeat.interval.ms
	ConsumerAssignmentInterval time.Duration // group.consumer.assignment.interval.ms
	ConsumerMaxSize            int32         // group.consumer.max.size
	ConsumerAssignors          []string      // group.consumer.assignors
	ConsumerMigrationPolicy    string        // group.consumer.migration.policy, in lower case
	ConsumerRegexRefresh       time.Duration // group.consumer.regex.refresh.interval.ms
}

func (n *Node) groups() GroupCoordinator {
	return GroupCoordinator{
		MinSessionTimeout:          n.ms("group.min.session.timeout.ms"),
		MaxSessionTimeout:          n.ms("group.max.session.timeout.ms"),
		InitialRebalanceDelay:      n.ms("group.initial.rebalance.delay.ms"),
		MaxSize:                    n.int("group.max.size"),
		OffsetMetadataMaxBytes:     n.int("offset.metadata.max.bytes"),
		OffsetsRetention:           n.duration("offsets.retention.minutes", time.Minute),
		OffsetsRetentionCheck:      n.ms("offsets.retention.check.interval.ms"),
		OffsetsCommitTimeout:       n.ms("offsets.commit.timeout.ms"),
		OffsetsLoadBufferSizeBytes: n.int("offsets.load.buffer.size"),
		Protocols:                  n.list("group.coordinator.rebalance.protocols"),
		ConsumerSessionTimeout:     n.ms("group.consumer.session.timeout.ms"),
		ConsumerHeartbeatInterval:  n.ms("group.consumer.heartbeat.interval.ms"),
		ConsumerAssignmentInterval: n.ms("group.consumer.assignment.interval.ms"),
		ConsumerMaxSize:            n.int("group.consumer.max.size"),
		ConsumerAssignors:          n.list("group.consumer.assignors"),
		ConsumerMigrationPolicy:    strings.ToLower(n.text("group.consumer.migration.policy")),
		ConsumerRegexRefresh:       n.ms("group.consumer.regex.refresh.interval.ms"),
	}
}
