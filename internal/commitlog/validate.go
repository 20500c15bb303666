package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"tidemark/record"
)

// reject makes an AppendError whose text only Kafka's own log shows.
func reject(reason error, format string, args ...any) *AppendError {
	return &AppendError{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// SingleBatch takes the one magic-2 batch out of what a produce request of a version sends for a partition. Bytes of
// a second batch that is not complete are dropped; a second batch is refused. The result aliases records. All errors
// are *AppendError.
func SingleBatch(records []byte, version int16) ([]byte, error) {
	size, magic, err := nextEntry(records)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, rejectProduce(ErrInvalidRecord, version, "must have at least one record batch per partition")
	}
	if magic != 2 {
		return nil, rejectProduce(ErrInvalidRecord, version,
			"are only allowed to contain record batches with magic version 2")
	}
	batch := records[:size:size]
	if size >= record.HeaderSize && version < 7 && record.Batch(batch).Codec() == record.Zstd {
		return nil, rejectProduce(ErrUnsupportedCodec, version, "are not allowed to use ZStandard compression")
	}
	more, _, err := nextEntry(records[size:])
	if err != nil {
		return nil, err
	}
	if more > 0 {
		return nil, rejectProduce(ErrInvalidRecord, version,
			"are only allowed to contain exactly one record batch per partition")
	}
	return batch, nil
}

func rejectProduce(reason error, version int16, why string) error {
	return reject(reason, "Produce requests with version %d %s", version, why)
}

// CheckFirst refuses records whose first entry has a size or a magic that cannot be, with ErrCorruptMessage. Kafka
// refuses a whole produce request for that, whatever its other partitions hold.
func CheckFirst(records []byte) error {
	_, _, err := nextEntry(records)
	return err
}

// The frame of an entry: 8 bytes offset, 4 bytes size of what follows, 4 bytes CRC or epoch, 1 byte magic.
const (
	frameBytes   = 12
	toMagicBytes = 17
	leastSize    = 14 // of what follows the frame; the magics ask for more later
)

// nextEntry is the size in bytes and the magic of the entry that b starts with; 0 when it is not complete.
func nextEntry(b []byte) (size int, magic int8, err error) {
	if len(b) < frameBytes {
		return 0, 0, nil
	}
	n := int32(binary.BigEndian.Uint32(b[8:]))
	if n < leastSize {
		return 0, 0, reject(ErrCorruptMessage,
			"Record size %d is less than the minimum record overhead (%d)", n, leastSize)
	}
	if len(b) < toMagicBytes {
		return 0, 0, nil
	}
	if magic = int8(b[toMagicBytes-1]); magic < 0 || magic > 2 {
		return 0, 0, &AppendError{
			Reason: ErrCorruptMessage, OnWire: true,
			Text: fmt.Sprintf("Invalid magic found in record: %d", magic),
		}
	}
	if int64(n)+frameBytes > int64(len(b)) {
		return 0, 0, nil
	}
	return int(n) + frameBytes, magic, nil
}

// checker examines one batch on behalf of the leader. It needs no lock: nothing it asks depends on the log.
type checker struct {
	cfg    *Config
	name   string // topic-partition, for texts
	opts   AppendOptions
	nowMs  int64
	decode record.IterOptions

	rebuild *record.Builder // nil: the batch goes to the log as it came
	inPlace bool
	partial bool // keys and values are not read
	maxTs   int64
	count   int64
	errs    []RecordError
	badTime bool // a record was refused for its timestamp
}

// checked is a batch that passed; it lacks what depends on the log: offsets, leader epoch, append time.
type checked struct {
	batch record.Batch
	count int64 // records met
	maxTs int64 // the largest CreateTime, -1: none
}

// frame checks what Kafka checks before it takes the log's lock: rows 9 to 11 of the table in doc/format.md.
func (c *checker) frame(b []byte) (record.Batch, error) {
	batch, err := record.ParseBatch(b)
	if err != nil {
		return nil, c.corrupt(b)
	}
	if c.opts.Origin == OriginRaft && batch.LeaderEpoch() != c.opts.LeaderEpoch {
		return nil, reject(ErrInvalidRecord, "Append from Raft leader did not set the batch epoch correctly, "+
			"expected %d but the batch has %d", c.opts.LeaderEpoch, batch.LeaderEpoch())
	}
	if c.opts.Origin == OriginClient && batch.BaseOffset() != 0 {
		return nil, reject(ErrInvalidRecord,
			"The baseOffset of the record batch in the append to %s should be 0, but it is %d", c.name, batch.BaseOffset())
	}
	if c.opts.Origin != OriginRaft && len(batch) > int(c.cfg.MaxMessageBytes) {
		return nil, reject(ErrMessageTooLarge, "The record batch size in the append to %s is %d bytes "+
			"which exceeds the maximum configured value of %d).", c.name, len(batch), c.cfg.MaxMessageBytes)
	}
	if !batch.ValidCRC() {
		return nil, c.corrupt(b)
	}
	if !batch.Codec().Known() {
		return nil, reject(ErrUndecodable, "Unknown compression type id: %d", int8(batch.Codec()))
	}
	return batch, nil
}

func (c *checker) corrupt(b []byte) error {
	crc := uint32(0)
	if len(b) >= toMagicBytes+4 {
		crc = binary.BigEndian.Uint32(b[toMagicBytes:])
	}
	return reject(ErrCorruptMessage, "Record is corrupt (stored crc = %d) in topic partition %s.", crc, c.name)
}

// header checks the fields of the batch: rows 12 to 16.
func (c *checker) header(b record.Batch) error {
	if c.opts.Origin != OriginClient {
		return nil
	}
	last, count := b.LastOffset(), int64(b.Count())
	switch fromOffsets := int64(b.LastOffsetDelta()) + 1; {
	case fromOffsets <= 0:
		return reject(ErrInvalidRecord, "Batch has an invalid offset range: [%d, %d] in topic partition %s",
			b.BaseOffset(), last, c.name)
	case count <= 0:
		return reject(ErrInvalidRecord, "Invalid reported count for record batch: %d in topic partition %s", count, c.name)
	case fromOffsets != count:
		return reject(ErrInvalidRecord,
			"Inconsistent batch offset range [%d, %d] and count of records %d in topic partition %s",
			b.BaseOffset(), last, count, c.name)
	case b.IsControl():
		return reject(ErrInvalidRecord, "Clients are not allowed to write control records in topic partition %s", c.name)
	case b.ProducerID() >= 0 && b.BaseSequence() < 0:
		return reject(ErrInvalidRecord,
			"Invalid sequence number %d in record batch with producerId %d in topic partition %s",
			b.BaseSequence(), b.ProducerID(), c.name)
	}
	return nil
}

// check runs all checks on a batch and brings it into the topic's codec.
func (c *checker) check(b []byte) (checked, error) {
	batch, err := c.frame(b)
	if err != nil {
		return checked{}, err
	}
	if err := c.header(batch); err != nil {
		return checked{}, err
	}
	source := batch.Codec()
	target := c.cfg.targetCodec(source)
	// Kafka: control records are not compressed unless they came so.
	c.inPlace = source == target || (source == record.None && batch.IsControl())
	c.partial = c.inPlace && source != record.None
	c.maxTs = record.NoTimestamp
	if !c.inPlace {
		c.rebuild = record.NewBuilder(record.BuilderOptions{
			Codec: target, Level: c.cfg.compressionLevel(target),
			ProducerID: batch.ProducerID(), ProducerEpoch: batch.ProducerEpoch(),
			BaseSequence: batch.BaseSequence(), Transactional: batch.IsTransactional(),
			LeaderEpoch: c.opts.LeaderEpoch,
		})
	}
	if err := c.records(batch); err != nil {
		return checked{}, err
	}
	if len(c.errs) > 0 {
		return checked{}, c.recordErrors()
	}
	if c.rebuild != nil {
		if batch, err = c.rebuilt(); err != nil {
			return checked{}, err
		}
	}
	return checked{batch: batch, count: c.count, maxTs: c.maxTs}, nil
}

func (c *checker) rebuilt() (record.Batch, error) {
	b := c.rebuild.Bytes()
	if c.opts.Origin != OriginRaft && len(b) > int(c.cfg.MaxMessageBytes) {
		return nil, reject(ErrMessageTooLarge, "Message batch size is %d bytes in append topartition %s "+
			"which exceeds the maximum configured size of %d.", len(b), c.name, c.cfg.MaxMessageBytes)
	}
	return b, nil
}

// plain accepts records of which nothing has to be refused or rewritten, without decoding each. It says false when it
// cannot tell.
func (c *checker) plain(b record.Batch) bool {
	if c.rebuild != nil {
		return false
	}
	s, ok := b.Survey()
	if !ok || s.MinTimestamp < 0 || s.NullKeys && c.cfg.CleanupPolicy.Compact() {
		return false
	}
	if c.cfg.MessageTimestampType == record.CreateTime && (c.outOfRange(s.MinTimestamp) || c.outOfRange(s.MaxTimestamp)) {
		return false
	}
	c.count, c.maxTs = int64(b.Count()), s.MaxTimestamp
	return true
}

// records reads every record: rows 17 to 22.
func (c *checker) records(b record.Batch) error {
	if c.plain(b) {
		return nil
	}
	// Keys matter to compacted topics, sizes to the text about a forbidden timestamp type.
	skip := c.inPlace && !c.cfg.CleanupPolicy.Compact() && b.TimestampType() == record.CreateTime
	decode := c.decode
	decode.SkipKV = skip
	it, err := record.NewIterator(b, decode)
	if err != nil {
		return decodeError(err)
	}
	defer it.Close()
	inOrder := true
	for it.Next() {
		r := it.Record()
		c.record(b, r)
		inOrder = inOrder && r.Offset == c.count
		c.count++
		if c.rebuild != nil && len(c.errs) == 0 {
			if err := c.rebuild.Append(r.Timestamp, r.Key, r.Value, r.Headers); err != nil {
				return reject(ErrUndecodable, "%v", err)
			}
		}
	}
	if err := it.Err(); err != nil {
		return decodeError(err)
	}
	if c.partial && !inOrder && len(c.errs) == 0 {
		// Kafka: it would build the batch anew, from records whose keys and values it skipped, and fails.
		return reject(ErrUndecodable, "offsets in the compressed batch are not 0, 1, 2, … in topic partition %s", c.name)
	}
	return nil
}

// decodeError tells records that make no sense from data that does not decompress.
func decodeError(err error) error {
	var invalid *record.InvalidRecordError
	if errors.As(err, &invalid) {
		return reject(ErrInvalidRecord, "%s", invalid.Reason)
	}
	return reject(ErrUndecodable, "%v", err)
}

// record checks one record; its key comes first.
func (c *checker) record(b record.Batch, r *record.Record) {
	if text, badTime := c.recordFault(b, r); text != "" {
		c.errs = append(c.errs, RecordError{BatchIndex: int32(c.count), Message: text})
		c.badTime = c.badTime || badTime
		return
	}
	c.maxTs = max(c.maxTs, r.Timestamp)
}

func (c *checker) recordFault(b record.Batch, r *record.Record) (text string, badTime bool) {
	if c.cfg.CleanupPolicy.Compact() && r.Key == nil {
		return "Compacted topic cannot accept message without key in topic partition " + c.name, false
	}
	if c.cfg.MessageTimestampType == record.CreateTime && r.Timestamp != record.NoTimestamp {
		if c.outOfRange(r.Timestamp) {
			return fmt.Sprintf("Timestamp %d of message with offset %d is out of range. "+
				"The timestamp should be within [%d, %d]", r.Timestamp, r.Offset,
				c.nowMs-c.cfg.MessageTimestampBeforeMaxMs, c.nowMs+c.cfg.MessageTimestampAfterMaxMs), true
		}
		return "", false
	}
	if b.TimestampType() == record.LogAppendTime {
		return "Invalid timestamp type in message " + c.describe(r) +
			". Producer should not set timestamp type to LogAppendTime.", true
	}
	return "", false
}

// outOfRange compares with differences that wrap, as Java's do.
func (c *checker) outOfRange(ts int64) bool {
	diff := c.nowMs - ts
	return diff > c.cfg.MessageTimestampBeforeMaxMs || -diff > c.cfg.MessageTimestampAfterMaxMs
}

// describe prints a record as Kafka does: from a compressed batch that stays as it is, it has read the sizes only.
func (c *checker) describe(r *record.Record) string {
	name, keyLen, valueLen := "DefaultRecord", len(r.Key), len(r.Value)
	if c.partial {
		name, keyLen, valueLen = "PartialDefaultRecord", nullLen(r.Key), nullLen(r.Value)
	}
	return fmt.Sprintf("%s(offset=%d, timestamp=%d, key=%d bytes, value=%d bytes)",
		name, r.Offset, r.Timestamp, keyLen, valueLen)
}

func nullLen(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// recordErrors is the refusal of a batch for its records.
func (c *checker) recordErrors() error {
	e := &AppendError{Reason: ErrInvalidRecord, OnWire: true, RecordErrors: c.errs}
	if c.badTime {
		e.Reason = ErrInvalidTimestamp
		e.Text = "One or more records have been rejected due to invalid timestamp"
		return e
	}
	var shown []string
	for _, r := range c.errs[:min(len(c.errs), 3)] {
		shown = append(shown, fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", r.BatchIndex, r.Message))
	}
	e.Text = fmt.Sprintf("One or more records have been rejected due to %d record errors in total, "+
		"and only showing the first three errors at most: [%s]", len(c.errs), strings.Join(shown, ", "))
	return e
}
