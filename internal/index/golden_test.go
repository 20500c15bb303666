package index

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tidemark/test/golden"
	"tidemark/vfs"
)

// section is what Kafka's dump tool printed about one file.
type section struct {
	name  string // below the case's folder
	lines []string
}

func sections(text string) (out []section) {
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "Dumping "); ok {
			out = append(out, section{name: name})
		} else if len(out) > 0 {
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
	}
	return out
}

func goldenOptions(t *testing.T, name string) Options {
	t.Helper()
	base, err := strconv.ParseInt(strings.SplitN(filepath.Base(name), ".", 2)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Files: NewFileCache(vfs.OS(), 3), Pages: NewCache(1 << 16), Name: name, BaseOffset: base,
		MaxSizeBytes: 10 << 20, ReadOnly: true}
}

// Every index of every case reads as Kafka's own dump says.
func TestGoldenDumps(t *testing.T) {
	kinds := map[string]func(Options) ([]string, error){
		"dump-index.txt":     dumpOffsets,
		"dump-timeindex.txt": dumpTimes,
		"dump-txnindex.txt":  dumpTxns,
	}
	for kind, dump := range kinds {
		files := 0
		for _, c := range golden.Cases(t) {
			if _, ok := c.Expect(kind); !ok || c.Info.SameAs[kind] != "" {
				continue
			}
			for _, s := range sections(c.ExpectText(t, kind)) {
				files++
				got, err := dump(goldenOptions(t, filepath.Join(c.Path, s.name)))
				if err != nil {
					t.Errorf("%s: %v", s.name, err)
				} else if want := withoutRemarks(s.lines); !samePrintout(got, want) {
					t.Errorf("%s:\ngot  %q\nwant %q", s.name, got, want)
				}
			}
		}
		if files < 50 {
			t.Errorf("%s: only %d files were compared", kind, files)
		}
	}
}

// withoutRemarks leaves the entries, which the tool prints, and drops what it says
// about the log and its own failures.
func withoutRemarks(lines []string) (out []string) {
	for _, l := range lines {
		if strings.HasPrefix(l, "offset: ") || strings.HasPrefix(l, "timestamp: ") || strings.HasPrefix(l, "version: ") {
			out = append(out, l)
		}
	}
	return out
}

// samePrintout: the tool stops at an entry of zeros, and at entries that make it
// fail. What it printed must agree.
func samePrintout(got, want []string) bool {
	return len(got) >= len(want) && fmt.Sprint(got[:len(want)]) == fmt.Sprint(want)
}

func dumpOffsets(o Options) (out []string, err error) {
	x := OpenOffsetIndex(o)
	n, err := x.Len()
	for i := 0; i < n && err == nil; i++ {
		var e OffsetEntry
		e, err = x.Entry(i)
		out = append(out, fmt.Sprintf("offset: %d position: %d", e.Offset, e.Pos))
	}
	return out, err
}

func dumpTimes(o Options) (out []string, err error) {
	x := OpenTimeIndex(o)
	n, err := x.Len()
	for i := 0; i < n && err == nil; i++ {
		var e TimeEntry
		e, err = x.Entry(i)
		out = append(out, fmt.Sprintf("timestamp: %d offset: %d", e.Timestamp, e.Offset))
	}
	return out, err
}

func dumpTxns(o Options) (out []string, err error) {
	txns, err := OpenTxnIndex(o).All()
	for _, a := range txns {
		out = append(out, fmt.Sprintf("version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d",
			a.ProducerID, a.FirstOffset, a.LastOffset, a.LastStableOffset))
	}
	return out, err
}

// goldenFiles lists the files of one suffix that Kafka left after a clean stop.
func goldenFiles(t *testing.T, suffix string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(golden.Dir(), func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, suffix) && !strings.Contains(p, "dir-before") {
			out = append(out, p)
		}
		return err
	})
	if err != nil || len(out) < 20 {
		t.Fatalf("%d files *%s in %s: %v", len(out), suffix, golden.Dir(), err)
	}
	return out
}

// Appending the entries of Kafka's files to new ones gives the same bytes, after
// the checks of Append and the trim of a roll.
func TestGoldenBytes(t *testing.T) {
	for _, name := range goldenFiles(t, "index") {
		if damagedOnPurpose(name) {
			continue
		}
		read := goldenOptions(t, name)
		write := read
		write.Name = filepath.Join(t.TempDir(), filepath.Base(name))
		write.ReadOnly = false
		var err error
		switch filepath.Ext(name) {
		case ".index":
			err = copyOffsets(OpenOffsetIndex(write), OpenOffsetIndex(read))
		case ".timeindex":
			err = copyTimes(OpenTimeIndex(write), OpenTimeIndex(read))
		case ".txnindex":
			err = copyTxns(OpenTxnIndex(write), OpenTxnIndex(read))
		}
		want, err1 := os.ReadFile(name)
		if len(bytes.Trim(want, "\x00")) == 0 {
			// Never written: empty, or that of a topic deleted while in use, or of a
			// segment that Kafka took over without its index.
			if len(want) > 0 && kindOf(err) != ZeroFilled {
				t.Errorf("%s is all zeros, but: %v", name, err)
			}
			continue
		}
		got, err2 := os.ReadFile(write.Name)
		if err != nil || err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v %v %v\ngot  %x\nwant %x", name, err, err1, err2, got, want)
		}
	}
}

// damagedOnPurpose: Kafka does not look into the indexes of a cleanly closed
// folder, nor below the recovery point, and so kept the damage of these.
func damagedOnPurpose(name string) bool {
	for _, c := range []string{"10-clean-index", "10-clean-txnindex", "10-clean-timeindex", "10-crash-index-",
		"10-crash-timeindex-", "10-crash-txnindex-"} {
		if strings.Contains(name, c) {
			return true
		}
	}
	return false
}

func kindOf(err error) CorruptKind {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return corrupt.Kind
	}
	return 0
}

// Check tells apart what Kafka's own broker took for good.
func TestGoldenDamage(t *testing.T) {
	for damaged, want := range map[string]CorruptKind{
		"10-crash-index-garbage-8/00000000000000000078.index":           OutOfRange,
		"10-crash-index-garbage-5/00000000000000000078.index":           Torn,
		"10-crash-index-zero-filled/00000000000000000078.index":         ZeroFilled,
		"10-crash-timeindex-garbage-7/00000000000000000078.timeindex":   Torn,
		"10-crash-timeindex-zero-filled/00000000000000000078.timeindex": ZeroFilled,
		"10-crash-timeindex-backwards/00000000000000000078.timeindex":   NotIncreasing,
		"10-crash-txnindex-truncated/00000000000000000000.txnindex":     Torn,
	} {
		dir, file := filepath.Split(damaged)
		name := filepath.Join(golden.Load(t, filepath.Clean(dir)).TreePath(t, golden.Before), file)
		o := goldenOptions(t, name)
		var err error
		switch filepath.Ext(name) {
		case ".index":
			err = OpenOffsetIndex(o).Check(CheckOptions{})
		case ".timeindex":
			err = OpenTimeIndex(o).Check(CheckOptions{})
		case ".txnindex":
			err = OpenTxnIndex(o).Check()
		}
		if kindOf(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func copyOffsets(to, from *OffsetIndex) error {
	n, err := from.Len()
	if err != nil {
		return err
	}
	if err := from.Check(CheckOptions{}); err != nil {
		return err
	}
	for i := range n {
		e, err := from.Entry(i)
		if err != nil {
			return err
		}
		if err := to.Append(e.Offset, e.Pos); err != nil {
			return err
		}
	}
	return to.Trim()
}

func copyTimes(to, from *TimeIndex) error {
	n, err := from.Len()
	if err != nil {
		return err
	}
	if err := from.Check(CheckOptions{}); err != nil {
		return err
	}
	for i := range n {
		e, err := from.Entry(i)
		if err != nil {
			return err
		}
		if ok, err := to.Append(e.Timestamp, e.Offset, i == n-1); err != nil || !ok {
			return fmt.Errorf("append %v: %v %w", e, ok, err)
		}
	}
	return to.Trim()
}

func copyTxns(to, from *TxnIndex) error {
	txns, err := from.All()
	if err != nil {
		return err
	}
	if err := from.Check(); err != nil {
		return err
	}
	for _, a := range txns {
		if err := to.Append(a); err != nil {
			return err
		}
	}
	return nil
}
