package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func write(t testing.TB, f File, text string, pos int64) {
	t.Helper()
	if _, err := f.WriteAt([]byte(text), pos); err != nil {
		t.Fatal(err)
	}
}

func content(fsys FS, name string) string {
	p, err := ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	if err != nil {
		return err.Error()
	}
	return string(p)
}

func TestCrashLosesWhatIsNotSynced(t *testing.T) {
	m := NewMem()
	if err := m.MkdirAll("/d", 0o755); err != nil {
		t.Fatal(err)
	}
	m.SyncAll()
	f, err := m.OpenFile("/d/f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, "synced", 0)
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := content(m.CrashClone(seeded(1), 0), "/d/f"); got != "absent" {
		t.Errorf("without SyncDir the file holds %q", got)
	}
	if err := m.SyncDir("/d"); err != nil {
		t.Fatal(err)
	}
	write(t, f, "SYNCED+more", 0)
	create(t, m, "/d/new", "new")
	if err := m.Rename("/d/f", "/d/g"); err != nil {
		t.Fatal(err)
	}
	lost := m.CrashClone(seeded(1), 0)
	if content(lost, "/d/f") != "synced" || content(lost, "/d/g") != "absent" || content(lost, "/d/new") != "absent" {
		t.Errorf("nothing kept:\n%v", lost)
	}
	kept := m.CrashClone(seeded(1), 1)
	if content(kept, "/d/g") != "SYNCED+more" || content(kept, "/d/f") != "absent" || content(kept, "/d/new") != "new" {
		t.Errorf("all kept:\n%v", kept)
	}
	write(t, f, "after", 0)
	if content(kept, "/d/g") != "SYNCED+more" {
		t.Error("the clone shares bytes with the disk it was made of")
	}
	create(t, kept, "/d/g", "own")
	if content(m, "/d/g") != "after+more"[:5]+"D+more" {
		t.Errorf("the disk shares bytes with its clone: %q", content(m, "/d/g"))
	}
	again := kept.CrashClone(seeded(2), 0)
	if content(again, "/d/new") != "new" {
		t.Error("a clone is not durable from its start")
	}
}

func TestCrashKeepsSectors(t *testing.T) {
	m := NewMem()
	old, now := bytes.Repeat([]byte("o"), 20*memSector), bytes.Repeat([]byte("n"), 24*memSector)
	create(t, m, "f", string(old))
	m.SyncAll()
	create(t, m, "f", string(now))
	sizes, mixed := map[int]bool{}, false
	for seed := range uint64(20) {
		p := []byte(content(m.CrashClone(seeded(seed), 0.5), "f"))
		sizes[len(p)] = true
		for i := 0; i < len(p); i += memSector {
			s := p[i : i+memSector]
			if n := bytes.Count(s, s[:1]); n != memSector || bytes.IndexByte([]byte("on\x00"), s[0]) < 0 {
				t.Fatalf("sector %d is torn", i/memSector)
			}
			mixed = mixed || (i > 0 && s[0] != p[0])
		}
		same := content(m.CrashClone(seeded(seed), 0.5), "f")
		if same != string(p) {
			t.Fatal("one seed gives two disks")
		}
	}
	if !mixed || len(sizes) != 2 {
		t.Errorf("mixed %v, sizes %v: want some of each", mixed, sizes)
	}
}

func TestWriteFileAtomicSurvivesCrashes(t *testing.T) {
	for seed := range uint64(50) {
		m := NewMem()
		if err := WriteFileAtomic(m, "/c", []byte("old")); err != nil {
			t.Fatal(err)
		}
		if got := content(m.CrashClone(seeded(seed), 0), "/c"); got != "old" {
			t.Fatalf("a finished write was lost: %q", got)
		}
		f, err := m.OpenFile("/c.tmp", os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, "new", 0)
		if err := errors.Join(f.Sync(), m.Rename("/c.tmp", "/c")); err != nil {
			t.Fatal(err)
		}
		if got := content(m.CrashClone(seeded(seed), 0.5), "/c"); got != "old" && got != "new" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

func TestMemPreallocationIsFree(t *testing.T) {
	m := NewMem()
	f, err := m.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(10<<30), f.Sync()); err != nil {
		t.Fatal(err)
	}
	if n := len(f.(*memFile).node.data.pages); n != 0 {
		t.Errorf("a sparse file has %d pages", n)
	}
}

func TestCrashKeepsARenamedFile(t *testing.T) {
	outcomes := map[string]bool{}
	for seed := range uint64(60) {
		m := NewMem()
		create(t, m, "/a", "text")
		m.SyncAll()
		if err := m.Rename("/a", "/b"); err != nil {
			t.Fatal(err)
		}
		c := m.CrashClone(seeded(seed), 0.5)
		a, b := content(c, "/a"), content(c, "/b")
		if a != "text" && b != "text" {
			t.Fatalf("seed %d: the file is lost:\n%v", seed, c)
		}
		outcomes[a+" "+b] = true
	}
	if len(outcomes) != 3 {
		t.Errorf("outcomes %v, want old name, new name and both", outcomes)
	}
}
