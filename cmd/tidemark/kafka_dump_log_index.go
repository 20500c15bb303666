package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/producerstate"
	"tidemark/record"
)

const (
	classCorruptIndex = "org.apache.kafka.storage.internals.log.CorruptIndexException"
	offsetEntrySize   = 8
	timeEntrySize     = 12
	txnEntrySize      = 34
	warmIndexEntries  = 8192 / offsetEntrySize
)

// rawIndex is an offset index as it lies on disk: entries are read without a check.
type rawIndex struct {
	name string // absolute
	base int64
	data []byte // whole entries only
	size int64  // of the file
}

func openRawIndex(name string, entrySize int) (rawIndex, error) {
	base, err := baseOffset(name)
	if err != nil {
		return rawIndex{}, err
	}
	data, err := readAll(name)
	if err != nil {
		if cli.AsFailure(err).Class == classNoFile {
			err = cli.BadArgument("Invalid max index size: -1") // Kafka's tool tries to make the file
		}
		return rawIndex{}, err
	}
	return rawIndex{absolute(name), base, data[:len(data)/entrySize*entrySize], int64(len(data))}, nil
}

// Offset index, entry:
//
//	0          4          8
//	┌──────────┬──────────┐
//	│rel offset│ position │
//	└──────────┴──────────┘
func (x rawIndex) offsetEntry(i int) (offset, pos int64) {
	b := x.data[i*offsetEntrySize:]
	return x.base + int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))
}

// Time index, entry:
//
//	0           8          12
//	┌───────────┬──────────┐
//	│ timestamp │rel offset│
//	└───────────┴──────────┘
func (x rawIndex) timeEntry(i int) (timestamp, offset int64) {
	b := x.data[i*timeEntrySize:]
	return int64(binary.BigEndian.Uint64(b)), x.base + int64(int32(binary.BigEndian.Uint32(b[8:])))
}

// lookUp finds the position of the last entry not above an offset, in the way of
// Kafka's own search, which matters when the entries are not in order.
func (x rawIndex) lookUp(target int64) int64 {
	n := len(x.data) / offsetEntrySize
	if n == 0 {
		return 0
	}
	offset := func(i int) int64 { o, _ := x.offsetEntry(i); return o }
	warm := max(0, n-1-warmIndexEntries)
	lo, hi := 0, warm
	switch {
	case offset(warm) < target:
		lo, hi = warm, n-1
	case offset(0) > target:
		return 0
	}
	for lo < hi {
		mid := (lo + hi + 1) / 2
		switch found := offset(mid); {
		case found > target:
			hi = mid - 1
		case found < target:
			lo = mid
		default:
			lo, hi = mid, mid
		}
	}
	_, pos := x.offsetEntry(lo)
	return pos
}

func (d *dumper) dumpIndex(name string) error {
	maxSize, err := d.options.maxMessageSize.Int()
	if err != nil {
		return err
	}
	if _, err := baseOffset(name); err != nil {
		return err
	}
	log, err := openLog(sibling(name, ".log"), sibling(name, ".log"))
	if err != nil {
		return err
	}
	defer log.close()
	index, err := openRawIndex(name, offsetEntrySize)
	if err != nil {
		return err
	}
	n := len(index.data) / offsetEntrySize
	if n == 0 {
		fmt.Fprintf(d.out, "%s is empty.\n", name)
		return nil
	}
	if d.options.sanityOnly.Has() {
		if err := checkOffsetIndex(index, n); err != nil {
			return err
		}
		fmt.Fprintf(d.out, "%s passed sanity check.\n", name)
		return nil
	}
	for i := range n {
		offset, pos := index.offsetEntry(i)
		if offset == index.base && i > 0 {
			break // the rest is room that is not used yet
		}
		if err := d.checkEntry(log, name, offset, pos, maxSize); err != nil {
			return err
		}
		if !d.options.verifyOnly.Has() {
			fmt.Fprintf(d.out, "offset: %d position: %d\n", offset, pos)
		}
	}
	d.sortMismatches(name)
	return nil
}

func checkOffsetIndex(x rawIndex, n int) error {
	if last, _ := x.offsetEntry(n - 1); last < x.base {
		return cli.Fail(classCorruptIndex, "Corrupt index found, index file %s has non-zero size but the last offset is %d "+
			"which is less than the base offset %d", x.name, last, x.base)
	}
	if x.size%offsetEntrySize != 0 {
		return cli.Fail(classCorruptIndex, "Index file %s is corrupt, found %d bytes which is neither positive nor a "+
			"multiple of %d", x.name, x.size, offsetEntrySize)
	}
	return nil
}

// checkEntry compares an index entry with the entry of the log at its position.
func (d *dumper) checkEntry(log *logFile, name string, offset, pos, maxSize int64) error {
	end, err := log.sliceEnd(pos, maxSize)
	if err != nil {
		return err
	}
	entry, ok, err := log.next(pos, end)
	if err != nil {
		return err
	}
	if !ok {
		return &cli.Failure{Class: classNoElement}
	}
	if entry.head.LastOffset != offset {
		d.mismatches = find(d.mismatches, name, [2]int64{offset, entry.head.LastOffset})
	}
	return nil
}

// sortMismatches puts the mismatches of an index into the order of the report: the
// largest offset first, and each offset once.
func (d *dumper) sortMismatches(name string) {
	for i := range d.mismatches {
		if d.mismatches[i].file == absolute(name) {
			d.mismatches[i].pairs = lastOfEach(d.mismatches[i].pairs)
			slices.Reverse(d.mismatches[i].pairs)
		}
	}
}

// lastOfEach sorts pairs by their first number and keeps the last pair of each.
func lastOfEach(pairs [][2]int64) [][2]int64 {
	byFirst := map[int64]int64{}
	for _, p := range pairs {
		byFirst[p[0]] = p[1]
	}
	unique := make([][2]int64, 0, len(byFirst))
	for first, second := range byFirst {
		unique = append(unique, [2]int64{first, second})
	}
	slices.SortFunc(unique, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	return unique
}

// timeFindings is what was found wrong in time indexes.
type timeFindings struct{ mismatches, disorder, notFound []fileFindings }

func (d *dumper) dumpTimeIndex(name string) error {
	if _, err := baseOffset(name); err != nil {
		return err
	}
	log, err := openLog(sibling(name, ".log"), sibling(name, ".log"))
	if err != nil {
		return err
	}
	defer log.close()
	index, err := openRawIndex(sibling(name, ".index"), offsetEntrySize)
	if err != nil {
		return err
	}
	times, err := openRawIndex(name, timeEntrySize)
	if err != nil {
		return err
	}
	if d.options.sanityOnly.Has() {
		if err := checkTimeIndex(times); err != nil {
			return err
		}
		fmt.Fprintf(d.out, "%s passed sanity check.\n", name)
		return nil
	}
	previous := int64(-1)
	for i := range len(times.data) / timeEntrySize {
		timestamp, offset := times.timeEntry(i)
		if offset == times.base && i > 0 {
			return nil
		}
		if err := d.checkTime(log, index, name, timestamp, offset, previous); err != nil {
			return err
		}
		if !d.options.verifyOnly.Has() {
			fmt.Fprintf(d.out, "timestamp: %d offset: %d\n", timestamp, offset)
		}
		previous = timestamp
	}
	return nil
}

func checkTimeIndex(x rawIndex) error {
	n := len(x.data) / timeEntrySize
	if n > 0 {
		first, _ := x.timeEntry(0)
		last, lastOffset := x.timeEntry(n - 1)
		if last < first {
			return cli.Fail(classCorruptIndex, "Corrupt time index found, time index file (%s) has non-zero size but the last "+
				"timestamp is %d which is less than the first timestamp %d", x.name, last, first)
		}
		if lastOffset < x.base {
			return cli.Fail(classCorruptIndex, "Corrupt time index found, time index file (%s) has non-zero size but the last "+
				"offset is %d which is less than the first offset %d", x.name, lastOffset, x.base)
		}
	}
	if x.size%timeEntrySize != 0 {
		return cli.Fail(classCorruptIndex, "Time index file %s is corrupt, found %d bytes which is neither positive nor a "+
			"multiple of %d", x.name, x.size, timeEntrySize)
	}
	return nil
}

// checkTime compares a time index entry with the batch that it points to.
func (d *dumper) checkTime(log *logFile, index rawIndex, name string, timestamp, offset, previous int64) error {
	entries, err := log.entriesFrom(index.lookUp(offset))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e logEntry) bool { return e.head.LastOffset >= offset })
	if i < 0 || entries[i].head.LastOffset != offset {
		found := int64(-1)
		if i >= 0 {
			found = entries[i].head.LastOffset
		}
		d.time.notFound = find(d.time.notFound, name, [2]int64{offset, found})
		return nil
	}
	largest, err := log.maxTimestamp(entries[i])
	if err != nil {
		return err
	}
	if largest != timestamp {
		d.time.mismatches = find(d.time.mismatches, name, [2]int64{timestamp, largest})
	}
	if previous >= timestamp {
		d.time.disorder = find(d.time.disorder, name, [2]int64{timestamp, previous})
	}
	return nil
}

// maxTimestamp is the largest timestamp of the records of an entry, −1 without any.
func (l *logFile) maxTimestamp(e logEntry) (int64, error) {
	data, err := l.bytes(e, nil)
	if err != nil {
		return 0, err
	}
	it, err := record.NewIterator(data, record.IterOptions{SkipKV: true, MaxBytes: math.MaxInt32})
	if err != nil {
		return 0, recordFailure(err)
	}
	defer it.Close()
	largest := int64(-1)
	for it.Next() {
		largest = max(largest, it.Record().Timestamp)
	}
	return largest, recordFailure(it.Err())
}

func (d *dumper) dumpTxnIndex(name string) error {
	if _, err := baseOffset(name); err != nil {
		return err
	}
	data, err := readAll(name)
	if err != nil && cli.AsFailure(err).Class != classNoFile {
		return err
	}
	for ; len(data) >= txnEntrySize; data = data[txnEntrySize:] {
		version := int16(binary.BigEndian.Uint16(data))
		if version > 0 {
			return cli.Fail(classKafkaException, "Unexpected aborted transaction version %d in transaction index %s, current "+
				"version is 0", version, absolute(name))
		}
		at := func(pos int) int64 { return int64(binary.BigEndian.Uint64(data[pos:])) }
		fmt.Fprintf(d.out, "version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n",
			version, at(2), at(10), at(18), at(26))
	}
	return nil
}

func (d *dumper) dumpSnapshot(name string) error {
	data, err := readAll(name)
	if err != nil {
		return err
	}
	entries, err := producerstate.DecodeSnapshot(data)
	if err != nil {
		d.complain("%s\n", snapshotProblem(data, err))
		return nil
	}
	for _, e := range entries {
		fmt.Fprintf(d.out, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s "+
			"lastTimestamp: %d", e.ProducerID, e.ProducerEpoch, e.CoordinatorEpoch,
			optionalLong(e.CurrentTxnFirstOffset), e.LastTimestamp)
		if b, ok := e.LastBatch(); ok {
			fmt.Fprintf(d.out, " firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				b.FirstSequence(), b.LastSequence, b.LastOffset, b.OffsetDelta, b.Timestamp)
		}
		fmt.Fprintln(d.out)
	}
	return nil
}

// snapshotProblem words a broken producer snapshot as Kafka does.
func snapshotProblem(data []byte, err error) string {
	const crcPos, crcEnd = 2, 6
	if len(data) >= crcEnd {
		if version := int16(binary.BigEndian.Uint16(data)); version != 1 {
			return fmt.Sprintf("Snapshot contained an unknown file version %d", version)
		}
		stored := binary.BigEndian.Uint32(data[crcPos:])
		if computed := crc32.Checksum(data[crcEnd:], crc32.MakeTable(crc32.Castagnoli)); computed != stored {
			return fmt.Sprintf("Snapshot is corrupt (CRC is no longer valid). Stored crc: %d. Computed crc: %d",
				stored, computed)
		}
	}
	return fmt.Sprintf("Snapshot failed schema validation: %s", err)
}
