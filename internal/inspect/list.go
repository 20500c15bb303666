package inspect

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"

	"tidemark/internal/commitlog"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// PartitionInfo describes a partition.
type PartitionInfo struct {
	PartitionName
	PartitionTotals
	Segments []SegmentInfo `json:"segments"` // unless a function gets them
}

// PartitionName is what is known of a partition without a look into its folder.
type PartitionName struct {
	Type      string `json:"type"` // "partition"
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Dir       string `json:"dir"`
	Mark      string `json:"mark,omitempty"`
}

// NameOf is the name of a target.
func NameOf(t Target) PartitionName {
	return PartitionName{Type: "partition", Topic: t.Topic, Partition: t.Partition, Dir: t.Dir, Mark: t.Mark}
}

// PartitionTotals are what the segments of a partition are together.
type PartitionTotals struct {
	StartOffset      int64 `json:"startOffset"`
	EndOffset        int64 `json:"endOffset"`
	SegmentCount     int   `json:"segmentCount"`
	SizeBytes        int64 `json:"sizeBytes"`      // of the .log files
	IndexBytes       int64 `json:"indexSizeBytes"` // of the index files, as stated, holes included
	FirstTimestamp   int64 `json:"firstTimestamp"` // of the first batch, ms; -1: none
	LargestTimestamp int64 `json:"largestTimestamp"`
	Mix              Mix   `json:"mix"`
}

func (p *PartitionTotals) add(s SegmentInfo) {
	p.SegmentCount++
	p.SizeBytes += s.SizeBytes
	p.IndexBytes += s.IndexBytes
	p.LargestTimestamp = max(p.LargestTimestamp, s.LargestTimestamp)
	if p.FirstTimestamp < 0 {
		p.FirstTimestamp = s.FirstTimestamp
	}
	p.Mix.merge(s.Mix)
}

// SegmentInfo describes a segment.
type SegmentInfo struct {
	BaseOffset       int64 `json:"baseOffset"`
	NextOffset       int64 `json:"nextOffset"`
	SizeBytes        int64 `json:"sizeBytes"`
	IndexBytes       int64 `json:"indexSizeBytes"`
	FirstTimestamp   int64 `json:"firstTimestamp"`
	LargestTimestamp int64 `json:"largestTimestamp"` // the file's time of change where no record has a timestamp
	ModifiedMs       int64 `json:"modifiedMs"`
	Active           bool  `json:"active,omitempty"` // the last one
	Mix              Mix   `json:"mix"`
}

// Mix is what batches are like. Without Whole it is told from the first batches of each segment only.
type Mix struct {
	Whole         bool        `json:"whole"`
	Batches       int64       `json:"batches"`
	Records       int64       `json:"records"` // -1 in a count of old magic: compressed messages do not tell
	Bytes         int64       `json:"bytes"`
	LargestBatch  int64       `json:"largestBatchBytes"`
	Codecs        CodecCounts `json:"codecs"` // batches by codec
	Magics        MagicCounts `json:"magics,omitzero"`
	Control       int64       `json:"controlBatches,omitempty"`
	Transactional int64       `json:"transactionalBatches,omitempty"`
}

// sampleBytes is how much of each segment List looks at when it does not scan.
const sampleBytes = 16 << 10

func (m *Mix) add(h record.Header) {
	m.Batches++
	m.Bytes += int64(h.SizeBytes)
	m.LargestBatch = max(m.LargestBatch, int64(h.SizeBytes))
	if c := int(h.Codec()); c >= 0 && c < len(m.Codecs) {
		m.Codecs[c]++
	}
	if h.Magic >= 0 && h.Magic < 2 {
		m.Magics[h.Magic]++
	}
	if h.Count > 0 {
		m.Records += int64(h.Count)
	}
	if h.IsControl() {
		m.Control++
	} else if h.IsTransactional() {
		m.Transactional++
	}
}

func (m *Mix) merge(o Mix) {
	m.Whole = m.Whole && o.Whole
	m.Batches += o.Batches
	m.Records += o.Records
	m.Bytes += o.Bytes
	m.LargestBatch = max(m.LargestBatch, o.LargestBatch)
	m.Control += o.Control
	m.Transactional += o.Transactional
	for i, n := range o.Codecs {
		m.Codecs[i] += n
	}
	for i, n := range o.Magics {
		m.Magics[i] += n
	}
}

// CodecCounts counts batches by codec.
type CodecCounts [8]int64 // the header has three bits

// ByName has the codecs that there are.
func (c CodecCounts) ByName() map[string]int64 {
	return named(c[:], func(i int) string { return record.Codec(i).String() })
}

// MarshalJSON writes an object: names and numbers of batches.
func (c CodecCounts) MarshalJSON() ([]byte, error) { return json.Marshal(c.ByName()) }

// MagicCounts counts batches of the old formats, v0 and v1.
type MagicCounts [2]int64

// ByName has the formats that there are.
func (c MagicCounts) ByName() map[string]int64 {
	return named(c[:], func(i int) string { return "v" + strconv.Itoa(i) })
}

// MarshalJSON writes an object: names and numbers of batches.
func (c MagicCounts) MarshalJSON() ([]byte, error) { return json.Marshal(c.ByName()) }

func named(counts []int64, name func(int) string) map[string]int64 {
	out := make(map[string]int64)
	for i, n := range counts {
		if n > 0 {
			out[name(i)] = n
		}
	}
	return out
}

// ListOptions say how [List] works.
type ListOptions struct {
	// Scan reads every batch header, for exact counts; otherwise only the indexes and the start of each segment are
	// looked at.
	Scan bool
	// Segment gets each segment, and the answer of List has none. nil: it has them.
	Segment  func(SegmentInfo) error
	Progress func(bytes int64) // of the logs; may be nil
}

// List describes a partition and its segments, one after the other. Errors are the disk's and those of the function;
// damage is passed over.
func List(fsys vfs.FS, t Target, cfg commitlog.Config, o ListOptions) (*PartitionInfo, error) {
	p := &PartitionInfo{
		PartitionName:   NameOf(t),
		PartitionTotals: PartitionTotals{FirstTimestamp: -1, LargestTimestamp: -1, Mix: Mix{Whole: true}},
		Segments:        []SegmentInfo{},
	}
	start, end, err := commitlog.EachSegment(options(fsys, t, cfg), func(s commitlog.SegmentInfo) error {
		info, err := describeSegment(fsys, t.Dir, s, o)
		if err != nil {
			return err
		}
		p.add(info)
		if o.Segment != nil {
			return o.Segment(info)
		}
		p.Segments = append(p.Segments, info)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.StartOffset, p.EndOffset = start, end
	return p, nil
}

func describeSegment(fsys vfs.FS, dir string, s commitlog.SegmentInfo, o ListOptions) (SegmentInfo, error) {
	info := SegmentInfo{
		BaseOffset: s.BaseOffset, NextOffset: s.NextOffset, SizeBytes: s.SizeBytes, FirstTimestamp: -1,
		LargestTimestamp: s.LargestTimestamp, ModifiedMs: s.LastModified.UnixMilli(), Active: s.Active,
	}
	for _, suffix := range []string{segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
		size, err := fileSize(fsys, filepath.Join(dir, segment.Name(s.BaseOffset, suffix)))
		if err != nil {
			return info, err
		}
		info.IndexBytes += max(size, 0)
	}
	name := filepath.Join(dir, segment.Name(s.BaseOffset, segment.LogSuffix))
	size, err := fileSize(fsys, name)
	if err != nil || size <= 0 {
		info.Mix.Whole = err == nil
		return info, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return info, err
	}
	defer f.Close()
	sc := record.NewScanner(f, 0, min(size, s.SizeBytes))
	info.Mix.Whole = true
	for sc.Next() {
		h := sc.Header()
		if info.Mix.Batches == 0 {
			info.FirstTimestamp = firstTimestamp(h)
		}
		info.Mix.add(h)
		if o.Scan && o.Progress != nil {
			o.Progress(int64(h.SizeBytes))
		}
		if !o.Scan && sc.Pos() > sampleBytes {
			info.Mix.Whole = false
			break
		}
	}
	if isDamage(sc.Err()) {
		return info, nil
	}
	return info, sc.Err()
}

// firstTimestamp is that of a batch's first record, as far as its header tells.
func firstTimestamp(h record.Header) int64 {
	if h.TimestampType() == record.LogAppendTime || h.HasDeleteHorizon() || h.BaseTimestamp < 0 {
		return h.MaxTimestamp
	}
	return h.BaseTimestamp
}

// SortKeys are the orders that [Sort] knows.
var SortKeys = []string{"name", "size", "offsets", "segments", "time"}

// Sort puts partitions into the order of a key of SortKeys: by name ascending, else the greatest first.
func Sort(all []*PartitionInfo, key string) {
	by := func(p *PartitionInfo) int64 { return 0 }
	switch key {
	case "size":
		by = func(p *PartitionInfo) int64 { return p.SizeBytes }
	case "offsets":
		by = func(p *PartitionInfo) int64 { return p.EndOffset - p.StartOffset }
	case "segments":
		by = func(p *PartitionInfo) int64 { return int64(p.SegmentCount) }
	case "time":
		by = func(p *PartitionInfo) int64 { return p.LargestTimestamp }
	}
	slices.SortStableFunc(all, func(a, b *PartitionInfo) int {
		return cmp.Or(cmp.Compare(by(b), by(a)), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// SortTargets puts targets into the order of [Sort] by name.
func SortTargets(all []Target) {
	slices.SortStableFunc(all, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}
