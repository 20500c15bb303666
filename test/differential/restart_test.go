//go:build oracle

package differential

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// restart stops both sides cleanly and starts them again over their directories, until the end of t.
func (w *world) restart(t *testing.T) {
	t.Helper()
	for _, s := range w.sides {
		s.Process.Stop(t)
		s.Server = s.Restart(t, s.Dir)
		s.conn = nil
		s.learnAddress(t)
	}
}

func (w *world) testBeforeRestart(t *testing.T) {
	w.create(t, "again", 2, "retention.ms", "-1", "flush.messages", "5")
	w.fill(t, "again")
}

// testAfterRestart is what clients see of leader epochs, which a restart raises, and that all else is as before.
func (w *world) testAfterRestart(t *testing.T) {
	for _, s := range w.sides {
		s.waitLed(t, "again", 2)
	}
	w.same(t, "leader epochs", metadata(12, []string{"again"}, false), hide("ClusterID"))
	w.same(t, "configs", describeConfigs(4, kmsg.ConfigResourceTypeTopic, "again"), byName)
	w.same(t, "quotas", describeQuotas(1, false), quotaOrder...)
	w.scramAfterRestart(t)
	w.same(t, "append", produce(11, "again", 0, -1, batch{records: some(2)}.encode()))
	for _, epoch := range []int32{-1, 0, 1, 2, 3, 9} {
		name := fmt.Sprintf("current epoch %d", epoch)
		for _, v := range []int16{9, 12, 13, 15, 16, 17, 18} {
			f := newFetch("again", 12)
			f.currentEpoch = epoch
			w.same(t, name, f.request(v))
		}
		for v := int16(4); v <= 11; v++ {
			for _, ts := range []int64{-1, -2, -3, base, base + 14_000} {
				w.same(t, fmt.Sprintf("%s, time %d", name, ts), listOffsets(v, -1, 0, "again", offsetQuery{0, ts, epoch}))
			}
		}
		for _, asked := range []int32{-1, 0, 1, 2, 3} {
			w.same(t, fmt.Sprintf("%s, end of %d", name, asked), epochEnd(4, "again", 0, epoch, asked))
			w.same(t, fmt.Sprintf("%s, end of %d in an empty one", name, asked), epochEnd(4, "again", 1, epoch, asked))
		}
	}
	for _, last := range []int32{0, 1, 2, 3} {
		for _, offset := range []int64{0, 3, 11, 12, 13, 14, 15} {
			f := newFetch("again", offset)
			f.lastFetched = last
			w.same(t, fmt.Sprintf("offset %d after epoch %d", offset, last), f.request(12))
		}
	}
}

func epochEnd(version int16, topic string, partition, current, epoch int32) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.SetVersion(version)
		req.ReplicaID = -1
		rt := kmsg.NewOffsetForLeaderEpochRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		rp.Partition, rp.CurrentLeaderEpoch, rp.LeaderEpoch = partition, current, epoch
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return req
	}
}
