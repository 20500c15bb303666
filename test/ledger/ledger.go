// Package ledger keeps what a test wrote to a server, and compares what a server answers with it.
//
// A ledger outlives the servers: the tests that hand a data directory from one server to another, or kill a server,
// write through one and check the answers of the next. Records are decoded by the client library, not by the code
// under test; the look-ups are compared with what a plain search over the records written finds.
//
// A ledger is for one goroutine at a time.
package ledger

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Record is one record as it must be read back.
type Record struct {
	Offset, Timestamp int64
	Key, Value        []byte // nil: null
	Headers           []kgo.RecordHeader
	Epoch             int32 // leader epoch of its batch
	Control           bool  // a transaction marker
	Aborted           bool  // data of an aborted transaction
}

// equal compares all but Aborted, which no client says. It is for the many that are equal: it is quicker than a
// comparison that tells the difference.
func (r Record) equal(o Record) bool {
	return r.Offset == o.Offset && r.Timestamp == o.Timestamp && r.Epoch == o.Epoch && r.Control == o.Control &&
		(r.Key == nil) == (o.Key == nil) && bytes.Equal(r.Key, o.Key) &&
		(r.Value == nil) == (o.Value == nil) && bytes.Equal(r.Value, o.Value) &&
		slices.EqualFunc(r.Headers, o.Headers, func(a, b kgo.RecordHeader) bool {
			return a.Key == b.Key && (a.Value == nil) == (b.Value == nil) && bytes.Equal(a.Value, b.Value)
		})
}

// EpochStart says that a leader epoch began at an offset.
type EpochStart struct {
	Epoch int32
	Start int64
}

// Partition is what one partition must hold.
type Partition struct {
	Topic   string
	ID      int32
	Records []Record // ascending by offset
	Start   int64    // log start offset
	End     int64    // log end offset
	Epochs  []EpochStart
}

// Name is the folder's name, as "topic-0".
func (p *Partition) Name() string { return p.Topic + "-" + strconv.Itoa(int(p.ID)) }

// Ledger holds the partitions by name.
type Ledger struct{ partitions map[string]*Partition }

// New returns an empty ledger.
func New() *Ledger { return &Ledger{partitions: make(map[string]*Partition)} }

// Partition returns a partition, which is added when it is new.
func (l *Ledger) Partition(topic string, id int32) *Partition {
	p := &Partition{Topic: topic, ID: id}
	if known := l.partitions[p.Name()]; known != nil {
		return known
	}
	l.partitions[p.Name()] = p
	return p
}

// Partitions returns all partitions, by name.
func (l *Ledger) Partitions() []*Partition {
	out := slices.Collect(maps.Values(l.partitions))
	slices.SortFunc(out, func(a, b *Partition) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

// Topics returns the topics and how many partitions each has.
func (l *Ledger) Topics() map[string]int32 {
	out := make(map[string]int32)
	for _, p := range l.partitions {
		out[p.Topic] = max(out[p.Topic], p.ID+1)
	}
	return out
}

// Forget removes a topic that was deleted.
func (l *Ledger) Forget(topic string) {
	maps.DeleteFunc(l.partitions, func(_ string, p *Partition) bool { return p.Topic == topic })
}

// Lead notes that the partition is led in an epoch from its end on. An epoch that is known already changes nothing.
func (p *Partition) Lead(epoch int32) {
	if n := len(p.Epochs); n > 0 && p.Epochs[n-1].Epoch == epoch {
		return
	}
	p.Reopen()
	p.Epochs = append(p.Epochs, EpochStart{epoch, p.End})
}

// Reopen forgets the last epochs when nothing was written in them: so does a log that is opened.
func (p *Partition) Reopen() {
	for n := len(p.Epochs); n > 0 && p.Epochs[n-1].Start >= p.End; n-- {
		p.Epochs = p.Epochs[:n-1]
	}
}

// Epoch is the epoch that the partition was led in last, −1 when it was not led yet.
func (p *Partition) Epoch() int32 {
	if len(p.Epochs) == 0 {
		return -1
	}
	return p.Epochs[len(p.Epochs)-1].Epoch
}

// Add appends a record that lies at or behind the end.
func (p *Partition) Add(r Record) {
	p.Records = append(p.Records, r)
	p.End = r.Offset + 1
}

// DeleteBefore moves the log start offset.
func (p *Partition) DeleteBefore(offset int64) {
	p.Start = offset
	for len(p.Epochs) > 1 && p.Epochs[1].Start <= offset {
		p.Epochs = p.Epochs[1:]
	}
	if len(p.Epochs) > 0 {
		p.Epochs[0].Start = max(p.Epochs[0].Start, offset)
	}
}

// visible are the records from the log start on.
func (p *Partition) visible() []Record {
	for i, r := range p.Records {
		if r.Offset >= p.Start {
			return p.Records[i:]
		}
	}
	return nil
}

// Read are the records that a consumer gets from the start, without markers.
func (p *Partition) Read(committed bool) []Record {
	var out []Record
	for _, r := range p.visible() {
		if !r.Control && !(committed && r.Aborted) {
			out = append(out, r)
		}
	}
	return out
}

// nothing is the answer of a look-up that finds nothing.
var nothing = Found{Offset: -1, Timestamp: -1, Epoch: -1}

// Found is the answer of a look-up by time.
type Found struct {
	Offset, Timestamp int64
	Epoch             int32
}

// ForTime is the first record from the log start on with a timestamp of at least ts.
func (p *Partition) ForTime(ts int64) Found {
	for _, r := range p.visible() {
		if r.Timestamp >= ts {
			return Found{r.Offset, r.Timestamp, r.Epoch}
		}
	}
	return nothing
}

// Latest is the first record with the largest timestamp (ListOffsets' −3).
func (p *Partition) Latest() Found {
	best := nothing
	for _, r := range p.visible() {
		if r.Timestamp > best.Timestamp {
			best = Found{r.Offset, r.Timestamp, r.Epoch}
		}
	}
	return best
}

// EpochEnd is the answer to OffsetForLeaderEpoch.
func (p *Partition) EpochEnd(epoch int32) EpochStart {
	undefined := EpochStart{-1, -1}
	if len(p.Epochs) == 0 {
		return undefined
	}
	last := p.Epochs[len(p.Epochs)-1]
	switch {
	case epoch == last.Epoch:
		return EpochStart{epoch, p.End}
	case epoch > last.Epoch:
		return undefined
	}
	below := epoch
	for _, e := range p.Epochs {
		if e.Epoch > epoch {
			return EpochStart{below, e.Start}
		}
		below = e.Epoch
	}
	return undefined
}
