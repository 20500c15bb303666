package ledger

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
)

// Check compares all that the server at addr answers with the ledger: ends, records at both isolation levels,
// look-ups by time, by offset and by leader epoch. No transaction may be open.
func (l *Ledger) Check(t testing.TB, c *Client) {
	t.Helper()
	l.checkEnds(t, c)
	l.checkRecords(t, c, false)
	l.checkRecords(t, c, true)
	l.checkTimes(t, c)
	l.checkOffsets(t, c)
	l.checkEpochs(t, c)
}

func (l *Ledger) checkEnds(t testing.TB, c *Client) {
	t.Helper()
	for name, query := range map[string]int64{"earliest": -2, "latest": -1} {
		answers := c.listOffsets(t, l.queries(func(*Partition) int64 { return query }))
		for _, p := range l.Partitions() {
			want := p.Start
			if query == -1 {
				want = p.End
			}
			if got := answers[p.Topic][p.ID]; got.code != 0 || got.Offset != want {
				t.Errorf("%s: %s offset of %s: %d (%v), want %d", c.Addr, name, p.Name(), got.Offset,
					kerr.ErrorForCode(got.code), want)
			}
		}
	}
}

func (l *Ledger) queries(ask func(*Partition) int64) map[string]map[int32]int64 {
	out := make(map[string]map[int32]int64)
	for _, p := range l.partitions {
		if out[p.Topic] == nil {
			out[p.Topic] = make(map[int32]int64)
		}
		out[p.Topic][p.ID] = ask(p)
	}
	return out
}

func (l *Ledger) checkRecords(t testing.TB, c *Client, committed bool) {
	t.Helper()
	got := Consume(t, c.Addr, l.Partitions(), committed)
	for _, p := range l.Partitions() {
		want, have := p.Read(committed), slices.DeleteFunc(got[p.Name()], func(r Record) bool { return r.Control })
		for i := range want {
			want[i].Aborted = false // the client does not say
		}
		if slices.EqualFunc(want, have, Record.equal) {
			continue
		}
		if d := cmp.Diff(want, have, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: records of %s, committed %v: %d, want %d (-want +got):\n%s", c.Addr, p.Name(), committed,
				len(have), len(want), head(d, 40))
		}
	}
}

// head returns the first lines of a text.
func head(text string, n int) string {
	lines := bytes.SplitAfter([]byte(text), []byte("\n"))
	return string(bytes.Join(lines[:min(n, len(lines))], nil))
}

// consumeTimeout bounds how long reading all partitions may take.
const consumeTimeout = 2 * time.Minute

// Consume reads partitions from their start to their end with the client library, which checks every batch's CRC.
// Markers are among the records.
func Consume(t testing.TB, addr string, partitions []*Partition, committed bool) map[string][]Record {
	t.Helper()
	from, open := make(map[string]map[int32]kgo.Offset), make(map[string]int64)
	for _, p := range partitions {
		if p.End <= p.Start {
			continue
		}
		if from[p.Topic] == nil {
			from[p.Topic] = make(map[int32]kgo.Offset)
		}
		from[p.Topic][p.ID] = kgo.NewOffset().At(p.Start)
		open[p.Name()] = p.End
	}
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(from), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(isolation), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), consumeTimeout)
	defer cancel()
	got := make(map[string][]Record)
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			t.Fatalf("%s: read %s-%d: %v; %d partitions not read to their end: %v", addr, e.Topic, e.Partition, e.Err,
				len(open), open)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			name := fmt.Sprintf("%s-%d", r.Topic, r.Partition)
			got[name] = append(got[name], fromClient(r))
			if r.Offset >= open[name]-1 {
				delete(open, name)
			}
		})
	}
	return got
}

// checkTimes asks for times at, between, before and behind the records'.
func (l *Ledger) checkTimes(t testing.TB, c *Client) {
	t.Helper()
	const rounds = 24
	picks := make(map[*Partition][]int64)
	for _, p := range l.partitions {
		picks[p] = p.times(rounds)
	}
	for i := range rounds {
		answers := c.listOffsets(t, l.queries(func(p *Partition) int64 { return picks[p][i] }))
		for _, p := range l.Partitions() {
			ts := picks[p][i]
			want := p.ForTime(ts)
			if ts == -3 {
				want = p.Latest()
			}
			if got := answers[p.Topic][p.ID]; got.code != 0 || got.Found != want {
				t.Errorf("%s: %s at time %d: %+v (%v), want %+v", c.Addr, p.Name(), ts, got.Found,
					kerr.ErrorForCode(got.code), want)
			}
		}
	}
}

// times picks n times to ask for: −3, around the ends, and spread over the records, half of them a millisecond later.
func (p *Partition) times(n int) []int64 {
	out := []int64{-3, 0}
	records := p.visible()
	if latest := p.Latest(); latest.Timestamp >= 0 {
		out = append(out, latest.Timestamp, latest.Timestamp+1)
	}
	for i := 0; len(out) < n; i++ {
		ts := int64(i)
		if len(records) > 0 {
			ts = max(0, records[i*len(records)/n].Timestamp) + int64(i%2)
		}
		out = append(out, ts)
	}
	return out
}

// checkOffsets fetches at offsets spread over each partition: the first batch must be the one that holds the offset.
func (l *Ledger) checkOffsets(t testing.TB, c *Client) {
	t.Helper()
	const rounds = 8
	for i := range rounds {
		at := l.queries(func(p *Partition) int64 { return p.Start + (p.End-p.Start)*int64(i)/rounds })
		for topic, partitions := range c.fetch(t, at) {
			for id, answer := range partitions {
				p, offset := l.Partition(topic, id), at[topic][id]
				if err := p.checkFetched(offset, answer); err != nil {
					t.Errorf("%s: fetch %s at %d: %v", c.Addr, p.Name(), offset, err)
				}
			}
		}
	}
}

func (p *Partition) checkFetched(offset int64, answer kmsg.FetchResponseTopicPartition) error {
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return err
	}
	if answer.HighWatermark != p.End || answer.LogStartOffset != p.Start {
		return fmt.Errorf("high watermark %d, log start %d", answer.HighWatermark, answer.LogStartOffset)
	}
	if offset == p.End {
		return nil
	}
	h, _, _, err := record.NextEntry(answer.RecordBatches)
	if err != nil {
		return fmt.Errorf("%d bytes: %w", len(answer.RecordBatches), err)
	}
	if h.BaseOffset > offset && p.holds(offset) || h.LastOffset < offset {
		return fmt.Errorf("first batch holds offsets %d to %d", h.BaseOffset, h.LastOffset)
	}
	return nil
}

func (p *Partition) holds(offset int64) bool {
	_, ok := slices.BinarySearchFunc(p.Records, offset, func(r Record, o int64) int { return int(r.Offset - o) })
	return ok
}

// fetch asks each partition for a few bytes at an offset: the first batch comes whole.
func (c *Client) fetch(
	t testing.TB, at map[string]map[int32]int64,
) map[string]map[int32]kmsg.FetchResponseTopicPartition {
	t.Helper()
	out := make(map[string]map[int32]kmsg.FetchResponseTopicPartition)
	for topic, partitions := range at {
		out[topic] = make(map[int32]kmsg.FetchResponseTopicPartition)
		for p, offset := range partitions {
			out[topic][p] = c.FetchOne(t, topic, p, offset, 1, 0)
		}
	}
	return out
}

// FetchOne fetches from one partition without waiting.
func (c *Client) FetchOne(t testing.TB, topic string, partition int32, offset int64, maxBytes int32,
	isolation int8) kmsg.FetchResponseTopicPartition {
	t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.IsolationLevel, req.SessionEpoch = 1<<30, isolation, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = partition, offset, maxBytes, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	answer := Ask[*kmsg.FetchResponse](t, c, req)
	if answer.ErrorCode != 0 || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != 1 {
		t.Fatalf("%s: fetch %s-%d: error %d, %d topics", c.Addr, topic, partition, answer.ErrorCode, len(answer.Topics))
	}
	return answer.Topics[0].Partitions[0]
}

// checkEpochs asks for the end of every epoch from 0 to one behind the last.
func (l *Ledger) checkEpochs(t testing.TB, c *Client) {
	t.Helper()
	var last int32
	for _, p := range l.partitions {
		last = max(last, p.Epoch())
	}
	for epoch := range last + 2 {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID = -1
		for topic, partitions := range l.queries(func(*Partition) int64 { return 0 }) {
			rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
			rt.Topic = topic
			for p := range partitions {
				rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
				rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = p, -1, epoch
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
		}
		for _, topic := range Ask[*kmsg.OffsetForLeaderEpochResponse](t, c, req).Topics {
			for _, a := range topic.Partitions {
				p := l.Partition(topic.Topic, a.Partition)
				want, got := p.EpochEnd(epoch), EpochStart{a.LeaderEpoch, a.EndOffset}
				if a.ErrorCode != 0 || got != want {
					t.Errorf("%s: end of epoch %d of %s: %+v (%v), want %+v; epochs %v", c.Addr, epoch, p.Name(), got,
						kerr.ErrorForCode(a.ErrorCode), want, p.Epochs)
				}
			}
		}
	}
}
