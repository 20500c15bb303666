// Package recordjson shows the records of Kafka's own topics as Kafka's tools print them:
// the cluster's metadata, __consumer_offsets and __transaction_state, in every version,
// as JSON. schema.txt lists the fields.
//
// It only reads, keeps no state beyond the parsed schema, and is safe for concurrent use.
// Input of any shape gives a text or an error; memory is bounded by a multiple of the
// input.
package recordjson

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/wire"
)

// ErrVersion means that a message says a version that Kafka 4.3.1 does not know.
var ErrVersion = errors.New("unknown version")

// message is one kind of message of the schema.
type message struct {
	kind     string // "metadata", "group-key", …
	key      int16  // type of the record
	name     string
	valid    versions
	flexible versions
	fields   []*field
}

// field is one field of a message or of a struct in one.
type field struct {
	name     string
	kind     string // bool int8 int16 uint16 int32 int64 float64 string bytes uuid struct
	array    bool
	versions versions // that have the field
	nullable versions
	tagged   versions // where it is a tagged field
	tag      uint32
	def      string // default of a tagged field, as JSON would have it
	fields   []*field
}

// versions is a range, both ends included; none when last < first.
type versions struct{ first, last int16 }

func (v versions) has(version int16) bool { return v.first <= version && version <= v.last }

// decode appends the JSON object of a message's body to dst.
func (m *message) decode(dst []byte, r *wire.Reader, version int16) ([]byte, error) {
	if !m.valid.has(version) {
		return dst, fmt.Errorf("%s version %d: %w", m.name, version, ErrVersion)
	}
	d := decoder{r: r, version: version, flexible: m.flexible.has(version)}
	dst = d.object(dst, m.fields)
	if r.Err() != nil {
		return dst, fmt.Errorf("%s version %d: %w", m.name, version, r.Err())
	}
	return dst, nil
}

// decoder reads one message.
type decoder struct {
	r        *wire.Reader
	version  int16
	flexible bool
}

// object appends a struct. Tagged fields come last on the wire, but in the schema's
// order in the text, and only when they are not the default.
func (d *decoder) object(dst []byte, fields []*field) []byte {
	texts := make([][]byte, len(fields))
	for i, f := range fields {
		if f.versions.has(d.version) && !f.tagged.has(d.version) {
			texts[i] = d.value(nil, f)
		}
	}
	if d.flexible {
		d.r.Tags(func(tag uint32, data []byte) {
			for i, f := range fields {
				if f.tagged.has(d.version) && f.tag == tag {
					texts[i] = d.taggedValue(f, data)
				}
			}
		})
	}
	dst = append(dst, '{')
	first := true
	for i, f := range fields {
		if texts[i] == nil {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, f.name), ':')
		dst = append(dst, texts[i]...)
	}
	return append(dst, '}')
}

// taggedValue is the text of a tagged field, nil for the default.
func (d *decoder) taggedValue(f *field, data []byte) []byte {
	inner := decoder{r: wire.NewReader(data), version: d.version, flexible: d.flexible}
	text := inner.value(nil, f)
	if err := inner.r.Err(); err != nil {
		d.r.Fail(err)
	}
	if string(text) == f.defaultText() {
		return nil
	}
	return text
}

func (f *field) defaultText() string {
	switch {
	case f.def != "":
		return f.def
	case f.array:
		return "[]"
	}
	switch f.kind {
	case "string", "bytes":
		return `""`
	case "bool":
		return "false"
	case "uuid":
		return `"AAAAAAAAAAAAAAAAAAAAAA"`
	case "float64":
		return "0.0"
	}
	return "0"
}

// appendDouble writes a number, or, as a string, what JSON has no number for.
func appendDouble(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.AppendQuote(dst, cli.JavaDouble(v))
	}
	return append(dst, cli.JavaDouble(v)...)
}

// value appends a field of any type.
func (d *decoder) value(dst []byte, f *field) []byte {
	if !f.array {
		return d.single(dst, f)
	}
	n := 0
	if d.flexible {
		n = d.r.CompactArrayLen(1)
	} else {
		n = d.r.ArrayLen(1)
	}
	if n < 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i := range n {
		if d.r.Err() != nil {
			break
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.single(dst, f)
	}
	return append(dst, ']')
}

func (d *decoder) single(dst []byte, f *field) []byte {
	switch f.kind {
	case "bool":
		return strconv.AppendBool(dst, d.r.Bool())
	case "int8":
		return strconv.AppendInt(dst, int64(d.r.Int8()), 10)
	case "int16":
		return strconv.AppendInt(dst, int64(d.r.Int16()), 10)
	case "uint16":
		return strconv.AppendInt(dst, int64(d.r.Uint16()), 10)
	case "int32":
		return strconv.AppendInt(dst, int64(d.r.Int32()), 10)
	case "int64":
		return strconv.AppendInt(dst, d.r.Int64(), 10)
	case "float64":
		return appendDouble(dst, d.r.Float64())
	case "uuid":
		id := d.r.UUID()
		return strconv.AppendQuote(dst, base64.RawURLEncoding.EncodeToString(id[:]))
	case "string":
		return d.text(dst)
	case "bytes":
		return d.bytes(dst)
	}
	if !f.array && d.isNull(f) {
		return append(dst, "null"...)
	}
	return d.object(dst, f.fields)
}

// isNull reads the mark before a struct that may be null.
//
// Kafka: a byte, −1 for null; in a tagged field a varint, 0 for null.
func (d *decoder) isNull(f *field) bool {
	switch {
	case !f.nullable.has(d.version):
		return false
	case f.tagged.has(d.version):
		return d.r.Uvarint() == 0
	}
	return d.r.Int8() < 0
}

func (d *decoder) text(dst []byte) []byte {
	var s *string
	if d.flexible {
		s = d.r.CompactNullableString()
	} else {
		s = d.r.NullableString()
	}
	if s == nil {
		return append(dst, "null"...)
	}
	return appendString(dst, *s)
}

func (d *decoder) bytes(dst []byte) []byte {
	var b []byte
	if d.flexible {
		b = d.r.CompactBytes()
	} else {
		b = d.r.Bytes()
	}
	if b == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendQuote(dst, base64.StdEncoding.EncodeToString(b))
}
