package inspect

import (
	"path/filepath"
	"strconv"

	"tidemark/internal/segment"
	"tidemark/vfs"
)

// Residency tells how much of files the system has in its page cache.
type Residency struct {
	Type      string          `json:"type"` // "residency"
	Topic     string          `json:"topic"`
	Partition int32           `json:"partition"`
	Dir       string          `json:"dir"`
	Files     []FileResidency `json:"files"` // unless a function gets them
	Kinds     []KindResidency `json:"kinds"`
}

// FileResidency is one file.
type FileResidency struct {
	File     string `json:"file"`
	Kind     string `json:"kind"` // "index", "timeindex", "txnindex" or "log"
	Bytes    int64  `json:"bytes"`
	Pages    int64  `json:"pages"`
	Resident int64  `json:"residentPages"` // -1: the system does not tell
	Why      string `json:"unknownBecause,omitempty"`
	// Strip is the share of resident pages, in percent, of each of up to 64 equal parts of the file.
	Strip []int8 `json:"strip,omitempty"`
}

// KindResidency sums up the files of a kind. Files of which nothing is known are not in the other numbers.
type KindResidency struct {
	Kind     string `json:"kind"`
	Files    int64  `json:"files"`
	Bytes    int64  `json:"bytes"`
	Pages    int64  `json:"pages"`
	Resident int64  `json:"residentPages"`
	Unknown  int64  `json:"unknownFiles"`
}

// Percent is the share of pages that are resident, -1 when nothing is known.
func (k KindResidency) Percent() float64 {
	if k.Pages == 0 {
		return -1
	}
	return 100 * float64(k.Resident) / float64(k.Pages)
}

// stripParts is how many parts of a file are told apart.
const stripParts = 64

// ResidencyGoal is the share of index pages, in percent, below which look-ups are likely to wait for the disk.
const ResidencyGoal = 90

var residencyKinds = []string{"index", "timeindex", "txnindex", "log"}

// CacheResidency asks the system which pages of a partition's files are in its page cache. It reads none of them. each,
// which may be nil, gets the files, which are then not in the answer. Errors are the disk's and the function's.
func CacheResidency(fsys vfs.FS, t Target, each func(FileResidency) error) (*Residency, error) {
	f, err := readFolder(fsys, t.Dir)
	if err != nil {
		return nil, err
	}
	r := &Residency{Type: "residency", Topic: t.Topic, Partition: t.Partition, Dir: t.Dir, Files: []FileResidency{}}
	if each == nil {
		each = func(file FileResidency) error { r.Files = append(r.Files, file); return nil }
	}
	bases := sortedBases(f.files)
	for _, kind := range residencyKinds {
		sum := KindResidency{Kind: kind}
		for _, base := range bases {
			if !f.files[base].has("."+kind) || !t.wants(base) {
				continue
			}
			file, err := fileResidency(fsys, filepath.Join(t.Dir, segment.Name(base, "."+kind)), kind)
			if isAbsent(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			sum.add(file)
			if err := each(file); err != nil {
				return nil, err
			}
		}
		r.Kinds = append(r.Kinds, sum)
	}
	return r, nil
}

func (k *KindResidency) add(file FileResidency) {
	k.Files++
	k.Bytes += file.Bytes
	if file.Resident < 0 {
		k.Unknown++
		return
	}
	k.Pages += file.Pages
	k.Resident += file.Resident
}

func fileResidency(fsys vfs.FS, name, kind string) (FileResidency, error) {
	out := FileResidency{File: name, Kind: kind, Resident: -1}
	f, err := fsys.Open(name)
	if err != nil {
		return out, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out, err
	}
	out.Bytes = info.Size()
	out.Pages = (out.Bytes + pageSize - 1) / pageSize
	fd, ok := f.Fd()
	switch {
	case out.Bytes == 0:
		out.Resident = 0
		return out, nil
	case !ok:
		out.Why = "not a file of the system"
		return out, nil
	}
	if out.Why = hidden(name, info); out.Why != "" {
		return out, nil
	}
	count := stripCounter{pages: out.Pages}
	if err := resident(fd, out.Bytes, count.add); err != nil {
		out.Why = err.Error()
		return out, nil
	}
	out.Resident, out.Strip = count.total, count.strip()
	return out, nil
}

// stripCounter counts resident pages by part of the file.
type stripCounter struct {
	pages, seen, total int64
	parts              [stripParts]int64
}

// add takes in one byte for each of the next pages; its lowest bit says that the page is resident.
func (c *stripCounter) add(pages []byte) {
	for _, p := range pages {
		if p&1 != 0 {
			c.total++
			c.parts[c.seen*stripParts/max(c.pages, stripParts)]++
		}
		c.seen++
	}
}

func (c *stripCounter) strip() []int8 {
	n := min(c.pages, stripParts)
	out := make([]int8, n)
	for i := range out {
		size := max(c.pages, stripParts)
		from := (int64(i)*size + stripParts - 1) / stripParts
		to := (int64(i+1)*size + stripParts - 1) / stripParts
		out[i] = int8(100 * c.parts[i] / max(to-from, 1))
	}
	return out
}

// Advice is one setting that would make the indexes smaller.
type Advice struct {
	Setting    string `json:"setting"`
	IndexBytes int64  `json:"indexBytesOnDisk"` // with it, in whole pages
	Now        int64  `json:"indexBytesNow"`
	Cost       string `json:"cost"`
}

// CacheAdvice computes from a partition's statistics what other settings would make of its indexes, which take whole
// pages of the cache, one at least for each file.
func CacheAdvice(s *Statistics) []Advice {
	now := int64(0)
	for _, g := range s.Segments {
		now += pagesOf(g.OffsetEntries*8) + pagesOf(g.TimeEntries*12)
	}
	if now == 0 || len(s.Segments) == 0 {
		return nil
	}
	var out []Advice
	interval := max(s.IndexIntervalBytes, 1)
	for _, factor := range []int64{2, 4} {
		bytes := int64(0)
		for _, g := range s.Segments {
			bytes += pagesOf(g.OffsetEntries*8/factor) + pagesOf(g.TimeEntries*12/factor)
		}
		out = append(out, Advice{
			Setting: "index.interval.bytes=" + strconv.FormatInt(interval*factor, 10), IndexBytes: bytes, Now: now,
			Cost: "look-ups scan up to " + strconv.FormatInt(factor, 10) + " times as much of the log; holds for new segments",
		})
	}
	if len(s.Segments) > 4 {
		bytes := int64(0)
		for i := 0; i < len(s.Segments); i += 4 {
			var offsets, times int64
			for _, g := range s.Segments[i:min(i+4, len(s.Segments))] {
				offsets, times = offsets+g.OffsetEntries, times+g.TimeEntries
			}
			bytes += pagesOf(offsets*8) + pagesOf(times*12)
		}
		out = append(out, Advice{
			Setting: "segment.bytes and segment.ms 4 times as large (fewer segments)", IndexBytes: bytes, Now: now,
			Cost: "retention deletes in larger steps; holds for new segments",
		})
	}
	return out
}

func pagesOf(bytes int64) int64 { return (bytes + pageSize - 1) / pageSize * pageSize }
