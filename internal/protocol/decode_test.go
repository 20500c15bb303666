package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// fill sets every field of a message to something random.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[kmsg.Tags]() {
			return
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" {
				fill(t, v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes"))
			return
		}
		n := rapid.IntRange(0, 3).Draw(t, "n")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.Array:
		reflect.Copy(v, reflect.ValueOf(rapid.SliceOfN(rapid.Byte(), v.Len(), v.Len()).Draw(t, "id")))
	case reflect.String:
		v.SetString(anyName.Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Float64:
		v.SetFloat(float64(rapid.Int16().Draw(t, "float")))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		v.SetUint(rapid.Uint64Range(0, 127).Draw(t, "uint"))
	default:
		v.SetInt(rapid.Int64Range(-128, 127).Draw(t, "int"))
	}
}

// Every request that Kafka knows, in every version, survives decoding; the
// schemas agree with kmsg on where it ends and on what it may allocate.
func TestDecodeEveryRequest(t *testing.T) {
	for _, a := range apis {
		t.Run(fmt.Sprint("key ", a.key), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				req := kmsg.RequestForKey(a.key)
				version := rapid.Int16Range(min(a.fullMin, a.min), a.max).Draw(t, "version")
				fill(t, reflect.ValueOf(req).Elem(), 0)
				req.SetVersion(version)
				body := req.AppendTo(nil)
				decodeAndCompare(t, RequestHeader{Key: a.key, Version: version}, body)
			})
		})
	}
}

func decodeAndCompare(t *rapid.T, h RequestHeader, body []byte) {
	got, err := DecodeRequest(h, body)
	if err != nil {
		t.Fatal(err)
	}
	if got.GetVersion() != h.Version || !bytes.Equal(got.AppendTo(nil), body) {
		t.Fatalf("decoded to %+v", got)
	}
	s := schemas()[h.Key]
	w := walker{reader: newReader(body, h.Version >= s.flexible), version: h.Version, bound: DecodeBound(len(body))}
	w.walk(s.fields)
	if !w.ok() || w.Len() != 0 {
		t.Fatalf("walk leaves %d bytes: %v", w.Len(), w.Err())
	}
	if len(body) > 0 {
		n := rapid.IntRange(0, len(body)-1).Draw(t, "cut")
		if _, err := DecodeRequest(h, body[:n:n]); !isMalformed(err) {
			t.Fatalf("cut at %d of %d: %v", n, len(body), err)
		}
	}
	if _, err := DecodeRequest(h, append(bytes.Clone(body), 1, 2, 3)); err != nil {
		t.Fatalf("bytes after the end: %v", err)
	}
}

func isMalformed(err error) bool {
	var m *MalformedError
	return errors.As(err, &m)
}

// allocated is the bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// What kmsg allocates is what the schemas say it will, or less.
func TestDecodeMemory(t *testing.T) {
	schemas()
	topics := kmsg.NewPtrMetadataRequest()
	topics.Version = 12
	offsets := kmsg.NewPtrOffsetCommitRequest()
	offsets.Version = 8
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Version = 7
	for i := range 3000 {
		name := fmt.Sprint("t", i)
		topics.Topics = append(topics.Topics, kmsg.MetadataRequestTopic{Topic: &name})
		offsets.Topics = append(offsets.Topics, kmsg.OffsetCommitRequestTopic{Topic: name,
			Partitions: []kmsg.OffsetCommitRequestTopicPartition{{}, {}}})
		create.Topics = append(create.Topics, kmsg.CreateTopicsRequestTopic{Topic: name,
			Configs: make([]kmsg.CreateTopicsRequestTopicConfig, 3)})
		create.Topics[i].UnknownTags.Set(9, []byte("x"))
	}
	for _, req := range []kmsg.Request{topics, offsets, create} {
		h := RequestHeader{Key: req.Key(), Version: req.GetVersion()}
		body := req.AppendTo(nil)
		s := schemas()[h.Key]
		w := walker{reader: newReader(body, true), version: h.Version, bound: 1 << 40}
		w.walk(s.fields)
		got := allocated(func() {
			if _, err := DecodeRequest(h, body); err != nil {
				t.Error(err)
			}
		})
		if got > w.memory+w.memory*racePercent/100+4096 {
			t.Errorf("key %d: %d bytes allocated, %d foreseen", h.Key, got, w.memory)
		}
	}
}

// Forged counts, and true counts of elements without content, allocate no more
// than the stated bound.
func TestDecodeHostileCounts(t *testing.T) {
	schemas()
	zeros := make([]byte, 4<<20)
	forged := append([]byte{0xff, 0xff, 0xff, 0xff, 0x07}, zeros...)
	tiny := append([]byte{0x80, 0x80, 0x80, 0x01}, bytes.Repeat([]byte{1, 0}, 2<<20)...)
	for _, a := range apis {
		for _, body := range [][]byte{zeros, forged, tiny} {
			for version := a.fullMin; version <= a.max; version++ {
				h := RequestHeader{Key: a.key, Version: version}
				if a.key == keyProduce || a.key == keyFetch {
					continue
				}
				got := allocated(func() { _, _ = DecodeRequest(h, body) })
				if got > DecodeBound(len(body)) {
					t.Errorf("key %d version %d: %d bytes allocated", a.key, version, got)
				}
			}
		}
	}
}

// An array that may not be null is refused when it is; kmsg alone would take it for an empty one.
func TestNullArrays(t *testing.T) {
	null := []byte{0xff, 0xff, 0xff, 0xff}
	for _, c := range []struct {
		name         string
		key, version int16
		body         []byte
		refused      bool
	}{
		{"ListOffsets topics", 2, 1, append([]byte{0xff, 0xff, 0xff, 0xff}, null...), true},
		{"Metadata v0 topics", 3, 0, null, true},
		{"Metadata v1 topics", 3, 1, null, false},
		{"DeleteTopics names", 20, 1, append(null, 0, 0, 0, 1), true},
		{"DescribeConfigs v0 names", 32, 0, append([]byte{0, 0, 0, 1, 2, 0, 1, 'a'}, null...), false},
	} {
		_, err := DecodeRequest(RequestHeader{Key: c.key, Version: c.version}, c.body)
		if (err != nil) != c.refused {
			t.Errorf("%s: got error %v, want one: %v", c.name, err, c.refused)
		}
	}
}
