package coordinator

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/index"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// disk is a broker's storage with a transaction coordinator on it.
type disk struct {
	*machinery
	t        testing.TB
	fs       *vfs.Mem
	image    *metadata.Image
	set      *logdir.Set
	replicas *replica.Manager
	coord    *Transactions
	starts   int64 // gives each process producer ids of its own
	// write is called before each write to a log; it may panic: the process dies there.
	write func()
}

// idle is a scheduler that does nothing by itself.
type idle struct{}

func (idle) Background(task func())                     { task() }
func (idle) After(time.Duration, func())                {}
func (idle) Every(time.Duration, time.Duration, func()) {}

func newDisk(t testing.TB, fs *vfs.Mem, image *metadata.Image) *disk {
	d := &disk{machinery: newMachinery(), t: t, fs: fs, image: image, write: func() {}}
	d.start()
	return d
}

// start begins a process on the disk.
func (d *disk) start() {
	d.t.Helper()
	d.forget()
	d.starts++
	guarded := faultfs.Wrap(d.fs, faultfs.Func(func(op faultfs.Op, name string) error {
		if op == faultfs.WriteAt && strings.HasSuffix(name, ".log") {
			d.write()
		}
		return nil
	}))
	set, err := logdir.Open(logdir.Options{FS: guarded, Dirs: []string{"/data"}, Settings: logdir.DefaultSettings(),
		Clock: d.clock, NewID: func() [16]byte { return [16]byte{15: 1} }, Scheduler: idle{},
		Files: index.NewFileCache(guarded, 64), Pages: index.NewCache(1 << 20)})
	d.check(err)
	if _, found := set.Identity(); !found {
		d.check(set.Format("test", 1))
	}
	d.check(set.Load(context.Background(), func(checkpoint.TopicPartition, [16]byte) logdir.Assignment {
		return logdir.Assignment{Assigned: true, Config: commitlog.DefaultConfig()}
	}))
	d.set = set
	markers := &LocalMarkers{Clock: d.clock, Timeout: 30 * time.Second}
	next := 1000 * d.starts
	d.coord = NewTransactions(TransactionsOptions{
		Machine: txn.Options{MaxTimeoutMs: 900_000, ExpirationMs: 604_800_000, Version: func() int16 { return 2 },
			NewProducerID: func() (int64, error) { next++; return next - 1, nil }},
		Image: func() *metadata.Image { return d.image }, Markers: markers, Clock: d.clock, Timer: d.timer, Go: d.run,
		ExpireEvery: time.Hour, RetryAfter: 100 * time.Millisecond, WriteTimeout: 30 * time.Second,
		AdmitRetryAfter: 20 * time.Millisecond, AdmitRetryMax: 100 * time.Millisecond,
	})
	d.replicas = replica.NewManager(replica.Options{NodeID: 1, Dirs: set, Timer: d.timer,
		TopicConfig: func(*metadata.Image, string) replica.TopicConfig {
			return replica.TopicConfig{Log: commitlog.DefaultConfig(), MinInSyncReplicas: 1}
		},
		Leadership: d.coord.Leadership})
	markers.Replicas = d.replicas
	d.check(d.replicas.Apply(metadata.FullDelta(d.image)))
}

func (d *disk) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// dies leaves the disk as the death of the process at this moment leaves it.
func (d *disk) dies() {
	d.fs = d.fs.CrashClone(rand.New(rand.NewPCG(1, 1)), 1)
	d.start()
}

// until asks again, over the deaths of processes, until an answer is final.
func (d *disk) until(ask func(done func(error))) error {
	for range 100 {
		answered, result := false, error(nil)
		lives := alive(func() {
			ask(func(err error) { answered, result = true, err })
			d.pass(d.t, time.Second)
		})
		switch {
		case !lives:
			d.dies()
		case answered && !retriable(result):
			return result
		}
	}
	d.t.Fatal("no final answer")
	return nil
}

// produce appends a batch in a transaction, as a produce request does.
func (d *disk) produce(id string, p txn.Producer, tp checkpoint.TopicPartition, value string, done func(error)) {
	partition, err := d.replicas.Partition(tp.Topic, tp.Partition)
	if err != nil {
		done(err)
		return
	}
	v, err := partition.BeginVerification(p.ID, p.Epoch, 0, true)
	if err != nil {
		done(err)
		return
	}
	d.coord.Admit(Admission{ID: id, Producer: p, Partitions: []checkpoint.TopicPartition{tp}, Adding: true},
		func(each []error) {
			if each[0] != nil {
				done(each[0])
				return
			}
			o := record.DefaultBuilderOptions()
			o.Transactional, o.ProducerID, o.ProducerEpoch, o.BaseSequence = true, p.ID, p.Epoch, 0
			b := record.NewBuilder(o)
			if err := b.Append(d.now.UnixMilli(), nil, []byte(value), nil); err != nil {
				done(err)
				return
			}
			_, err := partition.Append(b.Bytes(), replica.AppendOptions{Origin: commitlog.OriginClient, AllInSync: true,
				LeaderEpoch: replica.NoEpoch, Verification: v})
			done(err)
		})
}

// contents are the values of a partition in order, with its markers.
func (d *disk) contents(tp checkpoint.TopicPartition) string {
	p, err := d.replicas.Partition(tp.Topic, tp.Partition)
	d.check(err)
	result, err := p.Read(replica.ReadRequest{LeaderEpoch: replica.NoEpoch, LastFetchedEpoch: replica.NoEpoch,
		MaxBytes: 1 << 20, Replica: replica.Consumer})
	d.check(err)
	defer result.Slice.Release()
	data, err := result.Slice.Bytes()
	d.check(err)
	var all []string
	for len(data) > 0 {
		h, entry, rest, err := record.NextEntry(data)
		d.check(err)
		it, err := record.NewIterator(entry, record.IterOptions{})
		d.check(err)
		for it.Next() {
			r := it.Record()
			if !h.IsControl() {
				all = append(all, string(r.Value))
				continue
			}
			_, message, err := record.ParseControl(r.Key, r.Value)
			d.check(err)
			all = append(all, map[bool]string{true: "commit", false: "abort"}[message.(record.EndTxn).Commit])
		}
		data = rest
	}
	if result.LastStableOffset != result.HighWatermark {
		all = append(all, "open")
	}
	return strings.Join(slices.Compact(all), " ") // a marker may be there twice
}

// TestTransactionsOnDisk lets the process die before the n-th write to a log, n = 1, 2, …, in a transaction over two
// partitions: what is committed is committed in both.
func TestTransactionsOnDisk(t *testing.T) {
	for n := 1; ; n++ {
		d := newDisk(t, vfs.NewMem(), testImage(t, map[string]int{TransactionsTopic: 1, "d": 2}))
		d.settle(t)
		writes, died1 := 0, false
		d.write = func() {
			if writes++; writes == n {
				died1 = true
				panic(died{})
			}
		}
		var p txn.Producer
		d.check(d.until(func(done func(error)) {
			d.coord.Init("t", 60_000, txn.NoProducer, func(got txn.Producer, err error) { p = got; done(err) })
		}))
		for i := range 2 {
			d.check(d.until(func(done func(error)) { d.produce("t", p, dataTP(i), "a", done) }))
		}
		d.check(d.until(func(done func(error)) {
			d.coord.End("t", p, true, 2, func(_ txn.Producer, err error) { done(err) })
		}))
		for !alive(func() { d.pass(t, time.Second) }) {
			d.dies()
		}
		for i := range 2 {
			if got := d.contents(dataTP(i)); got != "a commit" {
				t.Fatalf("death before write %d: partition %d holds %q", n, i, got)
			}
		}
		if !died1 {
			t.Logf("%d points of death", n-1)
			if n < 9 {
				t.Errorf("only %d points of death", n-1)
			}
			return
		}
	}
}

// TestGoldenDirectoryContinues takes over the transactions of a real data directory.
func TestGoldenDirectoryContinues(t *testing.T) {
	c := golden.Load(t, "13-data")
	fs := vfs.NewMem()
	c.CopyTo(t, fs, golden.Data, "/data")
	id, err := checkpoint.ReadPartitionMetadata(fs, "/data/"+TransactionsTopic+"-0/"+checkpoint.PartitionMetadataFile)
	if err != nil {
		t.Fatal(err)
	}
	delta := metadata.NewDelta(metadata.NewImage())
	for _, body := range []metadata.Body{&metadata.TopicRecord{Name: TransactionsTopic, TopicID: id},
		&metadata.PartitionRecord{TopicID: id, Replicas: []int32{1}, ISR: []int32{1}, Leader: 1,
			Directories: []metadata.UUID{metadata.DirUnassigned}, LeaderEpoch: 1}} {
		if err := delta.Replay(metadata.Record{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	d := newDisk(t, fs, delta.Image())
	for _, row := range c.Rows(t, "transactions.tsv") {
		var before txn.Description
		d.check(d.until(func(done func(error)) {
			d.coord.Describe(row["transactional_id"], func(got txn.Description, err error) { before = got; done(err) })
		}))
		if before.State.String() != row["state"] {
			t.Errorf("%s is %s, want %s", row["transactional_id"], before.State, row["state"])
		}
		var next txn.Producer
		d.check(d.until(func(done func(error)) {
			d.coord.Init(row["transactional_id"], 60_000, txn.NoProducer, func(got txn.Producer, err error) {
				next = got
				done(err)
			})
		}))
		if want := (txn.Producer{ID: before.ID, Epoch: before.Epoch + 1}); next != want {
			t.Errorf("%s goes on as %v, want %v", row["transactional_id"], next, want)
		}
	}
}
