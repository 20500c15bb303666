// Package groups runs consumers as applications do, with a stock client, against the program: they share topics, come
// and go, die, and outlive the broker.
package groups

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

const (
	topic      = "shared"
	partitions = 6
	patience   = 60 * time.Second
)

// world is a broker with a topic, and what consumers have read of it.
type world struct {
	t       *testing.T
	addr    string
	dir     string
	port    int
	process *proc.Process
	admin   *kadm.Client
	client  *kgo.Client
	sent    int

	mu   sync.Mutex
	read map[string]map[string]int // group → record → times
}

func newWorld(t *testing.T, settings ...string) *world {
	w := &world{t: t, dir: t.TempDir(), port: proc.FreePorts(t, 1)[0], read: map[string]map[string]int{}}
	w.serve(settings...)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w.client, w.admin = client, kadm.NewClient(client)
	if _, err := w.admin.CreateTopic(context.Background(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) serve(settings ...string) {
	settings = append([]string{"--set", "group.initial.rebalance.delay.ms=100",
		"--set", "offsets.topic.num.partitions=3"}, settings...)
	w.process, w.addr = proc.Serve(w.t, w.dir, w.port, settings...)
}

// send produces n records, each with a number of its own.
func (w *world) send(n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range n {
		r := &kgo.Record{Topic: topic, Value: fmt.Append(nil, w.sent), Key: fmt.Append(nil, w.sent)}
		w.sent++
		w.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			if err != nil {
				w.t.Errorf("produce: %v", err)
			}
		})
	}
	if err := w.client.Flush(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// consumer is one member of a group.
type consumer struct {
	client *kgo.Client
	cut    *cutter
	stop   context.CancelFunc
	done   chan struct{}
}

// join starts a member that reads the topic and commits what it has read.
func (w *world) join(group string, options ...kgo.Opt) *consumer {
	w.t.Helper()
	c := &consumer{cut: &cutter{}, done: make(chan struct{})}
	all := append([]kgo.Opt{kgo.SeedBrokers(w.addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.DisableAutoCommit(), kgo.Dialer(c.cut.dial),
		kgo.RetryTimeout(5 * time.Second)}, options...)
	client, err := kgo.NewClient(all...)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c.client, c.stop = client, stop
	go func() {
		defer close(c.done)
		for ctx.Err() == nil {
			w.note(group, client.PollFetches(ctx))
			if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
				w.t.Logf("%s: commit: %v", group, err) // as during a rebalance
			}
		}
	}()
	w.t.Cleanup(c.leave)
	return c
}

// leave ends a member in good order.
func (c *consumer) leave() {
	c.stop()
	<-c.done
	c.client.Close()
}

// die ends a member without a word: its connections are cut and it gets no new ones.
func (c *consumer) die() {
	c.cut.cut()
	c.stop()
	<-c.done
}

// cutter makes connections and cuts them.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
	off   bool
}

var errCut = errors.New("cut off")

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return nil, errCut
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	for _, conn := range c.conns {
		conn.Close()
	}
}

func (w *world) note(group string, fetches kgo.Fetches) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.read[group] == nil {
		w.read[group] = map[string]int{}
	}
	fetches.EachRecord(func(r *kgo.Record) { w.read[group][string(r.Value)]++ })
}

// wait waits until a group has read all that was sent and committed it.
func (w *world) wait(group string) {
	w.t.Helper()
	var missing int
	var lag int64
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		w.mu.Lock()
		missing = w.sent - len(w.read[group])
		w.mu.Unlock()
		if missing > 0 {
			continue
		}
		if lag = w.lag(group); lag == 0 {
			return
		}
	}
	w.t.Fatalf("group %s: %d records not read, lag %d; broker:\n%s", group, missing, lag, proc.Tail(w.process.Log(), 30))
}

// lag is how many records are not committed; -1 when that cannot be told now.
func (w *world) lag(group string) int64 {
	ctx := context.Background()
	committed, err := w.admin.FetchOffsets(ctx, group)
	if err != nil || committed.Error() != nil {
		return -1
	}
	ends, err := w.admin.ListEndOffsets(ctx, topic)
	if err != nil || ends.Error() != nil {
		return -1
	}
	lag := int64(0)
	ends.Each(func(end kadm.ListedOffset) {
		c, _ := committed.Lookup(topic, end.Partition)
		lag += end.Offset - c.At
	})
	return lag
}

// members waits until a group is settled with so many members.
func (w *world) members(group string, n int) {
	w.t.Helper()
	var state string
	var have int
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		described, err := w.admin.DescribeGroups(context.Background(), group)
		if err != nil {
			continue
		}
		state, have = described[group].State, len(described[group].Members)
		if state == "Stable" && have == n || n == 0 && state == "Empty" {
			return
		}
	}
	w.t.Fatalf("group %s: %s with %d members, not %d", group, state, have, n)
}

// duplicates are the records that a group has read more than once.
func (w *world) duplicates(group string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, times := range w.read[group] {
		if times > 1 {
			n++
		}
	}
	return n
}

// Consumers of every assignor share a topic; one leaves, another comes.
func TestConsumersShareATopic(t *testing.T) {
	w := newWorld(t)
	balancers := []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.RoundRobinBalancer(), kgo.StickyBalancer(),
		kgo.CooperativeStickyBalancer()}
	for _, b := range balancers {
		group, option := b.ProtocolName(), kgo.Balancers(b)
		first := w.join(group, option)
		w.join(group, option)
		w.members(group, 2)
		w.join(group, option)
		w.members(group, 3)
		first.leave()
		w.members(group, 2)
	}
	w.send(300)
	for _, b := range balancers {
		w.wait(b.ProtocolName())
	}
}

// A member that dies is missed after its session, and its partitions go to the others. What it had committed is not
// read again.
func TestMemberDies(t *testing.T) {
	w := newWorld(t)
	stays, dies := w.join("g"), w.join("g")
	w.members("g", 2)
	w.send(300)
	w.wait("g")
	before := w.duplicates("g")
	dies.die()
	w.send(300)
	w.wait("g")
	w.members("g", 1)
	if after := w.duplicates("g"); after != before {
		t.Errorf("%d records were read again", after-before)
	}
	stays.leave()
	w.members("g", 0)
}

// Members go on after the broker was killed: same members, same offsets.
func TestBrokerDies(t *testing.T) {
	w := newWorld(t)
	w.join("g")
	w.join("g", kgo.InstanceID("static"))
	w.members("g", 2)
	w.send(300)
	w.wait("g")
	w.process.Kill(t)
	w.serve()
	w.send(300)
	w.wait("g")
	w.members("g", 2)
}

// A static member that comes back within its session finds its place: there is no rebalance.
func TestStaticMemberComesBack(t *testing.T) {
	w := newWorld(t)
	memberID := func() string {
		for _, m := range w.describe("g") {
			if m.InstanceID != nil && *m.InstanceID == "stays" {
				return m.MemberID
			}
		}
		return "none"
	}
	w.join("g", kgo.InstanceID("stays"))
	comes := w.join("g", kgo.InstanceID("comes"))
	w.members("g", 2)
	id := memberID()
	comes.die()
	w.join("g", kgo.InstanceID("comes"))
	w.send(300)
	w.wait("g")
	w.members("g", 2)
	if now := memberID(); now != id {
		t.Errorf("the other member became %s, was %s", now, id)
	}
}

func (w *world) describe(group string) []kadm.DescribedGroupMember {
	described, err := w.admin.DescribeGroups(context.Background(), group)
	if err != nil {
		w.t.Fatal(err)
	}
	return described[group].Members
}
