package server

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// largeRead is the size of a piece of a frame from which on a connection counts as one that streams.
	largeRead = 32 << 10
	// wakeAt is how many bytes must have arrived then, or all that are missing of a frame, for the system to tell of it.
	wakeAt = 128 << 10
)

// socket reads from a TCP connection. One that streams large frames is told of bytes in large pieces only: the system
// wakes a thread for each time it tells, though the reader may be busy.
type socket struct {
	raw   syscall.RawConn
	lowat int // SO_RCVLOWAT as it was set; 0: never
	into  []byte
	n     int
	err   error
	step  func(fd uintptr) bool // read, bound once
}

// newSocket gives nil for a connection that is no TCP socket, whose raw is nil.
func newSocket(raw syscall.RawConn) *socket {
	if raw == nil {
		return nil
	}
	s := &socket{raw: raw}
	s.step = s.read
	return s
}

// Read is that of the connection.
func (s *socket) Read(p []byte) (int, error) {
	s.into, s.n, s.err = p, 0, nil
	err := s.raw.Read(s.step)
	s.into = nil
	switch {
	case err != nil:
		return 0, err
	case s.err != nil:
		return 0, os.NewSyscallError("read", s.err)
	case s.n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return s.n, nil
}

// read says whether it has read or failed; if not, the goroutine is to be parked.
func (s *socket) read(fd uintptr) bool {
	enough := 1
	if len(s.into) >= largeRead {
		s.tellAt(fd, wakeAt)
		enough = min(len(s.into), wakeAt)
	}
	for {
		n, err := syscall.Read(int(fd), s.into)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			s.tellAt(fd, enough)
			return false
		default:
			s.n, s.err = max(n, 0), err
			return true
		}
	}
}

// tellAt has the system tell of bytes when so many are there; should there be now, at once. Where that is not possible
// it tells more often.
func (s *socket) tellAt(fd uintptr, n int) {
	if s.lowat == n || s.lowat == 0 && n == 1 {
		return
	}
	if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil {
		s.lowat = n
	}
}
