//go:build oracle

package differential

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"
)

const (
	closedOutcome  = "closed"
	waitingOutcome = "no answer, connection open"
)

func be32(b []byte) int32 { return int32(binary.BigEndian.Uint32(b)) }

// readFrame reads one frame. The outcome is empty, or says that the server closed or that nothing came in time.
func (c *conn) readFrame() (frame []byte, outcome string) {
	_ = c.c.SetReadDeadline(time.Now().Add(c.timeout)) // fails on a closed connection only, as the read does then
	var size [4]byte
	if _, err := io.ReadFull(c.c, size[:]); err != nil {
		return nil, c.outcome(err)
	}
	frame = make([]byte, min(uint32(be32(size[:])), 64<<20))
	if _, err := io.ReadFull(c.c, frame); err != nil {
		return nil, c.outcome(err)
	}
	return frame, ""
}

func (c *conn) outcome(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return waitingOutcome
	}
	c.closed = true
	return closedOutcome
}

// frame puts the size before a body.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}
