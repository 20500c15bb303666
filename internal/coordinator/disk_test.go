package coordinator

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/group"
	"tidemark/internal/index"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/replica"
	"tidemark/internal/txn"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// disk is a broker's storage with the coordinators of transactions and groups on it.
type disk struct {
	*machinery
	t        testing.TB
	fs       *vfs.Mem
	image    *metadata.Image
	set      *logdir.Set
	replicas *replica.Manager
	coord    *Transactions
	groups   *Groups
	starts   int64 // gives each process producer ids of its own
	// write is called before and after each write to a log; it may panic: the process dies there.
	write func()
}

// dyingFS has its files call write before and after each write to a log.
type dyingFS struct {
	vfs.FS
	write func()
}

func (d dyingFS) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = dyingFile{f, d.write}
	}
	return f, err
}

type dyingFile struct {
	vfs.File
	write func()
}

func (d dyingFile) WriteAt(b []byte, pos int64) (int, error) {
	d.write()
	n, err := d.File.WriteAt(b, pos)
	d.write()
	return n, err
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
	guarded := dyingFS{d.fs, func() { d.write() }}
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
	d.groups = NewGroups(GroupsOptions{
		Machine: group.Options{Config: func() group.Config {
			return group.Config{MetadataMaxBytes: 4096, RetentionMs: 1 << 40, ConsumerAssignors: []string{"uniform"}}
		}},
		Image: func() *metadata.Image { return d.image }, Clock: d.clock, Timer: d.timer, Go: d.run,
		ExpireEvery: time.Hour, WriteTimeout: 5 * time.Second,
	})
	markers.Offsets = d.groups.EndTransaction
	d.replicas = replica.NewManager(replica.Options{NodeID: 1, Dirs: set, Timer: d.timer,
		TopicConfig: func(*metadata.Image, string) replica.TopicConfig {
			return replica.TopicConfig{Log: commitlog.DefaultConfig(), MinInSyncReplicas: 1}
		},
		Leadership: func(p *replica.Partition, leaderEpoch int32, leads bool) {
			d.coord.Leadership(p, leaderEpoch, leads)
			d.groups.Leadership(p, leaderEpoch, leads)
		}})
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

// admit adds a partition to a transaction, as a request does that writes there.
func (d *disk) admit(id string, p txn.Producer, tp checkpoint.TopicPartition, version int16,
	done func(*replica.Partition, *replica.Verification, error)) {
	partition, err := d.replicas.Partition(tp.Topic, tp.Partition)
	if err != nil {
		done(nil, nil, err)
		return
	}
	v, err := partition.BeginVerification(p.ID, p.Epoch, 0, version >= version2)
	if err != nil || v == nil {
		done(partition, v, err)
		return
	}
	partitions := []checkpoint.TopicPartition{tp}
	if version >= version2 {
		d.coord.Admit(Admission{ID: id, Producer: p, Partitions: partitions, Adding: true},
			func(each []error) { done(partition, v, each[0]) })
		return
	}
	d.coord.Add(id, p, partitions, version, func(err error) { done(partition, v, err) })
}

// produce appends a batch in a transaction, as a produce request does.
func (d *disk) produce(id string, p txn.Producer, tp checkpoint.TopicPartition, version int16, value string,
	done func(error)) {
	d.admit(id, p, tp, version, func(partition *replica.Partition, v *replica.Verification, err error) {
		if err != nil {
			done(err)
			return
		}
		o := record.DefaultBuilderOptions()
		o.Transactional, o.ProducerID, o.ProducerEpoch, o.BaseSequence = true, p.ID, p.Epoch, 0
		b := record.NewBuilder(o)
		if err := b.Append(d.now.UnixMilli(), nil, []byte(value), nil); err != nil {
			done(err)
			return
		}
		_, err = partition.Append(b.Bytes(), replica.AppendOptions{Origin: commitlog.OriginClient, AllInSync: true,
			LeaderEpoch: replica.NoEpoch, Verification: v})
		done(err)
	})
}

// commitOffset commits an offset of group "g" for the first data partition in a transaction.
func (d *disk) commitOffset(id string, p txn.Producer, version int16, offset int64, done func(error)) {
	d.admit(id, p, offsetsTP, version, func(_ *replica.Partition, v *replica.Verification, err error) {
		if err != nil {
			done(err)
			return
		}
		r := &group.CommitRequest{Group: "g", Generation: -1, Version: 5, RetentionMs: -1, Topics: []group.CommitTopic{
			{Topic: "d", Partitions: []group.CommitPartition{{Offset: offset, LeaderEpoch: -1, CommitMs: -1}}}}}
		d.groups.CommitTransactional(r, Transaction{ProducerID: p.ID, ProducerEpoch: p.Epoch, Verification: v},
			func(each []error, err error) {
				if err == nil {
					err = each[0]
				}
				done(err)
			})
	})
}

var offsetsTP = checkpoint.TopicPartition{Topic: OffsetsTopic}

// committedOffset is the offset of group "g"; -1: none. It is an error while a transaction is open.
func (d *disk) committedOffset() int64 {
	d.t.Helper()
	offset := int64(-2)
	d.check(d.until(func(done func(error)) {
		d.groups.Fetch(&group.FetchRequest{Group: "g", Stable: true, Topics: []group.TopicPartitions{
			{Topic: "d", Partitions: []int32{0}}}}, func(topics []group.FetchedTopic, err error) {
			if err == nil {
				err = topics[0].Partitions[0].Err
				offset = topics[0].Partitions[0].Offset
			}
			done(err)
		})
	}))
	return offset
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

// TestTransactionsOnDisk lets the process die before or after the n-th write to a log, n = 1, 2, …, in a transaction
// over two partitions and the offsets of a group, and once more at each write that follows: every partition has the
// outcome that the producer asked for.
func TestTransactionsOnDisk(t *testing.T) {
	for _, version := range []int16{0, 2} {
		for _, commit := range []bool{true, false} {
			t.Run(fmt.Sprintf("v%d commit %v", version, commit), func(t *testing.T) {
				for first := 1; ; first++ {
					died1, _ := dieOnDisk(t, version, commit, first, 0)
					if !died1 {
						t.Logf("%d points of death", first-1)
						if first < 20 {
							t.Errorf("only %d points of death", first-1)
						}
						return
					}
					for second := 1; !testing.Short(); second++ {
						if _, died2 := dieOnDisk(t, version, commit, first, second); !died2 {
							break
						}
					}
				}
			})
		}
	}
}

// dieOnDisk runs a transaction and dies at the first-th point, and then at the second-th from there (0: not).
func dieOnDisk(t *testing.T, version int16, commit bool, first, second int) (died1, died2 bool) {
	d := newDisk(t, vfs.NewMem(), testImage(t, map[string]int{TransactionsTopic: 1, OffsetsTopic: 1, "d": 2}))
	d.settle(t)
	points := 0
	d.write = func() {
		points++
		switch {
		case !died1 && points == first:
			died1 = true
		case died1 && !died2 && second > 0 && points == first+second:
			died2 = true
		default:
			return
		}
		panic(died{})
	}
	var p txn.Producer
	d.check(d.until(func(done func(error)) {
		d.coord.Init("t", 60_000, txn.NoProducer, func(got txn.Producer, err error) { p = got; done(err) })
	}))
	for i := range 2 {
		d.check(d.until(func(done func(error)) { d.produce("t", p, dataTP(i), version, "a", done) }))
	}
	d.check(d.until(func(done func(error)) { d.commitOffset("t", p, version, 17, done) }))
	d.check(d.until(func(done func(error)) {
		d.coord.End("t", p, commit, version, func(_ txn.Producer, err error) { done(err) })
	}))
	for !alive(func() { d.pass(t, time.Second) }) {
		d.dies()
	}
	outcome, offset := "a abort", int64(-1)
	if commit {
		outcome, offset = "a commit", 17
	}
	for i := range 2 {
		if got := d.contents(dataTP(i)); got != outcome {
			t.Fatalf("deaths at %d and %d later: partition %d holds %q, want %q", first, second, i, got, outcome)
		}
	}
	if got := d.committedOffset(); got != offset {
		t.Fatalf("deaths at %d and %d later: offset %d, want %d", first, second, got, offset)
	}
	if got := d.contents(offsetsTP); strings.HasSuffix(got, "open") {
		t.Fatalf("deaths at %d and %d later: the transaction is open in %s", first, second, offsetsTP)
	}
	return died1, died2
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
