package logdir

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
)

// The marks at the end of a partition folder's name, after a dot and 32 hex digits.
const (
	deleteMark = "-delete" // a deleted partition that waits for its files to be removed
	futureMark = "-future" // a copy in progress to another log directory
	strayMark  = "-stray"  // a partition that the cluster does not assign to this node
)

// MetadataFolder is the folder of the metadata log, which is not a partition of this package's.
const MetadataFolder = "__cluster_metadata-0"

// remoteCacheFolder holds index copies of tiered storage; not a partition.
const remoteCacheFolder = "remote-log-index-cache"

// maxFolderName is the longest name of a folder, in bytes.
const maxFolderName = 255

// NameError is a folder of a log directory that is not named as a partition.
type NameError struct{ Dir, Name string }

// Error is Kafka's text.
func (e *NameError) Error() string {
	return fmt.Sprintf("Found directory %s/%s, '%s' is not in the form of topic-partition or "+
		"topic-partition.uniqueId-delete (if marked for deletion). Kafka's log directories (and children) "+
		"should only contain Kafka topic data.", e.Dir, e.Name, e.Name)
}

// parseFolder splits the name of a partition's folder; mark is "" or one of the marks.
func parseFolder(name string) (tp checkpoint.TopicPartition, mark string, ok bool) {
	for _, m := range []string{deleteMark, futureMark, strayMark} {
		if rest, found := strings.CutSuffix(name, m); found {
			dot := strings.LastIndexByte(rest, '.')
			if dot < 0 {
				return tp, m, false
			}
			name, mark = rest[:dot], m
			break
		}
	}
	dash := strings.LastIndexByte(name, '-')
	if dash <= 0 {
		return tp, mark, false
	}
	id, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil {
		return tp, mark, false
	}
	return checkpoint.TopicPartition{Topic: name[:dash], Partition: int32(id)}, mark, true
}

// markedFolder is the name under which a deleted or stray partition waits. The topic is cut so that the name fits
// the file system.
func markedFolder(tp checkpoint.TopicPartition, unique [16]byte, mark string) string {
	suffix := fmt.Sprintf("-%d.%s%s", tp.Partition, hex.EncodeToString(unique[:]), mark)
	topic := tp.Topic
	if room := maxFolderName - len(suffix); len(topic) > room {
		topic = topic[:room]
	}
	return topic + suffix
}
