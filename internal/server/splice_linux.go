package server

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxPipes is how many pipes there are at most. A slow client keeps one as long as it takes.
	maxPipes = 32
	// pipeBytes is what a pipe holds of a file, in references to its pages: as much as anyone may ask for. The system
	// call sendfile goes through a pipe of 64 KiB and wakes the other end as often.
	pipeBytes = 1 << 20
	// briefWait is how long a thread itself waits for a socket while there is no other transfer. When the other end is
	// at work that is cheaper than to park the goroutine and to wake it, which takes several system calls and often
	// another thread. With more transfers threads find work anyway.
	briefWait = 200 * time.Microsecond
)

// transfers is how many there are.
var transfers atomic.Int32

// pipe has pages of a file on their way to a socket.
type pipe struct{ out, in int }

var (
	idlePipes = make(chan *pipe, maxPipes)
	pipes     atomic.Int32
)

// takePipe gives an empty pipe, or nil when there are too many or the system has none of the size.
func takePipe() *pipe {
	select {
	case p := <-idlePipes:
		return p
	default:
	}
	if pipes.Add(1) > maxPipes {
		pipes.Add(-1)
		return nil
	}
	var ends [2]int
	if unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK) != nil {
		pipes.Add(-1)
		return nil
	}
	p := &pipe{out: ends[0], in: ends[1]}
	if _, err := unix.FcntlInt(uintptr(p.in), unix.F_SETPIPE_SZ, pipeBytes); err != nil {
		p.close()
		return nil
	}
	return p
}

// giveBack keeps a pipe that is empty for the next, and closes any other.
func (p *pipe) giveBack(empty bool) {
	if !empty {
		p.close()
		return
	}
	idlePipes <- p
}

func (p *pipe) close() {
	_ = unix.Close(p.in) // pipes have nothing to flush
	_ = unix.Close(p.out)
	pipes.Add(-1)
}

// transfer is a range of a file on its way through a pipe to a socket.
type transfer struct {
	pipe *pipe
	file int
	pos  int64 // of what is not in the pipe yet
	left int   // bytes of it
	held int   // bytes in the pipe
	err  error
}

// splice does what sendfile does, by way of a pipe.
func (p *pipe) splice(to syscall.RawConn, fd uintptr, pos, n int64) (int64, error) {
	transfers.Add(1)
	defer transfers.Add(-1)
	t := transfer{pipe: p, file: int(fd), pos: pos, left: int(n)}
	err := to.Write(t.run)
	p.giveBack(t.held == 0)
	sent := n - int64(t.left) - int64(t.held)
	switch {
	case t.err == nil:
	case sent == 0 && t.held == 0 && (errors.Is(t.err, unix.EINVAL) || errors.Is(t.err, errors.ErrUnsupported)):
		return 0, nil
	case errors.Is(t.err, errShortFile):
		err = t.err
	default:
		err = os.NewSyscallError("splice", t.err)
	}
	return sent, err
}

// run says whether all was sent or something failed; if not, the goroutine is to be parked.
func (t *transfer) run(socket uintptr) bool {
	for t.left+t.held > 0 {
		switch err := t.step(int(socket)); {
		case err == nil, errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if transfers.Load() > 1 || !takesMore(socket) {
				return false
			}
		default:
			t.err = err
			return true
		}
	}
	return true
}

// takesMore waits briefly for a socket to take more and says whether it does.
func takesMore(socket uintptr) bool {
	ready := [1]unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}
	n, err := unix.Ppoll(ready[:], &unix.Timespec{Nsec: int64(briefWait)}, nil)
	return n > 0 && err == nil
}

// step fills the pipe if it is empty, and empties it into the socket as far as that takes it.
func (t *transfer) step(socket int) error {
	if t.held == 0 {
		n, err := unix.Splice(t.file, &t.pos, t.pipe.in, nil, t.left, unix.SPLICE_F_NONBLOCK)
		if err != nil {
			return err
		}
		if n == 0 {
			return errShortFile
		}
		t.left, t.held = t.left-int(n), int(n)
	}
	flags := unix.SPLICE_F_NONBLOCK
	if t.left > 0 {
		flags |= unix.SPLICE_F_MORE
	}
	n, err := unix.Splice(t.pipe.out, nil, socket, nil, t.held, flags)
	if err == nil {
		t.held -= int(n)
	}
	return err
}
