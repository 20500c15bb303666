package broker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/checkpoint"
	"tidemark/internal/metadata"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// readOnlyDisk is the operating system's file system as a read-only mount has it; it notes what was tried all the same.
type readOnlyDisk struct {
	vfs.FS
	mu    sync.Mutex
	tried []string
}

func (d *readOnlyDisk) refuse(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tried = append(d.tried, op+" "+name)
	return &fs.PathError{Op: op, Path: name, Err: syscall.EROFS}
}

func (d *readOnlyDisk) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC) != 0 {
		return nil, d.refuse("open to write", name)
	}
	return d.FS.OpenFile(name, flag, perm)
}
func (d *readOnlyDisk) MkdirAll(name string, _ fs.FileMode) error    { return d.refuse("mkdir", name) }
func (d *readOnlyDisk) Remove(name string) error                     { return d.refuse("remove", name) }
func (d *readOnlyDisk) RemoveAll(name string) error                  { return d.refuse("remove", name) }
func (d *readOnlyDisk) Rename(name, _ string) error                  { return d.refuse("rename", name) }
func (d *readOnlyDisk) SyncDir(name string) error                    { return d.refuse("sync", name) }
func (d *readOnlyDisk) Chtimes(name string, _ time.Time) error       { return d.refuse("chtimes", name) }
func (d *readOnlyDisk) Lock(name string) (io.Closer, error)          { return nil, d.refuse("lock", name) }
func (d *readOnlyDisk) Locked(name string) (*vfs.LockedError, error) { return vfs.Locked(d.FS, name) }

// startReadOnly serves what is below the paths; at the end nothing may have been changed, or tried to be.
func startReadOnly(t *testing.T, paths ...string) *Broker {
	t.Helper()
	before := treeHash(t, paths...)
	disk := &readOnlyDisk{FS: vfs.OS()}
	b, err := Start(t.Context(), Options{FS: disk, ReadOnly: paths, Properties: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": "", "log.initial.task.delay.ms": "0",
		"group.initial.rebalance.delay.ms": "0",
		"tidemark.scrub.interval.ms":       "1"}})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		stopBroker(t, b)
		if len(disk.tried) > 0 {
			t.Errorf("changes were tried: %q", disk.tried)
		}
		if treeHash(t, paths...) != before {
			t.Error("something was changed")
		}
	})
	return b
}

// readAll consumes a topic in a group, as most programs do, until n records came.
func readAll(t *testing.T, b *Broker, topic string, n int) []*kgo.Record {
	t.Helper()
	c := client(t, b, kgo.ConsumeTopics(topic), kgo.ConsumerGroup("reader-of-"+topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	var all []*kgo.Record
	for len(all) < n {
		fetches := c.PollFetches(t.Context())
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// writtenDirs makes log directories with a topic "a" of four partitions and n records in each, whose times are their
// offsets plus 1000. End is how the broker ended.
func writtenDirs(t *testing.T, n int, kill bool, names ...string) []string {
	t.Helper()
	base := t.TempDir()
	dirs := make([]string, len(names))
	for i, name := range names {
		dirs[i] = filepath.Join(base, name)
	}
	b := startBroker(t, strings.Join(dirs, ","), map[string]string{"offsets.topic.num.partitions": "2",
		"log.index.size.max.bytes": "4096"}) // small files
	c := client(t, b, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 4, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for p := range int32(4) {
		for i := range n {
			records = append(records, &kgo.Record{Topic: "a", Partition: p, Timestamp: time.UnixMilli(int64(1000 + i)),
				Value: fmt.Appendf(nil, "%d-%d", p, i)})
		}
	}
	if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "a", Partition: 2, At: 5, LeaderEpoch: -1})
	if err := kadm.NewClient(c).CommitAllOffsets(t.Context(), "g", offsets); err != nil {
		t.Fatal(err)
	}
	if kill { // what SIGKILL leaves: a copy of the running broker's files
		for i, dir := range dirs {
			copied := dir + "-killed"
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			dirs[i] = copied
		}
	}
	stopBroker(t, b)
	return dirs
}

func checkRead(t *testing.T, b *Broker, topic string, n int) {
	t.Helper()
	values := map[string]bool{}
	for _, r := range readAll(t, b, topic, n) {
		values[string(r.Value)] = true
	}
	if len(values) != n {
		t.Errorf("%d of %d records were read", len(values), n)
	}
	request := kmsg.NewListOffsetsRequest()
	asked := kmsg.NewListOffsetsRequestTopic()
	asked.Topic = topic
	for p := range int32(4) {
		one := kmsg.NewListOffsetsRequestTopicPartition()
		one.Partition, one.Timestamp = p, 1003
		asked.Partitions = append(asked.Partitions, one)
	}
	request.Topics = append(request.Topics, asked)
	answer, err := request.RequestWith(t.Context(), client(t, b).Broker(int(b.config().NodeID)))
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for _, p := range answer.Topics[0].Partitions {
		if p.ErrorCode == 0 && p.Offset != 3 {
			t.Errorf("partition %d: the first record from 1003 on is %d", p.Partition, p.Offset)
		} else if p.ErrorCode == 0 {
			right++
		}
	}
	if right != n/20 {
		t.Errorf("%d of %d partitions were looked up", right, n/20)
	}
}

func TestReadOnlyServesWholeDirectories(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", kill), func(t *testing.T) {
			b := startReadOnly(t, writtenDirs(t, 20, kill, "d", "e")...)
			checkRead(t, b, "a", 80)
			offsets, err := kadm.NewClient(client(t, b)).FetchOffsets(t.Context(), "g")
			if err != nil {
				t.Fatal(err)
			}
			if o, ok := offsets.Lookup("a", 2); !ok || o.At != 5 {
				t.Errorf("committed offset %+v, %v", o, ok)
			}
		})
	}
}

// A partition's folder alone is enough: its id is made of its name, and gaps have no leader.
func TestReadOnlyServesBareFolders(t *testing.T) {
	from, to := writtenDirs(t, 20, false, "d")[0], t.TempDir()
	for _, name := range []string{"a-1", "a-3"} {
		if err := os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(to, name, checkpoint.PartitionMetadataFile)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(to, "lost+found"), 0o755); err != nil {
		t.Fatal(err)
	}
	var ids []kadm.TopicID
	for _, paths := range [][]string{{to}, {filepath.Join(to, "a-3"), filepath.Join(to, "a-1")}} {
		b := startReadOnly(t, paths...)
		checkRead(t, b, "a", 40)
		topics, err := kadm.NewClient(client(t, b)).ListTopics(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, topics["a"].ID)
		var leaders []int32
		for _, p := range topics["a"].Partitions.Sorted() {
			leaders = append(leaders, p.Leader)
		}
		if !slices.Equal(leaders, []int32{-1, 1, -1, 1}) {
			t.Errorf("leaders %v", leaders)
		}
	}
	if ids[0] != ids[1] || ids[0] == (kadm.TopicID{}) {
		t.Errorf("topic ids %v", ids)
	}
	b := startReadOnly(t, filepath.Join(to, "a-1"))
	checkRead(t, b, "a", 20)
}

func TestReadOnlyRefusesChanges(t *testing.T) {
	b := startReadOnly(t, writtenDirs(t, 3, false, "d")...)
	c := client(t, b)
	admin := kadm.NewClient(c)
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Value: []byte("x")}).FirstErr()
	want("produce", err, kerr.ClusterAuthorizationFailed) // idempotent: the producer's id is refused
	plain := client(t, b, kgo.DisableIdempotentWrite())
	err = plain.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Value: []byte("x")}).FirstErr()
	want("produce without an id", err, kerr.TopicAuthorizationFailed)
	_, err = admin.CreateTopic(t.Context(), 1, 1, nil, "new")
	want("create a topic", err, kerr.TopicAuthorizationFailed)
	deleted, err := admin.DeleteTopics(t.Context(), "a")
	want("delete a topic", errors.Join(err, deleted["a"].Err), kerr.TopicAuthorizationFailed)
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "a", At: 1, LeaderEpoch: -1})
	want("commit", admin.CommitAllOffsets(t.Context(), "g", offsets), kerr.GroupAuthorizationFailed)
	groups, err := admin.DeleteGroups(t.Context(), "g")
	want("delete a group", errors.Join(err, groups["g"].Err), kerr.GroupAuthorizationFailed)
	records, err := admin.DeleteRecords(t.Context(), kadm.Offsets{"a": {0: {Topic: "a", At: 1}}})
	want("delete records", errors.Join(err, records["a"][0].Err), kerr.TopicAuthorizationFailed)
	change := []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("1")}}
	configs, err := admin.AlterTopicConfigs(t.Context(), change, "a")
	want("alter configs", errors.Join(err, configs[0].Err), kerr.TopicAuthorizationFailed)
	more, err := admin.CreatePartitions(t.Context(), 1, "a")
	want("create partitions", errors.Join(err, more["a"].Err), kerr.TopicAuthorizationFailed)
	id := kmsg.NewInitProducerIDRequest()
	id.TransactionalID = kmsg.StringPtr("t")
	answer, err := id.RequestWith(t.Context(), c.Broker(int(b.config().NodeID)))
	err = errors.Join(err, kerr.ErrorForCode(answer.ErrorCode))
	want("transactional id", err, kerr.TransactionalIDAuthorizationFailed)
	topics, err := admin.ListTopics(t.Context(), "unknown")
	want("unknown topic", errors.Join(err, topics["unknown"].Err), kerr.UnknownTopicOrPartition)
}

func TestReadOnlyRefusesConflicts(t *testing.T) {
	first, second := writtenDirs(t, 20, false, "d")[0], writtenDirs(t, 20, false, "d")[0]
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	odd := t.TempDir()
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	rename := func(from, to string) string {
		to = filepath.Join(odd, to)
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return to
	}
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"twice":            {[]string{first, copied}, "-0 is both in"},
		"two clusters":     {[]string{first, second}, "serve them one by one"},
		"two topics":       {[]string{in(first, "a-0"), rename(in(second, "a-1"), "a-1")}, "two topics"},
		"one topic twice":  {[]string{in(first, "a-0"), rename(in(first, "a-1"), "b-1")}, "have the same id"},
		"not there":        {[]string{filepath.Join(odd, "no")}, "no such file"},
		"nothing in it":    {[]string{rename(t.TempDir(), "empty")}, "neither a partition's folder nor a log directory"},
		"no name":          {[]string{rename(filepath.Join(first, "a-0"), "a b")}, "no name of a topic"},
		"a file":           {[]string{filepath.Join(first, "a-0", "00000000000000000000.log")}, "give the folder"},
		"an unusable port": {[]string{first}, "listen"},
	} {
		t.Run(name, func(t *testing.T) {
			port := "0"
			if name == "an unusable port" {
				port = "1"
			}
			b, err := Start(t.Context(), Options{ReadOnly: c.paths, Properties: map[string]string{
				"listeners": "PLAINTEXT://192.0.2.1:" + port, "tidemark.admin.listener": ""}})
			if err == nil {
				stopBroker(t, b)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	b := startReadOnly(t, first, filepath.Join(first, "a-0"), first) // the same folders again are no conflict
	checkRead(t, b, "a", 80)
}

// What cannot be read of the small files is done without, and a partition that cannot be read does not take the others
// with it.
func TestReadOnlyGoesOnWithoutWhatCannotBeRead(t *testing.T) {
	dir := writtenDirs(t, 20, false, "d")[0]
	for _, name := range []string{"meta.properties", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
		"replication-offset-checkpoint", "a-1/partition.metadata"} {
		write(t, filepath.Join(dir, name), "no such thing\n")
	}
	write(t, filepath.Join(dir, "a-2/leader-epoch-checkpoint"), "no such thing\n")
	b := startReadOnly(t, dir)
	checkRead(t, b, "a", 60)
}

// Records above the high watermark that the broker knew last are served, and a line of the log says so.
func TestReadOnlyNotesTheHighWatermark(t *testing.T) {
	dir := writtenDirs(t, 20, false, "d")[0]
	write(t, filepath.Join(dir, "replication-offset-checkpoint"), "0\n2\na 0 7\na 1 20\n")
	var logged bytes.Buffer
	b, err := Start(t.Context(), Options{ReadOnly: []string{dir}, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
		Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.replicas.Partition("a", 0)
	stopBroker(t, b)
	if err != nil || p.HighWatermark() != 20 {
		t.Errorf("high watermark %d, %v", p.HighWatermark(), err)
	}
	want := "partition=a-0 high_watermark_checkpoint=7 served_to=20"
	if text := logged.String(); !strings.Contains(text, want) || strings.Contains(text, "partition=a-1 high_watermark") {
		t.Errorf("logged:\n%s", text)
	}
}

// The directories of a broker of ZooKeeper's time say whose they are in another way.
func TestReadOnlyServesZooKeeperDirectories(t *testing.T) {
	dir := writtenDirs(t, 20, false, "d")[0]
	write(t, filepath.Join(dir, "meta.properties"), "version=0\nbroker.id=7\ncluster.id=x\n")
	b := startReadOnly(t, dir)
	checkRead(t, b, "a", 80)
	if b.config().NodeID != 7 || b.clusterID() != "x" {
		t.Errorf("node %d of cluster %q", b.config().NodeID, b.clusterID())
	}
}

func TestDerivedIDs(t *testing.T) {
	seen := map[metadata.UUID]bool{}
	for i := range 1000 {
		id := derivedID(fmt.Sprint("topic t", i))
		if seen[id] || id.Reserved() || id.String()[0] == '-' || id != derivedID(fmt.Sprint("topic t", i)) {
			t.Fatalf("topic t%d has the id %v", i, id)
		}
		seen[id] = true
	}
}

// describeTopic asks for the configs of a topic that somebody has set, as "key=value source".
func describeTopic(t *testing.T, b *Broker, topic string) []string {
	t.Helper()
	all, err := kadm.NewClient(client(t, b)).DescribeTopicConfigs(t.Context(), topic)
	if err == nil {
		err = all[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
	var set []string
	for _, c := range all[0].Configs {
		if c.Source != kmsg.ConfigSourceDefaultConfig {
			set = append(set, c.Key+"="+c.MaybeValue()+" "+c.Source.String())
		}
	}
	return set
}

// The metadata log of the directory tells what is configured, how many partitions there are, and the id of a topic
// whose folders do not.
func TestReadOnlyReadsTheMetadataLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	b := startBroker(t, dir, map[string]string{"log.index.size.max.bytes": "4096"})
	admin := kadm.NewClient(client(t, b))
	if _, err := admin.CreateTopic(t.Context(), 4, 1, map[string]*string{"retention.ms": kadm.StringPtr("777"),
		"cleanup.policy": kadm.StringPtr("compact"), "preallocate": kadm.StringPtr("true")}, "a"); err != nil {
		t.Fatal(err)
	}
	change := []kadm.AlterConfig{{Name: "log.segment.bytes", Value: kadm.StringPtr("2000000")},
		{Name: "max.connections", Value: kadm.StringPtr("100")}}
	altered, err := admin.AlterBrokerConfigs(t.Context(), change)
	if err == nil {
		err = altered[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
	record := &kgo.Record{Topic: "a", Key: []byte("k"), Value: []byte("v"), Timestamp: time.UnixMilli(1000)}
	if err := client(t, b).ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	topics, err := admin.ListTopics(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	stopBroker(t, b)
	for _, name := range []string{"a-3", "a-0/partition.metadata", "a-1/partition.metadata", "a-2/partition.metadata"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b = startReadOnly(t, dir)
	want := []string{"cleanup.policy=compact DYNAMIC_TOPIC_CONFIG", "preallocate=true DYNAMIC_TOPIC_CONFIG",
		"retention.ms=777 DYNAMIC_TOPIC_CONFIG", "segment.bytes=2000000 DYNAMIC_DEFAULT_BROKER_CONFIG"}
	got := slices.DeleteFunc(describeTopic(t, b, "a"), func(c string) bool {
		return strings.Contains(c, "STATIC") || strings.HasPrefix(c, "min.insync.replicas=") // as in every new cluster
	})
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("configs %q, want %q", got, want)
	}
	served, err := kadm.NewClient(client(t, b)).ListTopics(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	leaders := []int32{}
	for _, p := range served["a"].Partitions.Sorted() {
		leaders = append(leaders, p.Leader)
	}
	if served["a"].ID != topics["a"].ID || !slices.Equal(leaders, []int32{1, 1, 1, -1}) {
		t.Errorf("topic %v with leaders %v, want %v", served["a"].ID, leaders, topics["a"].ID)
	}
	if r := readAll(t, b, "a", 1); string(r[0].Value) != "v" {
		t.Errorf("read %q", r[0].Value)
	}
}

// Without a metadata log, or with that of another topic of the same name, a line of the log says what is not known.
func TestReadOnlyTellsWhatTheMetadataLogLacks(t *testing.T) {
	start := func(dir string) (*Broker, string) {
		var logged bytes.Buffer
		b, err := Start(t.Context(), Options{ReadOnly: []string{dir}, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "tidemark.admin.listener": ""}})
		if err != nil {
			t.Fatal(err)
		}
		set := describeTopic(t, b, "a")
		stopBroker(t, b)
		for _, c := range set {
			if strings.Contains(c, "TOPIC") {
				t.Errorf("config %s", c)
			}
		}
		return b, logged.String()
	}
	dir := writtenDirs(t, 2, false, "d")[0]
	for p := range 4 {
		write(t, filepath.Join(dir, fmt.Sprintf("a-%d/partition.metadata", p)), "version: 0\ntopic_id: "+
			checkpoint.FormatID([16]byte{1, 2, 3, 15: 4}))
	}
	if _, logged := start(dir); !strings.Contains(logged, "an older topic of that name") {
		t.Errorf("logged:\n%s", logged)
	}
	if err := os.RemoveAll(filepath.Join(dir, "__cluster_metadata-0")); err != nil {
		t.Fatal(err)
	}
	if _, logged := start(dir); !strings.Contains(logged, "there is no metadata log") {
		t.Errorf("logged:\n%s", logged)
	}
}

// A directory of Kafka's is served with the ids, partitions, configs and committed offsets that Kafka told of it.
func TestReadOnlyTellsWhatKafkaTold(t *testing.T) {
	c := golden.Load(t, "13-data")
	b := startReadOnly(t, c.TreePath(t, golden.Data))
	admin := kadm.NewClient(client(t, b))
	topics, err := admin.ListTopicsWithInternal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, partitions := c.Rows(t, "topics.tsv"), 0
	for _, row := range want {
		topic, ok := topics[row["topic"]]
		if !ok || checkpoint.FormatID(topic.ID) != row["id"] {
			t.Errorf("topic %s: %v, id %s, want %s", row["topic"], ok, topic.ID, row["id"])
			continue
		}
		var set []string
		for _, config := range describeTopic(t, b, row["topic"]) {
			if key, ok := strings.CutSuffix(config, " DYNAMIC_TOPIC_CONFIG"); ok {
				set = append(set, key)
			}
		}
		if slices.Sort(set); strings.Join(set, ",") != row["configs"] {
			t.Errorf("topic %s: configs %q, want %q", row["topic"], set, row["configs"])
		}
	}
	for _, topic := range topics {
		partitions += len(topic.Partitions)
	}
	if partitions != len(want) {
		t.Errorf("%d partitions, want %d", partitions, len(want))
	}
	for _, row := range c.Rows(t, "groups.tsv") {
		offsets, err := admin.FetchOffsets(t.Context(), row["group"])
		if err != nil {
			t.Fatal(err)
		}
		partition, _ := strconv.Atoi(row["partition"])
		if o, _ := offsets.Lookup(row["topic"], int32(partition)); strconv.FormatInt(o.At, 10) != row["offset"] {
			t.Errorf("group %s, %s-%d: offset %d, want %s", row["group"], row["topic"], partition, o.At, row["offset"])
		}
	}
}
