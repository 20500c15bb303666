package metadata

import (
	"cmp"
	"iter"
	"strings"
)

// Image is the state of the cluster after a prefix of the metadata log. It
// never changes; make the next one with a [Delta]. The zero value is not valid,
// begin with [NewImage].
type Image struct {
	offset      int64
	epoch       int32
	timestampMs int64

	features       tree[string, int16]
	brokers        tree[int32, *Broker]
	controllers    tree[int32, *Controller]
	topicIDs       tree[string, UUID]
	topics         tree[UUID, *Topic]
	numPartitions  int
	configs        tree[ConfigResource, Config]
	nextProducerID int64 // -1 before the first block

	quotas tree[string, *ClientQuota]
	acls   tree[UUID, *AccessControlEntryRecord]
	scram  tree[scramKey, *UserScramCredentialRecord]
	tokens tree[string, *DelegationTokenRecord]
}

// NewImage returns the image of an empty log.
func NewImage() *Image {
	return &Image{
		offset: -1, epoch: -1, timestampMs: -1, nextProducerID: -1,
		features:    newTree[string, int16](strings.Compare),
		brokers:     newTree[int32, *Broker](cmp.Compare[int32]),
		controllers: newTree[int32, *Controller](cmp.Compare[int32]),
		topicIDs:    newTree[string, UUID](strings.Compare),
		topics:      newTree[UUID, *Topic](UUID.Compare),
		configs:     newTree[ConfigResource, Config](ConfigResource.Compare),
		quotas:      newTree[string, *ClientQuota](strings.Compare),
		acls:        newTree[UUID, *AccessControlEntryRecord](UUID.Compare),
		scram:       newTree[scramKey, *UserScramCredentialRecord](scramKey.compare),
		tokens:      newTree[string, *DelegationTokenRecord](strings.Compare),
	}
}

// Offset is the offset of the last record contained, -1 in an empty image.
func (i *Image) Offset() int64 { return i.offset }

// Epoch is the quorum's leader epoch of the last record contained, -1 in an
// empty image.
func (i *Image) Epoch() int32 { return i.epoch }

// TimestampMs is the append time of the last batch contained, -1 in an empty
// image.
func (i *Image) TimestampMs() int64 { return i.timestampMs }

// Topic returns the topic of that name, or nil.
func (i *Image) Topic(name string) *Topic {
	id, ok := i.topicIDs.get(name)
	if !ok {
		return nil
	}
	return i.TopicByID(id)
}

// TopicByID returns the topic of that id, or nil.
func (i *Image) TopicByID(id UUID) *Topic {
	t, _ := i.topics.get(id)
	return t
}

// Topics yields all topics, by name.
func (i *Image) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		i.topicIDs.root.each(func(_ string, id UUID) bool { return yield(i.TopicByID(id)) })
	}
}

// NumTopics is the number of topics.
func (i *Image) NumTopics() int { return i.topics.len() }

// NumPartitions is the number of partitions of all topics.
func (i *Image) NumPartitions() int { return i.numPartitions }

// Broker returns the registration of a broker, or nil.
func (i *Image) Broker(id int32) *Broker {
	b, _ := i.brokers.get(id)
	return b
}

// Brokers yields all registered brokers, by id.
func (i *Image) Brokers() iter.Seq[*Broker] { return values(i.brokers) }

// Controllers yields all registered controllers, by id.
func (i *Image) Controllers() iter.Seq[*Controller] { return values(i.controllers) }

// Config returns what is stored for a resource; an empty Config when nothing is.
func (i *Image) Config(r ConfigResource) Config {
	c, _ := i.configs.get(r)
	return c
}

// ConfigResources yields every resource with a stored configuration, by type
// and name.
func (i *Image) ConfigResources() iter.Seq2[ConfigResource, Config] { return i.configs.all() }

// MetadataVersionFeature is the feature whose level says which records exist.
const MetadataVersionFeature = "metadata.version"

// Levels of the feature metadata.version. A new cluster gets MaxMetadataVersion, that of Kafka 4.3; one that has a
// level up to MaxFollowedMetadataVersion already, that of Kafka 4.4, is followed: what it adds (controllers that
// unregister, ranges of addresses in ACLs) changes nothing that one node writes.
const (
	MinMetadataVersion         int16 = 7
	MaxMetadataVersion         int16 = 30
	MaxFollowedMetadataVersion int16 = 33
)

// Features yields the finalized features with their levels, by name,
// metadata.version among them. Features at level 0 are left out.
func (i *Image) Features() iter.Seq2[string, int16] { return i.features.all() }

// FeatureLevel is the finalized level of a feature, 0 when it has none.
func (i *Image) FeatureLevel(name string) int16 {
	level, _ := i.features.get(name)
	return level
}

// MetadataVersion is the level of the feature metadata.version, 0 before the
// first record.
func (i *Image) MetadataVersion() int16 { return i.FeatureLevel(MetadataVersionFeature) }

// NextProducerID is the first id of the next producer id block, -1 when no block
// was given out yet (the first then begins at 0).
func (i *Image) NextProducerID() int64 { return i.nextProducerID }

// ACLs yields all access control entries, by id.
func (i *Image) ACLs() iter.Seq[*AccessControlEntryRecord] { return values(i.acls) }

// ScramCredential returns the credential of a user for a mechanism (1
// SCRAM-SHA-256, 2 SCRAM-SHA-512), or nil.
func (i *Image) ScramCredential(user string, mechanism int8) *UserScramCredentialRecord {
	c, _ := i.scram.get(scramKey{mechanism, user})
	return c
}

// ScramCredentials yields all SCRAM credentials, by mechanism and user.
func (i *Image) ScramCredentials() iter.Seq[*UserScramCredentialRecord] { return values(i.scram) }

// DelegationTokens yields all delegation tokens, by id.
func (i *Image) DelegationTokens() iter.Seq[*DelegationTokenRecord] { return values(i.tokens) }

// ClientQuota returns the quotas of an entity, nil when it has none.
func (i *Image) ClientQuota(entity []QuotaEntity) *ClientQuota {
	q, _ := i.quotas.get(QuotaKey(entity))
	return q
}

// ClientQuotas yields all entities with quotas.
func (i *Image) ClientQuotas() iter.Seq[*ClientQuota] { return values(i.quotas) }

type scramKey struct {
	mechanism int8
	user      string
}

func (k scramKey) compare(o scramKey) int {
	return cmp.Or(cmp.Compare(k.mechanism, o.mechanism), strings.Compare(k.user, o.user))
}

func values[K, V any](t tree[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		t.root.each(func(_ K, v V) bool { return yield(v) })
	}
}
