package commitlog

import (
	"testing"

	"tidemark/record"
	"tidemark/test/golden"
	"tidemark/vfs"
)

// TestIntactIndexesAreKept opens folders that Kafka closed in good order: what is looked over at the first use, offset
// and time look-ups and reads of both isolation levels, finds nothing to rebuild.
func TestIntactIndexesAreKept(t *testing.T) {
	for _, c := range golden.Cases(t, "01-", "02-", "03-", "04-", "05-", "06-", "07-", "08-", "09-", "11-", "12-",
		"10-clean-intact") {
		tree := golden.Final
		if !c.Has(golden.Dir0) {
			tree = golden.After
		}
		t.Run(c.Name, func(t *testing.T) {
			mem := vfs.NewMem()
			c.CopyTo(t, mem, tree, goldenDir(c))
			o := Options{
				FS: mem, Dir: goldenDir(c), Topic: c.Info.Topic, Config: DefaultConfig(), Clean: true, Metrics: new(Metrics),
			}
			l := openGolden(t, o)
			defer l.Abandon()
			for offset := l.StartOffset(); offset < l.EndOffset(); {
				s, err := l.Read(offset, ReadOptions{
					MaxBytes: 1, MinOneBatch: true, UpTo: l.EndOffset(), Isolation: ReadCommitted,
				})
				if err != nil {
					t.Fatal(err)
				}
				data, err := s.Bytes()
				s.Release()
				if err != nil || len(data) == 0 {
					break
				}
				h, err := record.ParseHeader(data)
				if err != nil {
					t.Fatal(err)
				}
				offset = h.NextOffset()
			}
			if _, _, err := l.MaxTimestamp(l.EndOffset()); err != nil {
				t.Fatal(err)
			}
			m := &o.Metrics.Segment
			if n := m.IndexesRebuilt.Load() + m.TxnIndexesRebuilt.Load() + m.Damages.Load(); n != 0 {
				t.Errorf("%d indexes and %d transaction indexes rebuilt, %d damages found",
					m.IndexesRebuilt.Load(), m.TxnIndexesRebuilt.Load(), m.Damages.Load())
			}
		})
	}
}
