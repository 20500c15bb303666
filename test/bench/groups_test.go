//go:build oracle

package bench

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/test/proc"
)

// BenchmarkRebalance is the time from the moment that all members of a classic group begin to join again until the
// last has its assignment. Run it with -benchtime 5x.
func BenchmarkRebalance(b *testing.B) {
	for _, c := range contenders(b, nil) {
		b.Run(c.name, func(b *testing.B) {
			p, addr := c.onFreePort(b, filepath.Join(b.TempDir(), "data"))
			createT(b, addr, nil)
			for _, n := range []int{10, 100, 1000} {
				b.Run(strconv.Itoa(n), func(b *testing.B) { rebalances(b, addr, fmt.Sprint("g", n), n) })
			}
			p.Stop(b)
		})
	}
}

// groupMember is a member of a classic group.
type groupMember struct {
	link  *wire
	group string
	id    string
	round int
}

func rebalances(b *testing.B, addr, group string, n int) {
	awaitCoordinator(b, addr, group)
	members := make([]*groupMember, n)
	for i := range members {
		members[i] = &groupMember{link: dial(b, addr), group: group}
	}
	all := func() {
		var done sync.WaitGroup
		for _, m := range members {
			done.Go(func() {
				if err := m.rejoin(); err != nil {
					b.Error(err)
				}
			})
		}
		done.Wait()
	}
	all()
	for b.Loop() {
		all()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/rebalance")
}

// rejoin joins with a subscription that is other than the last time, until the generation has its assignment.
func (m *groupMember) rejoin() error {
	m.round++
	for {
		joined, err := m.join()
		if err != nil {
			return err
		}
		again, err := m.sync(joined)
		if err != nil || !again {
			return err
		}
	}
}

func (m *groupMember) join() (*kmsg.JoinGroupResponse, error) {
	for {
		r := kmsg.NewPtrJoinGroupRequest()
		r.SetVersion(5)
		r.Group, r.MemberID, r.ProtocolType = m.group, m.id, "consumer"
		r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = 60_000, 60_000
		metadata := fmt.Appendf([]byte("\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x08"), "%08d", m.round)
		r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: metadata}}
		answer, err := ask[*kmsg.JoinGroupResponse](m.link, r)
		if err != nil {
			return nil, err
		}
		m.id = cmp.Or(answer.MemberID, m.id)
		switch answer.ErrorCode {
		case 0:
			return answer, nil
		case 79, 27: // the id is given out; a rebalance
		default:
			return nil, fmt.Errorf("join: error %d", answer.ErrorCode)
		}
	}
}

// sync asks for the assignment; again says that the next rebalance has begun.
func (m *groupMember) sync(joined *kmsg.JoinGroupResponse) (again bool, err error) {
	r := kmsg.NewPtrSyncGroupRequest()
	r.SetVersion(3)
	r.Group, r.MemberID, r.Generation = m.group, m.id, joined.Generation
	for _, one := range joined.Members {
		r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: one.MemberID,
			MemberAssignment: []byte("\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")})
	}
	answer, err := ask[*kmsg.SyncGroupResponse](m.link, r)
	switch {
	case err != nil:
		return false, err
	case answer.ErrorCode == 27:
		return true, nil
	case answer.ErrorCode != 0:
		return false, fmt.Errorf("sync: error %d", answer.ErrorCode)
	}
	return false, nil
}

// awaitCoordinator waits until the coordinator of a group answers.
func awaitCoordinator(b *testing.B, addr, group string) {
	b.Helper()
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.SetVersion(3)
	find.CoordinatorKey = group
	until(b, addr, find, func(r *kmsg.FindCoordinatorResponse) int16 { return r.ErrorCode })
	until(b, addr, fetchOffset(group), func(r *kmsg.OffsetFetchResponse) int16 { return r.ErrorCode })
}

func fetchOffset(group string) *kmsg.OffsetFetchRequest {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.SetVersion(5)
	r.Group = group
	r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	return r
}

// commitOffsets commits one offset for each of some partitions of a topic.
func commitOffsets(group, topic string, partitions int, offset int64) *kmsg.OffsetCommitRequest {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.SetVersion(7)
	r.Group, r.Generation = group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	for p := range partitions {
		one := kmsg.NewOffsetCommitRequestTopicPartition()
		one.Partition, one.Offset = int32(p), offset
		t.Partitions = append(t.Partitions, one)
	}
	r.Topics = append(r.Topics, t)
	return r
}

func commit(w *wire, r *kmsg.OffsetCommitRequest) error {
	answer, err := ask[*kmsg.OffsetCommitResponse](w, r)
	if err == nil && answer.Topics[0].Partitions[0].ErrorCode != 0 {
		err = fmt.Errorf("commit: error %d", answer.Topics[0].Partitions[0].ErrorCode)
	}
	return err
}

// BenchmarkOffsetCommits is how many commits of one offset are answered per second to 1, 100 and 1 000 consumers at
// once, each in a group of its own. Run it with -benchtime 1x.
func BenchmarkOffsetCommits(b *testing.B) { atOnce(b, offsetsPerSecond) }

func offsetsPerSecond(b *testing.B, addr string, n int) float64 {
	var done sync.WaitGroup
	var stopped atomic.Bool
	var commits atomic.Int64
	links := make([]*wire, n)
	for i := range links {
		links[i] = dial(b, addr)
		awaitCoordinator(b, addr, fmt.Sprintf("%d-%d", n, i))
	}
	for i, l := range links {
		group := fmt.Sprintf("%d-%d", n, i)
		done.Go(func() {
			for offset := int64(0); !stopped.Load(); offset++ {
				if err := commit(l, commitOffsets(group, "t", 1, offset)); err != nil {
					b.Errorf("%s: %v", group, err)
					return
				}
				commits.Add(1)
			}
		})
	}
	time.Sleep(warmTime)
	before, start := commits.Load(), time.Now()
	time.Sleep(commitTime)
	count, took := commits.Load()-before, time.Since(start)
	stopped.Store(true)
	done.Wait()
	return float64(count) / took.Seconds()
}

const (
	loadedCommits    = 1_000_000
	loadedPartitions = 100
)

// BenchmarkLoadGroups is the time from the start of the process until a group answers whose partition of
// __consumer_offsets holds a million commits; also, of the same starts, until one answers whose partition is empty.
func BenchmarkLoadGroups(b *testing.B) {
	for _, c := range contenders(b, nil) {
		b.Run(c.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "data")
			port := proc.FreePorts(b, 1)[0]
			addr := loopback(port)
			p := c.start(b, dir, port)
			createT(b, addr, nil)
			awaitCoordinator(b, addr, "loaded")
			create := kmsg.NewPtrCreatePartitionsRequest()
			create.TimeoutMillis = 30_000
			create.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "t", Count: loadedPartitions}}
			until(b, addr, create, func(*kmsg.CreatePartitionsResponse) int16 { return 0 })
			l := dial(b, addr)
			for i := range loadedCommits / loadedPartitions {
				err := commit(l, commitOffsets("loaded", "t", loadedPartitions, int64(i)))
				for attempt := 0; err != nil && i == 0 && attempt < 100; attempt++ {
					time.Sleep(100 * time.Millisecond)
					err = commit(l, commitOffsets("loaded", "t", loadedPartitions, int64(i)))
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			p.Stop(b)
			var empty time.Duration
			for b.Loop() {
				start := time.Now()
				p = c.start(b, dir, port)
				awaitCoordinator(b, addr, "empty")
				empty += time.Since(start)
				awaitCoordinator(b, addr, "loaded")
				b.StopTimer()
				p.Stop(b)
				b.StartTimer()
			}
			b.ReportMetric(float64(empty.Milliseconds())/float64(b.N), "ms/empty-group")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/loaded-group")
		})
	}
}
