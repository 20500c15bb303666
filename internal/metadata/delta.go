package metadata

import (
	"maps"
	"slices"
)

// Delta is a change in the making: records replayed on top of an image. What it
// leads to is always at hand as [Delta.Image]; replaying costs in proportion to
// the record, not to the image.
type Delta struct {
	base *Image
	next Image

	topics   map[UUID]struct{} // created, changed or deleted
	configs  map[ConfigResource]struct{}
	brokers  map[int32]struct{}
	features bool
	security bool // ACLs, SCRAM credentials, delegation tokens
	quotas   bool
	producer bool
}

// NewDelta returns a Delta that changes nothing yet.
func NewDelta(base *Image) *Delta {
	return &Delta{
		base: base, next: *base,
		topics:  map[UUID]struct{}{},
		configs: map[ConfigResource]struct{}{},
		brokers: map[int32]struct{}{},
	}
}

// FullDelta returns the change from nothing to image: all of it is new.
func FullDelta(image *Image) *Delta {
	d := NewDelta(NewImage())
	d.next = *image
	d.features, d.security, d.quotas, d.producer = true, true, true, true
	for t := range image.Topics() {
		d.topics[t.ID] = struct{}{}
	}
	for r := range image.ConfigResources() {
		d.configs[r] = struct{}{}
	}
	for b := range image.Brokers() {
		d.brokers[b.ID] = struct{}{}
	}
	return d
}

// Base is the image that the delta began with.
func (d *Delta) Base() *Image { return d.base }

// Image is the image after the records replayed so far. Later calls of Replay
// do not change it.
func (d *Delta) Image() *Image {
	next := d.next
	return &next
}

// Advance says which record of the log the delta now reaches to: its offset, the
// leader epoch and the append time of its batch.
func (d *Delta) Advance(offset int64, epoch int32, timestampMs int64) {
	d.next.offset, d.next.epoch, d.next.timestampMs = offset, epoch, timestampMs
}

// TopicChange is one topic before and after; Before is nil for a new topic,
// After for a deleted one.
type TopicChange struct {
	Before, After *Topic
}

// Topics returns the topics that differ between base and image, by name. A topic
// deleted and made again under its name is two changes, the deletion first.
func (d *Delta) Topics() []TopicChange {
	var list []TopicChange
	for id := range d.topics {
		c := TopicChange{d.base.TopicByID(id), d.next.TopicByID(id)}
		if c.Before != c.After {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, compareTopicChanges)
	return list
}

func compareTopicChanges(a, b TopicChange) int {
	name := func(c TopicChange) *Topic {
		if c.After != nil {
			return c.After
		}
		return c.Before
	}
	switch ta, tb := name(a), name(b); {
	case ta.Name < tb.Name:
		return -1
	case ta.Name > tb.Name:
		return 1
	case a.After == nil && b.After != nil:
		return -1
	case a.After != nil && b.After == nil:
		return 1
	default:
		return ta.ID.Compare(tb.ID)
	}
}

// Configs returns the resources whose configuration was touched, in order.
func (d *Delta) Configs() []ConfigResource {
	return slices.SortedFunc(maps.Keys(d.configs), ConfigResource.Compare)
}

// Brokers returns the brokers whose registration was touched, in order.
func (d *Delta) Brokers() []int32 { return slices.Sorted(maps.Keys(d.brokers)) }

// FeaturesChanged reports whether a finalized feature was touched.
func (d *Delta) FeaturesChanged() bool { return d.features }

// SecurityChanged reports whether an ACL, a SCRAM credential or a delegation
// token was touched.
func (d *Delta) SecurityChanged() bool { return d.security }

// QuotasChanged reports whether a client quota was touched.
func (d *Delta) QuotasChanged() bool { return d.quotas }

// ProducerIDsChanged reports whether a block of producer ids was given out.
func (d *Delta) ProducerIDsChanged() bool { return d.producer }

// LocalPartition is one partition that a broker has, or had, a replica of.
type LocalPartition struct {
	Topic     *Topic
	ID        int32
	Partition *Partition
}

// LocalChanges says what changes of topics mean for one broker.
type LocalChanges struct {
	Deleted   []LocalPartition // no longer hosted; as it was before
	Leaders   []LocalPartition // led by the broker, anything of it changed
	Elected   []LocalPartition // those of Leaders whose leader epoch changed, or which are new
	Followers []LocalPartition // hosted and not led, anything of it changed
}

// LocalChanges returns the changes of topics as broker must follow them.
func (d *Delta) LocalChanges(broker int32) LocalChanges {
	var out LocalChanges
	for _, c := range d.Topics() {
		if c.Before != nil {
			out.addDeleted(c, broker)
		}
		if c.After != nil {
			out.addHosted(c, broker)
		}
	}
	return out
}

func (l *LocalChanges) addDeleted(c TopicChange, broker int32) {
	for id, before := range c.Before.Partitions() {
		if !slices.Contains(before.Replicas, broker) {
			continue
		}
		if c.After != nil {
			if after := c.After.Partition(id); after == before || slices.Contains(after.Replicas, broker) {
				continue
			}
		}
		l.Deleted = append(l.Deleted, LocalPartition{c.Before, id, before})
	}
}

func (l *LocalChanges) addHosted(c TopicChange, broker int32) {
	for id, after := range c.After.Partitions() {
		var before *Partition
		if c.Before != nil {
			before = c.Before.Partition(id)
		}
		if before == after || !slices.Contains(after.Replicas, broker) {
			continue
		}
		local := LocalPartition{c.After, id, after}
		if after.Leader != broker {
			l.Followers = append(l.Followers, local)
			continue
		}
		l.Leaders = append(l.Leaders, local)
		if before == nil || before.LeaderEpoch != after.LeaderEpoch {
			l.Elected = append(l.Elected, local)
		}
	}
}

// absorb adds what child, which began with d's image, did.
func (d *Delta) absorb(child *Delta) {
	d.next = child.next
	maps.Copy(d.topics, child.topics)
	maps.Copy(d.configs, child.configs)
	maps.Copy(d.brokers, child.brokers)
	d.features = d.features || child.features
	d.security = d.security || child.security
	d.quotas = d.quotas || child.quotas
	d.producer = d.producer || child.producer
}
