//go:build oracle

package bench

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/record"
)

// ioTimeout is how long an answer may take.
const ioTimeout = time.Minute

// wire is a connection that sends frames made before: the client's own work must be small beside the broker's, for both
// share the machine.
type wire struct {
	conn   net.Conn
	in     *bufio.Reader
	answer []byte // of the last response, written over by the next
}

func connect(addr string) (*wire, error) {
	conn, err := net.DialTimeout("tcp", addr, ioTimeout)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// frame is a request with its header. The answers of a connection come in order, so all have one correlation id.
func frame(r kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, r, 1)
}

func (w *wire) send(frame []byte) error {
	if err := w.conn.SetDeadline(time.Now().Add(ioTimeout)); err != nil {
		return err
	}
	_, err := w.conn.Write(frame)
	return err
}

// receive reads a response; its body is valid until the next one.
func (w *wire) receive(flexible bool) (body []byte, err error) {
	var size [4]byte
	if _, err := io.ReadFull(w.in, size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if cap(w.answer) < n {
		w.answer = make([]byte, n)
	}
	w.answer = w.answer[:n]
	if _, err := io.ReadFull(w.in, w.answer); err != nil {
		return nil, err
	}
	skip := 4 // correlation id
	if flexible {
		skip++ // no tags
	}
	return w.answer[skip:], nil
}

// call sends a request and reads its response.
func (w *wire) call(r kmsg.Request) (kmsg.Response, error) {
	if err := w.send(frame(r)); err != nil {
		return nil, err
	}
	resp := r.ResponseKind()
	body, err := w.receive(resp.IsFlexible())
	if err != nil {
		return nil, err
	}
	return resp, resp.ReadFrom(body)
}

// batch is one batch of n records of valueBytes each, whose timestamps are a ms apart from base on. A quarter of each
// value is noise, so that codecs have something to do.
func batch(n, valueBytes int, base int64, codec record.Codec) ([]byte, error) {
	o := record.DefaultBuilderOptions()
	o.Codec, o.LeaderEpoch = codec, -1
	b := record.NewBuilder(o)
	value := make([]byte, valueBytes)
	seed := uint64(base)
	for i := range n {
		for j := range value {
			value[j] = byte('a' + j%16)
			if j%4 == 0 {
				seed = seed*6364136223846793005 + 1442695040888963407
				value[j] = byte(seed >> 56)
			}
		}
		if err := b.Append(base+int64(i), nil, value, nil); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func produceRequest(topic string, partition int32, batch []byte) *kmsg.ProduceRequest {
	r := kmsg.NewPtrProduceRequest()
	r.Version, r.Acks, r.TimeoutMillis = 9, -1, 30_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// produced reads the answer of a produce request of version 9.
func (w *wire) produced() error {
	body, err := w.receive(true)
	if err != nil {
		return err
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = 9
	if err := resp.ReadFrom(body); err != nil {
		return err
	}
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
		return fmt.Errorf("produce: error code %d", code)
	}
	return nil
}

func fetchRequest(topic string, partition int32, offset int64, waitMs, maxBytes int32) *kmsg.FetchRequest {
	r := kmsg.NewPtrFetchRequest()
	r.Version, r.MaxWaitMillis, r.MinBytes, r.MaxBytes = 12, waitMs, 1, 50<<20
	r.SessionEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, maxBytes
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// fetch reads from an offset and returns the whole batches and the offset after them.
func (w *wire) fetch(r *kmsg.FetchRequest) (bytes int, next int64, err error) {
	asked := r.Topics[0].Partitions[0].FetchOffset
	resp, err := w.call(r)
	if err != nil {
		return 0, asked, err
	}
	p := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, asked, fmt.Errorf("fetch at %d: error code %d", asked, p.ErrorCode)
	}
	next = asked
	for set := p.RecordBatches; len(set) > 0; {
		h, entry, rest, err := record.NextEntry(set)
		if err != nil {
			break // the last one is cut
		}
		bytes, next, set = bytes+len(entry), h.LastOffset+1, rest
	}
	return bytes, next, nil
}

func listOffsetsRequest(topic string, ts int64) *kmsg.ListOffsetsRequest {
	r := kmsg.NewPtrListOffsetsRequest()
	r.Version, r.ReplicaID = 7, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp = ts
	t.Partitions = append(t.Partitions, p)
	r.Topics = append(r.Topics, t)
	return r
}

// lookUp asks for the first record at a time or later.
func (w *wire) lookUp(topic string, ts int64) (int64, error) {
	resp, err := w.call(listOffsetsRequest(topic, ts))
	if err != nil {
		return 0, err
	}
	p := resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		return 0, fmt.Errorf("look-up of %d: error code %d", ts, p.ErrorCode)
	}
	return p.Offset, nil
}

// topicExists is the error code when an earlier try was not answered in time.
const topicExists = 36

// createTopicWith makes a topic, once the broker answers, and waits until it leads every partition.
func createTopicWith(addr, name string, partitions int32, configs map[string]string) error {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.Version, r.TimeoutMillis = 7, 60_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for key, value := range configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = key, &value
		t.Configs = append(t.Configs, c)
	}
	r.Topics = append(r.Topics, t)
	err := insist(addr, func(w *wire) error {
		resp, err := w.call(r)
		if err != nil {
			return err
		}
		if code := resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; code != 0 && code != topicExists {
			return fmt.Errorf("error code %d", code)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	for p := range partitions {
		if err := insist(addr, func(w *wire) error {
			_, _, err := w.fetch(fetchRequest(name, p, 0, 0, 1))
			return err
		}); err != nil {
			return fmt.Errorf("wait for %s-%d: %w", name, p, err)
		}
	}
	return nil
}

// insist does something, on a connection of its own, until it succeeds, for two minutes at most.
func insist(addr string, do func(*wire) error) error {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		w, err := connect(addr)
		if err == nil {
			err = do(w)
			_ = w.conn.Close()
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
