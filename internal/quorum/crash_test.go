package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// TestCrashKeepsWhatWasAnswered crashes the disk after each command: what was
// answered is there afterwards, and the node starts.
func TestCrashKeepsWhatWasAnswered(t *testing.T) {
	fsys := vfs.NewMem()
	must(t, fsys.MkdirAll("/data", 0o755))
	must(t, fsys.SyncDir("/"))
	c := newClock()
	q := mustOpen(t, testOptions(fsys, c))
	start(t, q, -1)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 12 {
		create(t, q, fmt.Sprint("t", i), 2)
		if i%4 == 3 {
			if _, _, err := q.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		crashed := fsys.CrashClone(rng, rng.Float64())
		again := mustOpen(t, testOptions(crashed, c))
		for k := range i + 1 {
			if topic := again.Image().Topic(fmt.Sprint("t", k)); topic == nil || topic.NumPartitions() != 2 {
				t.Fatalf("after command %d topic t%d is %+v", i, k, topic)
			}
		}
		start(t, again, -1)
		mustClose(t, again)
	}
	mustClose(t, q)
}

// TestEachFailure lets each call of the file system fail in turn. A command that
// was answered without an error is there after the next start on a good disk.
func TestEachFailure(t *testing.T) {
	var disk *vfs.Mem
	fresh := func() vfs.FS {
		disk = vfs.NewMem()
		return disk
	}
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		answered, err := work(fsys)
		o := testOptions(disk, newClock())
		q, again := Open(o)
		if again != nil {
			t.Fatalf("after %v: %v", err, again)
		}
		for _, name := range answered {
			if q.Image().Topic(name) == nil {
				t.Fatalf("topic %s is gone after %v", name, err)
			}
		}
		mustClose(t, q)
		return err
	})
}

// work opens a quorum and makes topics; it returns those that were answered.
func work(fsys vfs.FS) (answered []string, err error) {
	q, err := Open(testOptions(fsys, newClock()))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	ctx := context.Background()
	_, err = q.Submit(ctx, controller.RegisterBroker{Registration: controller.Registration{
		BrokerID: 1, ClusterID: clusterID, Features: controller.SupportedFeatures(), LogDirs: []metadata.UUID{dirID},
	}}, auth.Anonymous)
	if err != nil {
		return nil, err
	}
	beat := controller.BrokerHeartbeat{BrokerID: 1, BrokerEpoch: 11, CurrentOffset: 11}
	if _, err := q.Submit(ctx, beat, auth.Anonymous); err != nil {
		return nil, err
	}
	for _, name := range []string{"a", "b"} {
		res, err := Ask[controller.CreateTopicsResult](ctx, q, controller.CreateTopics{
			Topics: []controller.NewTopic{{Name: name, Partitions: 1, ReplicationFactor: 1}}}, auth.Anonymous)
		if err != nil {
			if again, err2 := q.Submit(ctx, controller.CreateTopics{}, auth.Anonymous); !errors.Is(err2, ErrFailed) {
				return answered, fmt.Errorf("goes on after %w: %v %w", err, again, err2)
			}
			return answered, err
		}
		if e := res.Topics[0].Err; e != nil {
			return answered, e
		}
		answered = append(answered, name)
		if _, _, err := q.Snapshot(); err != nil {
			return answered, err
		}
	}
	return answered, nil
}

// TestRestartsKeepTheImage runs random commands with snapshots and restarts in
// between: the image is the same after each start, from the log or from a
// snapshot.
func TestRestartsKeepTheImage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fsys := vfs.NewMem()
		c := newClock()
		q := mustOpen(t, testOptions(fsys, c))
		start(t, q, -1)
		for i := range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "topic")
			switch rapid.IntRange(0, 5).Draw(r, "command") {
			case 0, 1:
				submit(r, q, controller.CreateTopics{Topics: []controller.NewTopic{
					{Name: name, Partitions: int32(1 + i%3), ReplicationFactor: 1}}})
			case 2:
				submit(r, q, controller.DeleteTopics{Names: []string{name}})
			case 3:
				value := fmt.Sprint(i)
				submit(r, q, controller.IncrementalAlterConfigs{Resources: []controller.AlterResource{{
					Resource: metadata.TopicConfigs(name), Ops: []controller.ConfigOp{{Key: "k", Value: &value}}}}})
			case 4:
				if _, _, err := q.Snapshot(); err != nil {
					r.Fatal(err)
				}
			case 5:
				before := q.Image()
				mustClose(t, q)
				o := testOptions(fsys, c)
				o.Clean = rapid.Bool().Draw(r, "clean")
				q = mustOpen(t, o)
				if d := diffContent(withoutControllers(r, q.Image()), withoutControllers(r, before)); d != "" {
					r.Fatal(d)
				}
				start(t, q, -1)
			}
		}
		mustClose(t, q)
	})
}

func submit(r *rapid.T, q *Quorum, cmd controller.Command) {
	if _, err := q.Submit(context.Background(), cmd, auth.Anonymous); err != nil {
		r.Fatal(err)
	}
}

// withoutControllers is the image but for the controllers, which register at
// each start.
func withoutControllers(t interface{ Fatal(...any) }, i *metadata.Image) *metadata.Image {
	d := metadata.NewDelta(metadata.NewImage())
	for rec := range i.Records() {
		if rec.Body.Kind() == metadata.KindRegisterController {
			continue
		}
		if err := d.Replay(rec); err != nil {
			t.Fatal(err)
		}
	}
	return d.Image()
}
