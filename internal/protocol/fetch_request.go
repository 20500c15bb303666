package protocol

import (
	"errors"
	"math"
)

// FetchRequest is the body of a Fetch request, version 0 to 18.
//
//	replica id            i32                  v0-14
//	max wait ms           i32
//	min bytes             i32
//	max bytes             i32                  v3+
//	isolation level       i8                   v4+
//	session id            i32                  v7+
//	session epoch         i32                  v7+
//	topics                array
//	  name                string               v0-12
//	  id                  uuid                 v13+
//	  partitions          array
//	    index             i32
//	    leader epoch      i32                  v9+
//	    fetch offset      i64
//	    last fetched      i32                  v12+
//	    log start offset  i64                  v5+
//	    max bytes         i32
//	    tag 0             uuid                 v17+  directory id of the replica
//	    tag 1             i64                  v18+  high watermark of the replica
//	forgotten             array                v7+
//	  name                string               v7-12
//	  id                  uuid                 v13+
//	  indexes             array of i32
//	rack id               string               v11+
//	tag 0                 string, null         v12+  cluster id
//	tag 1                 i32, i64, tags       v15+  replica id and broker epoch
//
// From version 12 on lengths are compact, and each element, topic and the whole
// end with tagged fields.
type FetchRequest struct {
	// ClusterID is nil when not given.
	ClusterID *string
	// ReplicaID is −1 for a consumer; ReplicaEpoch is its broker epoch, −1
	// when not given.
	ReplicaID    int32
	ReplicaEpoch int64
	MaxWaitMs    int32
	MinBytes     int32
	// MaxBytes is MaxInt32 below version 3.
	MaxBytes int32
	// IsolationLevel is 0 for read_uncommitted, 1 for read_committed.
	IsolationLevel int8
	// SessionID and SessionEpoch are 0 and −1 below version 7: no session.
	SessionID, SessionEpoch int32
	Topics                  []FetchTopic
	Forgotten               []ForgottenTopic
	RackID                  string

	partitions []FetchPartition // backs all Topics[i].Partitions
	indexes    []int32          // backs all Forgotten[i].Partitions
}

// FetchTopic is what is asked of one topic, named by Name up to version 12 and
// by ID from version 13 on.
type FetchTopic struct {
	Name       string
	ID         [16]byte
	Partitions []FetchPartition
}

// FetchPartition is what is asked of one partition. Fields that the version
// lacks hold Kafka's defaults, −1 unless said otherwise.
type FetchPartition struct {
	Index              int32
	CurrentLeaderEpoch int32
	FetchOffset        int64
	LastFetchedEpoch   int32
	LogStartOffset     int64
	MaxBytes           int32
	ReplicaDirectoryID [16]byte // zero when not given
	HighWatermark      int64    // MaxInt64 when not given
}

// ForgottenTopic names partitions that leave a fetch session.
type ForgottenTopic struct {
	Name       string
	ID         [16]byte
	Partitions []int32
}

const fetchFlexible = 12

// Parse reads a body. Nothing aliases it; names of topics come by way of
// names, which may be nil. r may have been used before: its slices are written
// over. What is allocated is at most [DecodeBound] of the body.
// Errors: *MalformedError.
func (r *FetchRequest) Parse(version int16, body []byte, names *Names) error {
	var size counter
	count := newReader(body, version >= fetchFlexible)
	walkFetch(&count, version, &size)
	if count.ok() && size.bytes() > DecodeBound(len(body)) {
		count.Fail(errTooLarge)
	}
	if err := count.malformed(keyFetch, version); err != nil {
		return err
	}
	r.reserve(size)
	b := newReader(body, version >= fetchFlexible)
	r.fill(&b, version, names)
	return b.malformed(keyFetch, version)
}

// fetchPartitionSize is the bytes of one partition before its tags.
func fetchPartitionSize(version int16) int {
	size := 4 + 8 + 4
	if version >= 5 {
		size += 8
	}
	if version >= 9 {
		size += 4
	}
	if version >= 12 {
		size += 4
	}
	return size
}

// fetchHeadSize is the bytes before the topics.
func fetchHeadSize(version int16) int {
	size := 4 + 4
	if version <= 14 {
		size += 4
	}
	if version >= 3 {
		size += 4
	}
	if version >= 4 {
		size++
	}
	if version >= 7 {
		size += 4 + 4
	}
	return size
}

func skipTopic(b *reader, version int16) {
	if version >= 13 {
		b.Skip(16)
	} else {
		b.string()
	}
}

// walkFetch checks a body, but for the contents of tagged fields, and counts
// its elements.
func walkFetch(b *reader, version int16, c *counter) {
	b.Skip(fetchHeadSize(version))
	partitionSize := fetchPartitionSize(version)
	for n := b.array(2); n > 0 && b.ok(); n-- {
		c.topics++
		skipTopic(b, version)
		for n := b.array(partitionSize); n > 0 && b.ok(); n-- {
			c.partitions++
			b.Skip(partitionSize)
			b.tags(nil)
		}
		b.tags(nil)
	}
	if version >= 7 {
		for n := b.array(2); n > 0 && b.ok(); n-- {
			c.forgotten++
			skipTopic(b, version)
			indexes := b.array(4)
			b.Skip(4 * indexes)
			c.indexes += indexes
			b.tags(nil)
		}
	}
	if version >= 11 {
		b.string()
	}
	b.tags(nil)
}

// reserve makes room for the counted elements.
func (r *FetchRequest) reserve(c counter) {
	if cap(r.Topics) < c.topics {
		r.Topics = make([]FetchTopic, 0, c.topics)
	}
	if cap(r.partitions) < c.partitions {
		r.partitions = make([]FetchPartition, 0, c.partitions)
	}
	if cap(r.Forgotten) < c.forgotten {
		r.Forgotten = make([]ForgottenTopic, 0, c.forgotten)
	}
	if cap(r.indexes) < c.indexes {
		r.indexes = make([]int32, 0, c.indexes)
	}
	*r = FetchRequest{
		ReplicaID: -1, ReplicaEpoch: -1, MaxBytes: math.MaxInt32, SessionEpoch: -1,
		Topics: r.Topics[:0], Forgotten: r.Forgotten[:0], partitions: r.partitions[:0], indexes: r.indexes[:0],
	}
}

// fill reads a body that walkFetch has found well formed; tagged fields may
// still fail.
func (r *FetchRequest) fill(b *reader, version int16, names *Names) {
	if version <= 14 {
		r.ReplicaID = b.Int32()
	}
	r.MaxWaitMs = b.Int32()
	r.MinBytes = b.Int32()
	if version >= 3 {
		r.MaxBytes = b.Int32()
	}
	if version >= 4 {
		r.IsolationLevel = b.Int8()
	}
	if version >= 7 {
		r.SessionID = b.Int32()
		r.SessionEpoch = b.Int32()
	}
	for n := b.array(2); n > 0; n-- {
		r.fillTopic(b, version, names)
	}
	if version >= 7 {
		for n := b.array(2); n > 0; n-- {
			r.fillForgotten(b, version, names)
		}
	}
	if version >= 11 {
		r.RackID = names.Get(b.string())
	}
	b.tags(func(tag uint32, v *reader) bool { return r.tagged(tag, v, version, names) })
}

func (r *FetchRequest) fillTopic(b *reader, version int16, names *Names) {
	var t FetchTopic
	if version >= 13 {
		t.ID = b.UUID()
	} else {
		t.Name = names.Get(b.string())
	}
	first := len(r.partitions)
	for n := b.array(fetchPartitionSize(version)); n > 0; n-- {
		r.partitions = append(r.partitions, FetchPartition{})
		r.partitions[len(r.partitions)-1].read(b, version)
	}
	t.Partitions = r.partitions[first:len(r.partitions):len(r.partitions)]
	b.tags(nil)
	r.Topics = append(r.Topics, t)
}

func (p *FetchPartition) read(b *reader, version int16) {
	*p = FetchPartition{CurrentLeaderEpoch: -1, LastFetchedEpoch: -1, LogStartOffset: -1, HighWatermark: math.MaxInt64}
	p.Index = b.Int32()
	if version >= 9 {
		p.CurrentLeaderEpoch = b.Int32()
	}
	p.FetchOffset = b.Int64()
	if version >= 12 {
		p.LastFetchedEpoch = b.Int32()
	}
	if version >= 5 {
		p.LogStartOffset = b.Int64()
	}
	p.MaxBytes = b.Int32()
	b.tags(func(tag uint32, v *reader) bool {
		switch {
		case tag == 0 && version >= 17:
			p.ReplicaDirectoryID = v.UUID()
		case tag == 1 && version >= 18:
			p.HighWatermark = v.Int64()
		case tag <= 1:
			v.Fail(errLaterTag)
		default:
			return false
		}
		return true
	})
}

func (r *FetchRequest) fillForgotten(b *reader, version int16, names *Names) {
	var t ForgottenTopic
	if version >= 13 {
		t.ID = b.UUID()
	} else {
		t.Name = names.Get(b.string())
	}
	first := len(r.indexes)
	for n := b.array(4); n > 0; n-- {
		r.indexes = append(r.indexes, b.Int32())
	}
	t.Partitions = r.indexes[first:len(r.indexes):len(r.indexes)]
	b.tags(nil)
	r.Forgotten = append(r.Forgotten, t)
}

// tagged reads a tagged field of the request itself.
func (r *FetchRequest) tagged(tag uint32, v *reader, version int16, names *Names) bool {
	switch {
	case tag == 0:
		if id := v.nullableString(); id != nil {
			s := names.Get(id)
			r.ClusterID = &s
		}
	case tag == 1 && version >= 15:
		r.ReplicaID = v.Int32()
		r.ReplicaEpoch = v.Int64()
		v.tags(nil)
	case tag == 1:
		v.Fail(errLaterTag)
	default:
		return false
	}
	return true
}

// errLaterTag is a tagged field that a later version of the message has.
//
// Kafka: tags that no version knows are passed over, such ones close the connection.
var errLaterTag = errors.New("not valid in this version")
