package logdir

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/record"
	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// life is what a node does with two log directories; it notes what was acknowledged.
type life struct {
	acked   map[checkpoint.TopicPartition][]string
	deleted map[checkpoint.TopicPartition]bool
}

var partitionA, partitionB, partitionC = checkpoint.TopicPartition{Topic: "a"}, checkpoint.TopicPartition{Topic: "b"},
	checkpoint.TopicPartition{Topic: "c"}

func (l *life) run(fsys vfs.FS) error {
	hand := &byHand{}
	s, err := begin(fsys, hand)
	if err != nil {
		return err
	}
	for _, tp := range []checkpoint.TopicPartition{partitionA, partitionB, partitionC} {
		err = errors.Join(err, l.fill(s, tp, 3))
	}
	s.WriteHighWatermarks(func(checkpoint.TopicPartition) (int64, bool) { return 1, true })
	s.Checkpoint()
	l.deleted[partitionC] = true // if it fails, the partition may be there or not
	err = errors.Join(err, s.Delete(partitionC))
	hand.runAfter()
	err = errors.Join(err, l.fill(s, partitionA, 2), s.Close(7))
	if err != nil {
		return err
	}
	if s, err = begin(fsys, hand); err != nil {
		return err
	}
	return errors.Join(l.fill(s, partitionB, 2), s.Close(8))
}

func begin(fsys vfs.FS, hand *byHand) (*Set, error) {
	s, err := Open(testOptions(fsys, hand, "/d", "/e"))
	if err != nil {
		return nil, err
	}
	err = s.Format("testcluster", 1)
	if err == nil {
		err = s.Load(context.Background(), func(tp checkpoint.TopicPartition, _ [16]byte) Assignment {
			return Assignment{Assigned: true, TopicID: [16]byte{1, 15: tp.Topic[0]}, Config: commitlog.DefaultConfig()}
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close(-1))
	}
	return s, nil
}

// fill appends to a partition, which is made when it is new.
func (l *life) fill(s *Set, tp checkpoint.TopicPartition, n int) error {
	log, err := s.Create(tp, [16]byte{1, 15: tp.Topic[0]}, commitlog.DefaultConfig())
	for i := 0; i < n && err == nil; i++ {
		value := fmt.Sprintf("%s %d", tp, len(l.acked[tp]))
		b := record.NewBuilder(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, LeaderEpoch: -1})
		if err = b.Append(testNow.UnixMilli(), nil, []byte(value), nil); err != nil {
			return err
		}
		if _, err = log.AppendAsLeader(b.Bytes(), commitlog.AppendOptions{}); err == nil {
			l.acked[tp] = append(l.acked[tp], value)
		}
	}
	return err
}

// check opens the directories, whose disks are well again, and looks for all that was acknowledged.
func (l *life) check(fsys vfs.FS) error {
	s, err := begin(fsys, &byHand{})
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	for tp, want := range l.acked {
		log, err := s.Log(tp)
		if errors.Is(err, ErrUnknownPartition) && l.deleted[tp] {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tp, err)
		}
		if end := log.EndOffset(); end < int64(len(want)) {
			return fmt.Errorf("%s ends at %d, %d records were acknowledged", tp, end, len(want))
		}
	}
	return s.Close(9)
}

// TestEachFailure lets every call of the file system fail once, while two directories are opened, filled, checkpointed
// and closed, and one partition is deleted. What was acknowledged is there afterwards, and no start is refused.
func TestEachFailure(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		var mem *vfs.Mem
		runs := 0
		for n := int64(1); ; n++ {
			mem = vfs.NewMem()
			l := &life{acked: map[checkpoint.TopicPartition][]string{}, deleted: map[checkpoint.TopicPartition]bool{}}
			injected := &faultfs.Nth{N: n, Sticky: sticky}
			err := l.run(faultfs.Wrap(mem, injected))
			runs++
			if !injected.Fired() {
				if err != nil {
					t.Fatalf("without a failure: %v", err)
				}
				break
			}
			if err := l.check(mem); err != nil {
				t.Fatalf("sticky %v, failure %d (%v): %v", sticky, n, err, err)
			}
		}
		if runs < 100 {
			t.Errorf("only %d failures", runs)
		}
	}
}
