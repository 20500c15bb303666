package cleaner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tidemark/internal/commitlog"
	"tidemark/record"
)

// model is what is known of a log: all records ever written, and what has become of their transactions.
type model struct {
	*world
	written []written
	open    map[int64]int64 // first offset of the open transaction of each producer
	seen    map[int64]int64 // offset of a tombstone → when a round may first have given it a delete horizon, ms
}

// written is a record of the model.
type written struct {
	row
	producer int64
	state    txnState
}

type txnState uint8

const (
	settled txnState = iota // committed, or of no transaction
	pending
	dropped // aborted
)

func (m *model) write(r *rapid.T, id int64, transactional bool) {
	codec := record.Codec(rapid.IntRange(0, 4).Draw(r, "codec"))
	var batch []kv
	for range rapid.IntRange(1, 4).Draw(r, "records") {
		one := kv{key: string(rune('a' + rapid.IntRange(0, 7).Draw(r, "key")))}
		if rapid.IntRange(0, 3).Draw(r, "tombstone") > 0 {
			one.value = value("%d-%s", len(m.written), rapid.StringMatching(`[xyz]{0,40}`).Draw(r, "value"))
		}
		batch = append(batch, one)
	}
	m.forgetDeleted(id)
	base, err := m.append(m.batchOptions(id, codec, transactional), batch...)
	if err != nil {
		r.Fatal(err)
	}
	for i, one := range batch {
		w := written{producer: id, row: row{offset: base + int64(i), ts: m.nowMs + int64(i), key: one.key,
			value: string(one.value), tombstone: one.value == nil}}
		if transactional {
			w.state = pending
		}
		m.written = append(m.written, w)
	}
	if _, open := m.open[id]; transactional && !open {
		m.open[id] = base
	}
}

// forgetDeleted starts the sequence numbers of a producer anew when all its records lie below the log start: after a
// kill nobody knows them.
func (m *model) forgetDeleted(id int64) {
	for _, w := range m.written {
		if w.producer == id && w.offset >= m.log.StartOffset() {
			return
		}
	}
	if e, ok := m.log.Producer(id); ok {
		if _, ok := e.LastBatch(); !ok {
			m.seq[id] = 0
		}
	}
}

func (m *model) finish(r *rapid.T, id int64, commit bool) {
	if err := m.end(id, commit); err != nil {
		r.Fatal(err)
	}
	delete(m.open, id)
	for i := range m.written {
		w := &m.written[i]
		if w.producer != id || w.state != pending {
			continue
		}
		if w.state = dropped; commit {
			w.state = settled
		}
	}
}

// compact lets the cleaner do its rounds.
func (m *model) compact(rounds int) {
	for range rounds {
		if !pass(m.world) {
			break
		}
		for _, w := range m.written {
			if _, ok := m.seen[w.offset]; w.tombstone && !ok {
				m.seen[w.offset] = m.nowMs
			}
		}
	}
}

// stable is the offset below which every transaction is decided.
func (m *model) stable() int64 {
	end := m.log.EndOffset()
	for _, first := range m.open {
		end = min(end, first)
	}
	return end
}

// mayBeGone reports whether a tombstone can have been dropped: a round has seen it.
func (m *model) mayBeGone(w written) bool {
	since, ok := m.seen[w.offset]
	return ok && m.nowMs >= since
}

// latest is the last settled record of each key below an offset.
func (m *model) latest(end int64) map[string]written {
	out := make(map[string]written)
	for _, w := range m.written {
		if w.state == settled && w.offset < end && w.offset >= m.log.StartOffset() {
			out[w.key] = w
		}
	}
	return out
}

// check compares what readers of both kinds get with the model.
func (m *model) check(r *rapid.T) {
	byOffset := make(map[int64]written)
	for _, w := range m.written {
		byOffset[w.offset] = w
	}
	found := make(map[int64]bool)
	last := int64(-1)
	for _, one := range rows(m.t, m.log) {
		if one.offset <= last {
			r.Fatalf("offset %d after %d", one.offset, last)
		}
		last = one.offset
		if one.control {
			continue
		}
		if w, ok := byOffset[one.offset]; !ok || w.row != one {
			r.Fatalf("%v was never written; the model has %v", one, w.row)
		}
		found[one.offset] = true
	}
	for key, w := range m.latest(m.log.EndOffset()) {
		if !found[w.offset] && !(w.tombstone && m.mayBeGone(w)) {
			r.Fatalf("the last record of %s, %v, is lost", key, w.row)
		}
	}
	for _, w := range m.written {
		if w.state == pending && w.offset >= m.log.StartOffset() && !found[w.offset] {
			r.Fatalf("%v of an open transaction is lost", w.row)
		}
	}
	m.checkCommitted(r)
}

// checkCommitted reads as a consumer of committed records does: what it learns of each key is the model's.
func (m *model) checkCommitted(r *rapid.T) {
	got := make(map[string]string)
	for _, one := range m.committed(r) {
		if one.tombstone {
			delete(got, one.key)
		} else {
			got[one.key] = one.value
		}
	}
	want := make(map[string]string)
	for key, w := range m.latest(m.stable()) {
		if !w.tombstone {
			want[key] = w.value
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Fatalf("committed state: got %v, want %v", got, want)
	}
}

// committed reads the log up to the last stable offset, without aborted records.
func (m *model) committed(r *rapid.T) []row {
	var out []row
	stable := m.log.LastStableOffset(m.log.EndOffset())
	if want := m.stable(); stable != max(want, m.log.StartOffset()) {
		r.Fatalf("last stable offset: got %d, want %d", stable, want)
	}
	for offset := m.log.StartOffset(); offset < stable; {
		s, err := m.log.Read(offset, commitlog.ReadOptions{MaxBytes: 300, MinOneBatch: true, UpTo: stable,
			Isolation: commitlog.ReadCommitted})
		if err != nil {
			r.Fatal(err)
		}
		data, err := s.Bytes()
		aborted := s.AbortedTxns
		s.Release()
		if err != nil {
			r.Fatal(err)
		}
		next := offset
		for len(data) > 0 {
			h, entry, rest, err := record.NextEntry(data)
			if err != nil {
				break // cut by MaxBytes
			}
			data, next = rest, h.NextOffset()
			it, err := record.NewIterator(entry, record.IterOptions{})
			if err != nil {
				r.Fatal(err)
			}
			for it.Next() && !h.IsControl() {
				one := it.Record()
				skip := one.Offset < offset
				for _, t := range aborted {
					skip = skip || h.IsTransactional() && t.ProducerID == h.ProducerID && one.Offset >= t.FirstOffset &&
						one.Offset <= t.LastOffset
				}
				if !skip {
					out = append(out, row{offset: one.Offset, key: string(one.Key), value: string(one.Value),
						tombstone: one.Value == nil})
				}
			}
			it.Close()
		}
		if next == offset {
			break
		}
		offset = next
	}
	return out
}

// checkIdle is for a log in which nothing is dirty: below the active segment each key has its last record only, and no
// aborted record is left.
func (m *model) checkIdle(r *rapid.T) {
	if len(m.open) > 0 || len(m.c.Uncleanable()) > 0 {
		return
	}
	end := m.log.ActiveBaseOffset()
	last := m.latest(end)
	state := make(map[int64]txnState)
	for _, w := range m.written {
		state[w.offset] = w.state
	}
	for _, one := range rows(m.t, m.log) {
		if one.control || one.offset >= end || one.offset < m.log.StartOffset() {
			continue
		}
		if state[one.offset] == dropped {
			r.Fatalf("%v of an aborted transaction is still there", one)
		}
		if last[one.key].offset != one.offset {
			r.Fatalf("%v is still there, the last record of the key is %v", one, last[one.key].row)
		}
	}
}

// TestModel writes, rolls, compacts, restarts and changes configs at random, and compares with the model.
func TestModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &model{world: newWorld(t, smallLog()), open: make(map[int64]int64), seen: make(map[int64]int64)}
		m.cfg.SegmentBytes = rapid.Int32Range(250, 2000).Draw(r, "segment bytes")
		if err := m.world.open(); err != nil {
			r.Fatal(err)
		}
		defer func() { _ = m.log.Abandon() }()
		for range rapid.IntRange(5, 60).Draw(r, "steps") {
			m.step(r)
			m.check(r)
		}
		for id := range m.open {
			m.finish(r, id, true)
		}
		if err := m.log.Roll(); err != nil {
			r.Fatal(err)
		}
		m.nowMs += 5000
		m.compact(100)
		m.check(r)
		m.checkIdle(r)
		if len(m.c.Uncleanable()) > 0 {
			r.Fatal(m.c.Uncleanable())
		}
		for _, line := range strings.Split(strings.TrimSpace(m.out.String()), "\n") {
			expected := strings.Contains(line, "the offset index is missing") || // of an empty segment, after a kill
				strings.Contains(line, "the first dirty offset is not in the log") // the start of the log has passed it
			if line != "" && !expected {
				r.Fatalf("warning: %s", line)
			}
		}
	})
}

func (m *model) step(r *rapid.T) {
	switch rapid.SampledFrom([]string{"write", "write", "write", "write", "idempotent", "idempotent", "transactional",
		"transactional", "transactional", "end", "end", "roll", "roll", "compact", "compact", "idle", "clock", "restart",
		"kill", "config", "buffer", "tick", "start"}).Draw(r, "step") {
	case "write":
		m.write(r, -1, false)
	case "idempotent":
		m.write(r, rapid.Int64Range(1, 2).Draw(r, "producer"), false)
	case "transactional":
		m.write(r, rapid.Int64Range(7, 9).Draw(r, "producer"), true)
	case "end":
		if ids := sortedKeys(m.open); len(ids) > 0 {
			m.finish(r, rapid.SampledFrom(ids).Draw(r, "producer"), rapid.Bool().Draw(r, "commit"))
		}
	case "roll":
		m.must(r, m.log.Roll())
	case "compact":
		m.compact(1)
	case "idle":
		m.nowMs += 5000 // more than min.compaction.lag.ms
		m.compact(100)
		m.checkIdle(r)
	case "clock":
		m.nowMs += rapid.Int64Range(1, 3_000_000).Draw(r, "ms")
	case "restart":
		m.must(r, m.reopen(true))
	case "kill":
		m.must(r, m.reopen(false))
		m.out.Reset() // recovery is told of
	default:
		m.other(r)
	}
}

func (m *model) other(r *rapid.T) {
	switch rapid.SampledFrom([]string{"config", "buffer", "tick", "start"}).Draw(r, "other") {
	case "config":
		m.cfg.DeleteRetentionMs = rapid.SampledFrom([]int64{0, 1, 1_000_000, 86_400_000}).Draw(r, "delete.retention.ms")
		m.cfg.MinCompactionLagMs = rapid.SampledFrom([]int64{0, 0, 1000}).Draw(r, "min.compaction.lag.ms")
		m.log.UpdateConfig(m.cfg)
	case "buffer":
		cfg := DefaultConfig()
		if rapid.Bool().Draw(r, "small") {
			cfg.DedupeBufferBytes, cfg.LoadFactor = 3*slotBytes, 1
		}
		m.c.Configure(cfg)
	case "tick":
		m.tick()
	case "start":
		to := rapid.Int64Range(0, m.stable()).Draw(r, "start")
		m.must(r, m.log.SetStartOffset(to))
		_, err := m.log.DeleteOldSegments(m.clock())
		m.must(r, err)
	}
}

func (m *model) must(r *rapid.T, err error) {
	if err != nil {
		r.Fatal(err)
	}
}

func sortedKeys(m map[int64]int64) []int64 {
	var out []int64
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
