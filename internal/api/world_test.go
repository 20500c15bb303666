package api

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/auth"
	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/controller"
	"tidemark/internal/index"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
	"tidemark/internal/replica"
	"tidemark/record"
	"tidemark/vfs"
)

const (
	self     = 1
	other    = 2
	baseTime = 1790214409427
)

// world is a broker in memory, without a server and without a controller: its metadata is what the test replays.
type world struct {
	*API
	t      testing.TB
	loader *metadata.Loader
	image  *metadata.Image
	offset int64
	conn   *protocol.Conn
	// timers are the timers of waiting requests; they go off when the test says so.
	timers []func()
}

// Image makes world a Metadata.
func (w *world) Image() *metadata.Image { return w.image }

// Submit makes world a Metadata; no command is expected.
func (w *world) Submit(context.Context, controller.Command, auth.Principal) (any, error) {
	w.t.Fatal("unexpected command")
	return nil, nil
}

// idle is a scheduler that runs nothing.
type idle struct{}

func (idle) Background(func())                          {}
func (idle) After(time.Duration, func())                {}
func (idle) Every(time.Duration, time.Duration, func()) {}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, image: metadata.NewImage(), conn: &protocol.Conn{ID: 1, Listener: "PLAINTEXT",
		Remote: netip.MustParseAddrPort("127.0.0.1:9")}}
	w.loader = metadata.NewLoader(w.image)
	clock := func() time.Time { return time.UnixMilli(baseTime) }
	fsys := vfs.NewMem()
	dirs, err := logdir.Open(logdir.Options{FS: fsys, Dirs: []string{"/data"}, Settings: logdir.DefaultSettings(),
		Clock: clock, NewID: func() [16]byte { return [16]byte{9} }, Scheduler: idle{},
		Files: index.NewFileCache(fsys, 1000), Pages: index.NewCache(1 << 20)})
	w.must(err)
	w.must(dirs.Format("cluster", self))
	w.must(dirs.Load(context.Background(), func(checkpoint.TopicPartition, [16]byte) logdir.Assignment {
		return logdir.Assignment{Config: commitlog.DefaultConfig()}
	}))
	t.Cleanup(func() { _ = dirs.Close(0) })
	props := map[string]string{"node.id": "1", "log.dirs": "/data", "listeners": "PLAINTEXT://127.0.0.1:9092," +
		"CONTROLLER://127.0.0.1:9093", "controller.quorum.voters": "1@127.0.0.1:9093"}
	config.FillStandalone(props)
	node, err := config.NewNode(props)
	w.must(err)
	replicas := replica.NewManager(replica.Options{NodeID: self, Dirs: dirs, Timer: w.timer,
		TopicConfig: func(*metadata.Image, string) replica.TopicConfig {
			return replica.TopicConfig{Log: commitlog.DefaultConfig(), MinInSyncReplicas: 1}
		}})
	w.API = New(Options{NodeID: self, ClusterID: "cluster", Profile: protocol.Full, Metadata: w, Replicas: replicas,
		Dirs: dirs, Quorum: func() Quorum { return Quorum{} },
		Node: func() *config.Node { return node }, Authorizer: auth.AllowAll{}, Clock: clock,
		Rand: func() uint64 { return 4 }, Features: func() protocol.Features { return protocol.Features{} }})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) timer(_ time.Duration, f func()) (stop func()) {
	w.timers = append(w.timers, f)
	return func() {}
}

// replay publishes metadata records.
func (w *world) replay(bodies ...metadata.Body) {
	w.t.Helper()
	b := metadata.Batch{BaseOffset: w.offset, LastOffset: w.offset + int64(len(bodies)) - 1}
	for _, body := range bodies {
		b.Records = append(b.Records, metadata.Record{Body: body})
	}
	w.offset += int64(len(bodies))
	w.must(w.loader.Replay(b))
	delta := w.loader.Publish()
	w.image = delta.Image()
	w.must(w.Replicas.Apply(delta))
}

func topicID(name string) metadata.UUID { return metadata.UUID{0: 1, 1: name[0]} }

// topic makes a topic that this broker leads; its replicas are in sync.
func (w *world) topic(name string, partitions int32, replicas ...int32) {
	w.t.Helper()
	bodies := []metadata.Body{&metadata.TopicRecord{Name: name, TopicID: topicID(name)}}
	for p := range partitions {
		bodies = append(bodies, &metadata.PartitionRecord{PartitionID: p, TopicID: topicID(name), Replicas: replicas,
			ISR: replicas, Leader: self})
	}
	w.replay(bodies...)
}

// send hands a request to its handler; the answer comes through the channel.
func (w *world) send(ctx context.Context, req kmsg.Request) <-chan protocol.Response {
	answer := make(chan protocol.Response, 1)
	w.Handle(ctx, &protocol.Request{Header: protocol.RequestHeader{Key: req.Key(), Version: req.GetVersion()},
		Body: req.AppendTo(nil), Conn: w.conn}, func(r protocol.Response) { answer <- r })
	return answer
}

// read decodes an answer, and releases it.
func read[R kmsg.Response](t testing.TB, req kmsg.Request, r protocol.Response) R {
	t.Helper()
	var body []byte
	for _, part := range r.Body {
		if part.File == nil {
			body = append(body, part.Bytes...)
			continue
		}
		b := make([]byte, part.N)
		if _, err := part.File.ReadAt(b, part.Pos); err != nil {
			t.Fatal(err)
		}
		body = append(body, b...)
	}
	if r.Release != nil {
		r.Release()
	}
	answer := req.ResponseKind().(R)
	if err := answer.ReadFrom(body); err != nil {
		t.Fatal(err)
	}
	return answer
}

// ask is send for a request that is answered at once.
func ask[R kmsg.Response](w *world, req kmsg.Request) R {
	w.t.Helper()
	select {
	case r := <-w.send(context.Background(), req):
		return read[R](w.t, req, r)
	default:
		w.t.Fatalf("no answer at once to %T", req)
		panic("unreachable")
	}
}

// records is one batch.
func records(t testing.TB, n int) []byte {
	t.Helper()
	b := record.NewBuilder(record.DefaultBuilderOptions())
	for range n {
		if err := b.Append(baseTime, nil, []byte("value"), nil); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func produceRequest(t testing.TB, topic string, acks int16, partitions ...int32) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(11)
	req.Acks, req.TimeoutMillis = acks, 1000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	for _, p := range partitions {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p, records(t, 1)
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

func fetchRequest(topic string, replica int32, offset int64, partitions ...int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(12)
	req.ReplicaID, req.MaxBytes, req.SessionEpoch = replica, 1<<20, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	for _, p := range partitions {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = p, offset, 1<<20, -1
		rp.LastFetchedEpoch = -1
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req
}
