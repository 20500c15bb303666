package crash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// pipe is a connection on which produce requests are sent ahead of their answers, as producers do.
type pipe struct {
	conn   net.Conn
	format *kmsg.RequestFormatter
	next   int32
}

// answerTimeout is how long an answer may take before the server counts as stuck.
const answerTimeout = time.Minute

func dialPipe(addr string) (*pipe, error) {
	conn, err := net.DialTimeout("tcp", addr, answerTimeout)
	if err != nil {
		return nil, err
	}
	return &pipe{conn: conn, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("crash"))}, nil
}

// produceVersion names topics by name.
const produceVersion = 9

// send sends one batch with acks=all.
func (p *pipe) send(topic string, partition int32, batch []byte) error {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = produceVersion, -1, 30_000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	p.next++
	_, err := p.conn.Write(p.format.AppendRequest(nil, req, p.next))
	return err
}

// receive reads the next answer. Anything but a whole, well-formed one is an error.
func (p *pipe) receive() (kmsg.ProduceResponseTopicPartition, error) {
	none := kmsg.ProduceResponseTopicPartition{}
	if err := p.conn.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return none, err
	}
	var size [4]byte
	if _, err := io.ReadFull(p.conn, size[:]); err != nil {
		return none, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:])&0xffff)
	if _, err := io.ReadFull(p.conn, frame); err != nil {
		return none, err
	}
	if len(frame) < 5 {
		return none, errors.New("an answer without a header")
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = produceVersion
	if err := resp.ReadFrom(frame[5:]); err != nil { // correlation id, empty tag section
		return none, fmt.Errorf("decode an answer: %w", err)
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return none, errors.New("an answer without the partition")
	}
	return resp.Topics[0].Partitions[0], nil
}
