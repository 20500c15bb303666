package commitlog

import (
	"bytes"
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// The files that must be Kafka's, byte for byte.
var dataFiles = []string{".log", ".index", ".timeindex", ".txnindex"}

// TestGoldenRebuild recovers each folder from its logs alone.
func TestGoldenRebuild(t *testing.T) {
	for _, c := range golden.Cases(t, goldenCases...) {
		t.Run(c.Name, func(t *testing.T) {
			o := goldenOptions(t, c, golden.Final)
			want := files(t, o.FS, o.Dir)
			for name := range want {
				if !strings.HasSuffix(name, ".log") && strings.HasPrefix(name, "0") {
					if err := o.FS.Remove(filepath.Join(o.Dir, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			o.Clean = false
			o.StartOffset = startOf(t, c)
			l := openGolden(t, o)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			got := files(t, o.FS, o.Dir)
			leaveOutInterrupted(t, c, want, got)
			if strings.HasPrefix(c.Name, "07-") { // the records of the transactions are gone, the entries are not
				maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasSuffix(name, segment.TxnSuffix) })
			}
			if diff := diffFiles(want, got, dataFiles...); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// leaveOutInterrupted drops the indexes of a segment that Kafka filled in two runs: after a start it counts the bytes
// since the last entry from 0, so the positions of the entries cannot be told from the log.
func leaveOutInterrupted(t *testing.T, c golden.Case, want, got map[string]string) {
	t.Helper()
	if !c.Has(golden.Before) {
		return
	}
	for name, before := range files(t, vfs.OS(), c.TreePath(t, golden.Before)) {
		if base, isLog := strings.CutSuffix(name, segment.LogSuffix); isLog && len(want[name]) > len(before) {
			for _, suffix := range []string{segment.IndexSuffix, segment.TimeSuffix} {
				delete(want, base+suffix)
				delete(got, base+suffix)
			}
		}
	}
}

// TestGoldenReplay sends the stored batches as their producers did, and compares the folder after a clean stop.
func TestGoldenReplay(t *testing.T) {
	for _, c := range golden.Cases(t, "01-", "02-", "03-", "04-", "05-codec-", "06-", "11-", "12-") {
		t.Run(c.Name, func(t *testing.T) {
			replayCase(t, c, c.Name == "05-codec-recompress")
		})
	}
}

func replayCase(t *testing.T, c golden.Case, recompressed bool) {
	want := files(t, vfs.OS(), c.TreePath(t, golden.Final))
	tree := golden.Before
	if !c.Has(tree) {
		tree = ""
	}
	o := goldenOptions(t, c, tree)
	o.Clean = false
	clock := c.Info.BaseTimestamp
	o.Clock = func() time.Time { return time.UnixMilli(clock) }
	o.VerifyTransactions = true
	l := openGolden(t, o)
	for _, b := range storedBatches(t, c) {
		if b.BaseOffset() < l.EndOffset() {
			continue // was there before
		}
		if got := l.EndOffset(); got != b.BaseOffset() {
			t.Fatalf("log ends at %d, next batch was stored at %d", got, b.BaseOffset())
		}
		clock = b.MaxTimestamp()
		if err := l.AssignEpoch(b.LeaderEpoch()); err != nil {
			t.Fatal(err)
		}
		produce(t, l, asSent(t, b, recompressed), b)
	}
	takeLastEpochs(t, l, want["leader-epoch-checkpoint"])
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := files(t, o.FS, o.Dir)
	if recompressed {
		compareHeaders(t, want, got)
		return
	}
	if diff := diffFiles(want, got, append(dataFiles, ".snapshot", "leader-epoch-checkpoint")...); diff != "" {
		t.Error(diff)
	}
}

// storedBatches are the magic-2 batches of a case's folder, in order.
func storedBatches(t *testing.T, c golden.Case) []record.Batch {
	t.Helper()
	all := files(t, vfs.OS(), c.TreePath(t, golden.Final))
	var names []string
	for name := range all {
		if strings.HasSuffix(name, ".log") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []record.Batch
	for _, name := range names {
		for rest := []byte(all[name]); len(rest) > 0; {
			h, entry, more, err := record.NextEntry(rest)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if rest = more; h.Magic == 2 {
				out = append(out, record.Batch(entry))
			}
		}
	}
	return out
}

// asSent is a stored batch as its producer had sent it: base offset 0, leader epoch −1, its own timestamps.
func asSent(t *testing.T, stored record.Batch, recompressed bool) []byte {
	t.Helper()
	b := record.Batch(bytes.Clone(stored))
	if recompressed { // the producer's codec was another one
		o := record.BuilderOptions{
			Codec: record.Gzip, LeaderEpoch: -1, ProducerID: b.ProducerID(),
			ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
		}
		builder := record.NewBuilder(o)
		it, err := record.NewIterator(stored, record.IterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			r := it.Record()
			if err := builder.Append(r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
				t.Fatal(err)
			}
		}
		return builder.Bytes()
	}
	if b.TimestampType() == record.LogAppendTime {
		b.SetMaxTimestamp(b.BaseTimestamp(), record.CreateTime)
	}
	b.SetBaseOffset(0)
	b.SetLeaderEpoch(-1)
	return b
}

func produce(t *testing.T, l *Log, sent []byte, stored record.Batch) {
	t.Helper()
	o := AppendOptions{LeaderEpoch: stored.LeaderEpoch(), Origin: OriginClient, VerifiedTransaction: true}
	if stored.IsControl() {
		o.Origin = OriginCoordinator
	}
	info, err := l.AppendAsLeader(sent, o)
	if err != nil {
		t.Fatalf("batch stored at %d: %v", stored.BaseOffset(), err)
	}
	if info.BaseOffset != stored.BaseOffset() || info.LastOffset != stored.LastOffset() {
		t.Fatalf("appended at %d to %d, Kafka at %d to %d", info.BaseOffset, info.LastOffset,
			stored.BaseOffset(), stored.LastOffset())
	}
	l.UpdateHighWatermark(l.EndOffset())
}

// takeLastEpochs takes up the epochs in which Kafka led the log after the last batch.
func takeLastEpochs(t *testing.T, l *Log, checkpointText string) {
	t.Helper()
	lines := strings.Fields(checkpointText)[2:] // version, count
	for i := 0; i < len(lines); i += 2 {
		var epoch int32
		for _, d := range lines[i] {
			epoch = epoch*10 + d - '0'
		}
		if latest, ok := l.LatestEpoch(); !ok || epoch > latest {
			if err := l.AssignEpoch(epoch); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// compareHeaders compares logs of which the compressed bytes may differ.
func compareHeaders(t *testing.T, want, got map[string]string) {
	t.Helper()
	headers := func(files map[string]string) (out []record.Header, records []record.Record) {
		var names []string
		for name := range files {
			if strings.HasSuffix(name, ".log") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			for rest := []byte(files[name]); len(rest) > 0; {
				h, entry, more, err := record.NextEntry(rest)
				if err != nil {
					t.Fatal(err)
				}
				h.SizeBytes, h.CRC = 0, 0
				out, rest = append(out, h), more
				it, err := record.NewIterator(entry, record.IterOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for it.Next() {
					r := *it.Record()
					r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
					records = append(records, r)
				}
			}
		}
		return out, records
	}
	wantHeaders, wantRecords := headers(want)
	gotHeaders, gotRecords := headers(got)
	if !slices.Equal(wantHeaders, gotHeaders) {
		t.Errorf("headers:\n kafka    %+v\n tidemark %+v", wantHeaders, gotHeaders)
	}
	if len(wantRecords) != len(gotRecords) {
		t.Fatalf("kafka has %d records, tidemark %d", len(wantRecords), len(gotRecords))
	}
	for i, w := range wantRecords {
		g := gotRecords[i]
		if w.Offset != g.Offset || w.Timestamp != g.Timestamp ||
			!bytes.Equal(w.Key, g.Key) || !bytes.Equal(w.Value, g.Value) {
			t.Errorf("record %d: kafka %+v, tidemark %+v", i, w, g)
		}
	}
}

// TestGoldenIndexesRebuiltInPlace spoils the indexes of cleanly closed folders: the first look-up makes them anew.
func TestGoldenIndexesRebuiltInPlace(t *testing.T) {
	damages := []string{"missing", "garbage", "empty", "zeros"}
	if testing.Short() {
		damages = damages[:2]
	}
	for _, c := range golden.Cases(t, "02-", "03-", "05-", "06-", "11-", "12-") {
		for _, damage := range damages {
			t.Run(c.Name+"/"+damage, func(t *testing.T) {
				o := goldenOptions(t, c, golden.Final)
				want := files(t, o.FS, o.Dir)
				damageIndexes(t, o, damage)
				epoch := lastEpoch(t, o)
				l := openGolden(t, o)
				becomeLeader(t, l, epoch)
				checkRecords(t, c, l)
				checkListOffsets(t, c, l)
				checkFetches(t, c, l)
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				if damage == "empty" {
					return // an empty index of a segment is legal, if slow
				}
				got := files(t, o.FS, o.Dir)
				leaveOutInterrupted(t, c, want, got)
				if diff := diffFiles(want, got, dataFiles...); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// damageIndexes spoils every offset and time index of a folder. When they are missing, so are the transaction indexes.
func damageIndexes(t *testing.T, o Options, damage string) {
	t.Helper()
	for name := range files(t, o.FS, o.Dir) {
		txns := strings.HasSuffix(name, segment.TxnSuffix) && damage == "missing"
		if !strings.HasSuffix(name, segment.IndexSuffix) && !strings.HasSuffix(name, segment.TimeSuffix) && !txns {
			continue
		}
		path := filepath.Join(o.Dir, name)
		var err error
		switch damage {
		case "missing":
			err = o.FS.Remove(path)
		case "empty":
			err = vfs.WriteFileAtomic(o.FS, path, nil)
		case "zeros":
			err = vfs.WriteFileAtomic(o.FS, path, make([]byte, 4800))
		case "garbage":
			var b []byte
			for i := range 60 {
				b = binary.BigEndian.AppendUint64(b, uint64(1000-i)<<32|uint64(i*37))
			}
			err = vfs.WriteFileAtomic(o.FS, path, b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
