//go:build oracle

package differential

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchSpec is one Fetch; newFetch gives one with large limits.
type fetchSpec struct {
	topic              string
	partition          int32
	offset             int64
	maxBytes, partMax  int32
	isolation          int8
	currentEpoch       int32
	lastFetched        int32
	logStart           int64
	session, sessEpoch int32
	second             *int32 // a second partition
	randomID           bool
	noTopics           bool
}

func newFetch(topic string, offset int64) fetchSpec {
	return fetchSpec{topic: topic, offset: offset, currentEpoch: -1, lastFetched: -1, logStart: -1, sessEpoch: -1,
		maxBytes: 1 << 30, partMax: 1 << 20}
}

func (f fetchSpec) request(version int16) request {
	return func(s *side) kmsg.Request {
		req := kmsg.NewPtrFetchRequest()
		req.SetVersion(version)
		req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, 0, 0, f.maxBytes
		req.IsolationLevel, req.SessionID, req.SessionEpoch = f.isolation, f.session, f.sessEpoch
		if f.noTopics {
			return req
		}
		rt := kmsg.NewFetchRequestTopic()
		rt.Topic, rt.TopicID = f.topic, s.topicID(f.topic)
		if f.randomID {
			rt.TopicID = [16]byte{1, 2, 3}
		}
		partitions := []int32{f.partition}
		if f.second != nil {
			partitions = append(partitions, *f.second)
		}
		for _, p := range partitions {
			rp := kmsg.NewFetchRequestTopicPartition()
			rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes = p, f.offset, f.partMax
			rp.CurrentLeaderEpoch, rp.LastFetchedEpoch, rp.LogStartOffset = f.currentEpoch, f.lastFetched, f.logStart
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
		return req
	}
}

func fetchCases() map[string]fetchSpec {
	with := func(offset int64, edit func(*fetchSpec)) fetchSpec {
		f := newFetch("filled", offset)
		edit(&f)
		return f
	}
	out := map[string]fetchSpec{
		"unknown topic":     newFetch("nope", 0),
		"no topics":         with(0, func(f *fetchSpec) { f.noTopics = true }),
		"unknown partition": with(0, func(f *fetchSpec) { f.partition = 9 }),
		"empty partition":   with(0, func(f *fetchSpec) { f.partition = 1 }),
		"epoch 0":           with(0, func(f *fetchSpec) { f.currentEpoch = 0 }),
		"epoch 9":           with(0, func(f *fetchSpec) { f.currentEpoch = 9 }),
		"last fetched 0":    with(3, func(f *fetchSpec) { f.lastFetched = 0 }),
		"last fetched 5":    with(3, func(f *fetchSpec) { f.lastFetched = 5 }),
		"unknown session":   with(0, func(f *fetchSpec) { f.session, f.sessEpoch = 12345, 3 }),
		"two partitions":    with(0, func(f *fetchSpec) { f.second = ptr(int32(1)) }),
		"partition twice":   with(0, func(f *fetchSpec) { f.second = ptr(int32(0)) }),
		"committed":         with(0, func(f *fetchSpec) { f.isolation = 1 }),
		"isolation 9":       with(0, func(f *fetchSpec) { f.isolation = 9 }),
	}
	for _, offset := range []int64{-1, 0, 1, 2, 3, 8, 9, 11, 12, 13, 1 << 40} {
		out[fmt.Sprintf("offset %d", offset)] = newFetch("filled", offset)
	}
	for _, n := range []int32{-1, 0, 1, 60, 61, 100, 115, 200, 345, 400} {
		out[fmt.Sprintf("max bytes %d", n)] = with(1, func(f *fetchSpec) { f.maxBytes = n })
		out[fmt.Sprintf("partition max bytes %d", n)] = with(1, func(f *fetchSpec) { f.partMax = n })
		out[fmt.Sprintf("max bytes %d of two", n)] = with(0, func(f *fetchSpec) { f.maxBytes, f.second = n, ptr(int32(2)) })
	}
	return out
}

func (w *world) testFetch(t *testing.T) {
	w.create(t, "filled", 3, "retention.ms", "-1")
	w.fill(t, "filled")
	for i := range 2 {
		b := batch{records: some(3 + i)}
		w.same(t, "second partition", produce(11, "filled", 2, -1, b.encode()))
	}
	for name, f := range fetchCases() {
		for _, v := range []int16{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18} {
			w.same(t, name, f.request(v))
		}
	}
	unknown := newFetch("filled", 0)
	unknown.randomID = true
	for v := int16(13); v <= 18; v++ {
		w.same(t, "unknown topic id", unknown.request(v))
	}
}

// testFetchSession opens a session on both sides and goes on in it.
func (w *world) testFetchSession(t *testing.T) {
	session := make(map[*side]int32)
	step := func(name string, epoch int32, f fetchSpec) {
		t.Helper()
		w.same(t, name, func(s *side) kmsg.Request {
			g := f
			g.session, g.sessEpoch = session[s], epoch
			return g.request(12)(s)
		}, func(s *side, tree any) any {
			if m, ok := tree.(map[string]any); ok {
				id, _ := m["SessionID"].(json.Number)
				if n, err := id.Int64(); err == nil && n != 0 {
					session[s] = int32(n)
					m["SessionID"] = "some"
				}
			}
			return tree
		})
	}
	both := newFetch("filled", 0)
	both.second = ptr(int32(2))
	nothing := fetchSpec{noTopics: true, maxBytes: 1 << 30}
	step("open", 0, both)
	step("nothing new", 1, nothing)
	step("the wrong epoch", 7, nothing)
	step("one partition moves", 2, newFetch("filled", 12))
	step("and again", 3, nothing)
	step("close", -1, nothing)
	step("after the close", 4, nothing)
}
