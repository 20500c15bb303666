package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

const classJSON = "com.fasterxml.jackson.databind.JsonMappingException"

// JSON is a value of a JSON text that is asked for what it must be; the errors are those of Kafka's tools.
type JSON struct{ raw []byte }

// ParseJSON reads the first value of a text; false when it is none.
//
// Kafka: a text of blanks alone is a value, of no kind.
func ParseJSON(text string) (JSON, bool) {
	if strings.TrimSpace(text) == "" {
		return JSON{}, text != ""
	}
	var raw json.RawMessage
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&raw); err != nil {
		return JSON{}, false
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return JSON{}, false
	}
	return JSON{compact.Bytes()}, true
}

func (j JSON) expected(what string) error {
	return Fail(classJSON, "Expected %s, received %s", what, j.raw)
}

// Object reads an object.
func (j JSON) Object() (map[string]JSON, error) {
	var fields map[string]json.RawMessage
	if !bytes.HasPrefix(j.raw, []byte("{")) || json.Unmarshal(j.raw, &fields) != nil {
		return nil, j.expected("JSON object")
	}
	out := make(map[string]JSON, len(fields))
	for name, raw := range fields {
		out[name] = JSON{raw}
	}
	return out, nil
}

// Array reads an array.
func (j JSON) Array() ([]JSON, error) {
	var elements []json.RawMessage
	if !bytes.HasPrefix(j.raw, []byte("[")) || json.Unmarshal(j.raw, &elements) != nil {
		return nil, j.expected("JSON array")
	}
	out := make([]JSON, len(elements))
	for i, raw := range elements {
		out[i] = JSON{raw}
	}
	return out, nil
}

// Int reads a whole number of 32 bits.
func (j JSON) Int() (int32, error) {
	n, err := strconv.ParseInt(string(j.raw), 10, 32)
	if err != nil {
		return 0, j.expected("`Integer` value")
	}
	return int32(n), nil
}

// Long reads a whole number of 64 bits.
func (j JSON) Long() (int64, error) {
	n, err := strconv.ParseInt(string(j.raw), 10, 64)
	if err != nil {
		return 0, j.expected("`Long` value")
	}
	return n, nil
}

// Text reads a string.
func (j JSON) Text() (string, error) {
	var s string
	if !bytes.HasPrefix(j.raw, []byte(`"`)) || json.Unmarshal(j.raw, &s) != nil {
		return "", j.expected("`String` value")
	}
	return s, nil
}

// Field is a field of an object that must be there.
func Field(object map[string]JSON, name string) (JSON, error) {
	j, ok := object[name]
	if !ok {
		return JSON{}, Fail(classJSON, "No such field exists: `%s`", name)
	}
	return j, nil
}
