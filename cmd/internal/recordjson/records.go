package recordjson

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"tidemark/internal/wire"
)

// Metadata is a record of the cluster's metadata: {"type":…,"version":…,"data":…}.
//
//nolint:staticcheck // Kafka's texts
func Metadata(value []byte) (string, error) {
	r := wire.NewReader(value)
	if frame := r.Uvarint(); frame != 1 && r.Err() == nil {
		return "", fmt.Errorf("Could not deserialize metadata record due to unknown frame version %d(only frame version 1 "+
			"is supported)", frame)
	}
	kind, version := int16(r.Uvarint()), int16(r.Uvarint())
	if r.Err() != nil {
		return "", r.Err()
	}
	m := find("metadata", kind)
	if m == nil {
		return "", fmt.Errorf("Unknown metadata id %d", kind)
	}
	text := appendString([]byte(`{"type":`), screaming(m.name))
	text = strconv.AppendInt(append(text, `,"version":`...), int64(version), 10)
	text, err := m.decode(append(text, `,"data":`...), r, version)
	if err == nil && r.Len() > 0 {
		err = fmt.Errorf("Found %d byte(s) of garbage after %s", r.Len(), m.name)
	}
	return string(append(text, '}')), err
}

// screaming turns "TopicRecord" into "TOPIC_RECORD".
func screaming(name string) string {
	var s strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			s.WriteByte('_')
		}
		s.WriteRune(unicode.ToUpper(r))
	}
	return s.String()
}

// Topic is one of the topics in which coordinators keep their records.
type Topic string

// The topics that are known: __consumer_offsets and __transaction_state.
const (
	GroupTopic       Topic = "group"
	TransactionTopic Topic = "transaction"
)

// Record is a coordinator's record. Key and Value are JSON objects, of the fields alone;
// a deleted value is "" with Deleted set.
type Record struct {
	Type    int16
	Version int16 // of the value
	Key     string
	Value   string
	Deleted bool
}

// UnknownTypeError is a record of a type that Kafka 4.3.1 does not know.
type UnknownTypeError struct{ Type int16 }

func (e *UnknownTypeError) Error() string { return fmt.Sprintf("unknown record type %d", e.Type) }

// Coordinator reads a record of a coordinator's topic; value is nil for a tombstone.
// Errors: *UnknownTypeError, ErrVersion, or what is wrong with the bytes.
//
//nolint:staticcheck // Kafka's texts
func Coordinator(topic Topic, key, value []byte) (Record, error) {
	r := wire.NewReader(key)
	rec := Record{Type: r.Int16()}
	if r.Err() != nil {
		return rec, errors.New("Could not read version from key's buffer.")
	}
	m := find(string(topic)+"-key", rec.Type)
	if m == nil {
		return rec, &UnknownTypeError{rec.Type}
	}
	text, err := m.decode(nil, r, 0)
	if err != nil {
		return rec, fmt.Errorf("Could not read record with version %d from key's buffer due to: %w", 0, err)
	}
	rec.Key = string(text)
	if value == nil {
		rec.Deleted = true
		return rec, nil
	}
	r = wire.NewReader(value)
	if rec.Version = r.Int16(); r.Err() != nil {
		return rec, errors.New("Could not read version from value's buffer.")
	}
	text, err = find(string(topic)+"-value", rec.Type).decode(nil, r, rec.Version)
	if err != nil {
		return rec, fmt.Errorf("Could not read record with version %d from value's buffer due to: %w", rec.Version, err)
	}
	rec.Value = string(text)
	return rec, nil
}

// groupMetadata is the type of the records that hold a classic group.
const groupMetadata = 2

// OpenProtocol shows what the members of a classic consumer group wrote into its record,
// in the place of their bytes. Other records, and bytes that are something else, stay.
func OpenProtocol(rec *Record) {
	if rec.Type != groupMetadata || !strings.HasPrefix(rec.Value, `{"protocolType":"consumer"`) {
		return
	}
	rec.Value = openField(rec.Value, "subscription", "ConsumerProtocolSubscription")
	rec.Value = openField(rec.Value, "assignment", "ConsumerProtocolAssignment")
}

// openField decodes every base64 string of a name in a JSON text.
func openField(text, name, message string) string {
	mark := `"` + name + `":"`
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, mark)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		encoded, rest, _ := strings.Cut(after, `"`)
		if opened, ok := openBytes(encoded, message); ok {
			out.WriteString(`"` + name + `":` + opened)
		} else {
			out.WriteString(mark + encoded + `"`)
		}
		text = rest
	}
}

func openBytes(encoded, message string) (string, bool) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", false
	}
	r := wire.NewReader(data)
	version := r.Int16()
	text, err := named(message).decode(nil, r, version)
	return string(text), err == nil
}
