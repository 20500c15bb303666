package index

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"tidemark/vfs"
)

func testOptions(t testing.TB, name string, base, maxSize int64) Options {
	t.Helper()
	return Options{Files: NewFileCache(vfs.OS(), 4), Pages: NewCache(1 << 20), Name: filepath.Join(t.TempDir(), name),
		BaseOffset: base, MaxSizeBytes: maxSize}
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The rulers in the comments of encode and decode, byte for byte.
func TestRulers(t *testing.T) {
	var b [TxnEntrySize]byte
	OffsetEntry{Offset: 100 + 0x01020304, Pos: 0x05060708}.encode(b[:], 100)
	TimeEntry{Timestamp: 0x1112131415161718, Offset: 100 + 0x191a1b1c}.encode(b[OffsetEntrySize:], 100)
	want := [TxnEntrySize]byte{1, 2, 3, 4, 5, 6, 7, 8,
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c}
	if b != want {
		t.Errorf("% x", b)
	}
	txnEntry{AbortedTxn: AbortedTxn{1, 2, 3, 4}, version: 5}.encode(b[:], 100)
	for i, pos := range []int{1, 9, 17, 25, 33} {
		if want := []byte{5, 1, 2, 3, 4}[i]; b[pos] != want {
			t.Errorf("byte %d is %d, want %d", pos, b[pos], want)
		}
	}
	if len(want) != OffsetEntrySize+TimeEntrySize+14 {
		t.Error("sizes")
	}
}

// A new index is preallocated at its first use, not before, to a whole number of
// entries, and cut by Trim.
func TestLazyPreallocation(t *testing.T) {
	for maxSize, sizes := range map[int64][2]int64{10485760: {10485760, 10485756}, 60: {56, 60}, 7: {0, 0}} {
		x := OpenOffsetIndex(testOptions(t, "x.index", 5, maxSize))
		y := OpenTimeIndex(testOptions(t, "x.timeindex", 5, maxSize))
		for _, exists := range []func() (bool, error){x.Exists, y.Exists} {
			if ok, err := exists(); ok || err != nil {
				t.Fatal("created by opening", err)
			}
		}
		if e, ok, err := x.Lookup(7); ok || err != nil || e != (OffsetEntry{5, 0}) {
			t.Error(e, ok, err)
		}
		if e, ok, err := y.Last(); ok || err != nil || e != (TimeEntry{NoTimestamp, 5}) {
			t.Error(e, ok, err)
		}
		if got := [2]int64{fileSize(t, x.Name()), fileSize(t, y.Name())}; got != sizes {
			t.Errorf("max %d: sizes %v, want %v", maxSize, got, sizes)
		}
		must(t, x.Trim())
		must(t, y.Trim())
		if fileSize(t, x.Name()) != 0 || fileSize(t, y.Name()) != 0 {
			t.Error("not trimmed")
		}
		must(t, x.Grow())
		if got := fileSize(t, x.Name()); got != sizes[0] {
			t.Errorf("grown to %d", got)
		}
	}
}

func TestReadOnlyNeverCreates(t *testing.T) {
	o := testOptions(t, "x.index", 0, 80)
	o.ReadOnly = true
	for _, err := range []error{
		func() error { _, _, err := OpenOffsetIndex(o).Lookup(1); return err }(),
		func() error { _, err := OpenTimeIndex(o).Len(); return err }(),
		func() error { _, _, err := OpenTxnIndex(o).Collect(0, 1); return err }(),
		OpenOffsetIndex(o).Check(CheckOptions{}),
		OpenTxnIndex(o).Check(),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Stat(o.Name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("created")
	}
}

func TestOffsetAppendErrors(t *testing.T) {
	x := OpenOffsetIndex(testOptions(t, "x.index", 10, 24))
	var order *OrderError
	var out *RangeError
	must(t, x.Append(12, 100))
	if err := x.Append(12, 200); !errors.As(err, &order) || order.Got != 12 || order.Last != 12 {
		t.Errorf("%v", err)
	}
	for _, e := range []OffsetEntry{{9, 0}, {10 + 1<<31, 0}, {13, 1 << 31}, {13, -1}} {
		if err := x.Append(e.Offset, e.Pos); !errors.As(err, &out) {
			t.Errorf("%v: %v", e, err)
		}
	}
	must(t, x.Append(10+1<<31-1, 1<<31-1))
	if full, err := x.IsFull(); full || err != nil {
		t.Error(full, err)
	}
	must(t, x.Truncate(13))
	must(t, x.Append(13, 200))
	must(t, x.Append(14, 300))
	if err := x.Append(15, 400); err != ErrFull {
		t.Errorf("%v", err)
	}
	if full, err := x.IsFull(); !full || err != nil {
		t.Error(full, err)
	}
}

// The slot kept for a roll: five entries of 12 bytes hold four, then one more.
// Kafka 4.3.1 with segment.index.bytes=60 rolls after the fourth.
func TestTimeSpareSlot(t *testing.T) {
	x := OpenTimeIndex(testOptions(t, "x.timeindex", 0, 60))
	for i := range int64(4) {
		if full, err := x.IsFull(); full || err != nil {
			t.Fatal(i, full, err)
		}
		if ok, err := x.Append(100+i, i, false); !ok || err != nil {
			t.Fatal(i, ok, err)
		}
	}
	if _, err := x.Append(200, 9, false); err != ErrFull {
		t.Errorf("%v", err)
	}
	if ok, err := x.Append(103, 9, true); ok || err != nil {
		t.Errorf("the same timestamp at a roll: %v %v", ok, err)
	}
	if ok, err := x.Append(200, 9, true); !ok || err != nil {
		t.Errorf("the slot for the roll: %v %v", ok, err)
	}
	if _, err := x.Append(201, 9, true); err != ErrFull {
		t.Errorf("%v", err)
	}
}

func TestTimeAppendRule(t *testing.T) {
	x := OpenTimeIndex(testOptions(t, "x.timeindex", 10, 1200))
	for _, c := range []struct {
		ts, offset int64
		written    bool
		what       string // of the OrderError
	}{
		{-1, 10, false, ""}, {-2, 10, false, ""}, {0, 11, true, ""}, {0, 12, false, ""}, {5, 12, true, ""},
		{5, 11, false, "offset"}, {4, 13, false, "timestamp"}, {6, 12, true, ""},
	} {
		written, err := x.Append(c.ts, c.offset, false)
		var order *OrderError
		if written != c.written || errors.As(err, &order) != (c.what != "") || order != nil && order.What != c.what {
			t.Errorf("%+v: %v %v", c, written, err)
		}
	}
}

// Worked example of a live broker: offsets 0 A 1 B 2 plain 3 A 4 B 5 abort-A
// 6 commit-B 7 A 8 abort-A.
func TestTxnCollect(t *testing.T) {
	x := OpenTxnIndex(testOptions(t, "x.txnindex", 0, 0))
	if txns, done, err := x.Collect(0, 9); txns != nil || done || err != nil {
		t.Error(txns, done, err)
	}
	if ok, _ := x.Exists(); ok {
		t.Error("created by a look-up")
	}
	first, second := AbortedTxn{0, 0, 5, 1}, AbortedTxn{0, 7, 8, 9}
	must(t, x.Append(first))
	must(t, x.Append(second))
	var order *OrderError
	if err := x.Append(AbortedTxn{0, 7, 8, 9}); !errors.As(err, &order) {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		from, to int64
		want     []AbortedTxn
		done     bool
	}{
		{0, 9, []AbortedTxn{first, second}, true},
		{0, 10, []AbortedTxn{first, second}, false},
		{6, 9, []AbortedTxn{second}, true},
		{0, 1, []AbortedTxn{first}, true},
		{5, 7, []AbortedTxn{first}, true},
		{6, 7, nil, true},
		{9, 12, nil, false},
	} {
		got, done, err := x.Collect(c.from, c.to)
		if err != nil || done != c.done || !reflect.DeepEqual(got, c.want) {
			t.Errorf("[%d, %d): %v %v %v", c.from, c.to, got, done, err)
		}
	}
	if got := fileSize(t, x.Name()); got != 68 {
		t.Errorf("%d bytes", got)
	}
	must(t, x.Truncate(8))
	if got := fileSize(t, x.Name()); got != 34 {
		t.Errorf("%d bytes after truncation", got)
	}
	must(t, x.Reset())
	if all, err := x.All(); len(all) != 0 || err != nil || fileSize(t, x.Name()) != 0 {
		t.Error(all, err)
	}
}

// A torn tail is not an entry, and the next append takes its place.
func TestTxnTornTail(t *testing.T) {
	o := testOptions(t, "x.txnindex", 0, 0)
	must(t, OpenTxnIndex(o).Append(AbortedTxn{1, 2, 3, 4}))
	f, err := os.OpenFile(o.Name, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.Write(make([]byte, 33))
	must(t, err)
	must(t, f.Close())
	x := OpenTxnIndex(o)
	if err := x.Check(); kindOf(err) != Torn {
		t.Errorf("%v", err)
	}
	must(t, x.Append(AbortedTxn{1, 5, 6, 7}))
	all, err := OpenTxnIndex(o).All()
	if want := []AbortedTxn{{1, 2, 3, 4}, {1, 5, 6, 7}}; err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("%v %v", all, err)
	}
	must(t, x.Check())
}

func TestTxnLaterVersion(t *testing.T) {
	o := testOptions(t, "x.txnindex", 0, 0)
	b := make([]byte, TxnEntrySize)
	txnEntry{AbortedTxn: AbortedTxn{1, 2, 3, 4}, version: 1}.encode(b, 0)
	must(t, os.WriteFile(o.Name, b, 0o644))
	if _, _, err := OpenTxnIndex(o).Collect(0, 10); kindOf(err) != BadVersion {
		t.Errorf("%v", err)
	}
}

func TestCheckSizes(t *testing.T) {
	o := testOptions(t, "x.index", 0, 16)
	x := OpenOffsetIndex(o)
	must(t, x.Append(1, 10))
	must(t, x.Append(2, 20))
	must(t, x.Check(CheckOptions{LogSizeBytes: 21}))
	if err := x.Check(CheckOptions{LogSizeBytes: 20}); kindOf(err) != OutOfRange {
		t.Errorf("%v", err)
	}
	o.MaxSizeBytes = 8
	if err := OpenOffsetIndex(o).Check(CheckOptions{}); kindOf(err) != Oversized {
		t.Errorf("%v", err)
	}
	must(t, os.Truncate(o.Name, 15))
	o.MaxSizeBytes = 16
	if err := OpenOffsetIndex(o).Check(CheckOptions{}); kindOf(err) != Torn {
		t.Errorf("%v", err)
	}
	// The index that was open meanwhile says so instead of making up entries.
	x.o.Pages = nil
	if _, err := x.Entry(1); kindOf(err) != Torn {
		t.Errorf("%v", err)
	}
}

// A rebuild starts from a file of zeros, whatever was there.
func TestReset(t *testing.T) {
	o := testOptions(t, "x.index", 0, 80)
	must(t, os.WriteFile(o.Name, []byte("garbage of an odd length"), 0o644))
	x := OpenOffsetIndex(o)
	must(t, x.Reset())
	must(t, x.Append(1, 2))
	data, err := os.ReadFile(o.Name)
	must(t, err)
	want := make([]byte, 80)
	want[3], want[7] = 1, 2
	if !reflect.DeepEqual(data, want) {
		t.Errorf("% x", data)
	}
	must(t, x.Remove())
	if ok, _ := x.Exists(); ok {
		t.Error("not removed")
	}
	must(t, x.Remove())
}

func TestRename(t *testing.T) {
	o := testOptions(t, "x.index", 0, 80)
	x := OpenOffsetIndex(o)
	must(t, x.Rename(o.Name+".absent"))
	must(t, x.Append(1, 2))
	must(t, x.Rename(o.Name+".deleted"))
	must(t, x.Close())
	if e, ok, err := x.Last(); err != nil || !ok || e != (OffsetEntry{1, 2}) {
		t.Error(e, ok, err)
	}
	if e, err := x.Entry(0); err != nil || e != (OffsetEntry{1, 2}) {
		t.Error(e, err)
	}
	if x.Name() != o.Name+".deleted" || fileSize(t, x.Name()) != 80 {
		t.Error(x.Name())
	}
}

// Readers beside a writer that appends and truncates see entries that were there.
func TestReadersBesideWriter(t *testing.T) {
	o := testOptions(t, "x.index", 0, 1<<16)
	o.Pages = NewCache(3 * pageBytes)
	x := OpenOffsetIndex(o)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := int64(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				e, _, err := x.Lookup(n * 37 % 5000)
				if err != nil || e.Pos != e.Offset*2 {
					t.Errorf("%v %v", e, err)
					return
				}
			}
		}()
	}
	next := int64(1)
	for round := range int64(20) {
		for range 300 {
			must(t, x.Append(next, next*2))
			next++
		}
		if round%3 == 2 {
			next = max(1, next-450)
			must(t, x.Truncate(next))
		}
	}
	close(stop)
	wg.Wait()
}
