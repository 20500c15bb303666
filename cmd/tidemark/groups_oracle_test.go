//go:build oracle

package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/oracle"
)

// TestConsumerGroupsAgainstKafka compares the tool of consumer groups with Kafka's: groups without members, a group
// of each protocol with members, and what is refused.
func TestConsumerGroupsAgainstKafka(t *testing.T) {
	kafka := oracle.Get(t, oracle.Version)
	node := kafka.Start(t, oracle.NodeOptions{})
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "one.csv"), []byte("demo-b,0,2\ndemo-b,1,100\ndemo-a,0,0\n"))
	mustWrite(t, filepath.Join(dir, "own.csv"), []byte("mine1-g,demo-b,0,2\nmine2-g,demo-b,0,2\nother,demo-b,1,1\n"))
	mustWrite(t, filepath.Join(dir, "bad.csv"), []byte("demo-b,zero,2\n"))
	lines := script(t, "groups.tsv", node.Addr)
	var before, after [][2]string
	for i, line := range lines {
		if line[0] == "members" {
			before, after = lines[:i], lines[i+1:]
		}
	}
	runScript(t, kafka, before, dir)
	classic := kgo.WithContext(context.Background())
	//nolint:staticcheck // the client reads this key
	newer := kgo.WithContext(context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true))
	startMember(t, node.Addr, "live", classic, kgo.Balancers(kgo.RangeBalancer()), kgo.ClientID("first"))
	startMember(t, node.Addr, "live", classic, kgo.Balancers(kgo.RangeBalancer()), kgo.ClientID("second"))
	startMember(t, node.Addr, "static", classic, kgo.InstanceID("an-instance"), kgo.ClientID("a-client-with-a-long-name"))
	startMember(t, node.Addr, "newer", newer, kgo.ClientID("third"))
	awaitGroups(t, node.Addr, map[string]int{"live": 2, "static": 1}, "newer")
	runScript(t, kafka, after, dir)
}

// startMember consumes demo-b as a member of a group until the end of the test.
func startMember(t *testing.T, addr, group string, options ...kgo.Opt) {
	t.Helper()
	all := append([]kgo.Opt{kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics("demo-b"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit()}, options...)
	client, err := kgo.NewClient(all...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx)
			if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
				t.Logf("%s: commit: %v", group, err)
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		client.Close()
	})
}

// awaitGroups waits until the groups are settled, classic ones with so many members and the newer one, and all records
// of demo-b are committed in each.
func awaitGroups(t *testing.T, addr string, classic map[string]int, newer string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	settled := func() bool {
		groups, err := admin.DescribeGroups(ctx, slices.Collect(maps.Keys(classic))...)
		for name, members := range classic {
			if g := groups[name]; err != nil || g.State != "Stable" || len(g.Members) != members {
				return false
			}
		}
		groupsOfNewer, err := admin.DescribeConsumerGroups(ctx, newer)
		return err == nil && groupsOfNewer[newer].State == "Stable" && len(groupsOfNewer[newer].Members) == 1
	}
	committed := func(group string) bool {
		offsets, err := admin.FetchOffsets(ctx, group)
		ends, errOfEnds := admin.ListEndOffsets(ctx, "demo-b")
		if err != nil || errOfEnds != nil {
			return false
		}
		all := true
		ends.Each(func(end kadm.ListedOffset) {
			at, _ := offsets.Lookup("demo-b", end.Partition)
			all = all && (end.Offset == 0 || at.At == end.Offset)
		})
		return all
	}
	names := append(slices.Collect(maps.Keys(classic)), newer)
	for !settled() || slices.ContainsFunc(names, func(name string) bool { return !committed(name) }) {
		if ctx.Err() != nil {
			t.Fatal("the groups are not settled")
		}
		time.Sleep(50 * time.Millisecond)
	}
}
