package producerstate

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"strconv"
	"strings"
)

// SnapshotSuffix ends the name of a snapshot file.
const SnapshotSuffix = ".snapshot"

// SnapshotName is the name of the snapshot at an offset, without its folder.
func SnapshotName(offset int64) string { return fmt.Sprintf("%020d%s", offset, SnapshotSuffix) }

// ParseSnapshotName is the inverse of SnapshotName; ok is false for other names.
func ParseSnapshotName(name string) (offset int64, ok bool) {
	digits, ok := strings.CutSuffix(name, SnapshotSuffix)
	if !ok {
		return 0, false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	return offset, err == nil && offset >= 0 && SnapshotName(offset) == name
}

// A snapshot:
//
//	 0     2       6       10
//	+-----+-------+-------+----------------------+
//	| ver | crc   | count | count × entry        |   int16, uint32, int32
//	+-----+-------+-------+----------------------+   version is 1; crc is the CRC-32C
//	                                                 of all bytes from 6 on
//
// An entry:
//
//	 0          8     10        14       22       26          34      38         46
//	+----------+-----+---------+--------+--------+-----------+-------+----------+
//	| producer |epoch| last    | last   | offset | timestamp | coord | open txn |
//	| id       |     | sequence| offset | delta  |           | epoch | first off|
//	+----------+-----+---------+--------+--------+-----------+-------+----------+
//	  int64     int16  int32     int64    int32    int64       int32   int64
//
// The last batch is (-1, -1, 0) when there is none, the open transaction -1. A
// negative last offset means no batch.
const (
	snapshotVersion    = 1
	snapshotHeaderSize = 10
	snapshotCRCEnd     = 6
	snapshotEntrySize  = 46
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// EncodeSnapshot writes a snapshot of the entries, in their order.
func EncodeSnapshot(entries []Entry) []byte {
	return encodeSnapshot(len(entries), func(yield func(*Entry) bool) {
		for i := range entries {
			if !yield(&entries[i]) {
				return
			}
		}
	})
}

func encodeSnapshot(n int, entries iter.Seq[*Entry]) []byte {
	buf := make([]byte, snapshotHeaderSize, snapshotHeaderSize+n*snapshotEntrySize)
	binary.BigEndian.PutUint16(buf, snapshotVersion)
	binary.BigEndian.PutUint32(buf[snapshotCRCEnd:], uint32(n))
	for e := range entries {
		buf = appendEntry(buf, e)
	}
	binary.BigEndian.PutUint32(buf[2:], crc32.Checksum(buf[snapshotCRCEnd:], castagnoli))
	return buf
}

func appendEntry(buf []byte, e *Entry) []byte {
	last, _ := e.LastBatch()
	be := binary.BigEndian
	buf = be.AppendUint64(buf, uint64(e.ProducerID))
	buf = be.AppendUint16(buf, uint16(e.ProducerEpoch))
	buf = be.AppendUint32(buf, uint32(last.LastSequence))
	buf = be.AppendUint64(buf, uint64(last.LastOffset))
	buf = be.AppendUint32(buf, uint32(last.OffsetDelta))
	buf = be.AppendUint64(buf, uint64(e.LastTimestamp))
	buf = be.AppendUint32(buf, uint32(e.CoordinatorEpoch))
	return be.AppendUint64(buf, uint64(e.CurrentTxnFirstOffset))
}

// DecodeSnapshot reads a snapshot, in the order of the file. Any damage is a
// *CorruptSnapshotError.
func DecodeSnapshot(data []byte) ([]Entry, error) {
	corrupt := func(format string, args ...any) error {
		return &CorruptSnapshotError{Reason: fmt.Sprintf(format, args...)}
	}
	if len(data) < 2 {
		return nil, corrupt("%d bytes are too few", len(data))
	}
	be := binary.BigEndian
	if v := int16(be.Uint16(data)); v != snapshotVersion {
		return nil, corrupt("unknown version %d", v)
	}
	if len(data) < snapshotHeaderSize {
		return nil, corrupt("%d bytes are too few", len(data))
	}
	n := int64(int32(be.Uint32(data[snapshotCRCEnd:])))
	if body := data[snapshotHeaderSize:]; n < 0 || n > int64(len(body)/snapshotEntrySize) {
		return nil, corrupt("%d bytes do not hold %d entries", len(data), n)
	}
	stored, computed := be.Uint32(data[2:]), crc32.Checksum(data[snapshotCRCEnd:], castagnoli)
	if stored != computed {
		return nil, corrupt("checksum is %d, stored %d", computed, stored)
	}
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = decodeEntry(data[snapshotHeaderSize+i*snapshotEntrySize:])
	}
	return entries, nil
}

func decodeEntry(b []byte) Entry {
	be := binary.BigEndian
	e := Entry{
		ProducerID:            int64(be.Uint64(b)),
		ProducerEpoch:         int16(be.Uint16(b[8:])),
		LastTimestamp:         int64(be.Uint64(b[26:])),
		CoordinatorEpoch:      int32(be.Uint32(b[34:])),
		CurrentTxnFirstOffset: max(int64(be.Uint64(b[38:])), NoOffset),
	}
	if lastOffset := int64(be.Uint64(b[14:])); lastOffset >= 0 {
		e.batches = []StoredBatch{{
			LastSequence: int32(be.Uint32(b[10:])),
			LastOffset:   lastOffset,
			OffsetDelta:  int32(be.Uint32(b[22:])),
			Timestamp:    e.LastTimestamp,
		}}
	}
	return e
}
