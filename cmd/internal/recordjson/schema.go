package recordjson

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

//go:embed schema.txt
var schemaText string

// schema is every message of schema.txt; it is parsed at first use.
var schema = sync.OnceValue(func() []*message {
	messages, err := parseSchema(schemaText)
	if err != nil {
		panic(err) // the text is part of the program, and a test reads it
	}
	return messages
})

// find is the message of a kind and record type, nil when there is none.
func find(kind string, key int16) *message {
	for _, m := range schema() {
		if m.kind == kind && m.key == key {
			return m
		}
	}
	return nil
}

// named is the message with a name, nil when there is none.
func named(name string) *message {
	for _, m := range schema() {
		if m.name == name {
			return m
		}
	}
	return nil
}

// parseSchema reads the form that the head of schema.txt describes.
func parseSchema(text string) ([]*message, error) {
	var messages []*message
	var open []*[]*field // where fields go, by depth of indentation
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		depth := len(line) - len(strings.TrimLeft(line, " "))
		if depth == 0 {
			m, err := parseMessage(words)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			messages = append(messages, m)
			open = []*[]*field{&m.fields}
			continue
		}
		if depth > len(open) {
			return nil, fmt.Errorf("%q: indented below nothing", line)
		}
		f, err := parseField(words)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		*open[depth-1] = append(*open[depth-1], f)
		open = append(open[:depth], &f.fields)
	}
	return messages, nil
}

func parseMessage(words []string) (*message, error) {
	if len(words) != 5 {
		return nil, fmt.Errorf("%d words", len(words))
	}
	key, err := strconv.ParseInt(words[1], 10, 16)
	if err != nil {
		return nil, err
	}
	m := &message{kind: words[0], key: int16(key), name: words[2]}
	if m.valid, err = parseVersions(words[3]); err != nil {
		return nil, err
	}
	m.flexible, err = parseVersions(strings.TrimPrefix(words[4], "flexible="))
	return m, err
}

func parseField(words []string) (*field, error) {
	if len(words) < 3 {
		return nil, fmt.Errorf("%d words", len(words))
	}
	none := versions{0, -1}
	f := &field{name: words[0], nullable: none, tagged: none}
	f.kind, f.array = strings.CutPrefix(words[1], "[]")
	var err error
	if f.versions, err = parseVersions(words[2]); err != nil {
		return nil, err
	}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "null":
			f.nullable, err = parseVersions(value)
		case "default":
			f.def = value
		case "tag":
			number, range_, _ := strings.Cut(value, "@")
			var tag uint64
			if tag, err = strconv.ParseUint(number, 10, 32); err == nil {
				f.tagged, err = parseVersions(range_)
			}
			f.tag = uint32(tag)
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// parseVersions reads "none", "3", "0-3" or "2+".
func parseVersions(text string) (versions, error) {
	if text == "none" {
		return versions{0, -1}, nil
	}
	first, last, isRange := strings.Cut(text, "-")
	if open, ok := strings.CutSuffix(text, "+"); ok {
		first, last = open, strconv.Itoa(math.MaxInt16)
	} else if !isRange {
		last = first
	}
	from, err := strconv.ParseInt(first, 10, 16)
	if err != nil {
		return versions{}, err
	}
	to, err := strconv.ParseInt(last, 10, 16)
	return versions{int16(from), int16(to)}, err
}
