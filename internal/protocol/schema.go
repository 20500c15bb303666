package protocol

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

//go:generate go run gen_schema.go

// A schema is the layout of a request, as words:
//
//	9            the first word: the first flexible version, or "none"
//	4            a field of so many bytes
//	s ?s         a string, one that may be null
//	b ?b         bytes, bytes that may be null
//	Name[ … ]    an array, in the field Name of kmsg's structure
//	Name?1[ … ]  an array that may be null from version 1 on
//	Name{ … }    a structure that may be null
//	Name( … )    a structure
//	#2< … >      a tagged field, with its tag; they come before the next word
//	#            the tagged fields
//	3+: 0-2:     before any of these: only in such versions
//
// It serves to walk a body before kmsg decodes it: kmsg allocates an array when
// it has read its count, and elements of two bytes on the wire may take a
// hundred in memory.

// schema is a parsed schema.
type schema struct {
	flexible int16
	fields   []field
}

// field is one word of a schema.
type field struct {
	from, to int16 // versions
	kind     kind
	size     int     // fixed: bytes on the wire; array, nullable: bytes of an element in memory
	fields   []field // of an element or a structure
	tagged   map[uint32][]field
	nullFrom int16 // array: the first version in which it may be null; none: in no version
}

type kind uint8

const (
	fixed kind = iota
	str
	nullableStr
	blob
	nullableBlob
	array
	nullable
	inline
	tags
)

// schemas has all requests, parsed when the first one is needed.
var schemas = sync.OnceValue(func() map[int16]schema {
	all := make(map[int16]schema, len(requestSchemas))
	for key, text := range requestSchemas {
		p := schemaParser{words: strings.Fields(text), key: key}
		s := schema{flexible: none}
		if first := p.next(); first != "none" {
			s.flexible = int16(p.number(first))
		}
		s.fields = p.fields("", reflect.TypeOf(kmsg.RequestForKey(key)).Elem())
		all[key] = s
	}
	return all
})

// schemaParser reads the generated words; what it cannot read is a broken
// build, so it panics.
type schemaParser struct {
	words []string
	key   int16
}

func (p *schemaParser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *schemaParser) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(fmt.Sprintf("schema of key %d: %v", p.key, err))
	}
	return n
}

// fields reads words until end, for fields of the structure t.
func (p *schemaParser) fields(end string, t reflect.Type) (list []field) {
	var tagged map[uint32][]field
	for w := p.next(); w != end; w = p.next() {
		f := field{to: none}
		if versions, word, ok := strings.Cut(w, ":"); ok {
			f.from, f.to, w = p.versions(versions), p.lastVersion(versions), word
		}
		if tag, ok := strings.CutSuffix(w, "<"); ok {
			if tagged == nil {
				tagged = make(map[uint32][]field)
			}
			tagged[uint32(p.number(tag[1:]))] = p.fields(">", t)
			continue
		}
		p.word(&f, w, t)
		if f.kind == tags {
			f.tagged = tagged
		}
		list = append(list, f)
	}
	return list
}

func (p *schemaParser) versions(s string) int16 {
	from, _, _ := strings.Cut(strings.TrimSuffix(s, "+"), "-")
	return int16(p.number(from))
}

func (p *schemaParser) lastVersion(s string) int16 {
	if _, to, ok := strings.Cut(s, "-"); ok {
		return int16(p.number(to))
	}
	return none
}

// word reads the rest of a word.
func (p *schemaParser) word(f *field, w string, t reflect.Type) {
	name := w[:len(w)-1]
	switch w[len(w)-1] {
	case 's', 'b':
		f.kind = map[string]kind{"s": str, "?s": nullableStr, "b": blob, "?b": nullableBlob}[w]
	case '#':
		f.kind = tags
	case '[':
		name, from, _ := strings.Cut(name, "?")
		if f.nullFrom = none; from != "" {
			f.nullFrom = int16(p.number(from))
		}
		elem := p.member(t, name).Elem()
		f.kind, f.size, f.fields = array, int(elem.Size()), p.fields("]", elem)
	case '{':
		elem := p.member(t, name).Elem()
		f.kind, f.size, f.fields = nullable, int(elem.Size()), p.fields("}", elem)
	case '(':
		f.kind, f.fields = inline, p.fields(")", p.member(t, name))
	default:
		f.kind, f.size = fixed, p.number(w)
	}
}

// member is the type of a field of a structure.
func (p *schemaParser) member(t reflect.Type, name string) reflect.Type {
	m, ok := t.FieldByName(name)
	if !ok {
		panic(fmt.Sprintf("schema of key %d: %v has no field %s", p.key, t, name))
	}
	return m.Type
}

// walker checks a body against a schema and adds up what decoding it will
// allocate.
type walker struct {
	reader
	version int16
	memory  int64
	bound   int64
}

const (
	stringMemory = 32  // besides its bytes: rounding, and the pointer of one that may be null
	tagsMemory   = 512 // the map of one or more unknown tags
	tagMemory    = 96  // each tag in it
)

// takes notes an allocation.
func (w *walker) takes(n int64) {
	if w.memory += n; w.memory > w.bound {
		w.Fail(errTooLarge)
	}
}

func (w *walker) walk(fields []field) {
	for i := range fields {
		f := &fields[i]
		if w.version < f.from || w.version > f.to {
			continue
		}
		switch f.kind {
		case fixed:
			w.Skip(f.size)
		case str:
			w.takes(int64(len(w.string())) + stringMemory)
		case nullableStr:
			w.takes(int64(len(w.nullableString())) + stringMemory)
		case blob, nullableBlob: // null counts as empty
			w.nullableBytes()
		case array:
			w.elements(f)
		case nullable:
			if w.Int8() != -1 {
				w.takes(int64(f.size) + stringMemory)
				w.walk(f.fields)
			}
		case inline:
			w.walk(f.fields)
		case tags:
			w.tagged(f)
		}
		if !w.ok() {
			return
		}
	}
}

// elements walks an array.
func (w *walker) elements(f *field) {
	n := w.nullableArray(1)
	if n < 0 && w.version < f.nullFrom {
		w.Fail(errNull)
	}
	if n <= 0 {
		return
	}
	memory := int64(n) * int64(f.size)
	w.takes(memory + memory/4 + stringMemory) // the runtime rounds up
	if len(f.fields) == 1 && f.fields[0].kind == fixed {
		w.Skip(n * f.fields[0].size)
		return
	}
	for ; n > 0 && w.ok(); n-- {
		w.walk(f.fields)
	}
}

func (w *walker) tagged(f *field) {
	unknown := 0
	w.reader.tags(func(tag uint32, v *reader) bool {
		fields, ok := f.tagged[tag]
		if !ok {
			if unknown++; unknown == 1 {
				w.takes(tagsMemory)
			}
			w.takes(tagMemory)
			return false
		}
		inner := walker{reader: *v, version: w.version, memory: w.memory, bound: w.bound}
		inner.walk(fields)
		w.memory, *v = inner.memory, inner.reader
		return true
	})
}
