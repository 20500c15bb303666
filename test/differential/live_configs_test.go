//go:build oracle

package differential

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// live is a broker config that is changed while both run, and what shows that it works.
type live struct {
	key, value string
	perBroker  bool
	topic      []string // configs of the topic that try uses
	// try does what the config decides on, and compares; set says whether the config is set.
	try func(t *testing.T, topic string, set bool)
}

// testLiveConfigs sets configs of the cluster and of the broker, sees that they work at once, and takes them back.
func (w *world) testLiveConfigs(t *testing.T) {
	for _, l := range []live{
		{key: "message.max.bytes", value: "500", try: w.tryLarge},
		{key: "message.max.bytes", value: "500", topic: []string{"max.message.bytes", "5000"}, try: w.tryLarge},
		{key: "log.message.timestamp.type", value: "LogAppendTime", try: w.tryAppendTime},
		{key: "log.message.timestamp.before.max.ms", value: "1000", try: w.tryOld},
		{key: "log.cleanup.policy", value: "compact", try: w.tryNoKey},
		{key: "min.insync.replicas", value: "2", try: w.tryAcksAll},
		{key: "cordoned.log.dirs", value: "*", perBroker: true, try: w.tryCordoned},
		{key: "max.connections.per.ip", value: "3", try: w.tryConnections},
		{key: "max.connection.creation.rate", value: "1", try: w.tryCreationRate},
	} {
		t.Run(l.key, func(t *testing.T) { w.tryLive(t, l) })
	}
}

func (w *world) tryLive(t *testing.T, l live) {
	defer w.report.flush(t)
	topic := "live-" + l.key
	if l.topic != nil {
		topic += "-own"
	}
	w.create(t, topic, 1, l.topic...)
	l.try(t, topic, false)
	c := alterCase{kind: kmsg.ConfigResourceTypeBroker, ops: []configOp{{key: l.key, value: l.value}}}
	if l.perBroker {
		c.name = "1"
	}
	w.same(t, "set "+l.key, c.incremental(1))
	w.waitDynamic(t, c, true)
	l.try(t, topic, true)
	c.ops[0].op = remove
	if l.key == "min.insync.replicas" { // it cannot be taken away
		c.ops[0] = configOp{key: l.key, value: "1"}
	}
	w.same(t, "take back "+l.key, c.incremental(1))
	w.waitDynamic(t, c, l.key == "min.insync.replicas")
	l.try(t, topic, false)
}

// eventually compares when both answer as is expected of Kafka: it takes on changes of its configs a while after the
// answer.
func (w *world) eventually(t *testing.T, what string, ask request, expected func(kmsg.Response) bool,
	changes ...change,
) {
	t.Helper()
	for _, s := range w.sides {
		s.waitFor(t, what, func() bool {
			answer := s.ask(t, ask(s))
			return answer != nil && expected(answer)
		})
	}
	w.same(t, what, ask, changes...)
}

func produceCode(r kmsg.Response) int16 {
	return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode
}

// tryProduce appends a batch until it is answered with a code, and compares.
func (w *world) tryProduce(t *testing.T, topic string, acks int16, code int16, b batch) {
	t.Helper()
	w.eventually(t, topic, produce(9, topic, 0, acks, b.encode()),
		func(r kmsg.Response) bool { return produceCode(r) == code }, hideTimes, hide("BaseOffset", "LogAppendTime"))
}

func codeIf(set bool, code int16) int16 {
	if set {
		return code
	}
	return 0
}

func (w *world) tryLarge(t *testing.T, topic string, set bool) {
	own := topic == "live-message.max.bytes-own"
	w.tryProduce(t, topic, 1, codeIf(set && !own, 10), batch{records: []rec{{ts: base, value: make([]byte, 1000)}}})
}

func (w *world) tryAppendTime(t *testing.T, topic string, set bool) {
	ask := produce(9, topic, 0, 1, batch{records: some(1)}.encode())
	w.eventually(t, topic, ask, func(r kmsg.Response) bool {
		return r.(*kmsg.ProduceResponse).Topics[0].Partitions[0].LogAppendTime >= 0 == set
	}, hide("LogAppendTime", "BaseOffset"))
}

func (w *world) tryOld(t *testing.T, topic string, set bool) {
	w.tryProduce(t, topic, 1, codeIf(set, 32), batch{records: some(1)})
}

func (w *world) tryNoKey(t *testing.T, topic string, set bool) {
	w.tryProduce(t, topic, 1, codeIf(set, 87), batch{records: nullKeys(1)})
}

func (w *world) tryAcksAll(t *testing.T, topic string, _ bool) {
	w.tryProduce(t, topic, -1, 0, batch{records: some(1)}) // at most as many as there are replicas must be in sync
}

func (w *world) tryCordoned(t *testing.T, topic string, set bool) {
	dirs := func(*side) kmsg.Request {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.SetVersion(5)
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{}
		return req
	}
	w.eventually(t, topic, dirs, func(r kmsg.Response) bool {
		return r.(*kmsg.DescribeLogDirsResponse).Dirs[0].IsCordoned == set
	}, hide("Dir", "UsableBytes", "TotalBytes"))
	w.eventually(t, topic, func(*side) kmsg.Request {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.SetVersion(7)
		req.ValidateOnly, req.TimeoutMillis = true, 10_000
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = "live-cordoned-new", 1, 1
		req.Topics = append(req.Topics, rt)
		return req
	}, func(r kmsg.Response) bool {
		return r.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode != 0 == set
	}, hide("TopicID", "Configs"))
}

// tryConnections opens more connections than may be: one more than three is closed at once.
func (w *world) tryConnections(t *testing.T, _ string, set bool) {
	w.openMany(t, 6, set, func(answered bool, _ time.Duration) bool { return !answered })
}

// tryCreationRate opens more connections at once than may be: those above ten are answered one a second.
func (w *world) tryCreationRate(t *testing.T, _ string, set bool) {
	w.openMany(t, 12, set, func(answered bool, took time.Duration) bool {
		return answered && took > 400*time.Millisecond
	})
}

// openMany opens connections, one after the other, until one of them is limited, or none is.
func (w *world) openMany(t *testing.T, n int, want bool, limited func(answered bool, took time.Duration) bool) {
	for _, s := range w.sides {
		s.waitFor(t, "connections limited or not", func() bool {
			got := false
			var all []net.Conn
			for len(all) < n && !got {
				began := time.Now()
				c := s.bare(t)
				all = append(all, c)
				got = limited(answers(c), time.Since(began))
			}
			for _, c := range all {
				c.Close()
			}
			return got == want
		})
	}
}

// bare makes a connection besides the one that the tests use.
func (s *side) bare(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", s.Addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answers reports whether a connection answers ApiVersions.
func answers(c net.Conn) bool {
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), 1)
	if _, err := c.Write(frame); err != nil {
		return false
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(size[:])))
	return err == nil
}
