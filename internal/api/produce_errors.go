package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/commitlog"
	"tidemark/internal/protocol"
	"tidemark/record"
)

// describeRefusal adds to an answer what Kafka says of a refused batch: for most errors nothing but the code.
func describeRefusal(answer *protocol.ProducePartitionResponse, err error) {
	switch answer.ErrorCode { // Kafka: ReplicaManager.appendToLocalLog tells no log start offset with these
	case kerr.CorruptMessage.Code, kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code,
		kerr.NotLeaderForPartition.Code, kerr.KafkaStorageError.Code, kerr.UnknownTopicOrPartition.Code:
		answer.LogStartOffset = -1
	}
	var refused *commitlog.AppendError
	if !errors.As(err, &refused) {
		return
	}
	if refused.OnWire {
		text := refused.Text
		answer.ErrorMessage = &text
	}
	for _, r := range refused.RecordErrors {
		text := r.Message
		answer.RecordErrors = append(answer.RecordErrors, protocol.RecordError{BatchIndex: r.BatchIndex, Message: &text})
	}
}

// singleBatch is the one magic-2 batch that a produce request holds for a partition. The message sets of version
// 0 to 2 are converted to one; nil: there is no whole message in it, which is no error.
func singleBatch(records []byte, version int16) ([]byte, error) {
	if version >= firstBatchVersion {
		return commitlog.SingleBatch(records, version)
	}
	n, err := checkMessageSet(records)
	if n == 0 || err != nil {
		return nil, err
	}
	if h, entry, _, err := record.NextEntry(records); err == nil && h.Magic > 1 {
		return entry, nil
	}
	o := record.DefaultBuilderOptions()
	o.Codec = record.SetCodec(records)
	batch, err := record.UpConvert(records, o, record.IterOptions{})
	if err != nil {
		return nil, refusedMessageSet(err)
	}
	return batch, nil
}

// checkMessageSet counts the whole messages of a set. All must be of one magic, and a compressed one must be alone.
//
// Kafka: LogValidator 3.9.
func checkMessageSet(set []byte) (n int, err error) {
	var magic int8
	compressed := false
	for ; ; n++ {
		h, _, rest, err := record.NextEntry(set)
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err != nil {
			return n, refusedMessageSet(err)
		}
		if n == 0 {
			magic = h.Magic
		}
		if h.Magic != magic {
			return n, &commitlog.AppendError{Reason: commitlog.ErrInvalidRecord, Text: "messages of several magics in a set"}
		}
		compressed = compressed || h.Codec() != record.None
		set = rest
	}
	if n > 1 && (compressed || magic > 1) {
		return n, &commitlog.AppendError{Reason: commitlog.ErrInvalidRecord, Text: "more than a compressed message in a set"}
	}
	return n, nil
}

// refusedMessageSet is the refusal of a message set that cannot be converted.
func refusedMessageSet(err error) error {
	reason := commitlog.ErrInvalidRecord
	var corrupt *record.CorruptError
	var codec *record.CodecError
	switch {
	case errors.As(err, &corrupt):
		reason = commitlog.ErrCorruptMessage
	case errors.As(err, &codec), errors.Is(err, record.ErrTooLarge):
		reason = commitlog.ErrUndecodable
	}
	return &commitlog.AppendError{Reason: reason, Text: err.Error()}
}
