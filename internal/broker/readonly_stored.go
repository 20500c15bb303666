package broker

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"

	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// readStoredMetadata reads the metadata logs of the directories, and takes the one that reaches farthest. What it knows
// of the partitions that were found is served: ids, configs and how many partitions a topic has. A directory without
// one, as that of a node which is no controller may be, is served with the configs that the broker was started with.
func (b *Broker) readStoredMetadata(f *foundPartitions) {
	f.stored = metadata.NewImage()
	from := ""
	for _, dir := range f.dirs {
		image, err := quorum.ReadImage(b.opts.FS, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			b.log.Warn("not all of the metadata log can be used: what it tells last may be missing", "dir", dir, "error", err)
		}
		if from == "" || cmp.Or(cmp.Compare(image.Epoch(), f.stored.Epoch()),
			cmp.Compare(image.Offset(), f.stored.Offset())) > 0 {
			f.stored, from = image, dir
		}
	}
	if from == "" {
		b.log.Info("there is no metadata log: topics have the default configs, and as many partitions as are here")
		return
	}
	b.log.Info("configs of topics are those of the metadata log", "dir", from, "offset", f.stored.Offset(),
		"topics", f.stored.NumTopics())
	for _, topic := range slices.Sorted(maps.Keys(f.ids)) {
		if stored := f.stored.Topic(topic); stored != nil && f.storedTopic(topic) == nil {
			b.log.Warn("the folders are of an older topic of that name than the metadata log knows: its configs are not known",
				"topic", topic, "id", metadata.UUID(f.ids[topic]).String(), "id_in_metadata", stored.ID.String())
		}
	}
}

// storedTopic is a topic as the metadata log has it, unless the folders are of another one of that name; nil: not
// known.
func (f *foundPartitions) storedTopic(topic string) *metadata.Topic {
	stored := f.stored.Topic(topic)
	if id, known := f.ids[topic]; stored != nil && known && stored.ID != id {
		return nil
	}
	return stored
}

// storedPartitions is how many partitions a topic has by the metadata log, 0 when that does not know it.
func (f *foundPartitions) storedPartitions(topic string) int32 {
	stored := f.storedTopic(topic)
	if stored == nil {
		return 0
	}
	return int32(stored.NumPartitions())
}

// topicConfigs is what the metadata log has set for a topic.
func (f *foundPartitions) topicConfigs(topic string) map[string]string {
	if f.storedTopic(topic) == nil {
		return nil
	}
	return f.stored.Config(metadata.TopicConfigs(topic)).Map()
}

// storedConfigs are the configs in the metadata log that say something of what is served: those of the topics that were
// found and of groups, and of the broker's those that topics take their defaults from. How the node itself was reached
// and kept in bounds is no concern here.
func (b *Broker) storedConfigs() []metadata.Record {
	var records []metadata.Record
	add := func(r metadata.ConfigResource, key, value string) {
		records = append(records, metadata.Record{Body: &metadata.ConfigRecord{
			ResourceType: r.Type, ResourceName: r.Name, Name: key, Value: &value}})
	}
	found := map[string]bool{}
	for tp := range b.found.places {
		found[tp.Topic] = true
	}
	self := strconv.Itoa(int(b.config().NodeID))
	for r, stored := range b.found.stored.ConfigResources() {
		for key, value := range stored.All() {
			switch {
			case r.Type == metadata.ResourceTopic && found[r.Name] && b.found.storedTopic(r.Name) != nil,
				r.Type == metadata.ResourceGroup,
				r.Type == metadata.ResourceBroker && (r.Name == "" || r.Name == self) && config.IsTopicDefault(key):
				add(r, key, value)
			}
		}
	}
	return records
}
