package broker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tidemark/internal/config"
	"tidemark/internal/coordinator"
	"tidemark/internal/group"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
)

// makeGroups makes the group coordinator; partitions come to it when this broker leads them.
func (b *Broker) makeGroups(c *config.Broker) {
	b.groups = coordinator.NewGroups(coordinator.GroupsOptions{
		Machine: group.Options{Config: b.groupConfig, ConsumerConfig: b.consumerConfig, NewID: randomUUID,
			NewShortID: func() string { return metadata.UUID(newID()).String() }},
		Image: b.quorum.Image, Clock: time.Now, Timer: replica.RealTimer,
		Logger:      b.loggers.logger(coordinatorLogger),
		ExpireEvery: b.expireGroupsEvery(c), WriteTimeout: c.Groups.OffsetsCommitTimeout,
		LoadBytes: int(c.Groups.OffsetsLoadBufferSizeBytes),
	})
	b.markers.Offsets = b.groups.EndTransaction
	if configured, offered := c.Groups.ConsumerAssignors, assignorNames(c.Groups.ConsumerAssignors); len(offered) <
		len(configured) {
		b.log.Warn("assignors of consumer groups other than uniform and range cannot be used", "configured", configured,
			"offered", offered)
	}
}

// expireGroupsEvery is how often committed offsets that are too old are removed; never where nothing is to change.
func (b *Broker) expireGroupsEvery(c *config.Broker) time.Duration {
	if b.readOnly() {
		return 100 * 365 * 24 * time.Hour
	}
	return c.Groups.OffsetsRetentionCheck
}

// groupSettings are what configs of the broker set for groups.
type groupSettings struct {
	configs *config.Broker
	group.Config
}

// groupConfig is what is set for groups now. Each commit of an offset asks for it.
func (b *Broker) groupConfig() group.Config {
	c := b.config()
	s := b.groupSettings.Load()
	if s == nil || s.configs != c {
		s = &groupSettings{c, groupConfigOf(&c.Groups)}
		b.groupSettings.Store(s)
	}
	return s.Config
}

func groupConfigOf(c *config.GroupCoordinator) group.Config {
	return group.Config{
		MinSessionTimeoutMs:     int32(c.MinSessionTimeout.Milliseconds()),
		MaxSessionTimeoutMs:     int32(c.MaxSessionTimeout.Milliseconds()),
		InitialRebalanceDelayMs: int32(c.InitialRebalanceDelay.Milliseconds()),
		MaxSize:                 c.MaxSize,
		MetadataMaxBytes:        c.OffsetMetadataMaxBytes,
		RetentionMs:             c.OffsetsRetention.Milliseconds(),
		ConsumerMaxSize:         c.ConsumerMaxSize,
		ConsumerAssignors:       assignorNames(c.ConsumerAssignors),
		ConsumerMigration:       c.ConsumerMigrationPolicy,
		PatternRefreshMs:        c.ConsumerRegexRefresh.Milliseconds(),
	}
}

// assignorNames are the names of the assignors that are offered: those of ours that are configured by name or as
// Kafka's classes. Others cannot be had; without any there is the uniform one.
func assignorNames(configured []string) []string {
	var names []string
	for _, name := range configured {
		switch name {
		case group.UniformAssignor, uniformClass:
			names = append(names, group.UniformAssignor)
		case group.RangeAssignor, rangeClass:
			names = append(names, group.RangeAssignor)
		}
	}
	if names == nil {
		return []string{group.UniformAssignor}
	}
	return names
}

const (
	uniformClass = "org.apache.kafka.coordinator.group.assignor.UniformAssignor"
	rangeClass   = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
)

// consumerConfig is what is set for a consumer group, or else for all.
func (b *Broker) consumerConfig(id string) group.ConsumerConfig {
	c := b.config().Groups
	own := b.quorum.Image().Config(metadata.ConfigResource{Type: metadata.ResourceGroup, Name: id}).Map()
	ms := func(name string, otherwise time.Duration) int32 {
		if n, err := strconv.ParseInt(strings.TrimSpace(own[name]), 10, 32); err == nil {
			return int32(n)
		}
		return int32(otherwise.Milliseconds())
	}
	return group.ConsumerConfig{
		SessionTimeoutMs:     ms("consumer.session.timeout.ms", c.ConsumerSessionTimeout),
		HeartbeatIntervalMs:  ms("consumer.heartbeat.interval.ms", c.ConsumerHeartbeatInterval),
		AssignmentIntervalMs: ms("consumer.assignment.interval.ms", c.ConsumerAssignmentInterval),
	}
}

// consumerGroups tells whether consumer groups are to be served.
func (b *Broker) consumerGroups() bool {
	return slices.ContainsFunc(b.config().Groups.Protocols, func(name string) bool {
		return strings.EqualFold(name, "consumer")
	})
}

// randomUUID draws a random id and writes it as UUIDs (version 4) are usually written.
func randomUUID() string {
	id := newID()
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// tellGroups tells the groups of topics that are new or gone: offsets that were committed for those are removed.
func (b *Broker) tellGroups(d *metadata.Delta, image *metadata.Image) {
	var deleted []group.DeletedTopic
	for _, change := range d.Topics() {
		switch {
		case change.Before == nil:
			b.groups.TopicsCreated(image.Offset())
		case change.After == nil:
			deleted = append(deleted, group.DeletedTopic{Name: change.Before.Name, ID: change.Before.ID})
		}
	}
	if len(deleted) > 0 {
		b.groups.TopicsDeleted(deleted)
	}
}
