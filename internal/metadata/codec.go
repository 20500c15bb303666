package metadata

import (
	"fmt"
	"slices"

	"tidemark/internal/wire"
)

// codec walks the fields of a record in their order on disk, reading or writing
// each. A record type lists its fields once, in its fields method, and that list
// serves both directions.
type codec struct {
	version int16
	r       *wire.Reader // reading when not nil
	w       []byte       // writing
	err     error        // writing: a set field that the version cannot carry
}

func (c *codec) reading() bool { return c.r != nil }

func (c *codec) bool(v *bool) {
	if c.reading() {
		*v = c.r.Bool()
		return
	}
	c.w = wire.AppendBool(c.w, *v)
}

func (c *codec) int8(v *int8) {
	if c.reading() {
		*v = c.r.Int8()
		return
	}
	c.w = wire.AppendInt8(c.w, *v)
}

func (c *codec) int16(v *int16) {
	if c.reading() {
		*v = c.r.Int16()
		return
	}
	c.w = wire.AppendInt16(c.w, *v)
}

func (c *codec) uint16(v *uint16) {
	if c.reading() {
		*v = c.r.Uint16()
		return
	}
	c.w = wire.AppendUint16(c.w, *v)
}

func (c *codec) int32(v *int32) {
	if c.reading() {
		*v = c.r.Int32()
		return
	}
	c.w = wire.AppendInt32(c.w, *v)
}

func (c *codec) int64(v *int64) {
	if c.reading() {
		*v = c.r.Int64()
		return
	}
	c.w = wire.AppendInt64(c.w, *v)
}

func (c *codec) float64(v *float64) {
	if c.reading() {
		*v = c.r.Float64()
		return
	}
	c.w = wire.AppendFloat64(c.w, *v)
}

func (c *codec) uuid(v *UUID) {
	if c.reading() {
		*v = c.r.UUID()
		return
	}
	c.w = wire.AppendUUID(c.w, *v)
}

func (c *codec) string(v *string) {
	if c.reading() {
		*v = c.r.CompactString()
		return
	}
	c.w = wire.AppendCompactString(c.w, *v)
}

func (c *codec) nullableString(v **string) {
	if c.reading() {
		*v = c.r.CompactNullableString()
		return
	}
	c.w = wire.AppendCompactNullableString(c.w, *v)
}

// bytes is a COMPACT_BYTES that may not be null; what was read is a copy.
func (c *codec) bytes(v *[]byte) {
	if !c.reading() {
		c.w = wire.AppendCompactBytes(c.w, nonNil(*v))
		return
	}
	p := c.r.CompactBytes()
	if p == nil {
		c.r.Fail(wire.ErrLength)
	}
	*v = slices.Clone(p)
}

// array is a compact array of elements of at least minSize bytes; nil is null
// when nullable and empty otherwise.
func array[T any](c *codec, v *[]T, nullable bool, minSize int, element func(*codec, *T)) {
	if c.reading() {
		n := c.r.CompactArrayLen(minSize)
		if n < 0 {
			if !nullable {
				c.r.Fail(wire.ErrLength)
			}
			*v = nil
			return
		}
		*v = make([]T, n)
	} else {
		n := len(*v)
		if *v == nil && nullable {
			n = -1
		}
		c.w = wire.AppendCompactArrayLen(c.w, n)
	}
	for i := range *v {
		element(c, &(*v)[i])
	}
}

func (c *codec) int32s(v *[]int32)   { array(c, v, false, 4, (*codec).int32) }
func (c *codec) uuids(v *[]UUID)     { array(c, v, false, 16, (*codec).uuid) }
func (c *codec) strings(v *[]string) { array(c, v, false, 1, (*codec).string) }

func (c *codec) nullableInt32s(v *[]int32) { array(c, v, true, 4, (*codec).int32) }
func (c *codec) nullableUUIDs(v *[]UUID)   { array(c, v, true, 16, (*codec).uuid) }

// tag is one tagged field: written when it is not at its default, and only in
// versions from since on.
type tag struct {
	number uint32
	since  int16
	set    bool // differs from its default
	field  func()
}

// tags is the tagged-field section, which ends every record and every struct in
// one. Unknown tags are passed over. The list must rise in number.
//
//	uvarint count, count × (uvarint tag, uvarint size, value)
func (c *codec) tags(list ...tag) {
	if c.reading() {
		c.r.Tags(func(number uint32, data []byte) { c.readTag(list, number, data) })
		return
	}
	n := 0
	for _, t := range list {
		if t.set {
			n++
		}
	}
	c.w = wire.AppendUvarint(c.w, uint32(n))
	for _, t := range list {
		if t.set {
			c.writeTag(t)
		}
	}
}

func (c *codec) readTag(list []tag, number uint32, data []byte) {
	for _, t := range list {
		if t.number != number || t.since > c.version {
			continue
		}
		outer := c.r
		c.r = wire.NewReader(data)
		t.field()
		if c.r.Err() == nil && c.r.Len() > 0 {
			c.r.Fail(fmt.Errorf("%d bytes follow the value", c.r.Len()))
		}
		if err := c.r.Err(); err != nil {
			outer.Fail(fmt.Errorf("tag %d: %w", number, err))
		}
		c.r = outer
		return
	}
}

func (c *codec) writeTag(t tag) {
	if t.since > c.version {
		c.failVersion(fmt.Sprintf("tag %d", t.number), t.since)
		return
	}
	outer := c.w
	c.w = nil
	t.field()
	value := c.w
	c.w = wire.AppendUvarint(outer, t.number)
	c.w = wire.AppendUvarint(c.w, uint32(len(value)))
	c.w = append(c.w, value...)
}

// since runs field in versions that have it. In older ones a field that is set
// is an error when writing.
func (c *codec) since(version int16, set bool, field func()) {
	switch {
	case c.version >= version:
		field()
	case set && !c.reading():
		c.failVersion("a field", version)
	}
}

func (c *codec) failVersion(what string, since int16) {
	if c.err == nil {
		c.err = fmt.Errorf("%s is set, which needs version %d, not %d", what, since, c.version)
	}
}

func nonNil(p []byte) []byte {
	if p == nil {
		return []byte{}
	}
	return p
}
