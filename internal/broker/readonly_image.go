package broker

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/controller"
	"tidemark/internal/coordinator"
	"tidemark/internal/metadata"
)

// maxGap is how far partition numbers are filled up with partitions that are not here.
const maxGap = 100_000

// topicID is the id of a topic: what its folders say, else what the metadata log says, else one made of its name,
// always the same.
func (f *foundPartitions) topicID(topic string) metadata.UUID {
	if id, ok := f.ids[topic]; ok {
		return id
	}
	if stored := f.stored.Topic(topic); stored != nil {
		return stored.ID
	}
	return derivedID("topic " + topic)
}

// derivedID makes a random-looking id of a text. Its first bit is 0: Kafka's ids do not begin with a dash in print.
func derivedID(text string) metadata.UUID {
	sum := sha256.Sum256([]byte("tidemark " + text))
	id := metadata.UUID(sum[:16])
	id[0] &= 0x7f
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

// freeze makes the image of what was loaded. It is all the metadata there will be.
func (b *Broker) freeze(context.Context) error {
	if b.found.cluster == "" {
		b.found.cluster = checkpoint.FormatID(derivedID("cluster " + strings.Join(b.found.dirs, "\n")))
	}
	d := metadata.NewDelta(metadata.NewImage())
	records := append(controller.BootstrapFeatures(), b.readOnlyRecords()...)
	for _, r := range append(records, b.storedConfigs()...) {
		if err := d.Replay(r); err != nil {
			return fmt.Errorf("serve read-only: %w", err)
		}
	}
	d.Advance(0, 1, b.started.UnixMilli())
	b.quorum = frozen{image: d.Image()}
	return nil
}

func (b *Broker) readOnlyRecords() []metadata.Record {
	c := b.config()
	registration := &metadata.RegisterBrokerRecord{BrokerID: c.NodeID, IncarnationID: newID(),
		Features: controller.SupportedFeatures()}
	for _, l := range b.listeners {
		registration.EndPoints = append(registration.EndPoints, l.advertised)
	}
	records := []metadata.Record{{Body: registration}}
	for _, topic := range b.readOnlyTopics() {
		id := b.found.topicID(topic.name)
		records = append(records, metadata.Record{Body: &metadata.TopicRecord{Name: topic.name, TopicID: id}})
		for partition := range topic.partitions() {
			body := b.partitionRecord(checkpoint.TopicPartition{Topic: topic.name, Partition: partition}, topic)
			body.TopicID = id
			records = append(records, metadata.Record{Body: body})
		}
	}
	return records
}

// readOnlyTopic is a topic of which partitions were found.
type readOnlyTopic struct {
	name  string
	found []int32 // ascending
	// fill makes up to so many partitions in memory of those that were not found.
	fill int32
	// count is how many the metadata log knows; those that were not found and not made have no leader.
	count int32
}

func (b *Broker) readOnlyTopics() []readOnlyTopic {
	byName := map[string]*readOnlyTopic{}
	for tp := range b.found.places {
		if byName[tp.Topic] == nil {
			byName[tp.Topic] = &readOnlyTopic{name: tp.Topic, count: b.found.storedPartitions(tp.Topic)}
		}
		byName[tp.Topic].found = append(byName[tp.Topic].found, tp.Partition)
	}
	b.completeGroups(byName)
	var topics []readOnlyTopic
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		slices.Sort(byName[name].found)
		topics = append(topics, *byName[name])
	}
	return topics
}

// completeGroups lets consumers work in groups: their topic is there, in memory where it was not found. Which partition
// a group is in depends on how many there are: without a gap those found are taken for all.
func (b *Broker) completeGroups(topics map[string]*readOnlyTopic) {
	topic := topics[coordinator.OffsetsTopic]
	if topic == nil {
		topics[coordinator.OffsetsTopic] = &readOnlyTopic{name: coordinator.OffsetsTopic, fill: 1}
		return
	}
	slices.Sort(topic.found)
	last := topic.found[len(topic.found)-1]
	if int(last) == len(topic.found)-1 && last+1 >= topic.count {
		return // the whole topic, or so it seems
	}
	topic.fill = max(topic.count, last+1)
	if topic.count == 0 {
		topic.fill = max(b.config().OffsetsTopic.NumPartitions, last+1)
	}
	if missing := int(topic.fill) - len(topic.found); missing > 0 {
		b.log.Warn("not all partitions of the groups' offsets are here: the others begin empty, in memory: groups in "+
			"them have no offsets committed", "topic", topic.name, "found", len(topic.found), "empty", missing)
	}
}

// partitions yields the numbers of the topic's partitions: all up to the largest, since clients expect no gaps.
func (t readOnlyTopic) partitions() func(yield func(int32) bool) {
	n := max(t.fill, t.count)
	if len(t.found) > 0 {
		n = max(n, t.found[len(t.found)-1]+1)
	}
	if n > maxGap || n < 0 {
		return slices.Values(t.found)
	}
	return func(yield func(int32) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// partitionRecord gives a partition that is here to this broker; one that is not has no leader.
func (b *Broker) partitionRecord(tp checkpoint.TopicPartition, topic readOnlyTopic) *metadata.PartitionRecord {
	node := b.config().NodeID
	body := &metadata.PartitionRecord{PartitionID: tp.Partition, Replicas: []int32{node}, ISR: []int32{node}, Leader: node}
	log, err := b.dirs.Log(tp)
	if err == nil {
		epoch, _ := log.LatestEpoch()
		body.LeaderEpoch = max(epoch, 0)
		return body
	}
	if _, found := b.found.places[tp]; !found && tp.Partition < topic.fill {
		return body
	}
	other := node + 1
	body.Replicas, body.ISR, body.Leader = []int32{other}, []int32{other}, -1
	return body
}

// leadReadOnly gives the partitions their role and says where the high watermark is not the one that the broker knew.
func (b *Broker) leadReadOnly(context.Context) error {
	image := b.quorum.Image()
	if err := b.replicas.Apply(metadata.FullDelta(image)); err != nil {
		return err
	}
	above := 0
	for _, p := range b.replicas.Partitions() {
		mark, known := b.dirs.CheckpointedHighWatermark(p.Name())
		if !known || mark >= p.HighWatermark() {
			continue
		}
		if above++; above <= maxNoted {
			b.log.Info("records above the last known high watermark are served: they may not have been on all replicas",
				"partition", p.Name().String(), "high_watermark_checkpoint", mark, "served_to", p.HighWatermark())
		}
	}
	if above > maxNoted {
		b.log.Info("records above the last known high watermark are served in more partitions", "partitions", above-maxNoted)
	}
	return nil
}

// maxNoted is of how many partitions a line of their own tells.
const maxNoted = 20

// cluster is where the metadata comes from and where changes go to.
type cluster interface {
	Submit(ctx context.Context, cmd controller.Command, principal auth.Principal) (any, error)
	Image() *metadata.Image
	Subscribe(f func(d *metadata.Delta, i *metadata.Image)) (cancel func())
	LeaderEpoch() int32
	EndOffset() int64
	VoterDirectory() metadata.UUID
	Close() error
}

// frozen is metadata that never change.
type frozen struct{ image *metadata.Image }

// Submit refuses every change. The authorizer does so before.
func (frozen) Submit(context.Context, controller.Command, auth.Principal) (any, error) {
	return nil, &controller.Error{Reason: controller.ErrPolicyViolation, Message: "this broker serves read-only"}
}

func (f frozen) Image() *metadata.Image { return f.image }

func (f frozen) Subscribe(follow func(*metadata.Delta, *metadata.Image)) func() {
	follow(metadata.FullDelta(f.image), f.image)
	return func() {}
}

func (f frozen) LeaderEpoch() int32 { return f.image.Epoch() }

func (f frozen) EndOffset() int64 { return f.image.Offset() + 1 }

func (frozen) VoterDirectory() metadata.UUID { return metadata.UUID{} }

func (frozen) Close() error { return nil }

// readers allows what changes nothing. Members of groups may come and go, in memory; offsets cannot be committed.
type readers struct{}

// Allowed implements auth.Authorizer.
func (readers) Allowed(c *auth.Context, op auth.Operation, r auth.Resource) bool {
	switch op {
	case auth.Read:
		return r.Type != auth.GroupType || c.APIKey != offsetCommitKey
	case auth.Describe, auth.DescribeConfigs:
		return r.Type != auth.TransactionalIDType
	default:
		return false
	}
}

// offsetCommitKey is the API key of OffsetCommit.
const offsetCommitKey = 8

func (b *Broker) authorizer() auth.Authorizer {
	if b.readOnly() {
		return readers{}
	}
	return auth.AllowAll{}
}
