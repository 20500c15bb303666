//go:build oracle

package groups

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// Kafka and Tidemark take turns on one directory while consumers of both protocols are at work: each finds the groups
// of the other as they were, with their members, and nothing is read twice or not at all.
func TestKafkaAndTidemarkTakeTurns(t *testing.T) {
	k := oracle.Get(t, oracle.Version)
	w := &world{t: t, dir: t.TempDir(), port: proc.FreePorts(t, 1)[0], read: map[string]map[string]int{}}
	kafka := func() {
		node := k.Start(t, oracle.NodeOptions{Dir: w.dir + "/data", Port: w.port})
		w.process, w.addr = node.Process, node.Addr
	}
	tidemark := func() { w.process, w.addr = proc.Serve(t, w.dir+"/data", w.port) }
	kafka()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w.client, w.admin = client, kadm.NewClient(client)
	if _, err := w.admin.CreateTopic(context.Background(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	long := kgo.SessionTimeout(patience)
	w.join("old", long)
	w.join("old", long, kgo.InstanceID("old"))
	w.members("old", 2)
	next := []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}
	w.join("next", next...)
	w.join("next", append(next, kgo.InstanceID("next"))...)
	w.consumers("next", 2, 0)
	w.send(300)
	w.wait("old")
	w.wait("next")
	before := w.membership()
	for i, take := range []func(){tidemark, kafka, tidemark} {
		w.process.Stop(t)
		take()
		w.send(300)
		w.wait("old")
		w.wait("next")
		if now := w.membership(); now != before {
			t.Errorf("turn %d: groups were\n%sand are\n%s", i, before, now)
		}
		if n := w.duplicates("old") + w.duplicates("next"); n > 0 {
			t.Errorf("turn %d: %d records were read twice", i, n)
		}
	}
}

// membership is who is in the groups, and of the new protocol at which epoch. Kafka tells members in the order of a
// hash table.
func (w *world) membership() string {
	var all []string
	for _, m := range w.describe("old") {
		all = append(all, "old "+m.MemberID+"\n")
	}
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = []string{"next"}
	answer, err := req.RequestWith(context.Background(), w.client)
	if err != nil {
		w.t.Fatal(err)
	}
	g := answer.Groups[0]
	for _, m := range g.Members {
		all = append(all, "next "+m.MemberID+" "+strconv.Itoa(int(m.MemberEpoch))+"\n")
	}
	slices.Sort(all)
	return g.State + "\n" + strings.Join(all, "")
}
