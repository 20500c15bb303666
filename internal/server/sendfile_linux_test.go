package server

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tidemark/internal/protocol"
	"tidemark/vfs"
)

// dropPages makes a file cold.
func dropPages(t *testing.T, f vfs.File) {
	t.Helper()
	fd, _ := f.Fd()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(fd), &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the temporary folder is in memory: no file there is ever cold")
	}
	if err := unix.Fsync(int(fd)); err != nil {
		t.Fatal(err)
	}
	// Pages that the kernel has in hand just then stay: ask until all are gone.
	for cached, end := true, time.Now().Add(patience); cached; {
		if time.Now().After(end) {
			t.Fatal("the kernel keeps the pages of the file")
		}
		if err := unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		var out unix.Cachestat_t
		if err := unix.Cachestat(uint(fd), &unix.CachestatRange{Len: 1 << 30}, &out, 0); err != nil {
			t.Skipf("this kernel does not say what is in memory: %v", err)
		}
		cached = out.Cache > 0
	}
}

// Pages that were dropped are seen as cold, and as resident once read again,
// with and without the newer system call.
func TestResident(t *testing.T) {
	const n = 1 << 20
	f, _ := randomFile(t, n)
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
		dropPages(t, f)
		if resident(fd, 100, n-200) {
			t.Errorf("old %v: dropped pages count as resident", old)
		}
	}
}

// A cold range arrives like any other, but waits when as many are being read as
// may be; what is in memory does not wait with it.
func TestColdReadsAreBounded(t *testing.T) {
	cold, data := randomFile(t, 1<<20)
	warm, _ := randomFile(t, 1<<20)
	dropPages(t, cold)
	s := start(t, func(_ context.Context, r *protocol.Request, reply func(protocol.Response)) {
		f := []vfs.File{cold, warm}[r.Header.CorrelationID]
		reply(protocol.Response{Body: protocol.Parts{protocol.FilePart(f, 0, 1<<20)}})
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
