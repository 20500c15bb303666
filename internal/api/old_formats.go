package api

import (
	"tidemark/internal/commitlog"
	"tidemark/record"
)

// downConvert turns the batches read into the message sets that Fetch v0 and v1 (magic 0) and v2 and v3 (magic 1)
// carry. Kafka dropped this in 4.0; it is the slow path, bounded by what was read.
func downConvert(s commitlog.Slice, firstOffset int64, version int16) ([]byte, error) {
	batches, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	magic := int8(0)
	if version >= 2 {
		magic = 1
	}
	return record.DownConvert(nil, batches, magic, firstOffset, record.IterOptions{})
}
