package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/auth"
	"tidemark/internal/commitlog"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

const clusterID = "4L6g3nShT-eMCtK--X86sw"

var dirID = metadata.UUID{0: 7, 15: 9}

// clock is a clock that a test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.UnixMilli(1796008988536)} }

var seed byte // a new one for each opening

func testOptions(fsys vfs.FS, c *clock) Options {
	seed++
	ctl := controller.New(controller.Options{
		ClusterID: clusterID, NodeID: 1, DefaultPartitions: 1, DefaultReplicationFactor: 1, MinInsyncReplicas: 1,
		Features: controller.SupportedFeatures(),
		Validate: func(metadata.ConfigResource, map[string]string, map[string]string) error { return nil },
	})
	return Options{
		FS: fsys, LogDir: "/data", DirectoryID: dirID, NodeID: 1, Controller: ctl, Clock: c.Now,
		Random:    rand.NewChaCha8([32]byte{seed}),
		Endpoints: []metadata.Endpoint{{Name: "CONTROLLER", Host: "127.0.0.1", Port: 9093}},
	}
}

func mustOpen(t testing.TB, o Options) *Quorum {
	t.Helper()
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func mustClose(t testing.TB, q *Quorum) {
	t.Helper()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
}

func ask[R any](t testing.TB, q *Quorum, cmd controller.Command) R {
	t.Helper()
	res, err := Ask[R](context.Background(), q, cmd, auth.Anonymous)
	if err != nil {
		t.Fatalf("%T: %v", cmd, err)
	}
	return res
}

// start registers broker 1 and unfences it, as a broker does when it starts.
func start(t testing.TB, q *Quorum, previousEpoch int64) int64 {
	t.Helper()
	epoch := ask[controller.BrokerRegistered](t, q, controller.RegisterBroker{Registration: controller.Registration{
		BrokerID: 1, ClusterID: clusterID, IncarnationID: metadata.UUID{0: 5, 15: byte(q.LeaderEpoch())},
		Endpoints: []metadata.Endpoint{{Name: "PLAINTEXT", Host: "127.0.0.1", Port: 9092}},
		Features:  controller.SupportedFeatures(), LogDirs: []metadata.UUID{dirID}, PreviousEpoch: previousEpoch,
	}}).Epoch
	reply := ask[controller.HeartbeatReply](t, q, controller.BrokerHeartbeat{
		BrokerID: 1, BrokerEpoch: epoch, CurrentOffset: q.Image().Offset(), CordonedDirs: []metadata.UUID{},
	})
	if reply.IsFenced {
		t.Fatal("the broker is still fenced")
	}
	return epoch
}

// stop takes broker 1 out, as a broker does when it stops.
func stop(t testing.TB, q *Quorum, epoch int64) {
	t.Helper()
	for range 3 {
		reply := ask[controller.HeartbeatReply](t, q, controller.BrokerHeartbeat{BrokerID: 1, BrokerEpoch: epoch,
			CurrentOffset: q.Image().Offset(), WantShutdown: true})
		if reply.ShouldShutDown {
			return
		}
	}
	t.Fatal("the broker may not shut down")
}

func create(t testing.TB, q *Quorum, name string, partitions int32) {
	t.Helper()
	res := ask[controller.CreateTopicsResult](t, q, controller.CreateTopics{
		Topics: []controller.NewTopic{{Name: name, Partitions: partitions, ReplicationFactor: 1}}})
	if e := res.Topics[0].Err; e != nil {
		t.Fatal(e)
	}
}

// diffContent compares what two images hold, not where they stand.
func diffContent(a, b *metadata.Image) string {
	ra, rb := slices.Collect(a.Records()), slices.Collect(b.Records())
	for i := range max(len(ra), len(rb)) {
		if i >= len(ra) || i >= len(rb) {
			return fmt.Sprintf("%d and %d records", len(ra), len(rb))
		}
		ea, _ := ra[i].AppendTo(nil)
		eb, _ := rb[i].AppendTo(nil)
		if string(ea) != string(eb) {
			return fmt.Sprintf("record %d: %+v and %+v", i, ra[i].Body, rb[i].Body)
		}
	}
	return ""
}

// kinds lists the records of a log file, control records among them.
func kinds(t testing.TB, fsys vfs.FS, name string) []string {
	t.Helper()
	rest, err := vfs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for len(rest) > 0 {
		_, entry, next, err := record.NextEntry(rest)
		if err != nil {
			t.Fatal(err)
		}
		rest = next
		err = eachRecord(entry,
			func(m record.ControlMessage) error { list = append(list, m.ControlType().String()); return nil },
			func(r metadata.Record) error { list = append(list, r.Body.Kind().String()); return nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

const logFile = "/data/__cluster_metadata-0/00000000000000000000.log"

func TestFirstFormat(t *testing.T) {
	fsys := vfs.NewMem()
	o := testOptions(fsys, newClock())
	if err := WriteBootstrap(fsys, "/data", o.Clock()); err == nil {
		t.Error("a bootstrap file was written into a folder that does not exist")
	}
	must(t, fsys.MkdirAll("/data", 0o755))
	must(t, WriteBootstrap(fsys, "/data", o.Clock()))
	q := mustOpen(t, o)
	if q.LeaderEpoch() != 1 || q.Image().MetadataVersion() != 30 || q.Image().Offset() != 10 {
		t.Errorf("epoch %d, level %d, offset %d", q.LeaderEpoch(), q.Image().MetadataVersion(), q.Image().Offset())
	}
	got, _ := q.Image().Config(metadata.ClusterConfigs).Get("min.insync.replicas")
	if got != "1" {
		t.Errorf("min.insync.replicas %q", got)
	}
	if n := start(t, q, -1); n != 11 {
		t.Errorf("broker epoch %d", n)
	}
	mustClose(t, q)
	mustClose(t, q)

	want := []string{"LEADER_CHANGE", "BEGIN_TRANSACTION_RECORD", "FEATURE_LEVEL_RECORD", "FEATURE_LEVEL_RECORD",
		"FEATURE_LEVEL_RECORD", "FEATURE_LEVEL_RECORD", "FEATURE_LEVEL_RECORD", "FEATURE_LEVEL_RECORD", "CONFIG_RECORD",
		"END_TRANSACTION_RECORD", "REGISTER_CONTROLLER_RECORD", "REGISTER_BROKER_RECORD",
		"BROKER_REGISTRATION_CHANGE_RECORD", "BROKER_REGISTRATION_CHANGE_RECORD"}
	if got := kinds(t, fsys, logFile); !slices.Equal(got, want) {
		t.Errorf("records %v", got)
	}
	for name, want := range map[string]string{
		"quorum-state": `{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,` +
			`"currentVoters":[{"voterId":1}],"data_version":0}`,
		"partition.metadata":      "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
		"leader-epoch-checkpoint": "0\n1\n1 0\n",
	} {
		got, err := vfs.ReadFile(fsys, "/data/__cluster_metadata-0/"+name)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFilesEqualKafka compares the files of a format with Kafka's, but for the
// times in them and what depends on these.
func TestFilesEqualKafka(t *testing.T) {
	kafka := filepath.Join(golden.Load(t, "13-data").Path, "data")
	fsys := vfs.NewMem()
	must(t, fsys.MkdirAll("/data", 0o755))
	o := testOptions(fsys, newClock())
	must(t, WriteBootstrap(fsys, "/data", o.Clock()))
	mustClose(t, mustOpen(t, o))

	compare(t, fsys, "/data/bootstrap.checkpoint", filepath.Join(kafka, "bootstrap.checkpoint"), 3)
	compare(t, fsys, logFile, filepath.Join(kafka, "__cluster_metadata-0/00000000000000000000.log"), 2)
}

// compare compares the first n batches of two files.
func compare(t *testing.T, fsys vfs.FS, ours, kafkas string, n int) {
	t.Helper()
	got, err := vfs.ReadFile(fsys, ours)
	must(t, err)
	want, err := os.ReadFile(kafkas)
	must(t, err)
	for i := range n {
		var a, b []byte
		_, a, got, err = record.NextEntry(got)
		must(t, err)
		_, b, want, err = record.NextEntry(want)
		must(t, err)
		if string(timeless(a)) != string(timeless(b)) {
			t.Errorf("%s: batch %d\n got %x\nwant %x", ours, i, timeless(a), timeless(b))
		}
	}
}

// timeless is a batch without its timestamps and checksum.
func timeless(batch []byte) []byte {
	b := slices.Clone(batch)
	clear(b[17:21])
	clear(b[27:43])
	return b
}

func TestReopen(t *testing.T) {
	fsys := vfs.NewMem()
	c := newClock()
	q := mustOpen(t, testOptions(fsys, c))
	epoch := start(t, q, -1)
	create(t, q, "a", 3)
	stop(t, q, epoch)
	want := q.Image()
	mustClose(t, q)

	for i, clean := range []bool{true, false} {
		o := testOptions(fsys, c)
		o.Clean = clean
		q = mustOpen(t, o)
		if q.LeaderEpoch() != int32(i+2) {
			t.Errorf("leader epoch %d at start %d", q.LeaderEpoch(), i+2)
		}
		if d := diffContent(q.Image(), want); d != "" && !strings.Contains(d, "RegisterController") &&
			!strings.Contains(d, "IncarnationID") {
			t.Errorf("clean %t: %s", clean, d)
		}
		mustClose(t, q)
	}
	q = mustOpen(t, testOptions(fsys, c))
	start(t, q, epoch)
	p := q.Image().Topic("a").Partition(2)
	if p.Leader != 1 || p.LeaderEpoch != 2 || p.LeaderRecoveryState != metadata.LeaderRecovered {
		t.Errorf("after a clean stop and start: %+v", p)
	}
	mustClose(t, q)
	q = mustOpen(t, testOptions(fsys, c))
	start(t, q, -1)
	if p := q.Image().Topic("a").Partition(2); p.Leader != 1 || p.LeaderEpoch != 4 ||
		p.LeaderRecoveryState != metadata.LeaderRecovering {
		t.Errorf("after an unclean stop and start: %+v", p)
	}
	mustClose(t, q)
}

// copyFolder copies a folder of the disk into a file system.
func copyFolder(t testing.TB, fsys vfs.FS, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return fsys.MkdirAll(name, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return vfs.WriteFileAtomic(fsys, name, data)
	})
	must(t, err)
}

// TestKafkaDirectories opens directories that Kafka left behind.
func TestKafkaDirectories(t *testing.T) {
	kafka := filepath.Join(golden.Load(t, "13-data").Path, "data")
	for _, tt := range []struct {
		name, from, to string
		directory      string
		epoch          int32
		topics         int
		replays        bool // the snapshot's image is checked against the log alone
	}{
		{"static quorum", kafka, "/data", "", 2, 4, false},
		{"restarts and snapshots", "../metadata/testdata/restarts", "/data/__cluster_metadata-0", "", 4, 2, true},
		{"formatted with the voters in the log", "testdata/formatted", "/data", "wZR4C01_SbSRU6_8qooLFw", 1, 0, false},
		{"voters in the log", "testdata/dynamic", "/data", "wZR4C01_SbSRU6_8qooLFw", 4, 1, true},
	} {
		for _, clean := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.name, " ", clean), func(t *testing.T) {
				fsys := vfs.NewMem()
				copyFolder(t, fsys, tt.from, tt.to)
				o := testOptions(fsys, newClock())
				o.Clean = clean
				if tt.directory != "" {
					o.DirectoryID, _ = metadata.ParseUUID(tt.directory)
				}
				q := mustOpen(t, o)
				if q.LeaderEpoch() != tt.epoch || q.Image().NumTopics() != tt.topics || q.Image().MetadataVersion() != 30 {
					t.Errorf("epoch %d, %d topics, level %d", q.LeaderEpoch(), q.Image().NumTopics(), q.Image().MetadataVersion())
				}
				state, known, err := readState(fsys, q.dir)
				if err != nil || !known || state.LeaderEpoch != tt.epoch || (state.DataVersion == 1) != (tt.directory != "") {
					t.Errorf("quorum-state %+v %v", state, err)
				}
				want := q.Image()
				_, taken, err := q.Snapshot()
				if err != nil || !taken {
					t.Fatalf("snapshot %t %v", taken, err)
				}
				mustClose(t, q)
				checkFormatted(t, fsys, tt.directory != "" && tt.topics == 0)
				if tt.replays {
					removeSnapshots(t, fsys)
				}
				again := mustOpen(t, o)
				if d := diffContent(again.Image(), want); d != "" && !strings.Contains(d, "IncarnationID") {
					t.Error(d)
				}
				mustClose(t, again)
			})
		}
	}
}

// checkFormatted looks for the voters in the first batch of the log.
func checkFormatted(t *testing.T, fsys vfs.FS, first bool) {
	t.Helper()
	if !first {
		return
	}
	begin := []string{"LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS", "BEGIN_TRANSACTION_RECORD"}
	if got := kinds(t, fsys, logFile)[:4]; !slices.Equal(got, begin) {
		t.Errorf("log begins with %v", got)
	}
}

func removeSnapshots(t *testing.T, fsys vfs.FS) {
	t.Helper()
	list, err := listSnapshots(fsys, "/data/"+folder)
	must(t, err)
	if len(list) < 2 {
		t.Fatalf("snapshots %v", list)
	}
	for _, id := range list {
		must(t, fsys.Remove(filepath.Join("/data", folder, id.FileName())))
	}
}

func TestNotSoleVoter(t *testing.T) {
	for name, prepare := range map[string]func(fsys vfs.FS, o *Options){
		"another directory": func(fsys vfs.FS, o *Options) { copyFolder(t, fsys, "testdata/dynamic", "/data") },
		"another node in the log": func(fsys vfs.FS, o *Options) {
			copyFolder(t, fsys, "testdata/dynamic", "/data")
			o.NodeID, o.DirectoryID = 2, metadata.UUID{}
		},
		"three voters": func(fsys vfs.FS, o *Options) {
			must(t, fsys.MkdirAll("/data/"+folder, 0o755))
			must(t, electionState{LeaderID: 2, LeaderEpoch: 5, Voters: []int32{1, 2, 3}}.write(fsys, "/data/"+folder))
		},
	} {
		fsys := vfs.NewMem()
		o := testOptions(fsys, newClock())
		prepare(fsys, &o)
		before, _ := vfs.ReadFile(fsys, logFile)
		_, err := Open(o)
		after, _ := vfs.ReadFile(fsys, logFile)
		if !errors.Is(err, ErrNotSoleVoter) || string(before) != string(after) {
			t.Errorf("%s: %v; the log changed: %t", name, err, string(before) != string(after))
		}
	}
}

func TestSubscribers(t *testing.T) {
	fsys := vfs.NewMem()
	q := mustOpen(t, testOptions(fsys, newClock()))
	start(t, q, -1)
	create(t, q, "a", 1)
	var seen []string
	cancel := q.Subscribe(func(d *metadata.Delta, i *metadata.Image) {
		for _, c := range d.Topics() {
			if c.After != nil {
				seen = append(seen, fmt.Sprintf("%s@%d", c.After.Name, i.Offset()))
			} else {
				seen = append(seen, fmt.Sprintf("-%s@%d", c.Before.Name, i.Offset()))
			}
		}
	})
	create(t, q, "b", 1)
	if q.Image().Topic("b") == nil {
		t.Error("answered before it was published")
	}
	ask[controller.DeleteTopicsResult](t, q, controller.DeleteTopics{Names: []string{"a"}})
	cancel()
	create(t, q, "c", 1)
	if got := strings.Join(seen, " "); got != "a@15 b@17 -a@18" {
		t.Errorf("seen %s", got)
	}
	mustClose(t, q)
}

func TestSubmitRefusals(t *testing.T) {
	q := mustOpen(t, testOptions(vfs.NewMem(), newClock()))
	start(t, q, -1)
	end := q.EndOffset()
	_, err := q.Submit(context.Background(), controller.AllocateProducerIDs{BrokerID: 7}, auth.Anonymous)
	if !errors.Is(err, controller.ErrStaleBrokerEpoch) {
		t.Errorf("refused: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := q.Submit(ctx, controller.CreateTopics{}, auth.Anonymous); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if q.EndOffset() != end {
		t.Error("something was written")
	}
	mustClose(t, q)
	_, err = q.Submit(context.Background(), controller.CreateTopics{}, auth.Anonymous)
	if !errors.Is(err, ErrClosed) || !IsFailure(err) {
		t.Errorf("closed: %v", err)
	}
}

func TestSnapshotsByRules(t *testing.T) {
	fsys := vfs.NewMem()
	c := newClock()
	o := testOptions(fsys, c)
	o.SnapshotInterval, o.SnapshotBytes, o.MaxRetention = time.Hour, 3000, 150*time.Minute
	q := mustOpen(t, o)
	start(t, q, -1)
	maybe := func(want bool) {
		t.Helper()
		if id, taken, err := q.MaybeSnapshot(); err != nil || taken != want {
			t.Errorf("snapshot %v %t %v", id, taken, err)
		}
	}
	maybe(false)
	create(t, q, "a", 30)
	maybe(true) // by size
	c.now = c.now.Add(time.Hour - 1)
	create(t, q, "b", 1)
	maybe(false)
	c.now = c.now.Add(1)
	maybe(true) // by time
	maybe(false)
	c.now = c.now.Add(time.Hour)
	maybe(false) // nothing new
	create(t, q, "c", 1)
	must(t, q.log.Roll())
	c.now = c.now.Add(time.Hour)
	maybe(true)
	if len(q.snapshots.list) != 2 || q.log.StartOffset() != q.snapshots.list[0].EndOffset {
		t.Errorf("snapshots %v, log from %d", q.snapshots.list, q.log.StartOffset())
	}
	create(t, q, "d", 1)
	want := q.Image()
	mustClose(t, q)
	q = mustOpen(t, testOptions(fsys, c))
	if d := diffContent(q.Image(), want); d != "" && !strings.Contains(d, "IncarnationID") {
		t.Error(d)
	}
	mustClose(t, q)
}

// TestDamage says what becomes of damaged files.
func TestDamage(t *testing.T) {
	fsys := vfs.NewMem()
	c := newClock()
	q := mustOpen(t, testOptions(fsys, c))
	start(t, q, -1)
	create(t, q, "a", 1)
	id, _, err := q.Snapshot()
	must(t, err)
	create(t, q, "b", 1)
	create(t, q, "b2", 1)
	mustClose(t, q)
	snapshot := filepath.Join("/data", folder, id.FileName())
	var corrupt *record.CorruptError
	for _, tt := range []struct {
		name   string
		file   string
		change func([]byte) []byte
		clean  bool
		fails  func(error) bool
		topics int
	}{
		{"torn tail", logFile, func(b []byte) []byte { return b[:len(b)-5] }, false, nil, 2},
		{"torn tail after a clean stop", logFile, func(b []byte) []byte { return b[:len(b)-5] }, true, nil, 2},
		{"flipped bit in the last batch", logFile, func(b []byte) []byte { b[len(b)-5] ^= 1; return b }, true, nil, 2},
		{"flipped bit in an inner batch", logFile, func(b []byte) []byte { b[500] ^= 1; return b }, false,
			func(err error) bool { return errors.As(err, &corrupt) && corrupt.Pos == 421 }, 0},
		{"flipped bit in an inner batch after a clean stop", logFile, func(b []byte) []byte { b[len(b)-200] ^= 1; return b },
			true,
			func(err error) bool { return errors.As(err, &corrupt) && strings.HasSuffix(corrupt.File, ".log") }, 0},
		{"wrong length of an inner batch", logFile, func(b []byte) []byte { b[421+8] = 0x7f; return b }, false,
			func(err error) bool { return errors.As(err, &corrupt) && corrupt.Pos == 421 }, 0},
		{"log gone", logFile, func(b []byte) []byte { return nil }, false, nil, 1},
		{"snapshot cut", snapshot, func(b []byte) []byte { return b[:len(b)-75] }, true,
			func(err error) bool { return errors.As(err, &corrupt) }, 0},
		{"snapshot flipped", snapshot, func(b []byte) []byte { b[100] ^= 1; return b }, true,
			func(err error) bool { return errors.As(err, &corrupt) }, 0},
		{"no JSON", "/data/__cluster_metadata-0/quorum-state", func(b []byte) []byte { return b[:9] }, true,
			func(err error) bool { return err != nil }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys.SyncAll()
			broken := fsys.CrashClone(rand.New(rand.NewPCG(1, 1)), 1)
			data, err := vfs.ReadFile(broken, tt.file)
			must(t, err)
			must(t, vfs.WriteFileAtomic(broken, tt.file, tt.change(data)))
			o := testOptions(broken, c)
			o.Clean = tt.clean
			q, err := Open(o)
			if tt.fails != nil {
				if !tt.fails(err) {
					t.Errorf("opened with %v", err)
				}
				return
			}
			must(t, err)
			if n := q.Image().NumTopics(); n != tt.topics {
				t.Errorf("%d topics", n)
			}
			create(t, q, "c", 1)
			mustClose(t, q)
		})
	}
}

// TestRecordsThatDoNotReplay gives the controller a source of ids that repeats
// itself: the command fails, nothing is written, and the next one succeeds.
func TestRecordsThatDoNotReplay(t *testing.T) {
	q := mustOpen(t, testOptions(vfs.NewMem(), newClock()))
	start(t, q, -1)
	same := func() { q.o.Random = rand.NewChaCha8([32]byte{99}) }
	same()
	create(t, q, "a", 1)
	same()
	end := q.EndOffset()
	_, err := q.Submit(context.Background(), controller.CreateTopics{
		Topics: []controller.NewTopic{{Name: "b", Partitions: 1, ReplicationFactor: 1}}}, auth.Anonymous)
	var replay *metadata.ReplayError
	if !errors.As(err, &replay) || IsFailure(err) || q.EndOffset() != end || q.Image().NumTopics() != 1 {
		t.Errorf("%v, log end %d, was %d", err, q.EndOffset(), end)
	}
	create(t, q, "c", 1)
	mustClose(t, q)
}

// TestUnknownRecordStops refuses a log with a record of the future, and writes
// nothing to it.
func TestUnknownRecordStops(t *testing.T) {
	fsys := vfs.NewMem()
	c := newClock()
	q := mustOpen(t, testOptions(fsys, c))
	b := record.NewBuilder(q.batchOptions())
	must(t, b.Append(0, nil, []byte{1, 99, 0, 0}, nil))
	_, err := q.log.AppendAsLeader(b.Bytes(), appendOptions(q))
	must(t, err)
	mustClose(t, q)
	before, _ := vfs.ReadFile(fsys, logFile)
	_, err = Open(testOptions(fsys, c))
	var unknown *metadata.UnknownRecordError
	if !errors.As(err, &unknown) || unknown.Kind != 99 {
		t.Errorf("opened with %v", err)
	}
	if after, _ := vfs.ReadFile(fsys, logFile); string(after) != string(before) {
		t.Error("the log was written to")
	}
}

func appendOptions(q *Quorum) commitlog.AppendOptions {
	return commitlog.AppendOptions{LeaderEpoch: q.epoch, Origin: commitlog.OriginRaft}
}
