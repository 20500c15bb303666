package groups

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// quick are settings by which consumer groups miss their members soon.
var quick = []string{"--set", "group.consumer.min.session.timeout.ms=1000",
	"--set", "group.consumer.session.timeout.ms=3000", "--set", "group.consumer.min.heartbeat.interval.ms=100",
	"--set", "group.consumer.heartbeat.interval.ms=200", "--set", "group.consumer.assignment.interval.ms=0"}

// consumers waits until a consumer group is settled with so many members, of whom some speak the classic protocol.
func (w *world) consumers(group string, n, classic int) {
	w.t.Helper()
	var last kmsg.ConsumerGroupDescribeResponseGroup
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		req := kmsg.NewPtrConsumerGroupDescribeRequest()
		req.Groups = []string{group}
		answer, err := req.RequestWith(context.Background(), w.client)
		if err != nil || len(answer.Groups) != 1 {
			continue
		}
		last = answer.Groups[0]
		state, old := "Stable", 0
		if n == 0 {
			state = "Empty"
		}
		for _, m := range last.Members {
			if m.MemberType == 0 {
				old++
			}
		}
		if last.State == state && len(last.Members) == n && old == classic {
			return
		}
	}
	w.t.Fatalf("group %s has not %d members, %d of them classic: %+v", group, n, classic, last)
}

// Consumers of the consumer protocol share a topic by either assignor: some leave, some die, some come back, and the
// broker is killed. Everything is read.
func TestConsumerProtocol(t *testing.T) {
	w := newWorld(t, quick...)
	balancers := map[string]kgo.GroupBalancer{"uniform": kgo.CooperativeStickyBalancer(), "range": kgo.RangeBalancer()}
	for group, b := range balancers {
		options := []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(b)}
		first := w.join(group, options...)
		w.join(group, append(options, kgo.InstanceID("static"))...)
		w.consumers(group, 2, 0)
		dies := w.join(group, options...)
		w.consumers(group, 3, 0)
		w.send(300)
		w.wait(group)
		first.leave()
		w.consumers(group, 2, 0)
		before := w.duplicates(group)
		dies.die()
		w.send(300)
		w.wait(group)
		w.consumers(group, 1, 0)
		if after := w.duplicates(group); after != before {
			t.Errorf("%d records were read again", after-before)
		}
		w.process.Kill(t)
		w.serve(quick...)
		w.join(group, options...)
		w.send(300)
		w.wait(group)
		w.consumers(group, 2, 0)
	}
}

// A group goes over to the consumer protocol member by member, and back, while it works.
func TestChangeOfProtocol(t *testing.T) {
	w := newWorld(t, quick...)
	old := []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}
	next := []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}
	a, b := w.join("g", old...), w.join("g", old...)
	w.members("g", 2)
	w.send(300)
	w.wait("g")
	c := w.join("g", next...)
	w.consumers("g", 3, 2)
	w.send(300)
	w.wait("g")
	a.leave()
	w.consumers("g", 2, 1)
	d := w.join("g", next...)
	w.consumers("g", 3, 1)
	b.leave()
	w.consumers("g", 2, 0)
	w.send(300)
	w.wait("g")
	w.join("g", old...)
	w.consumers("g", 3, 1)
	c.leave()
	w.consumers("g", 2, 1)
	w.send(300)
	w.wait("g")
	d.leave()
	w.members("g", 1)
	w.send(300)
	w.wait("g")
}
