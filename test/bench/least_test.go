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

// The least is a program that does only what no broker can leave out, as cheaply as the kernel lets it: for a produce
// request it receives the bytes, computes the checksum and writes the batch into a file; for a fetch it lets the kernel
// send a range of a file. One thread for each connection waits for nothing else, nothing is shared or looked after. It
// answers the client of these benchmarks, and no other: a produce request of version 9 or a fetch of version 12, of one
// partition, at the start of a batch.

var (
	leastFlag = flag.String("least", "", "be the least server on this `address`, for the benchmarks themselves")
	leastDir  = flag.String("leastdir", "", "`directory` of its files")
)

// startLeast starts the least server in a process of its own.
func startLeast(b *testing.B, dir string) (*proc.Process, string) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	addr := loopback(proc.FreePorts(b, 1)[0])
	p := proc.Start(b, "least", program, "-least", addr, "-leastdir", dir)
	p.WaitListening(b, addr)
	return p, addr
}

// leastServer has a log for each partition that was written.
type leastServer struct {
	mu   sync.Mutex
	logs map[string]*leastLog
}

// serveLeast serves until the process is killed.
func serveLeast(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s := &leastServer{logs: map[string]*leastLog{}}
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
func (s *leastServer) serve(nc *net.TCPConn) error {
	const asBrokers = 102400 // socket.receive.buffer.bytes, socket.send.buffer.bytes
	err := errors.Join(nc.SetReadBuffer(asBrokers), nc.SetWriteBuffer(asBrokers))
	f, fileErr := nc.File()
	if err = errors.Join(err, fileErr, nc.Close()); err != nil {
		return err
	}
	defer f.Close()
	c := &leastConn{fd: int(f.Fd())} // which Fd has made blocking
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

// leastConn is one connection.
type leastConn struct {
	fd   int
	pipe [2]int
	in   []byte
	size [4]byte
}

// request receives one; its body is valid until the next.
func (c *leastConn) request() (key int16, body []byte, err error) {
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

func (c *leastConn) fill(p []byte) error {
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

func (c *leastConn) write(p []byte) error {
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
func (c *leastConn) send(file int, pos int64, n int) error {
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

// leastLog is one partition.
type leastLog struct {
	mu     sync.Mutex
	dir    string
	keep   bool // all, and in one file
	files  []*os.File
	pos    int64 // in the last file
	next   int64 // offset
	starts []leastStart
	answer []byte // to a produce request
}

// leastStart is where a batch begins.
type leastStart struct{ offset, pos int64 }

func (s *leastServer) log(topic string, partition int32) *leastLog {
	name := fmt.Sprint(topic, "-", partition)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[name]
	if l == nil {
		l = &leastLog{dir: filepath.Join(*leastDir, name), keep: topic == storedTopic}
		r := kmsg.NewPtrProduceResponse()
		r.Version = 9
		r.Topics = []kmsg.ProduceResponseTopic{{Topic: topic,
			Partitions: []kmsg.ProduceResponseTopicPartition{{Partition: partition}}}}
		l.answer = leastFrame(r)
		s.logs[name] = l
	}
	return l
}

// leastFrame is a response with its size and header.
func leastFrame(r kmsg.Response) []byte {
	text := r.AppendTo([]byte{0, 0, 0, 0, 0, 0, 0, 1, 0})
	binary.BigEndian.PutUint32(text, uint32(len(text)-4))
	return text
}

func (s *leastServer) produce(c *leastConn, body []byte) error {
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
func (l *leastLog) append(batch []byte) error {
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
		l.starts = append(l.starts, leastStart{l.next, l.pos})
	}
	l.pos += int64(len(batch))
	l.next += int64(binary.BigEndian.Uint32(batch[57:]))
	return nil
}

// roll begins a file; of older ones so many stay.
func (l *leastLog) roll(most int) error {
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

func (s *leastServer) fetch(c *leastConn, body []byte) error {
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
	text := leastFrame(answer)
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
func (l *leastLog) find(offset, most int64) (file int, pos int64, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := sort.Search(len(l.starts), func(i int) bool { return l.starts[i].offset > offset }) - 1
	if i < 0 || offset >= l.next {
		return 0, 0, 0
	}
	pos = l.starts[i].pos
	return int(l.files[0].Fd()), pos, int(min(most, l.pos-pos))
}
