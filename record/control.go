package record

import (
	"encoding/binary"
	"fmt"

	"tidemark/internal/wire"
)

// ControlType says what a control record stands for.
type ControlType int16

// The control types. The last five occur in the metadata log and its snapshots
// only; readers pass over types they do not know.
const (
	ControlAbort          ControlType = 0
	ControlCommit         ControlType = 1
	ControlLeaderChange   ControlType = 2
	ControlSnapshotHeader ControlType = 3
	ControlSnapshotFooter ControlType = 4
	ControlKRaftVersion   ControlType = 5
	ControlVoters         ControlType = 6
)

var controlNames = [...]string{
	"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS",
}

// String is Kafka's name of the type.
func (t ControlType) String() string {
	if t >= 0 && int(t) < len(controlNames) {
		return controlNames[t]
	}
	return "UNKNOWN"
}

// ControlKey is the key of a control record:
//
//	int16 version 0, int16 type
func ControlKey(t ControlType) []byte {
	return binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(t))
}

// ParseControlKey is the type in a control record's key. A key of fewer than
// four bytes or a negative version is an *InvalidRecordError.
func ParseControlKey(key []byte) (ControlType, error) {
	if len(key) < 4 {
		return 0, invalid("Invalid value size found for end control record key. Must have at least 4 bytes, "+
			"but found only %d", len(key))
	}
	if version := int16(binary.BigEndian.Uint16(key)); version < 0 {
		return 0, invalid("Invalid version found for control record: %d. May indicate data corruption", version)
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), nil
}

// ControlMessage is the value of a control record: [EndTxn], [LeaderChange],
// [SnapshotHeader], [SnapshotFooter], [KRaftVersion] or [Voters].
type ControlMessage interface {
	// ControlType says which one it is.
	ControlType() ControlType
	// AppendTo appends the record's value to b.
	AppendTo(b []byte) []byte
}

// AppendControl adds a control record at the next offset to a batch with the
// Control option. Errors: ErrOffset, ErrBatchFull.
func (b *Builder) AppendControl(ts int64, m ControlMessage) error {
	return b.Append(ts, ControlKey(m.ControlType()), m.AppendTo(nil), nil)
}

// ControlBatch makes one control batch of the messages, in order. o.Control is
// taken as set.
func ControlBatch(o BuilderOptions, ts int64, messages ...ControlMessage) (Batch, error) {
	o.Control = true
	b := NewBuilder(o)
	for _, m := range messages {
		if err := b.AppendControl(ts, m); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// EndTxnMarker makes the batch that ends a transaction in a partition. Of o it
// takes the base offset, leader epoch, producer id and epoch, and timestamp type.
func EndTxnMarker(o BuilderOptions, ts int64, m EndTxn) (Batch, error) {
	o.Codec, o.BaseSequence, o.Transactional = None, NoSequence, true
	return ControlBatch(o, ts, m)
}

// ParseControl decodes a control record. The message is nil for a type that is
// not known. Errors are *InvalidRecordError.
func ParseControl(key, value []byte) (ControlType, ControlMessage, error) {
	t, err := ParseControlKey(key)
	if err != nil {
		return t, nil, err
	}
	var m ControlMessage
	r := wire.NewReader(value)
	switch t {
	case ControlAbort, ControlCommit:
		m, err = parseEndTxn(r, t)
		if err != nil {
			return t, nil, err
		}
	case ControlLeaderChange:
		m = parseLeaderChange(r)
	case ControlSnapshotHeader:
		m = SnapshotHeader{Version: r.Int16(), LastContainedLogTimestamp: r.Int64()}
		r.Tags(nil)
	case ControlSnapshotFooter:
		m = SnapshotFooter{Version: r.Int16()}
		r.Tags(nil)
	case ControlKRaftVersion:
		m = KRaftVersion{Version: r.Int16(), KRaftVersion: r.Int16()}
		r.Tags(nil)
	case ControlVoters:
		m = parseVoters(r)
	}
	if r.Err() != nil {
		return t, nil, &InvalidRecordError{Reason: fmt.Sprintf("control record %v: %v", t, r.Err())}
	}
	return t, m, nil
}

// EndTxn is a transaction marker:
//
//	int16 version 0, int32 coordinator epoch
type EndTxn struct {
	Commit           bool // false for abort
	CoordinatorEpoch int32
}

// ControlType is ControlCommit or ControlAbort.
func (m EndTxn) ControlType() ControlType {
	if m.Commit {
		return ControlCommit
	}
	return ControlAbort
}

// AppendTo appends six bytes.
func (m EndTxn) AppendTo(b []byte) []byte {
	return wire.AppendInt32(wire.AppendInt16(b, 0), m.CoordinatorEpoch)
}

func parseEndTxn(r *wire.Reader, t ControlType) (EndTxn, error) {
	if version := r.Int16(); version < 0 {
		return EndTxn{}, invalid("Invalid version found for end transaction marker: %d. May indicate data corruption",
			version)
	}
	return EndTxn{Commit: t == ControlCommit, CoordinatorEpoch: r.Int32()}, nil
}
