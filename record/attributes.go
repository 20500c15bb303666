package record

import "strconv"

// Codec is how the records of an entry are compressed.
type Codec int8

// The codecs, by their number in the attributes.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String is Kafka's name of the codec.
func (c Codec) String() string {
	if c.Known() {
		return codecNames[c]
	}
	return "codec " + strconv.Itoa(int(c))
}

// Known reports whether the number stands for a codec (5 to 7 do not).
func (c Codec) Known() bool { return c >= None && c <= Zstd }

// ParseCodec is the codec of a name as in compression.type, and false for
// another word.
func ParseCodec(name string) (Codec, bool) {
	for c, n := range codecNames {
		if n == name {
			return Codec(c), true
		}
	}
	return None, false
}

// TimestampType says whose clock the timestamps are of.
type TimestampType int8

// The timestamp types, by their bit in the attributes. Messages of magic 0 have
// no timestamp at all.
const (
	NoTimestampType TimestampType = -1
	CreateTime      TimestampType = 0 // the producer's
	LogAppendTime   TimestampType = 1 // the broker's, at append
)

// String is Kafka's name of the type.
func (t TimestampType) String() string {
	switch t {
	case CreateTime:
		return "CreateTime"
	case LogAppendTime:
		return "LogAppendTime"
	}
	return "NoTimestampType"
}

// Values that stand for "none".
const (
	NoTimestamp     int64 = -1
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
	NoLeaderEpoch   int32 = -1
)

// Bits of the attributes of a magic-2 batch. Magic 1 has the codec and the
// timestamp type, magic 0 the codec.
//
//	bit   0-2    3               4              5        6               7-15
//	      codec  LogAppendTime   transactional  control  delete horizon  unused
const (
	codecMask         = 0x07
	logAppendTimeBit  = 0x08
	transactionalBit  = 0x10
	controlBit        = 0x20
	deleteHorizonBit  = 0x40
	sequenceWrapLimit = 1<<31 - 1
)

// AddSequence is the sequence number n records after seq; 2147483647 is
// followed by 0. n must not be negative.
func AddSequence(seq, n int32) int32 {
	if seq > sequenceWrapLimit-n {
		return n - (sequenceWrapLimit - seq) - 1
	}
	return seq + n
}
