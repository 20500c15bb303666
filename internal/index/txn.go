package index

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// TxnEntrySize is the size in bytes of an entry of a transaction index.
const TxnEntrySize = 34

const txnVersion = 0

// AbortedTxn is a transaction that ended with an abort marker in the segment.
type AbortedTxn struct {
	ProducerID       int64
	FirstOffset      int64 // of its first record, perhaps in an earlier segment
	LastOffset       int64 // of the abort marker
	LastStableOffset int64 // when the marker was appended, this transaction not counted
}

// txnEntry is an AbortedTxn with the version it was written in.
type txnEntry struct {
	AbortedTxn
	version int16
}

// Entry of a transaction index:
//
//	 0     2            10            18           26                 34
//	+-----+------------+-------------+------------+------------------+
//	| ver | producer   | first       | last       | last stable      |   int16, 4 × int64
//	|     | id         | offset      | offset     | offset           |   version is 0
//	+-----+------------+-------------+------------+------------------+
func (txnEntry) decode(b []byte, _ int64) txnEntry {
	return txnEntry{
		version: int16(binary.BigEndian.Uint16(b)),
		AbortedTxn: AbortedTxn{
			ProducerID:       int64(binary.BigEndian.Uint64(b[2:])),
			FirstOffset:      int64(binary.BigEndian.Uint64(b[10:])),
			LastOffset:       int64(binary.BigEndian.Uint64(b[18:])),
			LastStableOffset: int64(binary.BigEndian.Uint64(b[26:])),
		},
	}
}

func (e txnEntry) encode(b []byte, _ int64) {
	binary.BigEndian.PutUint16(b, uint16(e.version))
	binary.BigEndian.PutUint64(b[2:], uint64(e.ProducerID))
	binary.BigEndian.PutUint64(b[10:], uint64(e.FirstOffset))
	binary.BigEndian.PutUint64(b[18:], uint64(e.LastOffset))
	binary.BigEndian.PutUint64(b[26:], uint64(e.LastStableOffset))
}

// TxnIndex lists the aborted transactions of one segment (".txnindex"), by the
// offset of their markers. The file exists from the first abort on. Bytes behind
// the last whole entry are ignored, and overwritten by the next append.
type TxnIndex struct{ table[txnEntry] }

// OpenTxnIndex names a transaction index. No I/O happens before the first use.
func OpenTxnIndex(o Options) *TxnIndex {
	x := &TxnIndex{}
	x.init(o, TxnEntrySize, false)
	return x
}

// Append adds an entry, creating the file if need be. A LastOffset that is not
// larger than that of the entry before is an *OrderError.
func (x *TxnIndex) Append(a AbortedTxn) error {
	return x.write(func(s state[txnEntry]) error {
		if s.n > 0 && a.LastOffset <= s.last.LastOffset {
			return &OrderError{Name: x.Name(), What: "offset", Got: a.LastOffset, Last: s.last.LastOffset}
		}
		if s.generation == 0 {
			x.file.createOnNextUse()
			s.generation = x.o.Pages.newGeneration()
		}
		return x.append(s, txnEntry{AbortedTxn: a, version: txnVersion}, 0)
	})
}

// Collect lists the transactions that a reader of the offsets [from, to) must
// know: those with LastOffset ≥ from and FirstOffset < to. done says that later
// segments hold no more of them: an entry's LastStableOffset is ≥ to.
func (x *TxnIndex) Collect(from, to int64) (txns []AbortedTxn, done bool, err error) {
	err = x.read(func(s state[txnEntry]) error {
		txns, done = nil, false
		r := x.reader(s)
		start, err := firstEndingAt(r, from)
		if err != nil {
			return err
		}
		for i := start; i < s.n; i++ {
			e, err := x.entry(r, i)
			if err != nil {
				return err
			}
			if e.LastOffset >= from && e.FirstOffset < to {
				txns = append(txns, e.AbortedTxn)
			}
			if e.LastStableOffset >= to {
				done = true
				return nil
			}
		}
		return nil
	})
	return txns, done, err
}

// firstEndingAt is the number of the first entry with LastOffset ≥ offset, s.n
// when there is none. The entries before it cannot end a search: their
// LastStableOffset is ≤ LastOffset+1 ≤ offset.
func firstEndingAt(r *reader[txnEntry], offset int64) (int64, error) {
	var failed error
	i := sort.Search(int(r.s.n), func(i int) bool {
		if failed != nil {
			return true
		}
		e, err := r.at(int64(i))
		failed = err
		return err != nil || e.LastOffset >= offset
	})
	return int64(i), failed
}

// entry reads entry i and checks its version.
func (x *TxnIndex) entry(r *reader[txnEntry], i int64) (txnEntry, error) {
	e, err := r.at(i)
	if err == nil && e.version > txnVersion {
		err = &CorruptError{Name: x.Name(), Entry: i, Kind: BadVersion, Reason: fmt.Sprintf("version %d", e.version)}
	}
	return e, err
}

// All lists all entries.
func (x *TxnIndex) All() (txns []AbortedTxn, err error) {
	err = x.read(func(s state[txnEntry]) error {
		txns = nil
		r := x.reader(s)
		for i := range s.n {
			e, err := x.entry(r, i)
			if err != nil {
				return err
			}
			txns = append(txns, e.AbortedTxn)
		}
		return nil
	})
	return txns, err
}

// Truncate drops the entries whose LastOffset is ≥ offset, and cuts the file.
func (x *TxnIndex) Truncate(offset int64) error {
	return x.write(func(s state[txnEntry]) error {
		n, err := firstEndingAt(x.reader(s), offset)
		if err != nil || n == s.n {
			return err
		}
		return x.cut(s, n)
	})
}

// Reset drops all entries and empties the file, if there is one.
func (x *TxnIndex) Reset() error {
	return x.write(func(s state[txnEntry]) error { return x.cut(s, 0) })
}

func (x *TxnIndex) cut(s state[txnEntry], n int64) error {
	if s.generation == 0 {
		return nil
	}
	if err := x.keep(s, n); err != nil {
		return err
	}
	return x.resize(x.snapshot(), 0)
}
