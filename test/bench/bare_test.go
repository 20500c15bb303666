//go:build oracle

package bench

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"

	"tidemark/test/proc"
)

// The bare server does only what no broker can leave out: for a produce request it receives the bytes, computes the
// checksum and writes the batch into a file; for a fetch it lets the kernel send a range of a file. One thread for each
// connection waits for nothing else, nothing is shared or looked after. It answers the client of these benchmarks, and
// no other: a produce request of version 9 or a fetch of version 12, of one partition, at the start of a batch.

var (
	bareFlag = flag.String("bare", "", "be the bare server on this `address`, for the benchmarks themselves")
	bareDir  = flag.String("baredir", "", "`directory` of its files")
)

// startBare starts the bare server in a process of its own.
func startBare(b *testing.B, dir string) (*proc.Process, string) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	addr := loopback(proc.FreePorts(b, 1)[0])
	p := proc.Start(b, "bare", program, "-bare", addr, "-baredir", dir)
	p.WaitListening(b, addr)
	return p, addr
}

// bareServer has a log for each partition that was written.
type bareServer struct {
	mu   sync.Mutex
	logs map[string]*bareLog
}

// serveBare serves until the process is killed.
func serveBare(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := &bareServer{logs: map[string]*bareLog{}}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			if err := s.serve(c.(*net.TCPConn)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

// serve answers one connection, by system calls that block.
func (s *bareServer) serve(nc *net.TCPConn) error {
	const asBrokers = 102400 // socket.receive.buffer.bytes, socket.send.buffer.bytes
	err := errors.Join(nc.SetReadBuffer(asBrokers), nc.SetWriteBuffer(asBrokers))
	f, fileErr := nc.File()
	if err = errors.Join(err, fileErr, nc.Close()); err != nil {
		return err
	}
	defer f.Close()
	c := &bareConn{fd: int(f.Fd())} // which Fd has made blocking
	if err := unix.Pipe(c.pipe[:]); err != nil {
		return err
	}
	defer func() { _, _ = unix.Close(c.pipe[0]), unix.Close(c.pipe[1]) }()
	if _, err := unix.FcntlInt(uintptr(c.pipe[1]), unix.F_SETPIPE_SZ, 1<<20); err != nil {
		return err
	}
	for {
		key, body, err := c.request()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && key == 0 {
			err = s.produce(c, body)
		} else if err == nil {
			err = s.fetch(c, body)
		}
		if err != nil {
			return err
		}
	}
}

// bareConn is one connection.
type bareConn struct {
	fd   int
	pipe [2]int
	in   []byte
	size [4]byte
}

// request receives one; its body is valid until the next.
func (c *bareConn) request() (key int16, body []byte, err error) {
	if err := c.fill(c.size[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(c.size[:]))
	if cap(c.in) < n {
		c.in = make([]byte, n)
	}
	c.in = c.in[:n]
	if err := c.fill(c.in); err != nil {
		return 0, nil, err
	}
	client := int(binary.BigEndian.Uint16(c.in[8:]))
	return int16(binary.BigEndian.Uint16(c.in)), c.in[10+client+1:], nil
}

func (c *bareConn) fill(p []byte) error {
	for len(p) > 0 {
		n, err := unix.Read(c.fd, p)
		switch {
		case err == unix.EINTR:
		case err == unix.ECONNRESET, err == nil && n == 0:
			return io.EOF
		case err != nil:
			return err
		default:
			p = p[n:]
		}
	}
	return nil
}

func (c *bareConn) write(p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(c.fd, p)
		if err != nil && err != unix.EINTR {
			return err
		}
		p = p[max(n, 0):]
	}
	return nil
}

// send sends a range of a file.
func (c *bareConn) send(file int, pos int64, n int) error {
	for n > 0 {
		held, err := unix.Splice(file, &pos, c.pipe[1], nil, n, 0)
		if err != nil || held == 0 {
			return fmt.Errorf("splice: %w", err)
		}
		for n -= int(held); held > 0; {
			k, err := unix.Splice(c.pipe[0], nil, c.fd, nil, int(held), 0)
			if err != nil {
				return fmt.Errorf("splice: %w", err)
			}
			held -= k
		}
	}
	return nil
}

// bareLog is one partition.
type bareLog struct {
	mu     sync.Mutex
	dir    string
	keep   bool // all, and in one file
	files  []*os.File
	pos    int64 // in the last file
	next   int64 // offset
	starts []bareStart
	answer []byte // to a produce request
}

// bareStart is where a batch begins.
type bareStart struct{ offset, pos int64 }

func (s *bareServer) log(topic string, partition int32) *bareLog {
	name := fmt.Sprint(topic, "-", partition)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	if l == nil {
		l = &bareLog{dir: filepath.Join(*bareDir, name), keep: topic == storedTopic}
		r := kmsg.NewPtrProduceResponse()
		r.Version = 9
		r.Topics = []kmsg.ProduceResponseTopic{{Topic: topic,
			Partitions: []kmsg.ProduceResponseTopicPartition{{Partition: partition}}}}
		l.answer = bareFrame(r)
		s.logs[name] = l
	}
	return l
}

// bareFrame is a response with its size and header.
func bareFrame(r kmsg.Response) []byte {
	text := r.AppendTo([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0})
	binary.BigEndian.PutUint32(text, uint32(len(text)-4))
	return text
}

func (s *bareServer) produce(c *bareConn, body []byte) error {
	r := kmsg.NewPtrProduceRequest()
	r.Version = 9
	if err := r.ReadFrom(body); err != nil {
		return err
	}
	p := r.Topics[0].Partitions[0]
	l := s.log(r.Topics[0].Topic, p.Partition)
	if err := l.append(p.Records); err != nil {
		return err
	}
	return c.write(l.answer)
}

// append writes one batch with the next offset.
func (l *bareLog) append(batch []byte) error {
	if crc32.Checksum(batch[21:], castagnoli) != binary.BigEndian.Uint32(batch[17:]) {
		return errors.New("checksum of a batch is not right")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	const fileBytes, files = 128 << 20, 5
	if len(l.files) == 0 || !l.keep && l.pos >= fileBytes {
		if err := l.roll(files); err != nil {
			return err
		}
	}
	binary.BigEndian.PutUint64(batch, uint64(l.next))
	if _, err := l.files[len(l.files)-1].WriteAt(batch, l.pos); err != nil {
		return err
	}
	if l.keep {
		l.starts = append(l.starts, bareStart{l.next, l.pos})
	}
	l.pos += int64(len(batch))
	l.next += int64(binary.BigEndian.Uint32(batch[57:]))
	return nil
}

// roll begins a file; of older ones so many stay.
func (l *bareLog) roll(most int) error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(l.dir, fmt.Sprintf("%020d.log", l.next)))
	if err != nil {
		return err
	}
	if l.files, l.pos = append(l.files, f), 0; len(l.files) > most {
		err = errors.Join(os.Remove(l.files[0].Name()), l.files[0].Close())
		l.files = l.files[1:]
	}
	return err
}

func (s *bareServer) fetch(c *bareConn, body []byte) error {
	r := kmsg.NewPtrFetchRequest()
	r.Version = 12
	if err := r.ReadFrom(body); err != nil {
		return err
	}
	p := r.Topics[0].Partitions[0]
	l := s.log(r.Topics[0].Topic, p.Partition)
	file, pos, n := l.find(p.FetchOffset, int64(p.PartitionMaxBytes))
	answer := kmsg.NewPtrFetchResponse()
	answer.Version = 12
	part := kmsg.NewFetchResponseTopicPartition()
	part.Partition, part.RecordBatches = p.Partition, []byte{}
	answer.Topics = []kmsg.FetchResponseTopic{{Topic: r.Topics[0].Topic,
		Partitions: []kmsg.FetchResponseTopicPartition{part}}}
	text := bareFrame(answer)
	const tags = 3 // of partition, topic and response
	head := binary.AppendUvarint(text[:len(text)-tags-1], uint64(n)+1)
	binary.BigEndian.PutUint32(head, uint32(len(head)-4+n+tags))
	if err := c.write(head); err != nil {
		return err
	}
	if err := c.send(file, pos, n); err != nil {
		return err
	}
	return c.write(make([]byte, tags))
}

// find is the range of bytes of a log that is kept, from an offset on.
func (l *bareLog) find(offset, most int64) (file int, pos int64, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i].offset > offset }) - 1
	if i < 0 || offset >= l.next {
		return 0, 0, 0
	}
	pos = l.starts[i].pos
	return int(l.files[0].Fd()), pos, int(min(most, l.pos-pos))
}
