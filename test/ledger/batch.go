package ledger

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/record"
)

// Batch is one batch to be sent, with the producer and sequence that the test wants.
type Batch struct {
	Codec      record.Codec
	ProducerID int64 // −1: none
	Epoch      int16
	Sequence   int32
	Records    []Record // offsets and epochs are not looked at
}

// Encode returns the bytes of a produce request.
func (b Batch) Encode() ([]byte, error) {
	o := record.DefaultBuilderOptions()
	o.Codec = b.Codec
	if b.ProducerID >= 0 {
		o.ProducerID, o.ProducerEpoch, o.BaseSequence = b.ProducerID, b.Epoch, b.Sequence
	}
	builder := record.NewBuilder(o)
	for _, r := range b.Records {
		var headers []record.RecordHeader
		for _, h := range r.Headers {
			headers = append(headers, record.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		if err := builder.Append(r.Timestamp, r.Key, r.Value, headers); err != nil {
			return nil, err
		}
	}
	return builder.Bytes(), nil
}

// Added notes that the batch was taken with the answer given, in the partition's current epoch.
func (p *Partition) Added(b Batch, answer Produced) {
	for i, r := range b.Records {
		r.Offset, r.Epoch = answer.Base+int64(i), p.Epoch()
		if answer.LogAppendTime >= 0 {
			r.Timestamp = answer.LogAppendTime
		}
		p.Add(r)
	}
}

// fromClient is a record as the client library gives it.
func fromClient(r *kgo.Record) Record {
	return Record{Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, Headers: r.Headers,
		Epoch: r.LeaderEpoch, Control: r.Attrs.IsControl()}
}
