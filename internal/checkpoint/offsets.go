package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"tidemark/vfs"
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is "topic-partition", as in the name of the partition's folder.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// Offsets are the entries of an offset checkpoint.
type Offsets map[TopicPartition]int64

// ReadOffsets reads an offset checkpoint, with lines of "topic partition offset".
// An absent file, or one of no bytes, has no entries; a later line of the same
// partition wins. Errors: *MalformedError, or those of the disk.
func ReadOffsets(fsys vfs.FS, name string) (Offsets, error) {
	o := make(Offsets)
	err := readText(fsys, name, 3, o.parse)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (o Offsets) parse(fields []string) error {
	partition, err := parseInt(fields[1], 32)
	if err != nil {
		return err
	}
	offset, err := parseInt(fields[2], 64)
	if err != nil {
		return err
	}
	o[TopicPartition{Topic: fields[0], Partition: int32(partition)}] = offset
	return nil
}

// WriteOffsets replaces an offset checkpoint, durably. Entries are sorted by topic
// and partition; Kafka's order is that of a hash map, and means nothing.
func WriteOffsets(fsys vfs.FS, name string, o Offsets) error {
	keys := make([]TopicPartition, 0, len(o))
	for tp := range o {
		keys = append(keys, tp)
	}
	slices.SortFunc(keys, func(a, b TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	lines := make([]string, len(keys))
	for i, tp := range keys {
		lines[i] = fmt.Sprintf("%s %d %d", tp.Topic, tp.Partition, o[tp])
	}
	return writeText(fsys, name, lines)
}
