package protocol

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fuzzSlack is what the runtime and the testing package may allocate meanwhile.
const fuzzSlack = 64 << 10

// within fails when f allocates more than decoding n bytes may.
func within(t *testing.T, n int, f func()) {
	t.Helper()
	if got := allocated(f); got > DecodeBound(n)+fuzzSlack {
		t.Fatalf("%d bytes of input made %d allocated", n, got)
	}
}

// FuzzRequest feeds whole frames, without their size: header, then body.
func FuzzRequest(f *testing.F) {
	schemas()
	for _, a := range apis {
		for _, v := range []int16{a.fullMin, a.max} {
			req := kmsg.RequestForKey(a.key)
			req.SetVersion(v)
			f.Add(kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz")).AppendRequest(nil, req, 1)[4:])
		}
	}
	table := NewTable(Full, everything())
	f.Fuzz(func(t *testing.T, frame []byte) {
		within(t, len(frame), func() {
			h, body, err := ParseRequestHeader(frame)
			if err != nil {
				if !isMalformed(err) {
					t.Fatal(err)
				}
				return
			}
			if !table.Accepts(h.Key, h.Version) {
				return
			}
			if _, err := DecodeRequest(h, body); err != nil && !isMalformed(err) {
				t.Fatal(err)
			}
		})
	})
}

// FuzzProduceRequest and FuzzFetchRequest hold the hand-written parsers against
// kmsg: what one takes the other takes too, and says the same. (kmsg also takes
// null for arrays that may not be null, and names that are too long.)
func FuzzProduceRequest(f *testing.F) {
	for v := range int16(14) {
		r := kmsg.NewPtrProduceRequest()
		r.Version = v
		r.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", Partitions: []kmsg.ProduceRequestTopicPartition{
			{Partition: 1, Records: []byte("records")}, {Partition: 2}}}}
		f.Add(v, r.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 0 || version > 13 {
			return
		}
		var got ProduceRequest
		var err error
		within(t, len(body), func() { err = got.Parse(version, body, nil) })
		if err != nil {
			if !isMalformed(err) {
				t.Fatal(err)
			}
			return
		}
		if size := int64(len(body)); size > 1<<16 {
			return // kmsg may allocate more than is good
		}
		r := kmsg.NewPtrProduceRequest()
		r.Version = version
		if err := r.ReadFrom(body); err != nil {
			if version >= produceFlexible {
				return // kmsg takes no varint of more than 32 bits
			}
			t.Fatalf("kmsg: %v", err)
		}
		if d := sameRequest(wantProduce(r), &got); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzFetchRequest(f *testing.F) {
	for v := range int16(19) {
		r := kmsg.NewPtrFetchRequest()
		r.Version = v
		p := kmsg.NewFetchRequestTopicPartition()
		if v >= 18 {
			p.HighWatermark = 5
		}
		r.Topics = []kmsg.FetchRequestTopic{{Topic: "t", Partitions: []kmsg.FetchRequestTopicPartition{p, p}}}
		if v >= 7 {
			r.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: "u", Partitions: []int32{1, 2}}}
		}
		f.Add(v, r.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, body []byte) {
		if version < 0 || version > 18 {
			return
		}
		var got FetchRequest
		var err error
		within(t, len(body), func() { err = got.Parse(version, body, nil) })
		if err != nil {
			if !isMalformed(err) {
				t.Fatal(err)
			}
			return
		}
		r := kmsg.NewPtrFetchRequest()
		r.Version = version
		if len(body) > 1<<16 || r.ReadFrom(body) != nil {
			return // kmsg is stricter about a few tags
		}
		if !bytes.Equal(r.AppendTo(nil), body) {
			return // as Kafka, this reads a known tag whatever size is given for it; kmsg goes by the size
		}
		if d := sameRequest(wantFetch(r), &got); d != "" {
			t.Fatal(d)
		}
	})
}
