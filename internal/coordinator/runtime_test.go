package coordinator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tidemark/internal/replica"
	"tidemark/record"
)

// listShard remembers what it was told.
type listShard struct {
	env    *Env
	events []string
}

func (s *listShard) note(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *listShard) Replay(r Replayed) error {
	if string(r.Key) == "odd" {
		return errBroken
	}
	s.note("%d:%s=%s", r.Offset, r.Key, r.Value)
	if r.ProducerID >= 0 {
		s.note("of %d/%d", r.ProducerID, r.ProducerEpoch)
	}
	return nil
}

func (s *listShard) ReplayMarker(id int64, epoch int16, commit bool) {
	s.note("end %d/%d %v", id, epoch, commit)
}
func (s *listShard) Loaded()            { s.note("loaded") }
func (s *listShard) Timeout(key string) { s.note("timeout %s", key) }
func (s *listShard) Unloaded()          { s.note("unloaded") }

func (s *listShard) take() string {
	all := strings.Join(s.events, " ")
	s.events = nil
	return all
}

// bench is a runtime with one partition on a log in memory.
type bench struct {
	*machinery
	t     *testing.T
	rt    *Runtime[*listShard]
	log   *memLog
	shard *listShard // the newest
}

func newBench(t *testing.T) *bench {
	b := &bench{machinery: newMachinery(), t: t, log: newMemLog()}
	b.rt = NewRuntime(Options[*listShard]{Topic: "t", Clock: b.clock, Timer: b.timer, Go: b.run,
		WriteTimeout: 5 * time.Second, LoadBytes: 100,
		NewShard: func(e *Env) *listShard {
			b.shard = &listShard{env: e}
			return b.shard
		}})
	return b
}

// put is a command that writes one record; its answer is noted.
func put(key, value string, done *[]error) Command[*listShard] {
	return Command[*listShard]{
		Run:  func(*listShard) *Write { return &Write{Records: []Record{{[]byte(key), []byte(value)}}} },
		Done: func(err error) { *done = append(*done, err) },
	}
}

func (b *bench) expect(want string) {
	b.t.Helper()
	if got := b.shard.take(); got != want {
		b.t.Errorf("shard was told %q, want %q", got, want)
	}
}

func wantAnswers(t *testing.T, got []error, want ...error) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("answers %v, want %v", got, want)
	}
	for i := range want {
		if !errors.Is(got[i], want[i]) {
			t.Errorf("answer %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestCommandsWaitForTheLoad(t *testing.T) {
	b := newBench(t)
	var answers []error
	b.rt.Do(0, put("a", "1", &answers))
	b.rt.Elect(0, 7, b.log)
	b.rt.Do(0, put("a", "1", &answers))
	b.settle(t)
	b.rt.Do(0, put("a", "1", &answers))
	b.settle(t)
	b.rt.Do(1, put("a", "1", &answers))
	wantAnswers(t, answers, ErrNotCoordinator, ErrLoading, nil, ErrNotCoordinator)
	b.expect("loaded 0:a=1")
}

func TestAnotherElectionReplaysTheLog(t *testing.T) {
	b := newBench(t)
	var answers []error
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	for _, k := range []string{"a", "b", "c"} {
		b.rt.Do(0, put(k, "1", &answers))
	}
	b.rt.Do(0, Command[*listShard]{Run: func(*listShard) *Write {
		return &Write{Transactional: true, ProducerID: 9, ProducerEpoch: 2, Records: []Record{{[]byte("d"), nil}}}
	}})
	b.rt.Do(0, Command[*listShard]{Run: func(*listShard) *Write {
		return &Write{ProducerID: 9, ProducerEpoch: 2, Marker: &record.EndTxn{Commit: true, CoordinatorEpoch: 3}}
	}})
	b.settle(t)
	all := b.shard.take()
	if want := "loaded 0:a=1 1:b=1 2:c=1 3:d= of 9/2 end 9/2 true"; all != want {
		t.Fatalf("shard was told %q, want %q", all, want)
	}
	first := b.shard
	b.rt.Elect(0, 2, b.log)
	b.settle(t)
	b.expect(strings.TrimPrefix(all, "loaded ") + " loaded")
	if got := first.take(); got != "unloaded" {
		t.Errorf("the shard before was told %q", got)
	}
	second := b.shard
	b.rt.Elect(0, 2, b.log)
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	if b.shard != second {
		t.Error("an election that is not later made a new shard")
	}
}

func TestRecordsThatAreNotUnderstoodAreSkipped(t *testing.T) {
	b := newBench(t)
	builder := record.NewBuilder(record.DefaultBuilderOptions())
	for _, k := range []string{"a", "odd", "b"} {
		if err := builder.Append(1, []byte(k), []byte("1"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.log.Append(builder.Bytes(), AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	b.expect("0:a=1 2:b=1 loaded")
}

func TestWritesAreAnsweredBelowTheHighWatermark(t *testing.T) {
	b := newBench(t)
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	b.log.behind = true
	var answers []error
	var order []string
	command := put("a", "1", &answers)
	run := command.Run
	command.Run = func(s *listShard) *Write {
		w := run(s)
		w.Committed = func() { order = append(order, "committed") }
		return w
	}
	b.rt.Do(0, command)
	b.settle(t)
	b.expect("loaded 0:a=1")
	wantAnswers(t, answers)
	b.log.commit()
	b.settle(t)
	wantAnswers(t, answers, nil)

	// Too late: the answer is an error, the record counts all the same.
	b.rt.Do(0, command)
	b.pass(t, 5*time.Second)
	wantAnswers(t, answers, nil, ErrNotAvailable)
	b.expect("1:a=1")
	b.log.commit()
	b.settle(t)
	if len(order) != 2 {
		t.Errorf("committed %d times, want 2", len(order))
	}
	wantAnswers(t, answers, nil, ErrNotAvailable)
}

func TestRefusedAppendsChangeNothing(t *testing.T) {
	b := newBench(t)
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	var answers []error
	for _, err := range []error{replica.ErrNotEnoughReplicas, replica.ErrNotLeader, replica.ErrFencedLeaderEpoch,
		errBroken} {
		b.log.refuse = err
		b.rt.Do(0, put("a", "1", &answers))
		b.settle(t)
	}
	wantAnswers(t, answers, ErrNotAvailable, ErrNotCoordinator, ErrNotCoordinator, errBroken)
	b.expect("loaded")
}

func TestUnloadingAnswersWhatWaits(t *testing.T) {
	b := newBench(t)
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	b.log.behind = true
	var answers []error
	b.rt.Do(0, put("a", "1", &answers))
	b.settle(t)
	b.rt.Do(0, put("b", "1", &answers))
	b.rt.Close()
	b.rt.Do(0, put("c", "1", &answers))
	b.settle(t)
	wantAnswers(t, answers, ErrNotCoordinator, ErrNotCoordinator, ErrNotCoordinator)
	b.expect("loaded 0:a=1 1:b=1 unloaded")
	b.log.commit()
	b.pass(t, time.Minute)
	b.expect("")
	if len(b.log.watchers) != 0 {
		t.Errorf("%d watchers are left", len(b.log.watchers))
	}
}

func TestTimers(t *testing.T) {
	b := newBench(t)
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	set := func(key string, after time.Duration) {
		b.rt.Do(0, Command[*listShard]{Run: func(s *listShard) *Write {
			s.env.SetTimer(key, s.env.Now().Add(after))
			return nil
		}})
	}
	set("b", 2*time.Second)
	set("a", time.Second)
	set("c", 3*time.Second)
	set("a", 4*time.Second)
	b.rt.Do(0, Command[*listShard]{Run: func(s *listShard) *Write { s.env.StopTimer("c"); return nil }})
	b.pass(t, 1900*time.Millisecond)
	b.expect("loaded")
	b.pass(t, time.Second)
	b.expect("timeout b")
	b.pass(t, time.Hour)
	b.expect("timeout a")
	set("d", time.Second)
	b.settle(t)
	b.rt.Resign(0)
	b.pass(t, time.Hour)
	b.expect("unloaded")
}

func TestPartitionFor(t *testing.T) {
	// Kafka: abs(hash) % n; "polygenelubricants" has the smallest hash, whose absolute value counts as 0.
	for key, want := range map[string]int32{"polygenelubricants": 0, "my-transactional-id": 46, "": 0, "群😀": 35} {
		if got := PartitionFor(key, 50); got != want {
			t.Errorf("%q: %d, want %d", key, got, want)
		}
	}
}
