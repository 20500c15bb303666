package broker

import (
	"fmt"
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
		Machine: group.Options{Config: b.groupConfig, NewID: randomUUID},
		Image:   b.quorum.Image, Clock: time.Now, Timer: replica.RealTimer, Logger: b.log,
		ExpireEvery: c.Groups.OffsetsRetentionCheck, WriteTimeout: c.Groups.OffsetsCommitTimeout,
		LoadBytes: int(c.Groups.OffsetsLoadBufferSizeBytes),
	})
	b.markers.Offsets = b.groups.EndTransaction
}

// groupConfig is what is set for groups now.
func (b *Broker) groupConfig() group.Config {
	c := b.config().Groups
	return group.Config{
		MinSessionTimeoutMs:     int32(c.MinSessionTimeout.Milliseconds()),
		MaxSessionTimeoutMs:     int32(c.MaxSessionTimeout.Milliseconds()),
		InitialRebalanceDelayMs: int32(c.InitialRebalanceDelay.Milliseconds()),
		MaxSize:                 c.MaxSize,
		MetadataMaxBytes:        c.OffsetMetadataMaxBytes,
		RetentionMs:             c.OffsetsRetention.Milliseconds(),
	}
}

// randomUUID draws a random id and writes it as UUIDs (version 4) are usually written.
func randomUUID() string {
	id := newID()
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// forgetOffsets removes the offsets that groups committed for topics that are gone.
func (b *Broker) forgetOffsets(d *metadata.Delta) {
	var deleted []group.DeletedTopic
	for _, change := range d.Topics() {
		if change.After == nil && change.Before != nil {
			deleted = append(deleted, group.DeletedTopic{Name: change.Before.Name, ID: change.Before.ID})
		}
	}
	if len(deleted) > 0 {
		b.groups.TopicsDeleted(deleted)
	}
}
