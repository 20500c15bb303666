package recordjson

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"tidemark/internal/wire"
)

func TestSchema(t *testing.T) {
	messages, err := parseSchema(schemaText)
	if err != nil {
		t.Fatal(err)
	}
	if len(messages) != 74 {
		t.Errorf("%d messages", len(messages))
	}
	for _, m := range messages {
		if kind, ok := strings.CutSuffix(m.kind, "-key"); ok && find(kind+"-value", m.key) == nil {
			t.Errorf("%s has no value", m.name)
		}
	}
	for _, text := range []string{"metadata x Name 0 flexible=0+", "metadata 1 Name", " field int32 0+",
		"metadata 1 N 0 flexible=0+\n f int32 0+ odd=1", "metadata 1 N 0 flexible=0+\n  f int32 0+",
		"metadata 1 N 0 flexible=0+\n f int32 x+", "metadata 1 N 0 flexible=0+\n f int32"} {
		if _, err := parseSchema(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestCoordinatorErrors(t *testing.T) {
	groupKey := wire.AppendString(wire.AppendInt16(nil, 2), "g")
	for _, test := range []struct {
		key, value []byte
		want       string
	}{
		{nil, nil, "Could not read version from key's buffer."},
		{wire.AppendInt16(nil, 99), nil, "unknown record type 99"},
		{wire.AppendInt16(nil, 2), nil, "Could not read record with version 0 from key's buffer due to: "},
		{groupKey, []byte{0}, "Could not read version from value's buffer."},
		{groupKey, wire.AppendInt16(nil, 77), "Could not read record with version 77 from value's buffer due to: "},
	} {
		_, err := Coordinator(GroupTopic, test.key, test.value)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("key %x value %x: %v, want %q", test.key, test.value, err, test.want)
		}
	}
	var unknown *UnknownTypeError
	if _, err := Coordinator(TransactionTopic, groupKey, nil); !errors.As(err, &unknown) || unknown.Type != 2 {
		t.Errorf("a group's record among transactions: %v", err)
	}
	rec, err := Coordinator(GroupTopic, groupKey, nil)
	if err != nil || !rec.Deleted || rec.Key != `{"group":"g"}` {
		t.Errorf("tombstone: %+v, %v", rec, err)
	}
}

func TestMetadataErrors(t *testing.T) {
	for _, test := range []struct {
		value []byte
		want  string
	}{
		{[]byte{1, 77, 0}, "Unknown metadata id 77"},
		{[]byte{2, 2, 0}, "Could not deserialize metadata record due to unknown frame version 2(only frame version 1 is " +
			"supported)"},
		{[]byte{1, 20, 0, 0, 9}, "Found 1 byte(s) of garbage after NoOpRecord"},
	} {
		if _, err := Metadata(test.value); err == nil || err.Error() != test.want {
			t.Errorf("%x: %v, want %q", test.value, err, test.want)
		}
	}
	if _, err := Metadata([]byte{1, 2, 9}); !errors.Is(err, ErrVersion) {
		t.Errorf("a version that is not known: %v", err)
	}
}

func TestStrings(t *testing.T) {
	got := string(appendString(nil, "a\"\\\n\r\t\b\f\x01\x1fé/<"))
	if want := `"a\"\\\n\r\t\b\f\u0001\u001Fé/<"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOpenProtocolLeavesWhatItCannotRead(t *testing.T) {
	odd := base64.StdEncoding.EncodeToString([]byte{0, 0, 0xff, 0xff})
	value := `{"protocolType":"consumer","members":[{"subscription":"` + odd + `","assignment":"%%"}]}`
	rec := Record{Type: groupMetadata, Value: value}
	OpenProtocol(&rec)
	if rec.Value != value {
		t.Errorf("%s became %s", value, rec.Value)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add([]byte{1, 3, 2, 0, 0, 0, 1, 2, 3}, []byte{0, 2, 0, 1, 'g'})
	f.Add([]byte{0, 3, 0, 8, 'c', 'o', 'n', 's'}, []byte{0, 5, 0, 1, 'g', 0, 1, 'm'})
	f.Fuzz(func(t *testing.T, value, key []byte) {
		check := func(text string, err error) {
			if err == nil && !json.Valid([]byte(text)) {
				t.Errorf("no JSON: %s", text)
			}
			if limit := 4096 + 256*(len(value)+len(key)); len(text) > limit {
				t.Errorf("%d bytes of text for %d bytes of input", len(text), len(value)+len(key))
			}
		}
		check(Metadata(value))
		for _, topic := range []Topic{GroupTopic, TransactionTopic} {
			rec, err := Coordinator(topic, key, value)
			if err != nil {
				continue
			}
			OpenProtocol(&rec)
			check(rec.Key, nil)
			check(rec.Value, nil)
		}
	})
}

// What Kafka's own JSON writer (Jackson's DoubleNode) makes of the numbers that JSON does not have.
func TestNumbersThatJSONLacks(t *testing.T) {
	for v, want := range map[float64]string{math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`, 1e300: "1.0E300"} {
		if got := string(appendDouble(nil, v)); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := string(appendDouble(nil, math.NaN())); got != `"NaN"` {
		t.Errorf("NaN: %s", got)
	}
}
