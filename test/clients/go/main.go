// Command go drives a Kafka client library for the client matrix: it carries out requests, one JSON object a line on
// standard input, and answers each with one line on standard output. Its arguments are the library and the broker.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// request is one request; which fields it has depends on what is to be done.
type request struct {
	Do            string   `json:"do"`
	ID            string   `json:"id"` // of a producer or consumer
	Topic         string   `json:"topic"`
	Partitions    int32    `json:"partitions"`
	Partition     int32    `json:"partition"`
	Values        []string `json:"values"`
	Times         []int64  `json:"times"` // of the values, milliseconds; absent: now
	Codec         string   `json:"codec"`
	Idempotent    bool     `json:"idempotent"`
	Transactional string   `json:"transactional"`
	Commit        bool     `json:"commit"` // of a transaction that ends
	Group         string   `json:"group"`
	Topics        []string `json:"topics"`
	Pattern       string   `json:"pattern"`
	Protocol      string   `json:"protocol"`
	Assignor      string   `json:"assignor"`
	Instance      string   `json:"instance"`
	Committed     bool     `json:"committed"` // reads committed records only
	Offset        int64    `json:"offset"`
	Time          int64    `json:"time"`  // milliseconds
	From          string   `json:"from"`  // the topic that is copied
	Count         int      `json:"count"` // of records to copy
}

// answer is the answer to a request.
type answer struct {
	Error    string   `json:"error,omitempty"`
	Version  string   `json:"version,omitempty"`
	Topics   []string `json:"topics,omitempty"`
	Records  []read   `json:"records,omitempty"`
	Assigned []string `json:"assigned"` // "topic-partition"; null: the library does not tell
	Offset   int64    `json:"offset"`
}

// read is a record that a consumer has read.
type read struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Value     string `json:"value"`
}

// library is a client library.
type library interface {
	create(topic string, partitions int32) error
	remove(topic string) error
	list() ([]string, error)
	offsetForTime(topic string, ms int64) (int64, error) // −1: none
	producer(r request) (producer, error)
	consumer(r request) (consumer, error)
	copy(r request) error // consume, produce and commit offsets in transactions, until as many records are copied
}

type producer interface {
	produce(r request) error
	begin() error
	end(commit bool) error
	close() error
}

type consumer interface {
	poll(wait time.Duration) (records []read, assigned []string, err error)
	commit(topic string, offset int64) error // of partition 0; without a topic, all that has been read
	close() error
}

// pollWait is how long a poll waits for a first record.
const pollWait = 300 * time.Millisecond

// patience bounds one operation of a library.
const patience = 90 * time.Second

func main() {
	libraries := map[string]struct {
		module string
		open   func(addr string) (library, error)
	}{
		"franz-go": {"github.com/twmb/franz-go", openFranz},
		"sarama":   {"github.com/IBM/sarama", openSarama},
		"kafka-go": {"github.com/segmentio/kafka-go", openKafkaGo},
	}
	chosen := libraries[os.Args[1]]
	lib, err := chosen.open(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &session{library: lib, version: version(chosen.module), producers: map[string]producer{},
		consumers: map[string]consumer{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		var a answer
		err := json.Unmarshal(lines.Bytes(), &r)
		if err == nil {
			a, err = s.do(r)
		}
		if err != nil {
			a.Error = err.Error()
		}
		b, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", b)
	}
}

// version is the version of a module that this program was built with.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "?"
}

// session is what has been opened.
type session struct {
	library
	version   string
	producers map[string]producer
	consumers map[string]consumer
}

func (s *session) do(r request) (a answer, err error) {
	p, c := s.producers[r.ID], s.consumers[r.ID]
	switch r.Do {
	case "version":
		a.Version = s.version
	case "create":
		err = s.create(r.Topic, r.Partitions)
	case "delete":
		err = s.remove(r.Topic)
	case "list":
		a.Topics, err = s.list()
	case "time":
		a.Offset, err = s.offsetForTime(r.Topic, r.Time)
	case "producer":
		if p, err = s.producer(r); err == nil {
			s.producers[r.ID] = p
		}
	case "consumer":
		if c, err = s.consumer(r); err == nil {
			s.consumers[r.ID] = c
		}
	case "produce":
		err = p.produce(r)
	case "begin":
		err = p.begin()
	case "end":
		err = p.end(r.Commit)
	case "copy":
		err = s.copy(r)
	case "poll":
		a.Records, a.Assigned, err = c.poll(pollWait)
	case "commit":
		err = c.commit(r.Topic, r.Offset)
	case "close":
		err = s.shut(r.ID)
	default:
		err = errors.New("no such request")
	}
	return a, err
}

func (s *session) shut(id string) error {
	if p := s.producers[id]; p != nil {
		delete(s.producers, id)
		return p.close()
	}
	c := s.consumers[id]
	delete(s.consumers, id)
	return c.close()
}

// times returns the time of the i-th value.
func (r request) at(i int) time.Time {
	if r.Times == nil {
		return time.Now()
	}
	return time.UnixMilli(r.Times[i])
}
