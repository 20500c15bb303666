package server

import (
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const canSendfile = true

// sendfile writes n bytes of a file from pos on to a socket, within the
// deadline of the socket, and returns how many it wrote: n, or 0 without an
// error when this file cannot be sent so. The file's own offset is neither used
// nor moved, so any number of sockets may send the same file. It goes by way of
// a pipe of its own while there are some, or else by the system call.
func sendfile(to syscall.RawConn, fd uintptr, pos, n int64) (int64, error) {
	if p := takePipe(); p != nil {
		return p.splice(to, fd, pos, n)
	}
	sent := int64(0)
	var failed error
	err := to.Write(func(socket uintptr) bool {
		for sent < n {
			offset := pos + sent
			k, err := unix.Sendfile(int(socket), int(fd), &offset, int(n-sent))
			switch {
			case k > 0:
				sent += int64(k)
			case err == nil:
				failed = errShortFile
				return true
			case err == unix.EAGAIN:
				return false // wait until the socket takes more
			case err == unix.EINTR:
			case sent == 0 && (err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP):
				return true
			default:
				failed = os.NewSyscallError("sendfile", err)
				return true
			}
		}
		return true
	})
	if failed != nil {
		err = failed
	}
	return sent, err
}

var pageSize = int64(os.Getpagesize())

// noCachestat is set when the kernel (before 6.5) or the file system lacks the
// call.
var noCachestat atomic.Bool

// resident says whether a range of a file is in memory, so that reading it does
// not wait for a disk. It may be wrong: pages come and go.
func resident(fd uintptr, pos, n int64) bool {
	if !noCachestat.Load() {
		var in unix.CachestatRange
		var out unix.Cachestat_t
		in.Off, in.Len = uint64(pos), uint64(n)
		err := unix.Cachestat(uint(fd), &in, &out, 0)
		if err == nil {
			return out.Cache >= uint64((pos+n-1)/pageSize-pos/pageSize+1)
		}
		noCachestat.Store(err == unix.ENOSYS)
	}
	return probe(fd, pos) && probe(fd, pos+n-1)
}

// probe says whether the page of a position is in memory.
func probe(fd uintptr, pos int64) bool {
	var b [1]byte
	_, err := unix.Preadv2(int(fd), [][]byte{b[:]}, pos, unix.RWF_NOWAIT)
	return err != unix.EAGAIN
}
