// Package crash kills the real process under load, again and again, and proves after each restart that every
// acknowledged record is there, in its place, once, and that every look-up answers.
//
// TIDEMARK_CRASH_ROUNDS sets how often (10 when it is not set); the run is as long as that takes, hours if wanted.
// TIDEMARK_CRASH_SEED sets what is random, except when the kill hits; a failure prints it.
package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/record"
	"tidemark/test/ledger"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// kind is how the topics of the test differ.
type kind struct {
	name       string
	partitions int32
	configs    []string
	codecs     []record.Codec
}

// kinds roll often, in all ways, and write to the disk in all ways.
var kinds = []kind{
	{"small", 3, []string{"internal.segment.bytes", "20000", "index.interval.bytes", "500"}, []record.Codec{record.None}},
	{"codecs", 2, []string{"internal.segment.bytes", "50000", "segment.index.bytes", "480"},
		[]record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}},
	{"by-time", 1, []string{"segment.ms", "3000", "index.interval.bytes", "0"}, []record.Codec{record.LZ4}},
	{"flushed", 1, []string{"flush.messages", "1", "internal.segment.bytes", "30000"}, []record.Codec{record.None}},
	{"preallocated", 1, []string{"preallocate", "true", "internal.segment.bytes", "40000"}, []record.Codec{record.None}},
	{"large", 1, nil, []record.Codec{record.None}},
}

// world is the directory and what was written to it.
type world struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	dir     string
	book    *ledger.Ledger
	writers []*writer
	made    int // generations of topics
	topics  map[string]int32
	dead    []string // topics deleted and acknowledged
	churn   churn
	process *proc.Process
	client  *ledger.Client
	totals  struct{ kills, early, batches, records, unknown int }
}

// generation is after how many rounds the topics are deleted and others made, unless TIDEMARK_CRASH_GENERATION says
// otherwise: what was written stays small enough to be read whole in every round.
const generation = 15

// TestKill is the loop.
func TestKill(t *testing.T) {
	rounds := proc.Number(t, "TIDEMARK_CRASH_ROUNDS", 10)
	seed := proc.Number(t, "TIDEMARK_CRASH_SEED", uint64(time.Now().UnixNano()))
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)), dir: filepath.Join(t.TempDir(), "data"),
		book: ledger.New(), topics: make(map[string]int32)}
	t.Logf("%d rounds, seed %d", rounds, seed)
	round := uint64(0)
	defer func() {
		if t.Failed() {
			t.Logf("round %d, seed %d; the server's log:\n%s", round, seed, proc.Tail(w.process.Log(), 60))
		}
	}()
	w.start()
	for ; round < rounds; round++ {
		if round%proc.Number(t, "TIDEMARK_CRASH_GENERATION", generation) == 0 {
			w.renew()
		}
		w.load()
		w.kill()
		if round%5 == 1 {
			w.readOnly()
		}
		w.startKilled()
		w.start()
		w.check()
		if t.Failed() {
			return
		}
		if round%50 == 49 {
			t.Logf("round %d: %+v", round+1, w.totals)
		}
	}
	w.stop()
	t.Logf("%d rounds: %+v", rounds, w.totals)
}

// settings make the background work of a broker happen within a round.
var settings = []string{
	"--set", "tidemark.admin.listener=", "--set", "auto.create.topics.enable=false",
	"--set", "log.flush.offset.checkpoint.interval.ms=150", "--set", "log.flush.start.offset.checkpoint.interval.ms=150",
	"--set", "replica.high.watermark.checkpoint.interval.ms=100", "--set", "log.segment.delete.delay.ms=100",
	"--set", "metadata.log.max.record.bytes.between.snapshots=3000", "--set", "log.initial.task.delay.ms=100",
	"--set", "log.retention.check.interval.ms=200", "--set", "log.retention.ms=-1",
}

// start starts the server and waits until it serves.
func (w *world) start() {
	w.t.Helper()
	var addr string
	w.process, addr = proc.Serve(w.t, w.dir, 0, settings...)
	w.client = ledger.Dial(w.t, addr)
}

// startKilled now and then starts the server and kills it before it is ready.
func (w *world) startKilled() {
	w.t.Helper()
	for w.rng.IntN(3) == 0 {
		port := proc.FreePorts(w.t, 1)[0]
		args := append([]string{"serve", "--data", w.dir, "--listen", fmt.Sprintf("127.0.0.1:%d", port)}, settings...)
		p := proc.Start(w.t, "tidemark", proc.Tidemark(w.t), args...)
		time.Sleep(time.Duration(w.rng.IntN(60)) * time.Millisecond)
		p.Kill(w.t)
		w.totals.early++
	}
}

// renew deletes the topics and makes others.
func (w *world) renew() {
	w.t.Helper()
	for topic := range w.topics {
		w.client.DeleteTopic(w.t, topic)
		w.dead = append(w.dead, topic)
	}
	w.book, w.writers, w.topics = ledger.New(), nil, make(map[string]int32)
	w.made++
	for _, k := range kinds {
		topic := fmt.Sprintf("%s-%d", k.name, w.made)
		w.client.CreateTopic(w.t, topic, k.partitions, k.configs...)
		w.topics[topic] = k.partitions
		for p := range k.partitions {
			id := int64(len(w.writers)) + 100*int64(w.made) + 1_000_000
			w.writers = append(w.writers, newWriter(w.book.Partition(topic, p), id, w.seed, k.codecs))
		}
	}
	w.lead()
}

// lead notes the epochs in which the partitions are led now.
func (w *world) lead() {
	w.t.Helper()
	found := w.client.Metadata(w.t)
	for topic, partitions := range w.topics {
		if len(found[topic].Partitions) != int(partitions) {
			w.t.Fatalf("%s has %d partitions, want %d", topic, len(found[topic].Partitions), partitions)
		}
		for _, p := range found[topic].Partitions {
			w.book.Partition(topic, p.Partition).Lead(p.LeaderEpoch)
		}
		delete(found, topic)
	}
	for _, err := range w.churn.check(found) {
		w.t.Error(err)
	}
	for _, topic := range w.dead {
		if _, ok := found[topic]; ok {
			w.t.Errorf("%s is back although its deletion was acknowledged", topic)
		}
	}
}

// load has all writers write at once; the kill comes while they do.
func (w *world) load() {
	w.t.Helper()
	const limit = 150 // batches of a writer in a round
	var all sync.WaitGroup
	for _, writer := range w.writers {
		all.Go(func() { writer.run(w.client.Addr, limit) })
	}
	all.Go(func() { w.churn.run(w.client) })
	// Most kills hit the writers at work, some after they are done and all is quiet.
	life := 120
	if w.rng.IntN(3) == 0 {
		life = 600
	}
	time.Sleep(time.Duration(w.rng.IntN(life)) * time.Millisecond)
	w.kill()
	all.Wait()
	for _, writer := range w.writers {
		for _, err := range writer.trouble {
			w.t.Errorf("%s: %v", writer.book.Name(), err)
		}
		w.totals.batches += writer.acked
	}
}

func (w *world) kill() {
	w.t.Helper()
	select {
	case <-w.process.Ended():
		return
	default:
	}
	w.process.Kill(w.t)
	w.totals.kills++
}

// check proves that nothing acknowledged is lost and nothing is there twice.
func (w *world) check() {
	w.t.Helper()
	w.totals.records = 0
	for _, writer := range w.writers {
		p := writer.book
		w.client.WaitLed(w.t, p.Topic, w.topics[p.Topic])
		before := len(writer.pending)
		if err := writer.reconcile(w.client.EndOffset(w.t, p.Topic, p.ID)); err != nil {
			w.t.Error(err)
		}
		w.totals.unknown += before - len(writer.pending)
		w.totals.records += len(p.Records)
	}
	w.lead()
	if w.t.Failed() {
		return
	}
	w.book.Check(w.t, w.client)
	w.checkDuplicates()
	w.checkLog()
}

// checkDuplicates sends the last stored batch of each producer again.
func (w *world) checkDuplicates() {
	w.t.Helper()
	for _, writer := range w.writers {
		if writer.last == nil {
			continue
		}
		got, err := w.client.Produce(writer.book.Topic, writer.book.ID, writer.last.bytes)
		if err != nil || got.Err() != nil || got.Base != writer.base {
			w.t.Errorf("the last stored batch of %s again: offset %d, want %d; %v %v", writer.book.Name(), got.Base, writer.base,
				got.Err(), err)
		}
	}
}

// expected is what a start after a kill may warn of: a batch of which a part was written, a producer snapshot that was
// just being written.
var expected = regexp.MustCompile(`msg="(cut a log at its first bad batch|` +
	`producer snapshot is not usable, trying the one before)"|` + stray)

var complaint = regexp.MustCompile(`level=(ERROR|WARN)`)

// stray is a folder whose topic's deletion was in the metadata log, but not yet done: Kafka keeps it as well.
const stray = `msg="partition is not assigned to this node: its folder was renamed, nothing was removed" ` +
	`partition=churn-|msg="folder left alone: it holds no partition of this node" .*-stray$`

// checkLog reads the server's log.
func (w *world) checkLog() {
	w.t.Helper()
	for line := range strings.SplitSeq(w.process.Log(), "\n") {
		if complaint.MatchString(line) && !expected.MatchString(line) {
			w.t.Errorf("logged: %s", line)
		}
	}
}

// stop ends the run cleanly and has everything on disk verified.
func (w *world) stop() {
	w.t.Helper()
	if exit := w.process.Stop(w.t); exit != 0 {
		w.t.Errorf("exit status %d", exit)
	}
	ledger.VerifyFiles(w.t, w.dir)
}
