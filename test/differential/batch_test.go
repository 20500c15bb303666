//go:build oracle

package differential

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
)

// rec is one record of a test batch.
type rec struct {
	ts         int64
	key, value []byte
	delta      *int64 // offset delta, its index when nil
	tail       []byte // bytes after the value instead of a header count of 0
}

// batch is a record batch, valid unless a field says otherwise. The zero value of a number pointer is "as it
// should be".
type batch struct {
	records         []rec
	baseOffset      int64
	magic           *int8
	attributes      int16
	lastOffsetDelta *int32
	count           *int32
	producerID      int64 // 0 means −1; pid+1 otherwise
	epoch           int16
	sequence        int32
	noSequence      bool
	body            []byte // instead of the records
	gzip            bool
	badCRC          bool
}

// pos* are positions in a batch: base offset 8, length 4, epoch 4, magic 1, CRC 4, attributes 2, …
const (
	posCRC        = 17
	posAttributes = 21
	headerSize    = 61
)

func (b batch) encode() []byte {
	n := int32(len(b.records))
	var first, largest int64 = -1, -1
	for i, r := range b.records {
		if i == 0 {
			first = r.ts
		}
		largest = max(largest, r.ts)
	}
	body := b.body
	if body == nil {
		for i, r := range b.records {
			body = append(body, r.encode(int64(i), first)...)
		}
		if b.gzip {
			body = compress(body)
		}
	}
	if b.gzip {
		b.attributes |= 1
	}
	pid, epoch, sequence := int64(-1), int16(-1), int32(-1)
	if b.producerID > 0 {
		pid, epoch, sequence = b.producerID-1, b.epoch, b.sequence
		if b.noSequence {
			sequence = -1
		}
	}
	out := binary.BigEndian.AppendUint64(nil, uint64(b.baseOffset))
	out = binary.BigEndian.AppendUint32(out, uint32(headerSize-12+len(body)))
	out = binary.BigEndian.AppendUint32(out, 0xffffffff) // leader epoch −1
	out = append(out, byte(or(b.magic, 2)), 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint16(out, uint16(b.attributes))
	out = binary.BigEndian.AppendUint32(out, uint32(or(b.lastOffsetDelta, n-1)))
	out = binary.BigEndian.AppendUint64(out, uint64(first))
	out = binary.BigEndian.AppendUint64(out, uint64(largest))
	out = binary.BigEndian.AppendUint64(out, uint64(pid))
	out = binary.BigEndian.AppendUint16(out, uint16(epoch))
	out = binary.BigEndian.AppendUint32(out, uint32(sequence))
	out = binary.BigEndian.AppendUint32(out, uint32(or(b.count, n)))
	out = append(out, body...)
	sum := crc32.Checksum(out[posAttributes:], crc32.MakeTable(crc32.Castagnoli))
	if b.badCRC {
		sum++
	}
	binary.BigEndian.PutUint32(out[posCRC:], sum)
	return out
}

func or[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}

func ptr[T any](v T) *T { return &v }

func (r rec) encode(index, firstTimestamp int64) []byte {
	b := []byte{0}
	b = binary.AppendVarint(b, r.ts-firstTimestamp)
	b = binary.AppendVarint(b, or(r.delta, index))
	for _, field := range [][]byte{r.key, r.value} {
		if field == nil {
			b = binary.AppendVarint(b, -1)
			continue
		}
		b = binary.AppendVarint(b, int64(len(field)))
		b = append(b, field...)
	}
	if r.tail != nil {
		b = append(b, r.tail...)
	} else {
		b = binary.AppendVarint(b, 0)
	}
	return append(binary.AppendVarint(nil, int64(len(b))), b...)
}

func compress(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// some returns n records of a past date, a second apart.
func some(n int) []rec {
	var out []rec
	for i := range n {
		out = append(out, rec{ts: base + int64(i)*1000, key: []byte("k"), value: []byte("v")})
	}
	return out
}

const base = int64(1790214409427)

// setMaxTimestamp changes the largest time in the header of a batch.
func setMaxTimestamp(b []byte, ts int64) {
	const posMaxTimestamp = 35
	binary.BigEndian.PutUint64(b[posMaxTimestamp:], uint64(ts))
	binary.BigEndian.PutUint32(b[posCRC:], crc32.Checksum(b[posAttributes:], crc32.MakeTable(crc32.Castagnoli)))
}
