package group

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"

	"tidemark/internal/metadata"
)

// topicHashes are the hashes of topics' metadata, by name, for as long as a topic stays the same.
type topicHashes map[string]topicHash

type topicHash struct {
	topic *metadata.Topic
	hash  uint64
}

// group is the hash of the metadata of topics that exist among the names, which are sorted; 0 when none does.
//
// Kafka: Utils.computeGroupHash.
func (h topicHashes) group(image *metadata.Image, names []string) int64 {
	var b []byte
	for _, name := range names {
		if t := image.Topic(name); t != nil {
			b = binary.LittleEndian.AppendUint64(b, h.topic(image, t))
		}
	}
	if b == nil {
		return 0
	}
	return int64(xxh3(b))
}

func (h topicHashes) topic(image *metadata.Image, t *metadata.Topic) uint64 {
	if known, ok := h[t.Name]; ok && known.topic == t {
		return known.hash
	}
	hash := hashTopic(image, t)
	h[t.Name] = topicHash{t, hash}
	return hash
}

// hashTopic hashes a topic's metadata:
//
//	byte 0 | int64, int64 id | name | int32 partitions | of each: int32 partition, of each rack of a replica, sorted:
//	int32 length, name
//
// Numbers are little endian; a name is its UTF-16 units and their number.
//
// Kafka: Utils.computeTopicHash.
func hashTopic(image *metadata.Image, t *metadata.Topic) uint64 {
	b := []byte{0}
	for _, half := range [][]byte{t.ID[:8], t.ID[8:]} {
		b = binary.LittleEndian.AppendUint64(b, binary.BigEndian.Uint64(half))
	}
	b = appendJavaString(b, t.Name)
	b = binary.LittleEndian.AppendUint32(b, uint32(t.NumPartitions()))
	for id := range int32(t.NumPartitions()) {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		p := t.Partition(id)
		if p == nil {
			continue
		}
		for _, rack := range racks(image, p) {
			b = binary.LittleEndian.AppendUint32(b, uint32(utf16Len(rack)))
			b = appendJavaString(b, rack)
		}
	}
	return xxh3(b)
}

// racks are the racks of a partition's replicas, sorted.
func racks(image *metadata.Image, p *metadata.Partition) []string {
	var all []string
	for _, id := range p.Replicas {
		if broker := image.Broker(id); broker != nil && broker.Rack != nil {
			all = append(all, *broker.Rack)
		}
	}
	slices.Sort(all)
	return all
}

func appendJavaString(b []byte, s string) []byte {
	units := utf16.Encode([]rune(s))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return binary.LittleEndian.AppendUint32(b, uint32(len(units)))
}
