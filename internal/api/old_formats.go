package api

import (
	"tidemark/internal/commitlog"
	"tidemark/record"
)

// downConvert turns the batches read into the message sets that Fetch v0 and v1 (magic 0) and v2 and v3 (magic 1)
// carry. Messages can be larger than what they come from: the set ends with the batch that reaches the size that was
// read. Kafka dropped this in 4.0; it is the slow path.
//
// Kafka: LazyDownConversionRecords 3.9, which cuts the last message, and fills a smaller set up with a cut one.
func downConvert(s commitlog.Slice, firstOffset int64, version int16) ([]byte, error) {
	batches, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	magic := int8(0)
	if version >= 2 {
		magic = 1
	}
	var set []byte
	limit := len(batches)
	for len(batches) > 0 {
		_, batch, rest, err := record.NextEntry(batches)
		if err != nil {
			break // cut at its end
		}
		if set, err = record.DownConvert(set, batch, magic, firstOffset, record.IterOptions{}); err != nil {
			return nil, err
		}
		if len(set) >= limit {
			break
		}
		batches = rest
	}
	return set, nil
}
