package coordinator

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/group"
	"tidemark/internal/index"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
	"tidemark/vfs"
)

// BenchmarkCommits is one commit of an offset by each of 1, 10 and 100 consumers at once, all in one partition of
// __consumer_offsets on disk. A consumer commits again when it has its answer.
func BenchmarkCommits(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			groups := groupsOnDisk(b)
			defer groups.Close()
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { commitMany(b, groups, fmt.Sprint("g", i), b.N/n+1) })
			}
			all.Wait()
		})
	}
}

func commitMany(b *testing.B, groups *Groups, id string, times int) {
	answers := make(chan error, 1)
	for offset := range times {
		r := &group.CommitRequest{Group: id, Generation: -1, Version: 7, RetentionMs: -1, Topics: []group.CommitTopic{
			{Topic: "t", Partitions: []group.CommitPartition{{Offset: int64(offset), LeaderEpoch: -1, CommitMs: -1}}}}}
		groups.Commit(r, func(each []error, err error) {
			if err == nil {
				err = each[0]
			}
			answers <- err
		})
		if err := <-answers; err != nil {
			b.Error(err)
			return
		}
	}
}

// groupsOnDisk is a group coordinator over one partition in a directory of the operating system.
func groupsOnDisk(b *testing.B) *Groups {
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	image := testImage(b, map[string]int{OffsetsTopic: 1})
	set, err := logdir.Open(logdir.Options{FS: vfs.OS(), Dirs: []string{b.TempDir()},
		Settings: logdir.DefaultSettings(), Clock: time.Now, NewID: func() [16]byte { return [16]byte{15: 1} },
		Scheduler: idle{}, Files: index.NewFileCache(vfs.OS(), 64), Pages: index.NewCache(1 << 20)})
	check(err)
	check(set.Format("test", 1))
	check(set.Load(context.Background(), func(checkpoint.TopicPartition, [16]byte) logdir.Assignment {
		return logdir.Assignment{Assigned: true, Config: commitlog.DefaultConfig()}
	}))
	loaded := make(chan struct{}, 1)
	groups := NewGroups(GroupsOptions{
		Machine: group.Options{Config: func() group.Config {
			return group.Config{MetadataMaxBytes: 4096, RetentionMs: 1 << 40, ConsumerAssignors: []string{"uniform"}}
		}},
		Image: func() *metadata.Image { return image }, Clock: time.Now, Timer: replica.RealTimer, ExpireEvery: time.Hour,
		WriteTimeout: 5 * time.Second, Loaded: func(int32, int, time.Duration) { loaded <- struct{}{} },
	})
	replicas := replica.NewManager(replica.Options{NodeID: 1, Dirs: set, Timer: replica.RealTimer,
		TopicConfig: func(*metadata.Image, string) replica.TopicConfig {
			return replica.TopicConfig{Log: commitlog.DefaultConfig(), MinInSyncReplicas: 1}
		},
		Leadership: groups.Leadership})
	check(replicas.Apply(metadata.FullDelta(image)))
	<-loaded
	return groups
}
