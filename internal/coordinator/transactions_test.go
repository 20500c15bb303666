package coordinator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/metadata"
	"tidemark/internal/producerstate"
	"tidemark/internal/txn"
)

// dataPartition is a partition that producers write to: what it holds, and what it knows of each producer.
type dataPartition struct {
	events    []string
	producers map[int64]*producerEntry
}

type producerEntry struct {
	epoch       int16
	open        []string // of the open transaction
	generation  int      // of verifications
	coordinator int32
}

func (d *dataPartition) producer(id int64) *producerEntry {
	if d.producers[id] == nil {
		d.producers[id] = &producerEntry{epoch: -1}
	}
	return d.producers[id]
}

// data appends a record of a transaction; began is the producer's generation when verification began.
func (d *dataPartition) data(p txn.Producer, name string, began int) error {
	e := d.producer(p.ID)
	open := len(e.open) > 0 && e.epoch == p.Epoch
	switch {
	case p.Epoch < e.epoch:
		return errors.New("fenced")
	case !open && began != e.generation:
		return errors.New("verification is out of date")
	}
	e.epoch = p.Epoch
	e.generation++
	e.open = append(e.open, name)
	return nil
}

// marker ends the open transaction, if there is one.
func (d *dataPartition) marker(m Marker) error {
	e := d.producer(m.Producer.ID)
	repeated := m.Producer.Epoch == e.epoch && len(e.open) == 0
	switch {
	case m.Producer.Epoch < e.epoch, m.Version >= 2 && m.Producer.Epoch == e.epoch && !repeated:
		return &producerstate.InvalidProducerEpochError{Epoch: m.Producer.Epoch, KnownEpoch: e.epoch}
	case m.CoordinatorEpoch < e.coordinator:
		return &producerstate.TransactionCoordinatorFencedError{Epoch: m.CoordinatorEpoch, KnownEpoch: e.coordinator}
	}
	kind := "abort"
	if m.Commit {
		kind = "commit"
	}
	for _, name := range e.open {
		d.events = append(d.events, kind+" "+name)
	}
	e.epoch, e.coordinator, e.open = m.Producer.Epoch, m.CoordinatorEpoch, nil
	e.generation++
	return nil
}

// txnWorld is a transaction coordinator on a log in memory, with partitions to write to.
type txnWorld struct {
	*machinery
	t       testing.TB
	log     *memLog
	data    map[checkpoint.TopicPartition]*dataPartition
	image   *metadata.Image
	coord   *Transactions
	epoch   int32
	version int16
	nextID  int64
	// point is called before and after everything that is written; it may panic: the process dies there.
	point func()
	// failMarker, when it returns an error, is the answer to a marker: before it is written, or after (lost answer).
	failMarker func(before bool) error
}

func newTxnWorld(t testing.TB, partitions int) *txnWorld {
	w := &txnWorld{machinery: newMachinery(), t: t, log: newMemLog(), nextID: 1000, version: 2,
		data: map[checkpoint.TopicPartition]*dataPartition{}, point: func() {},
		failMarker: func(bool) error { return nil }}
	w.log.before = func() { w.point() }
	w.log.after = func() { w.point() }
	for i := range partitions {
		w.data[dataTP(i)] = &dataPartition{producers: map[int64]*producerEntry{}}
	}
	w.image = testImage(t, map[string]int{TransactionsTopic: 1, "d": partitions})
	w.start()
	return w
}

func dataTP(i int) checkpoint.TopicPartition {
	return checkpoint.TopicPartition{Topic: "d", Partition: int32(i)}
}

// testImage is an image with topics of so many partitions, all led by broker 1.
func testImage(t testing.TB, topics map[string]int) *metadata.Image {
	t.Helper()
	d := metadata.NewDelta(metadata.NewImage())
	replay := func(b metadata.Body) {
		if err := d.Replay(metadata.Record{Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	n := byte(0)
	for name, partitions := range topics {
		n++
		id := metadata.UUID{0: n, 15: 1}
		replay(&metadata.TopicRecord{Name: name, TopicID: id})
		for i := range partitions {
			replay(&metadata.PartitionRecord{PartitionID: int32(i), TopicID: id, Replicas: []int32{1}, ISR: []int32{1},
				Leader: 1, Directories: []metadata.UUID{metadata.DirUnassigned}})
		}
	}
	return d.Image()
}

// start begins a process that leads the partition of __transaction_state in a new leader epoch.
func (w *txnWorld) start() {
	w.forget()
	w.log.mu.Lock()
	clear(w.log.watchers)
	w.log.mu.Unlock()
	w.epoch++
	w.coord = NewTransactions(TransactionsOptions{
		Machine: txn.Options{MaxTimeoutMs: 900_000, ExpirationMs: 604_800_000,
			Version: func() int16 { return w.version },
			NewProducerID: func() (int64, error) {
				w.nextID++
				return w.nextID - 1, nil
			}},
		Image: func() *metadata.Image { return w.image }, Markers: w, Clock: w.clock, Timer: w.timer, Go: w.run,
		ExpireEvery: time.Hour, RetryAfter: 100 * time.Millisecond, WriteTimeout: 30 * time.Second,
	})
	w.coord.runtime.Elect(0, w.epoch, w.log)
}

// Write implements [Markers]; each partition answers in its own time.
func (w *txnWorld) Write(m Marker, partitions []checkpoint.TopicPartition, done func(errs []error)) {
	g := newGathering(len(partitions), done)
	for i, tp := range partitions {
		w.run(func() {
			err := w.failMarker(true)
			if err == nil {
				w.point()
				err = w.data[tp].marker(m)
				w.point()
				if err == nil {
					err = w.failMarker(false)
				}
			}
			g.set(i, err)
		})
	}
}

// retriable tells whether a client asks again after an error.
func retriable(err error) bool {
	return errors.Is(err, ErrLoading) || errors.Is(err, ErrNotAvailable) || errors.Is(err, ErrNotCoordinator) ||
		errors.Is(err, txn.ErrConcurrent)
}

// died is the panic of a process that dies at a point.
type died struct{}

// alive runs f and reports false when the process died in it.
func alive(f func()) (ok bool) {
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case died:
			ok = false
		default:
			panic(r)
		}
	}()
	f()
	return true
}

// until asks again and again, over the deaths of processes, until an answer is final.
func (w *txnWorld) until(ask func(done func(error))) error {
	for range 100 {
		answered, result := false, error(nil)
		lives := alive(func() {
			ask(func(err error) { answered, result = true, err })
			w.pass(w.t, time.Second)
		})
		switch {
		case !lives:
			w.start()
		case answered && !retriable(result):
			return result
		}
	}
	w.t.Fatal("no final answer")
	return nil
}

func (w *txnWorld) must(ask func(done func(error))) {
	w.t.Helper()
	if err := w.until(ask); err != nil {
		w.t.Fatal(err)
	}
}

// round runs one transaction over all partitions, from a new producer to the end.
func (w *txnWorld) round(id, name string, commit bool) {
	var p txn.Producer
	w.must(func(done func(error)) {
		w.coord.Init(id, 60_000, txn.NoProducer, func(got txn.Producer, err error) { p = got; done(err) })
	})
	var all []checkpoint.TopicPartition
	for i := range len(w.data) {
		all = append(all, dataTP(i))
	}
	began := map[checkpoint.TopicPartition]int{}
	for _, tp := range all {
		began[tp] = w.data[tp].producer(p.ID).generation
	}
	w.must(func(done func(error)) { w.coord.Add(id, p, all, w.version, done) })
	for _, tp := range all {
		if err := w.data[tp].data(p, name, began[tp]); err != nil {
			w.t.Fatalf("%s: %v", tp, err)
		}
	}
	w.must(func(done func(error)) {
		w.coord.End(id, p, commit, w.version, func(_ txn.Producer, err error) { done(err) })
	})
}

// quiet waits until every transaction is complete, over the deaths of processes.
func (w *txnWorld) quiet(id string) txn.Description {
	var d txn.Description
	w.must(func(done func(error)) {
		w.coord.Describe(id, func(got txn.Description, err error) {
			d = got
			if err == nil && d.State != txn.CompleteCommit && d.State != txn.CompleteAbort {
				err = txn.ErrConcurrent
			}
			done(err)
		})
	})
	return d
}

// TestMarkersReachEveryPartitionWhateverIsLost lets the process die before and after each single write of two
// transactions, at the n-th, n = 1, 2, …, until a run ends without a death; and the same for each pair of deaths.
func TestMarkersReachEveryPartitionWhateverIsLost(t *testing.T) {
	for _, version := range []int16{0, 2} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			for first := 1; ; first++ {
				died1, _ := runWithDeaths(t, version, first, 0)
				if !died1 {
					t.Logf("%d points of death", first-1)
					if first < 20 {
						t.Errorf("only %d points of death", first-1)
					}
					return
				}
				for second := 1; ; second++ {
					if _, died2 := runWithDeaths(t, version, first, second); !died2 {
						break
					}
				}
			}
		})
	}
}

// runWithDeaths dies at the first-th point, and then at the second-th from there (0: not).
func runWithDeaths(t *testing.T, version int16, first, second int) (died1, died2 bool) {
	w := newTxnWorld(t, 3)
	w.version = version
	points := 0
	w.point = func() {
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
	w.round("t1", "a", true)
	w.quiet("t1")
	w.round("t1", "b", false)
	w.quiet("t1")
	for tp, d := range w.data {
		if got := strings.Join(d.events, ", "); got != "commit a, abort b" {
			t.Fatalf("deaths at %d and %d later: %s holds %q", first, second, tp, got)
		}
	}
	return died1, died2
}

func TestMarkersAreTriedAgain(t *testing.T) {
	w := newTxnWorld(t, 2)
	left := 3
	w.failMarker = func(before bool) error {
		if left > 0 && before == (left != 1) { // at last the answer is lost, not the marker
			left--
			return errBroken
		}
		return nil
	}
	w.round("t1", "a", true)
	w.quiet("t1")
	for tp, d := range w.data {
		if got := strings.Join(d.events, ", "); got != "commit a" {
			t.Errorf("%s holds %q", tp, got)
		}
	}
}

func TestPartitionsThatAreGoneNeedNoMarker(t *testing.T) {
	w := newTxnWorld(t, 2)
	w.failMarker = func(bool) error { return errBroken }
	w.round("t1", "a", true)
	w.image = testImage(t, map[string]int{TransactionsTopic: 1, "d": 1})
	w.failMarker = func(bool) error { return nil }
	w.quiet("t1")
	if got := w.data[dataTP(1)].events; len(got) != 0 {
		t.Errorf("the partition that is gone holds %q", got)
	}
}

func TestMarkerIsFencedByALaterEpoch(t *testing.T) {
	w := newTxnWorld(t, 1)
	w.failMarker = func(bool) error { return &producerstate.InvalidProducerEpochError{} }
	w.round("t1", "a", true)
	if d := w.quiet("t1"); d.State != txn.CompleteCommit {
		t.Errorf("state %s", d.State)
	}
}

func TestOpenTransactionsAreAbortedInTime(t *testing.T) {
	w := newTxnWorld(t, 1)
	w.failMarker = func(bool) error { return nil }
	var p txn.Producer
	w.must(func(done func(error)) {
		w.coord.Init("t1", 5000, txn.NoProducer, func(got txn.Producer, err error) { p = got; done(err) })
	})
	w.must(func(done func(error)) {
		w.coord.Add("t1", p, []checkpoint.TopicPartition{dataTP(0)}, 2, done)
	})
	if err := w.data[dataTP(0)].data(p, "a", 0); err != nil {
		t.Fatal(err)
	}
	w.pass(t, 3*time.Second)
	w.start() // the time goes on over a restart
	w.pass(t, 990*time.Millisecond)
	if got := w.data[dataTP(0)].events; len(got) != 0 {
		t.Fatalf("aborted too early: %q", got)
	}
	w.pass(t, 11*time.Millisecond)
	if got := strings.Join(w.data[dataTP(0)].events, ", "); got != "abort a" {
		t.Fatalf("partition holds %q", got)
	}
	err := w.until(func(done func(error)) {
		w.coord.End("t1", p, true, 2, func(_ txn.Producer, err error) { done(err) })
	})
	if !errors.Is(err, txn.ErrInvalidState) {
		t.Errorf("commit after the abort: %v", err)
	}
}

func TestIDsExpire(t *testing.T) {
	w := newTxnWorld(t, 1)
	for i := range 3 {
		w.round(fmt.Sprintf("t%d", i), "a", true)
	}
	var list []txn.Listed
	count := func() int {
		w.must(func(done func(error)) {
			w.coord.List(txn.Filter{MinDurationMs: -1}, func(l []txn.Listed, err error) { list = l; done(err) })
		})
		return len(list)
	}
	if n := count(); n != 3 {
		t.Fatalf("%d ids, want 3", n)
	}
	w.pass(t, 7*24*time.Hour+time.Hour)
	if n := count(); n != 0 {
		t.Errorf("%d ids after a week: %v", n, list)
	}
	w.start()
	if n := count(); n != 0 {
		t.Errorf("%d ids after a restart: %v", n, list)
	}
}

func TestListIsInTheOrderOfIDs(t *testing.T) {
	w := newTxnWorld(t, 1)
	w.image = testImage(t, map[string]int{TransactionsTopic: 5, "d": 1})
	for i := range int32(4) {
		w.coord.runtime.Elect(i+1, w.epoch, newMemLog())
	}
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("t%02d", i)
		want = append(want, id)
		w.must(func(done func(error)) {
			w.coord.Init(id, 60_000, txn.NoProducer, func(_ txn.Producer, err error) { done(err) })
		})
	}
	var got []string
	w.must(func(done func(error)) {
		w.coord.List(txn.Filter{MinDurationMs: -1}, func(all []txn.Listed, err error) {
			for _, one := range all {
				got = append(got, one.ID)
			}
			done(err)
		})
	})
	if !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}
