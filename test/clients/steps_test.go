//go:build oracle

package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/record"
)

// run is one client on its way through the matrix.
type run struct {
	*world
	*driver
	client  client
	version string
	saw     map[column][]string // what went well
}

// topic is a name that no other client uses.
func (r *run) topic(name string) string { return r.client.name + "-" + name }

// create makes topics through the client.
func (r *run) create(t *testing.T, partitions int, names ...string) {
	t.Helper()
	for _, name := range names {
		r.call(t, request{Do: "create", Topic: r.topic(name), Partitions: partitions})
		r.judge.waitTopic(t, r.topic(name), partitions)
	}
}

// values are n values that begin with a name, long enough that every codec makes them shorter.
func values(name string, from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%s %d %s", name, i, strings.Repeat("the same again ", 20)))
	}
	return all
}

// short cuts the filling off.
func short(value string) string {
	value, _, _ = strings.Cut(value, " the same")
	return value
}

// pollUntil polls a consumer until it has read all that is wanted.
func (r *run) pollUntil(t *testing.T, id string, enough func(all []seen) bool) (all []seen) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		all = append(all, r.call(t, request{Do: "poll", ID: id}).Records...)
		if enough(all) {
			return all
		}
	}
	t.Fatalf("consumer %s waits for more than %d records; its log:\n%s", id, len(all), r.log())
	return nil
}

func atLeast(n int) func([]seen) bool {
	return func(all []seen) bool { return len(all) >= n }
}

func valuesOf(records []seen) (all []string) {
	for _, r := range records {
		all = append(all, r.Value)
	}
	return all
}

// topics are made, listed and deleted.
func (r *run) topics(t *testing.T) {
	r.create(t, 3, "kept", "gone")
	r.waitListed(t, r.topic("gone"), true)
	r.call(t, request{Do: "delete", Topic: r.topic("gone")})
	r.waitListed(t, r.topic("gone"), false)
	r.waitListed(t, r.topic("kept"), true)
	if _, err := r.try(t, request{Do: "create", Topic: r.topic("kept"), Partitions: 3}); err == nil {
		t.Error("a topic is made twice without an error")
	}
}

func (r *run) waitListed(t *testing.T, topic string, want bool) {
	t.Helper()
	var listed []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		listed = r.call(t, request{Do: "list"}).Topics
		if slices.Contains(listed, topic) == want {
			return
		}
	}
	t.Fatalf("%s is in %q: want %v", topic, listed, want)
}

// codec produces with a codec, which the log must show, and reads it back.
func (r *run) codec(t *testing.T, codec string) {
	topic, sent := "codec-"+codec, values(codec, 0, 20)
	r.create(t, 1, topic)
	topic = r.topic(topic)
	r.call(t, request{Do: "producer", ID: topic, Codec: codec})
	r.call(t, request{Do: "produce", ID: topic, Topic: topic, Values: sent})
	r.call(t, request{Do: "close", ID: topic})
	r.call(t, request{Do: "consumer", ID: topic, Group: topic, Topics: []string{topic}})
	if got := valuesOf(r.pollUntil(t, topic, atLeast(len(sent)))); !slices.Equal(got, sent) {
		t.Errorf("read %q, sent %q", got, sent)
	}
	r.call(t, request{Do: "close", ID: topic})
	want, _ := record.ParseCodec(codec)
	for _, b := range r.judge.batches(t, topic) {
		if got := b.Header().Codec(); got != want {
			t.Errorf("the log holds a batch of codec %v, want %v", got, want)
		}
	}
}

// idempotent produces with sequence numbers, which the log must show without a gap.
func (r *run) idempotent(t *testing.T) {
	topic := r.topic("idempotent")
	r.create(t, 1, "idempotent")
	r.call(t, request{Do: "producer", ID: topic, Idempotent: true})
	for i := range 5 {
		r.call(t, request{Do: "produce", ID: topic, Topic: topic, Values: values("i", 10*i, 10*i+10)})
	}
	r.call(t, request{Do: "close", ID: topic})
	next := int32(0)
	for _, b := range r.judge.batches(t, topic) {
		h := b.Header()
		if h.ProducerID < 0 || h.BaseSequence != next {
			t.Errorf("batch of producer %d with sequence %d, want %d", h.ProducerID, h.BaseSequence, next)
		}
		next += h.Count
	}
	if next != 50 {
		t.Errorf("%d records, want 50", next)
	}
}

// byTime looks offsets up by time.
func (r *run) byTime(t *testing.T) {
	base := time.Now().Add(-time.Hour).UnixMilli() // older records would soon be deleted
	topic := r.topic("time")
	r.create(t, 1, "time")
	var times []int64
	for i := range 10 {
		times = append(times, base+1000*int64(i))
	}
	r.call(t, request{Do: "producer", ID: topic})
	r.call(t, request{Do: "produce", ID: topic, Topic: topic, Values: values("time", 0, 10), Times: times})
	r.call(t, request{Do: "close", ID: topic})
	for _, c := range []struct{ time, want int64 }{{0, 0}, {base, 0}, {base + 1, 1}, {base + 3500, 4}, {base + 9000, 9}} {
		if got := r.call(t, request{Do: "time", Topic: topic, Time: c.time}).Offset; got != c.want {
			t.Errorf("the offset at base + %d is %d, want %d", c.time-base, got, c.want)
		}
	}
	got := r.call(t, request{Do: "time", Topic: topic, Time: base + 9001}).Offset
	if got != -1 && got != 10 { // some clients tell the end where there is none
		t.Errorf("the offset after the last record is %d", got)
	}
}

// transactions commits, aborts, is fenced, and reads with both isolation levels.
func (r *run) transactions(t *testing.T) {
	topic := r.topic("transactions")
	r.create(t, 1, "transactions")
	open := func(id string) { r.call(t, request{Do: "producer", ID: id, Transactional: topic}) }
	produce := func(id string, values ...string) {
		r.call(t, request{Do: "begin", ID: id})
		r.call(t, request{Do: "produce", ID: id, Topic: topic, Values: values})
	}
	end := func(id string, commit bool) { r.call(t, request{Do: "end", ID: id, Commit: commit}) }
	first, second := topic+"-1", topic+"-2"
	open(first)
	produce(first, "a", "b")
	end(first, true)
	produce(first, "x")
	end(first, false)
	produce(first, "y")
	open(second)
	produce(second, "c")
	end(second, true)
	if _, err := r.try(t, request{Do: "end", ID: first, Commit: true}); err == nil {
		t.Error("the first producer is not told that it is fenced")
	}
	produce(second, "end")
	end(second, true)
	r.call(t, request{Do: "close", ID: second})
	for name, c := range map[string]struct {
		level kgo.IsolationLevel
		want  []string
	}{
		"committed":   {kgo.ReadCommitted(), []string{"a", "b", "c", "end"}},
		"uncommitted": {kgo.ReadUncommitted(), []string{"a", "b", "x", "y", "c", "end"}},
	} {
		id := topic + "-" + name
		r.call(t, request{Do: "consumer", ID: id, Group: id, Topics: []string{topic}, Committed: name == "committed"})
		all := r.pollUntil(t, id, func(all []seen) bool { return slices.Contains(valuesOf(all), "end") })
		if got := valuesOf(all); !slices.Equal(got, c.want) {
			t.Errorf("%s: read %q, want %q", name, got, c.want)
		}
		r.call(t, request{Do: "close", ID: id})
		if got := r.judge.values(t, r.addr, topic, c.level); !slices.Equal(got, c.want) {
			t.Errorf("%s: franz-go reads %q, want %q", name, got, c.want)
		}
	}
}

// copyInTransactions consumes, produces and commits offsets in transactions, by two clients one after the other.
func (r *run) copyInTransactions(t *testing.T) {
	from, to, group := r.topic("from"), r.topic("to"), r.topic("copy")
	r.create(t, 1, "from", "to")
	sent := values("copied", 0, 20)
	r.call(t, request{Do: "producer", ID: from})
	r.call(t, request{Do: "produce", ID: from, Topic: from, Values: sent})
	r.call(t, request{Do: "close", ID: from})
	for range 2 {
		r.call(t, request{Do: "copy", Group: group, Transactional: group, From: from, Topic: to, Count: 10})
	}
	if got := r.judge.values(t, r.addr, to, kgo.ReadCommitted()); !slices.Equal(got, sent) {
		t.Errorf("copied %q, want %q", got, sent)
	}
	if got := r.judge.committed(t, group, from, 0); got != 20 {
		t.Errorf("the group's offset is %d, want 20", got)
	}
}

// offsets commits, and a new consumer of the group goes on there. A producer and a member of another group stay.
func (r *run) offsets(t *testing.T) {
	topic := r.topic("offsets")
	r.create(t, 1, "offsets")
	r.call(t, request{Do: "producer", ID: "stays", Idempotent: r.client.idempotent})
	r.call(t, request{Do: "produce", ID: "stays", Topic: topic, Values: values("o", 0, 30)})
	for i, next := range []int64{10, 20} {
		id := fmt.Sprintf("%s-%d", topic, i)
		r.resume(t, id, next-10, 30)
		r.call(t, request{Do: "commit", ID: id, Topic: topic, Offset: next})
		r.call(t, request{Do: "close", ID: id})
		if got := r.judge.committed(t, topic, topic, 0); got != next {
			t.Errorf("the group's offset is %d, want %d", got, next)
		}
	}
	r.call(t, request{Do: "consumer", ID: "member", Group: topic + "-member", Topics: []string{topic}})
	r.pollUntil(t, "member", atLeast(30))
	r.call(t, request{Do: "commit", ID: "member", Topic: topic, Offset: 30})
}

// resume starts a consumer of the group, whose records must be those from one offset to before another.
func (r *run) resume(t *testing.T, id string, from, to int64) {
	t.Helper()
	topic := r.topic("offsets")
	r.call(t, request{Do: "consumer", ID: id, Group: topic, Topics: []string{topic}})
	for i, rec := range r.pollUntil(t, id, atLeast(int(to-from))) {
		if want := from + int64(i); rec.Offset != want || short(rec.Value) != fmt.Sprintf("o %d", want) {
			t.Fatalf("%s reads %q at %d, want %d", id, short(rec.Value), rec.Offset, want)
		}
	}
}

// afterKill goes on after the broker was killed: with those that stayed, and a new consumer at the committed offset.
func (r *run) afterKill(t *testing.T) {
	topic := r.topic("offsets")
	r.call(t, request{Do: "produce", ID: "stays", Topic: topic, Values: values("o", 30, 40)})
	all := r.pollUntil(t, "member", func(all []seen) bool {
		return len(all) > 0 && all[len(all)-1].Offset >= 39
	})
	for _, rec := range all {
		if want := fmt.Sprintf("o %d", rec.Offset); r.client.idempotent && short(rec.Value) != want {
			t.Errorf("the member reads %q at %d", short(rec.Value), rec.Offset)
		}
	}
	for i := 0; ; i++ { // some clients tell of a coordinator that is not ready yet instead of trying again
		if _, err := r.try(t, request{Do: "commit", ID: "member"}); err == nil {
			break
		} else if i == 100 {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got := r.judge.committed(t, topic+"-member", topic, 0); got < 40 {
		t.Errorf("the member's offset is %d, want 40", got)
	}
	r.resume(t, "after", 20, 40)
	r.call(t, request{Do: "commit", ID: "after", Topic: topic, Offset: 40})
	if got := r.judge.committed(t, topic, topic, 0); got != 40 {
		t.Errorf("the group's offset is %d, want 40", got)
	}
	for _, id := range []string{"stays", "member", "after"} {
		r.call(t, request{Do: "close", ID: id})
	}
}
