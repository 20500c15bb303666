package index

import (
	"testing"

	"tidemark/vfs"
	"tidemark/vfs/faultfs"
)

// indexScript runs appends, truncation and trimming; it returns the first error,
// and always the entries that succeeded.
func indexScript(x *OffsetIndex, y *TimeIndex, z *TxnIndex) (n [3]int, err error) {
	for i := int64(1); i <= 4; i++ {
		if err := x.Append(i, i*10); err != nil {
			return n, err
		}
		n[0]++
		if _, err := y.Append(i, i, false); err != nil {
			return n, err
		}
		n[1]++
		if err := z.Append(AbortedTxn{1, i, i, i + 1}); err != nil {
			return n, err
		}
		n[2]++
	}
	for i, truncate := range []func(int64) error{x.Truncate, y.Truncate} {
		if err := truncate(3); err != nil {
			return n, err
		}
		n[i] = 2
	}
	for _, step := range []func() error{x.Sync, y.Sync, z.Sync, x.Trim, y.Trim, x.Grow, y.Grow, x.Trim, y.Trim,
		x.Close, y.Close, z.Close} {
		if err := step(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Whatever call fails, the indexes hold the entries whose appends succeeded.
func TestFailuresLeaveEntries(t *testing.T) {
	var disk *vfs.Mem
	fresh := func() vfs.FS {
		disk = vfs.NewMem()
		must(t, disk.MkdirAll("/p", 0o755))
		return disk
	}
	faultfs.EachFailure(t, fresh, func(fsys vfs.FS) error {
		o := Options{Files: NewFileCache(fsys, 2), Pages: NewCache(1 << 16), MaxSizeBytes: 240}
		named := func(name string) Options { o.Name = "/p/0." + name; return o }
		x, y, z := OpenOffsetIndex(named("index")), OpenTimeIndex(named("timeindex")), OpenTxnIndex(named("txnindex"))
		want, err := indexScript(x, y, z)
		for i, length := range []func() (int, error){x.Len, y.Len, z.Len} {
			if got, lerr := length(); lerr != nil || got != want[i] {
				t.Errorf("script: %v; index %d has %d entries, want %d: %v", err, i, got, want[i], lerr)
			}
		}
		if err != nil {
			return err
		}
		o.Files = NewFileCache(disk, 2)
		x, y, z = OpenOffsetIndex(named("index")), OpenTimeIndex(named("timeindex")), OpenTxnIndex(named("txnindex"))
		for i, length := range []func() (int, error){x.Len, y.Len, z.Len} {
			if got, err := length(); err != nil || got != want[i] {
				t.Errorf("index %d reopened has %d entries, want %d: %v", i, got, want[i], err)
			}
		}
		return nil
	})
}
