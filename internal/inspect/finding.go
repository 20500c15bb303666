package inspect

import (
	"cmp"
	"slices"
)

// Severity ranks findings.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // records are lost or hidden, answers are wrong, or a broker will not start
	Warning Severity = "warning" // answers are right, but slow or at risk, or the next start changes the directory
	Note    Severity = "note"    // harmless; nobody looks at it
)

// Kind names what was found. The names are part of the output and do not change.
type Kind string

// The kinds of findings.
const (
	BadBatch     Kind = "bad-batch"      // bytes inside a log that are no batch
	BadChecksum  Kind = "wrong-checksum" // a batch whose bytes changed
	BadRecords   Kind = "bad-records"    // a batch with the right checksum whose records do not fit it
	TornTail     Kind = "torn-tail"      // the last batch is incomplete
	ZeroTail     Kind = "zero-tail"      // zeros behind the last batch
	GarbageTail  Kind = "garbage-tail"   // other bytes behind the last batch
	OffsetOrder  Kind = "offset-order"   // a batch repeats offsets or goes back
	OffsetRange  Kind = "offset-range"   // a batch lies outside of its segment's offsets
	OffsetGap    Kind = "offset-gap"     // offsets without records in a log that was never compacted
	WrongMaximum Kind = "wrong-maximum"  // a batch's largest timestamp is not that of its records

	IndexMissing    Kind = "index-missing"     // no .index beside a .log
	IndexTorn       Kind = "index-torn"        // not whole entries
	IndexZeros      Kind = "index-zero-filled" // entries that were never written
	IndexEntry      Kind = "index-entry"       // an entry that does not fit the log
	IndexSparse     Kind = "index-sparse"      // a part of the log without entries
	TimeMissing     Kind = "timeindex-missing"
	TimeTorn        Kind = "timeindex-torn"
	TimeZeros       Kind = "timeindex-zero-filled"
	TimeEntryWrong  Kind = "timeindex-entry"
	TimeShort       Kind = "timeindex-short" // the largest timestamp of the segment is not in it
	TxnTorn         Kind = "txnindex-torn"
	TxnMissing      Kind = "txnindex-missing" // an aborted transaction is not in it
	TxnEntryWrong   Kind = "txnindex-entry"
	SnapshotMissing Kind = "snapshot-missing"
	SnapshotCorrupt Kind = "snapshot-corrupt"
	SnapshotStale   Kind = "snapshot-stale" // says otherwise than the log
	EpochsMissing   Kind = "epochs-missing"
	EpochsWrong     Kind = "epochs-wrong"

	Orphan         Kind = "orphan-file"   // an index without its log
	Leftover       Kind = "leftover-file" // of an interrupted deletion, compaction or write
	Strange        Kind = "strange-file"  // of nobody's
	SegmentEmpty   Kind = "segment-empty" // a log without bytes that has indexes with entries
	MetadataWrong  Kind = "partition-metadata"
	NotAssigned    Kind = "not-assigned" // a folder that the cluster's metadata does not know
	CheckpointBad  Kind = "checkpoint-malformed"
	CheckpointLies Kind = "checkpoint-beyond-log"
	FolderName     Kind = "folder-name"
)

// Finding is one thing found wrong.
type Finding struct {
	Type      string   `json:"type"` // "finding"
	Severity  Severity `json:"severity"`
	Kind      Kind     `json:"kind"`
	Topic     string   `json:"topic,omitempty"`
	Partition int32    `json:"partition"`
	File      string   `json:"file"`     // path
	Pos       int64    `json:"position"` // in the file, bytes; -1: the whole file
	Bytes     int64    `json:"bytes,omitempty"`
	Offset    int64    `json:"offset"` // of a record; -1: none in particular
	What      string   `json:"what"`
	Breaks    string   `json:"breaks"` // what it means for users
	Repair    string   `json:"repair"` // what repair does about it
	// Count is how often the same was found in the file, this one included.
	Count int64 `json:"count"`

	base int64 // of the segment, for repair; -1: none
}

// findings collects findings of one segment or folder: of a kind and file only the first, with a count.
type findings struct {
	target Target
	list   []Finding
}

func (f *findings) add(n Finding) *Finding {
	for i := range f.list {
		if f.list[i].Kind == n.Kind && f.list[i].File == n.File {
			f.list[i].Count++
			return &f.list[i]
		}
	}
	n.Type, n.Topic, n.Partition, n.Count = "finding", f.target.Topic, f.target.Partition, 1
	f.list = append(f.list, n)
	return &f.list[len(f.list)-1]
}

// sorted is the list by file and position.
func (f *findings) sorted() []Finding {
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Pos, b.Pos))
	})
	return f.list
}
