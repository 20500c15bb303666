package replica

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tidemark/internal/commitlog"
	"tidemark/internal/metadata"
	"tidemark/record"
	"tidemark/vfs"
)

const (
	self     = 1
	other    = 2
	baseTime = 1790214409427
)

func testPartition(t *testing.T, c commitlog.Config) *Partition {
	t.Helper()
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/data/a-0", 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(baseTime)
	log, err := commitlog.Open(commitlog.Options{FS: fsys, Dir: "/data/a-0", Topic: "a", Config: c, Clean: true,
		Clock: func() time.Time { return now }, VerifyTransactions: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	p := newPartition("a", metadata.UUID{1}, 0, self)
	p.open(log, 0)
	return p
}

func batch(t *testing.T, o record.BuilderOptions, timestamps ...int64) []byte {
	t.Helper()
	if o.ProducerID == 0 {
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = -1, -1, -1
	}
	b := record.NewBuilder(o)
	for _, ts := range timestamps {
		if err := b.Append(ts, nil, []byte("value"), nil); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func produce(t *testing.T, p *Partition, n int) {
	t.Helper()
	timestamps := make([]int64, n)
	for i := range timestamps {
		timestamps[i] = baseTime
	}
	if _, err := p.Append(batch(t, record.BuilderOptions{LeaderEpoch: -1}, timestamps...),
		AppendOptions{LeaderEpoch: NoEpoch}); err != nil {
		t.Fatal(err)
	}
}

// lead makes the partition's broker the leader of the epoch.
func lead(t *testing.T, p *Partition, epoch int32, replicas ...int32) {
	t.Helper()
	if err := p.apply(State{Leader: self, LeaderEpoch: epoch, Replicas: replicas, ISR: replicas,
		MinInSyncReplicas: 1}); err != nil {
		t.Fatal(err)
	}
}

func TestHighWatermarkIsTheSmallestLogEndInSync(t *testing.T) {
	p := testPartition(t, commitlog.DefaultConfig())
	lead(t, p, 0, self, other)
	produce(t, p, 11)
	if hw := p.HighWatermark(); hw != 0 {
		t.Errorf("before the follower fetched: got %d, want 0", hw)
	}
	fetch := func(offset int64) {
		t.Helper()
		r, err := p.Read(ReadRequest{Offset: offset, LeaderEpoch: 0, LastFetchedEpoch: NoEpoch, MaxBytes: 1,
			Replica: other})
		if err != nil {
			t.Fatal(err)
		}
		r.Slice.Release()
	}
	fetch(11)
	if hw := p.HighWatermark(); hw != 11 {
		t.Errorf("after the follower fetched at 11: got %d, want 11", hw)
	}
	produce(t, p, 1)
	fetch(5)
	if hw := p.HighWatermark(); hw != 11 {
		t.Errorf("high watermark went back to %d", hw)
	}
	lead(t, p, 0, self)
	if hw := p.HighWatermark(); hw != 12 {
		t.Errorf("after the follower left: got %d, want 12", hw)
	}
}

func TestConsumersSeeUpToTheHighWatermark(t *testing.T) {
	p := testPartition(t, commitlog.DefaultConfig())
	lead(t, p, 0, self, other)
	produce(t, p, 3)
	consumer := ReadRequest{LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20, MinOneBatch: true,
		Replica: Consumer}
	r, err := p.Read(consumer)
	if err != nil || r.Slice.SizeBytes != 0 {
		t.Errorf("read above the high watermark: got %d bytes, %v", r.Slice.SizeBytes, err)
	}
	r.Slice.Release()
	consumer.Replica = other
	if r, err = p.Read(consumer); err != nil || r.Slice.SizeBytes == 0 {
		t.Errorf("read by a follower: got %d bytes, %v", r.Slice.SizeBytes, err)
	}
	r.Slice.Release()
	for _, q := range []struct {
		query OffsetQuery
		want  int64
	}{
		{OffsetQuery{Timestamp: Latest, Replica: Consumer}, 0},
		{OffsetQuery{Timestamp: Latest, Replica: other}, 3},
		{OffsetQuery{Timestamp: baseTime, Replica: Consumer}, -1},
		{OffsetQuery{Timestamp: baseTime, Replica: other}, 0},
		{OffsetQuery{Timestamp: MaxTimestamp, Replica: Consumer}, -1},
		{OffsetQuery{Timestamp: Earliest, Replica: Consumer}, 0},
	} {
		q.query.LeaderEpoch = NoEpoch
		if found, err := p.ListOffset(q.query); err != nil || found.Offset != q.want {
			t.Errorf("list offset %+v: got %d, %v, want %d", q.query, found.Offset, err, q.want)
		}
	}
}

// The examples of ListOffsets v0 under a high watermark below the log end.
func TestLegacyOffsetsAreCutAtTheHighWatermark(t *testing.T) {
	c := commitlog.DefaultConfig()
	c.SegmentBytes = 150 // one batch fits, two do not
	for _, example := range []struct {
		batches []int // records in each
		hw      int64
		want    []int64
	}{
		{[]int{5, 3, 3}, 10, []int64{10, 8, 5, 0}},
		{[]int{14, 3, 3}, 10, []int64{10, 0}},
	} {
		p := testPartition(t, c)
		lead(t, p, 0, self, other)
		for _, n := range example.batches {
			produceSmall(t, p, n)
		}
		p.reported(other, example.hw)
		got, err := p.LegacyOffsets(Latest, 10, Consumer)
		if err != nil || !slices.Equal(got, example.want) {
			t.Errorf("batches %v, high watermark %d: got %v, %v, want %v", example.batches, example.hw, got, err,
				example.want)
		}
	}
}

// produceSmall appends a batch of n records without key or value.
func produceSmall(t *testing.T, p *Partition, n int) {
	t.Helper()
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
		Codec: record.Gzip})
	for range n {
		if err := b.Append(baseTime, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Append(b.Bytes(), AppendOptions{LeaderEpoch: NoEpoch}); err != nil {
		t.Fatal(err)
	}
}

func TestLeaderEpochsFence(t *testing.T) {
	p := testPartition(t, commitlog.DefaultConfig())
	lead(t, p, 3, self)
	for _, c := range []struct {
		epoch int32
		want  error
	}{{2, ErrFencedLeaderEpoch}, {4, ErrUnknownLeaderEpoch}, {3, nil}, {NoEpoch, nil}} {
		_, err := p.ListOffset(OffsetQuery{Timestamp: Latest, LeaderEpoch: c.epoch, Replica: Consumer})
		if !errors.Is(err, c.want) {
			t.Errorf("epoch %d: got %v, want %v", c.epoch, err, c.want)
		}
	}
	state := State{Leader: other, LeaderEpoch: 4, Replicas: []int32{self, other}, ISR: []int32{other}}
	if err := p.apply(state); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Append(batch(t, record.BuilderOptions{LeaderEpoch: -1}, baseTime),
		AppendOptions{LeaderEpoch: NoEpoch}); !errors.Is(err, ErrNotLeader) {
		t.Errorf("append on a follower: got %v, want ErrNotLeader", err)
	}
	lead(t, p, 2, self) // an old state changes nothing
	if got := p.State().LeaderEpoch; got != 4 {
		t.Errorf("leader epoch after an old state: got %d, want 4", got)
	}
}

func TestTooFewInSyncReplicasRefuseAcksAll(t *testing.T) {
	p := testPartition(t, commitlog.DefaultConfig())
	state := State{Leader: self, Replicas: []int32{self, other}, ISR: []int32{self}, MinInSyncReplicas: 2}
	if err := p.apply(state); err != nil {
		t.Fatal(err)
	}
	b := batch(t, record.BuilderOptions{LeaderEpoch: -1}, baseTime)
	if _, err := p.Append(b, AppendOptions{AllInSync: true, LeaderEpoch: NoEpoch}); !errors.Is(err, ErrNotEnoughReplicas) {
		t.Errorf("acks=all with one of two in sync: got %v, want ErrNotEnoughReplicas", err)
	}
	// min.insync.replicas never asks for more replicas than there are.
	state.Replicas, state.LeaderEpoch = []int32{self}, 1
	if err := p.apply(state); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Append(b, AppendOptions{AllInSync: true, LeaderEpoch: NoEpoch}); err != nil {
		t.Errorf("acks=all with the only replica in sync: %v", err)
	}
}

func TestFollowerAppendsVerbatimAndTruncatesWhereItDiverged(t *testing.T) {
	p := testPartition(t, commitlog.DefaultConfig())
	follow := func(epoch int32) {
		t.Helper()
		if err := p.apply(State{Leader: other, LeaderEpoch: epoch, Replicas: []int32{self, other},
			ISR: []int32{self, other}}); err != nil {
			t.Fatal(err)
		}
	}
	follow(1)
	first := batch(t, record.BuilderOptions{BaseOffset: 0, LeaderEpoch: 1}, baseTime, baseTime)
	second := batch(t, record.BuilderOptions{BaseOffset: 2, LeaderEpoch: 1}, baseTime)
	sent := append(slices.Clone(first), second...)
	if err := p.AppendFetched(slices.Clone(sent), 2, 0); err != nil {
		t.Fatal(err)
	}
	log, _ := p.Log()
	slice, err := log.Read(0, commitlog.ReadOptions{MaxBytes: 1 << 20, UpTo: 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := slice.Bytes(); err != nil || !slices.Equal(got, sent) {
		t.Errorf("stored bytes differ from those sent (%v)", err)
	}
	slice.Release()
	if hw, end := p.HighWatermark(), log.EndOffset(); hw != 2 || end != 3 {
		t.Errorf("high watermark %d, end %d, want 2 and 3", hw, end)
	}
	follow(2)
	end, err := p.TruncateDiverging(EpochEnd{Epoch: 1, EndOffset: 2})
	if err != nil || end != 2 {
		t.Errorf("truncate where epoch 1 ended at the leader: end %d, %v, want 2", end, err)
	}
}

func TestReaderOfAnotherHistoryIsToldWhereItEnds(t *testing.T) {
	p := testPartition(t, commitlog.DefaultConfig())
	lead(t, p, 1, self)
	produce(t, p, 5)
	lead(t, p, 3, self)
	produce(t, p, 5)
	r, err := p.Read(ReadRequest{Offset: 7, LeaderEpoch: 3, LastFetchedEpoch: 2, MaxBytes: 100, Replica: Consumer})
	if err != nil || r.Diverging == nil || *r.Diverging != (EpochEnd{Epoch: 1, EndOffset: 5}) {
		t.Errorf("got %+v, %v, want epoch 1 ending at 5", r.Diverging, err)
	}
	r, err = p.Read(ReadRequest{Offset: 5, LeaderEpoch: 3, LastFetchedEpoch: 1, MaxBytes: 100, Replica: Consumer})
	if err != nil || r.Diverging != nil {
		t.Errorf("same history: got %+v, %v", r.Diverging, err)
	}
	r.Slice.Release()
}

func TestParkedOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPartition(t, commitlog.DefaultConfig())
		lead(t, p, 0, self)
		m := NewManager(Options{NodeID: self, Timer: RealTimer})
		var done, expired atomic.Int32
		finish := func(late bool) {
			done.Add(1)
			if late {
				expired.Add(1)
			}
		}
		ready := func(offset int64) func() bool { return func() bool { return p.HighWatermark() > offset } }
		parts := []*Partition{p}
		m.Park(context.Background(), parts, time.Minute, ready(0), finish)
		m.Park(context.Background(), parts, time.Minute, ready(100), finish)
		ctx, cancel := context.WithCancel(context.Background())
		m.Park(ctx, parts, time.Minute, ready(100), finish)
		cancel()
		synctest.Wait()
		if done.Load() != 0 {
			t.Fatalf("done before anything moved: %d", done.Load())
		}
		produce(t, p, 1)
		synctest.Wait()
		if done.Load() != 1 || expired.Load() != 0 {
			t.Errorf("after an append: %d done, %d expired, want 1 and 0", done.Load(), expired.Load())
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if done.Load() != 2 || expired.Load() != 1 {
			t.Errorf("after the timeout: %d done, %d expired, want 2 and 1", done.Load(), expired.Load())
		}
		if len(p.watchers) != 0 {
			t.Errorf("%d watchers are left", len(p.watchers))
		}
	})
}

func TestThousandParkedOperationsSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := testPartition(t, commitlog.DefaultConfig())
		lead(t, p, 0, self)
		m := NewManager(Options{NodeID: self, Timer: RealTimer})
		var done atomic.Int32
		for range 1000 {
			m.Park(context.Background(), []*Partition{p}, time.Minute, func() bool { return p.HighWatermark() > 0 },
				func(bool) { done.Add(1) })
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := m.WakeUps(); n != 0 {
			t.Errorf("wake-ups in 5 s without an event: got %d, want 0", n)
		}
		produce(t, p, 1)
		synctest.Wait()
		if m.WakeUps() != 1000 || done.Load() != 1000 {
			t.Errorf("after an append: %d wake-ups, %d done, want 1000 each", m.WakeUps(), done.Load())
		}
	})
}
