package server

import (
	"testing"

	"golang.org/x/sys/unix"

	"tidemark/internal/protocol"
)

// Pages that were dropped are seen as cold, and as resident once read again,
// with and without the newer system call.
func TestResident(t *testing.T) {
	const n = 1 << 20
	f, _ := randomFile(t, n)
	fd, _ := f.Fd()
	if err := unix.Fsync(int(fd)); err != nil {
		t.Fatal(err)
	}
	for _, old := range []bool{false, true} {
		noCachestat.Store(old)
		defer noCachestat.Store(false)
		if !resident(fd, 100, n-200) {
			t.Errorf("old %v: a file just written is cold", old)
		}
		if err := unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		if resident(fd, 100, n-200) {
			t.Errorf("old %v: dropped pages count as resident (is the temporary folder in memory?)", old)
		}
		if _, err := f.ReadAt(make([]byte, n), 0); err != nil {
			t.Fatal(err)
		}
		if !resident(fd, 100, n-200) {
			t.Errorf("old %v: cold after reading", old)
		}
	}
}

// A cold range arrives like any other.
func TestColdRange(t *testing.T) {
	f, data := randomFile(t, 1<<20)
	fd, _ := f.Fd()
	if err := unix.Fsync(int(fd)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	s := fileServer(t, []protocol.Parts{{protocol.FilePart(f, 0, 1<<20)}})
	c := s.dial(t)
	c.send(request(0))
	if _, got := c.receive(); string(got) != string(data) {
		t.Error("body changed")
	}
}
