package checkpoint

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"tidemark/vfs"
)

// FormatID writes an id as Kafka does: 22 characters of base64 for URLs, unpadded.
func FormatID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseID reads what FormatID writes; padding at the end is allowed.
func ParseID(s string) (id [16]byte, err error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not an id of 16 bytes in base64", s)
	}
	copy(id[:], b)
	return id, nil
}

// ReadPartitionMetadata reads the topic id from partition.metadata:
//
//	version: 0
//	topic_id: KRwNKRL8S1ak-pCSOjUjWA
//
// with no line end after the id. Errors: fs.ErrNotExist, *MalformedError (an id
// of zeros included), or those of the disk.
func ReadPartitionMetadata(fsys vfs.FS, name string) (id [16]byte, err error) {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return id, fmt.Errorf("read partition metadata: %w", err)
	}
	return parsePartitionMetadata(name, string(data))
}

func parsePartitionMetadata(name, data string) (id [16]byte, err error) {
	lines := splitLines(data)
	malformed := func(i int, reason string) error {
		text := ""
		if i < len(lines) {
			text = lines[i]
		}
		return &MalformedError{File: name, Line: i + 1, Text: text, Reason: reason}
	}
	if len(lines) < 2 {
		return id, malformed(len(lines), "the line is missing")
	}
	version, ok := metadataField(lines[0])
	if !ok {
		return id, malformed(0, "not a field and its value")
	}
	if v, err := parseInt(version, 32); err != nil || v != textVersion {
		return id, malformed(0, fmt.Sprintf("unknown version, expected %d", textVersion))
	}
	text, ok := metadataField(lines[1])
	if !ok {
		return id, malformed(1, "not a field and its value")
	}
	if id, err = ParseID(text); err == nil && id == [16]byte{} {
		err = errors.New("the topic id is zero")
	}
	if err != nil {
		return [16]byte{}, malformed(1, err.Error())
	}
	return id, nil
}

// metadataField is the value in "name:value" or "name: value".
func metadataField(line string) (value string, ok bool) {
	parts := strings.Split(line, ":")
	if len(parts) != 2 {
		return "", false
	}
	return strings.TrimLeftFunc(parts[1], isBlank), true
}

// WritePartitionMetadata writes partition.metadata, durably.
func WritePartitionMetadata(fsys vfs.FS, name string, id [16]byte) error {
	return putPartitionMetadata(fsys, name, id, vfs.WriteFileAtomic)
}

// AddPartitionMetadata writes partition.metadata into a new folder. It is whole or
// not there, and durable once the folder is synced.
func AddPartitionMetadata(fsys vfs.FS, name string, id [16]byte) error {
	return putPartitionMetadata(fsys, name, id, vfs.ReplaceFile)
}

func putPartitionMetadata(
	fsys vfs.FS, name string, id [16]byte, put func(fsys vfs.FS, name string, data []byte) error,
) error {
	data := fmt.Sprintf("version: %d\ntopic_id: %s", textVersion, FormatID(id))
	if err := put(fsys, name, []byte(data)); err != nil {
		return fmt.Errorf("write partition metadata: %w", err)
	}
	return nil
}
