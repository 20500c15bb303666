package protocol

// ProduceRequest is the body of a Produce request, version 0 to 13.
//
//	transactional id  string, null           v3+
//	acks              i16
//	timeout ms        i32
//	topics            array
//	  name            string                 v0-12
//	  id              uuid                   v13+
//	  partitions      array
//	    index         i32
//	    records       bytes, null
//
// From version 9 on lengths are compact, and each element, topic and the whole
// end with tagged fields, none of which has a meaning.
type ProduceRequest struct {
	// TransactionalID is nil for a producer without transactions.
	TransactionalID *string
	// Acks is 0, 1 or −1 in a valid request; it is not checked here.
	Acks int16
	// TimeoutMs bounds the wait for the in-sync replicas, in milliseconds.
	TimeoutMs int32
	Topics    []ProduceTopic

	partitions []ProducePartition // backs all Topics[i].Partitions
}

// ProduceTopic is the records for one topic, named by Name up to version 12
// and by ID from version 13 on.
type ProduceTopic struct {
	Name       string
	ID         [16]byte
	Partitions []ProducePartition
}

// ProducePartition is the records for one partition.
type ProducePartition struct {
	Index int32
	// Records aliases the request body; nil for null.
	Records []byte
}

const produceFlexible = 9

// Parse reads a body. Records alias it; all else is copied, topic names by way
// of names, which may be nil. r may have been used before: its slices are
// written over. What is allocated is at most [DecodeBound] of the body.
// Errors: *MalformedError.
func (r *ProduceRequest) Parse(version int16, body []byte, names *Names) error {
	var size counter
	count := newReader(body, version >= produceFlexible)
	walkProduce(&count, version, &size)
	if count.ok() && size.bytes() > DecodeBound(len(body)) {
		count.Fail(errTooLarge)
	}
	if err := count.malformed(keyProduce, version); err != nil {
		return err
	}
	r.reserve(size)
	b := newReader(body, version >= produceFlexible)
	r.fill(&b, version, names)
	return b.malformed(keyProduce, version)
}

// counter counts the elements of a Produce or Fetch request before any is
// allocated.
type counter struct {
	topics, partitions, forgotten, indexes int
}

// bytes is the memory that the elements will take, names aside.
func (c counter) bytes() int64 {
	const topic, partition, index = 64, 80, 4
	return int64(c.topics+c.forgotten)*topic + int64(c.partitions)*partition + int64(c.indexes)*index
}

// walkProduce checks a body from end to end and counts its elements.
func walkProduce(b *reader, version int16, c *counter) {
	if version >= 3 {
		b.nullableString()
	}
	b.Skip(2 + 4)
	for n := b.array(2); n > 0 && b.ok(); n-- {
		c.topics++
		if version >= 13 {
			b.Skip(16)
		} else {
			b.string()
		}
		for n := b.array(5); n > 0 && b.ok(); n-- {
			c.partitions++
			b.Skip(4)
			b.nullableBytes()
			b.tags(nil)
		}
		b.tags(nil)
	}
	b.tags(nil)
}

// reserve makes room for the counted elements.
func (r *ProduceRequest) reserve(c counter) {
	if cap(r.Topics) < c.topics {
		r.Topics = make([]ProduceTopic, 0, c.topics)
	}
	if cap(r.partitions) < c.partitions {
		r.partitions = make([]ProducePartition, 0, c.partitions)
	}
	r.Topics, r.partitions = r.Topics[:0], r.partitions[:0]
}

// fill reads a body that walkProduce has found well formed.
func (r *ProduceRequest) fill(b *reader, version int16, names *Names) {
	r.TransactionalID = nil
	if version >= 3 {
		if id := b.nullableString(); id != nil {
			s := names.Get(id)
			r.TransactionalID = &s
		}
	}
	r.Acks = b.Int16()
	r.TimeoutMs = b.Int32()
	for n := b.array(2); n > 0; n-- {
		var t ProduceTopic
		if version >= 13 {
			t.ID = b.UUID()
		} else {
			t.Name = names.Get(b.string())
		}
		first := len(r.partitions)
		for n := b.array(5); n > 0; n-- {
			p := ProducePartition{Index: b.Int32(), Records: b.nullableBytes()}
			b.tags(nil)
			r.partitions = append(r.partitions, p)
		}
		t.Partitions = r.partitions[first:len(r.partitions):len(r.partitions)]
		b.tags(nil)
		r.Topics = append(r.Topics, t)
	}
	b.tags(nil)
}
