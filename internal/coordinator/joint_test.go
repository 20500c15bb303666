package coordinator

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/replica"
	"tidemark/record"
)

// layout is the number of records of each batch of the log.
func (b *bench) layout() string {
	b.t.Helper()
	var all []string
	for _, batch := range b.log.batches {
		all = append(all, fmt.Sprint(record.Batch(batch).Count()))
	}
	return strings.Join(all, " ")
}

// keyed is put for a key that is also the command's.
func keyed(key, value string, done *[]error) Command[*listShard] {
	c := put(key, value, done)
	c.Key = key
	return c
}

// elected is a bench whose partition is loaded.
func elected(t *testing.T) *bench {
	b := newBench(t)
	b.rt.Elect(0, 1, b.log)
	b.settle(t)
	b.expect("loaded")
	return b
}

func TestQueuedCommandsShareABatch(t *testing.T) {
	b := elected(t)
	var answers []error
	for _, key := range []string{"a", "b", "c"} {
		b.rt.Do(0, keyed(key, "1", &answers))
	}
	b.settle(t)
	wantAnswers(t, answers, nil, nil, nil)
	b.expect("0:a=1 1:b=1 2:c=1")
	b.rt.Do(0, keyed("a", "2", &answers))
	b.settle(t)
	if got := b.layout(); got != "3 1" {
		t.Errorf("records in batches: %s, want 3 1", got)
	}
	b.expect("3:a=2")
}

// TestACommandSeesWhatItMayLookAt: of the same key, or of all keys, a command runs after the shard has taken in what
// the commands before it wrote.
func TestACommandSeesWhatItMayLookAt(t *testing.T) {
	b := elected(t)
	var answers []error
	look := func(key string) Command[*listShard] {
		return Command[*listShard]{Key: key, Run: func(s *listShard) *Write {
			s.note("%q looks", key)
			return nil
		}}
	}
	for _, c := range []Command[*listShard]{keyed("a", "1", &answers), keyed("b", "1", &answers), look("c"), look("b"),
		keyed("a", "2", &answers), keyed("b", "2", &answers), keyed("b", "3", &answers), look(""),
		put("any", "1", &answers), keyed("a", "3", &answers)} {
		b.rt.Do(0, c)
	}
	b.settle(t)
	b.expect(`"c" looks 0:a=1 1:b=1 "b" looks 2:a=2 3:b=2 4:b=3 "" looks 5:any=1 6:a=3`)
	if got := b.layout(); got != "2 2 1 1 1" {
		t.Errorf("records in batches: %s", got)
	}
	wantAnswers(t, answers, nil, nil, nil, nil, nil, nil, nil)
}

func TestAFailedBatchFailsEveryCommandInIt(t *testing.T) {
	b := elected(t)
	for _, c := range []struct{ refused, answered error }{
		{replica.ErrNotEnoughReplicas, ErrNotAvailable}, {replica.ErrNotLeader, ErrNotCoordinator},
		{replica.ErrFencedLeaderEpoch, ErrNotCoordinator}, {errBroken, errBroken},
	} {
		var answers []error
		b.log.refuse = c.refused
		for _, key := range []string{"a", "b", "c"} {
			b.rt.Do(0, keyed(key, "1", &answers))
		}
		b.settle(t)
		wantAnswers(t, answers, c.answered, c.answered, c.answered)
		b.expect("")
	}
	b.log.refuse = nil
	var answers []error
	b.rt.Do(0, keyed("a", "2", &answers))
	b.settle(t)
	wantAnswers(t, answers, nil)
	b.expect("0:a=2")
}

// limitedLog refuses batches that are larger than it allows.
type limitedLog struct {
	*memLog
	maxBytes int
}

func (l limitedLog) Append(batch []byte, o AppendOptions) (base, last int64, err error) {
	if len(batch) > l.maxBytes {
		return -1, -1, commitlog.ErrMessageTooLarge
	}
	return l.memLog.Append(batch, o)
}

func TestABatchThatIsTooLargeIsTakenApart(t *testing.T) {
	b := newBench(t)
	b.rt.Elect(0, 1, limitedLog{b.log, 200})
	b.settle(t)
	b.expect("loaded")
	var answers []error
	large, huge := strings.Repeat("x", 80), strings.Repeat("x", 300)
	b.rt.Do(0, keyed("a", large, &answers))
	b.rt.Do(0, keyed("b", huge, &answers))
	b.rt.Do(0, keyed("c", large, &answers))
	b.settle(t)
	wantAnswers(t, answers, nil, ErrCannotWrite, nil)
	b.expect("0:a=" + large + " 1:c=" + large)
}

func TestABatchIsBounded(t *testing.T) {
	b := elected(t)
	var answers []error
	for i := range 5 {
		b.rt.Do(0, keyed(fmt.Sprint(i), strings.Repeat("x", maxJointBytes/2-100), &answers))
	}
	b.settle(t)
	wantAnswers(t, answers, nil, nil, nil, nil, nil)
	if got := b.layout(); got != "2 2 1" {
		t.Errorf("records in batches: %s", got)
	}
}

// TestWritesOfTransactionsAreAlone: their batches have a producer; the order of all stays that of the commands.
func TestWritesOfTransactionsAreAlone(t *testing.T) {
	b := elected(t)
	var answers []error
	of := func(w Write) Command[*listShard] {
		return Command[*listShard]{Key: "t", Run: func(*listShard) *Write { return &w }}
	}
	b.rt.Do(0, keyed("a", "1", &answers))
	b.rt.Do(0, of(Write{Transactional: true, ProducerID: 9, ProducerEpoch: 2, Records: []Record{{[]byte("d"), nil}}}))
	b.rt.Do(0, keyed("b", "1", &answers))
	b.rt.Do(0, of(Write{ProducerID: 9, ProducerEpoch: 2, Marker: &record.EndTxn{Commit: true, CoordinatorEpoch: 3}}))
	b.rt.Do(0, keyed("c", "1", &answers))
	b.settle(t)
	b.expect("0:a=1 1:d= of 9/2 2:b=1 end 9/2 true 4:c=1")
}

func TestAWholeBatchWaitsForTheHighWatermark(t *testing.T) {
	b := elected(t)
	b.log.behind = true
	var answers []error
	for _, key := range []string{"a", "b"} {
		b.rt.Do(0, keyed(key, "1", &answers))
	}
	b.settle(t)
	b.expect("0:a=1 1:b=1")
	b.log.mark = 1 // in the middle of the batch: no replica has half of one, but if it had
	b.rt.partitions[0].moved()
	b.settle(t)
	wantAnswers(t, answers)
	b.pass(t, 5*time.Second)
	wantAnswers(t, answers, ErrNotAvailable, ErrNotAvailable)
	b.log.commit()
	b.settle(t)
	wantAnswers(t, answers, ErrNotAvailable, ErrNotAvailable)
}

// TestQueuedCommandsAreWrittenBeforeTheUnload: they were taken on while this broker led the partition.
func TestQueuedCommandsAreWrittenBeforeTheUnload(t *testing.T) {
	b := elected(t)
	var answers []error
	for _, key := range []string{"a", "b"} {
		b.rt.Do(0, keyed(key, "1", &answers))
	}
	b.rt.Resign(0)
	b.rt.Do(0, keyed("c", "1", &answers))
	b.settle(t)
	wantAnswers(t, answers, ErrNotCoordinator, nil, nil)
	b.expect("0:a=1 1:b=1 unloaded")
}

func TestWorkersAreKept(t *testing.T) {
	w := newWorkers()
	var done sync.WaitGroup
	for range 200 {
		done.Add(1)
		w.run(done.Done)
	}
	done.Wait()
	if n := w.idle.Load(); n > maxIdleWorkers {
		t.Errorf("%d workers are idle, at most %d may be", n, maxIdleWorkers)
	}
	w.close()
	w.close()
	done.Add(1)
	w.run(done.Done)
	done.Wait()
}
