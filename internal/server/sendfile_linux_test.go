package server

import (
	"context"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tidemark/internal/protocol"
	"tidemark/vfs"
)

// diskFolder makes a folder on a disk: the usual place for temporary files may be in memory, where no file gets cold.
func diskFolder(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{os.TempDir(), ".", "/var/tmp"} {
		var fs unix.Statfs_t
		if err := unix.Statfs(parent, &fs); err != nil || fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC {
			continue
		}
		dir, err := os.MkdirTemp(parent, "cold-*.test")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	t.Fatal("no folder on a disk can be written: set TMPDIR to one")
	return ""
}

// dropPages makes a file of n bytes cold.
func dropPages(t *testing.T, f vfs.File, n int) {
	t.Helper()
	fd, _ := f.Fd()
	if err := unix.Fsync(int(fd)); err != nil {
		t.Fatal(err)
	}
	// Pages that the kernel has in hand just then stay: ask until all are gone.
	for end := time.Now().Add(patience); ; {
		if time.Now().After(end) {
			t.Fatal("the kernel keeps the pages of the file")
		}
		if err := unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		if cachedPages(t, fd, n) == 0 {
			return
		}
	}
}

// cachedPages counts the pages of a file of n bytes that are in memory, in a way that every kernel knows.
func cachedPages(t *testing.T, fd uintptr, n int) int {
	t.Helper()
	data, err := unix.Mmap(int(fd), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	pages := make([]byte, (n+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(n),
		uintptr(unsafe.Pointer(&pages[0])))
	if err := unix.Munmap(data); err != nil {
		t.Fatal(err)
	}
	if errno != 0 {
		t.Fatal(errno)
	}
	cached := 0
	for _, p := range pages {
		cached += int(p & 1)
	}
	return cached
}

// Pages that were dropped are seen as cold, and as resident once read again,
// with and without the newer system call.
func TestResident(t *testing.T) {
	const n = 1 << 20
	f, _ := randomFileIn(t, diskFolder(t), n)
	fd, _ := f.Fd()
	defer noCachestat.Store(false)
	for _, old := range []bool{false, true} {
		noCachestat.Store(old)
		if _, err := f.ReadAt(make([]byte, n), 0); err != nil {
			t.Fatal(err)
		}
		if !resident(fd, 100, n-200) {
			t.Errorf("old %v: cold after reading", old)
		}
		dropPages(t, f, n)
		for try := 0; try < 100 && resident(fd, 100, n-200); try++ { // another core may hold a page for a moment
			time.Sleep(10 * time.Millisecond)
			dropPages(t, f, n)
		}
		if resident(fd, 100, n-200) {
			t.Errorf("old %v: dropped pages count as resident", old)
		}
	}
}

// A cold range arrives like any other, but waits when as many are being read as
// may be; what is in memory does not wait with it.
func TestColdReadsAreBounded(t *testing.T) {
	const n = 1 << 20
	cold, data := randomFileIn(t, diskFolder(t), n)
	warm, _ := randomFile(t, n)
	dropPages(t, cold, n)
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		f := []vfs.File{cold, warm}[r.Header.CorrelationID]
		reply(protocol.Response{Body: protocol.Parts{protocol.FilePart(f, 0, n)}})
	}, func(o *Options) { o.DiskReads = 1 })
	s.diskReads <- struct{}{} // as if one were being read
	a, b := s.dial(t), s.dial(t)
	a.send(request(0))
	for range 5 {
		b.send(request(1))
		b.receive()
	}
	<-s.diskReads
	if _, got := a.receive(); string(got) != string(data) {
		t.Error("body changed")
	}
}
