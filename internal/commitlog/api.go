package commitlog

import (
	"log/slog"
	"time"

	"tidemark/internal/index"
	"tidemark/record"
	"tidemark/vfs"
)

// Options say how a log is opened. FS, Dir, Topic and Config are required.
type Options struct {
	FS        vfs.FS
	Dir       string // the partition's folder
	Topic     string
	Partition int32
	TopicID   [16]byte // written to partition.metadata before the first append; all zero: not known
	Config    Config

	Clock  func() time.Time // required by appends and retention
	Rand   func() uint64    // segment.jitter.ms is drawn from it; nil: no jitter
	Logger *slog.Logger     // nil: silent

	// RecoveryPoint and StartOffset are this partition's lines of the checkpoint files, 0 where there is none.
	RecoveryPoint int64
	StartOffset   int64
	// Clean says that the log directory was closed in good order: nothing is scanned or checked at opening.
	Clean bool

	Files *index.FileCache // bounds the open descriptors; nil: the log has one of its own
	Pages *index.Cache     // index pages; nil: the log has one of its own

	// SyncAll makes durable whatever was written to the file system, and costs as much as is dirty there; it is used
	// instead of Many syncs of files or more. nil: every file is synced by itself.
	SyncAll func() error
	Many    int // 0: 64

	// Background runs a task soon, on another goroutine: the flush after a roll. It must not run it before it
	// returns. nil: the task is run before the append that caused it returns.
	Background func(task func())
	// After runs a task once a delay has passed: the removal of files marked .deleted. nil: the file is removed
	// at once.
	After func(delay time.Duration, task func())
	// Failed is called at most once, with the first error of the disk that an append, a flush, a roll or a
	// truncation met. The log is locked then: it must not be called from there. May be nil.
	Failed func(error)

	Metrics *Metrics // nil: not counted

	// MaxDecompressedBytes bounds what one batch may decompress to, of producers and of the log; 0: 256 MiB.
	MaxDecompressedBytes int64
	// Memory is what decompression takes its memory from, shared by all logs of a process; nil: it is not bounded.
	Memory record.Memory

	// MarkedBytes is the least size of a batch whose marks look-ups by time keep among Pages; 0: 16 KiB.
	MarkedBytes int32

	// ProducerIDExpirationMs is producer.id.expiration.ms; 0: Kafka's default of a day.
	ProducerIDExpirationMs int64
	// VerifyTransactions refuses transactional batches that open a transaction without
	// [AppendOptions.VerifiedTransaction] (transaction.partition.verification.enable).
	VerifyTransactions bool
}

// Origin says who appends: it decides which checks a batch must pass.
type Origin uint8

// The origins of a batch.
const (
	OriginClient      Origin = iota // a produce request: every check
	OriginCoordinator               // a group or transaction coordinator, markers among them
	OriginRaft                      // the leader of the metadata log: the epoch in the batch must be the caller's
)

// AppendOptions describe one append on the leader.
type AppendOptions struct {
	LeaderEpoch int32
	Origin      Origin
	// VerifiedTransaction says that the transaction coordinator confirmed this partition as part of the
	// producer's open transaction.
	VerifiedTransaction bool
	// TransactionVersion is the version of the transaction that a marker ends; from 2 on its epoch must be above
	// the producer's last (KIP-890). The log does not tell it.
	TransactionVersion int16
}

// AppendInfo tells what became of appended batches. On an error every offset in it is -1 except LogStartOffset.
type AppendInfo struct {
	BaseOffset     int64
	LastOffset     int64
	LogAppendTime  int64 // ms; -1 on CreateTime topics, except for duplicates: the stored batch's largest timestamp
	LogStartOffset int64
	MaxTimestamp   int64 // ms, the largest timestamp stored; -1: none
	LeaderEpoch    int32 // of the last batch; -1: none
	SizeBytes      int   // appended to the log; 0 for a duplicate
	// Duplicate says that the batch had been appended before; the offsets are those of the stored batch.
	Duplicate bool
	// RecordErrors are the records for which the batch was refused, in order.
	RecordErrors []RecordError
}

// Isolation is the isolation level of a read.
type Isolation int8

// The isolation levels, with their values on the wire.
const (
	ReadUncommitted Isolation = 0
	ReadCommitted   Isolation = 1
)

// ReadOptions bound one [Log.Read].
type ReadOptions struct {
	MaxBytes int
	// MinOneBatch raises MaxBytes to the size of the first batch, so that a reader always gets on.
	MinOneBatch bool
	// UpTo bounds what is visible, exclusive: high watermark, last stable offset or log end offset. Data ends at
	// the first batch that reaches it.
	UpTo int64
	// Isolation ReadCommitted also collects the aborted transactions; the bound is the caller's all the same.
	Isolation Isolation
}

// Found is the answer of a look-up by time.
type Found struct {
	Timestamp   int64 // ms
	Offset      int64
	LeaderEpoch int32 // of the batch; -1: not known
}

// Trace tells the way a look-up took. The zero value is ready; the look-up overwrites it.
type Trace struct {
	SegmentsConsidered int   // segments whose largest timestamp was compared
	SegmentsSearched   int   // segments whose indexes and log were read
	SegmentBase        int64 // of the last segment searched; -1: none
	TimeEntryTimestamp int64 // the time index entry used there; -1: before the first
	TimeEntryOffset    int64
	OffsetEntryOffset  int64 // the offset index entry used there
	Position           int64 // where the scan of the log began
	BatchesScanned     int   // batch headers looked at
	BatchesDecoded     int   // batches whose records were read
	BytesScanned       int64 // bytes of the log read, headers alone counted as such
}

// SegmentInfo describes one segment.
type SegmentInfo struct {
	BaseOffset       int64
	NextOffset       int64 // the base of the next segment, or the log end offset
	SizeBytes        int64
	LargestTimestamp int64 // ms; the .log file's time of last change where no record has a timestamp ≥ 0
	LastModified     time.Time
	Active           bool
}
