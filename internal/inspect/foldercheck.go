package inspect

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/producerstate"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// folderCheck looks at a partition's folder as a whole: names, small files, and what all segments tell together.
type folderCheck struct {
	fs     vfs.FS
	target Target
	folder *folder
	finds  findings
	inUse  bool
	epochs []checkpoint.EpochEntry
	// epochsKnown is false when the checkpoint is missing or malformed; told then already, or later when batches need it.
	epochsKnown bool
}

func (c *folderCheck) add(s Severity, k Kind, name string, offset int64, what, breaks, repair string) {
	c.finds.add(Finding{
		Severity: s, Kind: k, File: filepath.Join(c.target.Dir, name), Pos: -1, Offset: offset,
		What: what, Breaks: breaks, Repair: repair, base: -1,
	})
}

// checkFolder looks at everything but the segments.
func checkFolder(fsys vfs.FS, t Target, f *folder, inUse bool, s *Settings) (*folderCheck, error) {
	c := &folderCheck{fs: fsys, target: t, folder: f, finds: findings{target: t}, inUse: inUse}
	if t.Segments != nil {
		return c, c.readEpochs()
	}
	for _, name := range f.others {
		c.otherFile(name)
	}
	c.orphans()
	if err := c.readEpochs(); err != nil {
		return nil, err
	}
	if err := c.checkTopicID(s); err != nil {
		return nil, err
	}
	return c, c.checkSnapshots()
}

// knownNames are files of a partition's folder that are not numbered.
var knownNames = []string{
	checkpoint.LeaderEpochFile, checkpoint.PartitionMetadataFile, commitlog.SealsFile, quorumStateFile,
}

// otherFile judges a name that is no plain file of a segment.
func (c *folderCheck) otherFile(name string) {
	_, kind, numbered := splitName(name)
	switch {
	case slices.Contains(knownNames, name), strings.HasPrefix(name, "cut-"),
		c.target.Topic+"-0" == metadataFolder && len(name) > 20 && name[20] == '-' && strings.Contains(name, ".checkpoint"):
	case strings.HasSuffix(name, segment.DeletedSuffix):
		if !c.inUse {
			c.add(Note, Leftover, name, -1, "a file that waited for its removal when the broker stopped",
				"nothing; it takes space until the next start, which removes it",
				"none: rename it back if its records should not have been deleted")
		}
	case strings.HasSuffix(name, segment.CleanedSuffix) && numbered:
		if !c.inUse {
			c.add(Note, Leftover, name, -1, "output of a compaction that was not completed",
				"nothing; it takes space until the next start, which removes it", "none")
		}
	case strings.HasSuffix(name, segment.SwapSuffix) && numbered && segmentKind(kind):
		if !c.inUse {
			c.add(Warning, Leftover, name, -1, "a replacement of segments by compacted ones was not completed",
				"the next start completes it: it puts this file in place and removes the segments whose offsets it covers",
				"none: the next start does it")
		}
	case strings.HasSuffix(name, ".tmp"), strings.HasSuffix(name, ".part"):
		if !c.inUse {
			c.add(Note, Leftover, name, -1, "a write that was not completed", "nothing; nobody reads it", "none")
		}
	default:
		c.add(Note, Strange, name, -1, "not a file of Kafka's or Tidemark's", "nothing; brokers pass it over", "none")
	}
}

// orphans tells of indexes without a log.
func (c *folderCheck) orphans() {
	for _, base := range sortedBases(c.folder.files) {
		kinds := c.folder.files[base]
		if kinds.has(segment.LogSuffix) {
			continue
		}
		for _, kind := range []string{segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
			if kinds.has(kind) {
				c.add(Error, Orphan, segment.Name(base, kind), base, "an index whose log is missing",
					fmt.Sprintf("if segment %d ever held records, they are gone; the next start removes the index", base), "remove it")
			}
		}
	}
}

func sortedBases(m map[int64]fileKinds) []int64 {
	out := make([]int64, 0, len(m))
	for base := range m {
		out = append(out, base)
	}
	slices.Sort(out)
	return out
}

const epochsRepair = "write it anew from the batches"

// readEpochs reads the leader epochs without making a file. Whether one must be there, the batches tell later.
func (c *folderCheck) readEpochs() error {
	name := filepath.Join(c.target.Dir, checkpoint.LeaderEpochFile)
	if _, err := c.fs.Stat(name); err != nil {
		if isAbsent(err) {
			return nil
		}
		return err
	}
	epochs, err := checkpoint.OpenLeaderEpochs(c.fs, name)
	var malformed *checkpoint.MalformedError
	if errors.As(err, &malformed) {
		c.add(Error, EpochsWrong, checkpoint.LeaderEpochFile, -1, malformed.Reason+": "+malformed.Text,
			"Kafka takes the log directory offline when it opens the partition", epochsRepair)
		c.epochsKnown = true
		return nil
	}
	if err != nil {
		return err
	}
	c.epochs, c.epochsKnown = epochs.Entries(), true
	return nil
}

// checkTopicID looks at the topic's id, and compares it with the metadata log, when there is one and nobody writes to
// it.
func (c *folderCheck) checkTopicID(s *Settings) error {
	id, err := checkpoint.ReadPartitionMetadata(c.fs, filepath.Join(c.target.Dir, checkpoint.PartitionMetadataFile))
	var malformed *checkpoint.MalformedError
	switch {
	case errors.As(err, &malformed):
		c.add(Error, MetadataWrong, checkpoint.PartitionMetadataFile, -1, malformed.Error(),
			"Kafka takes the log directory offline when it opens the partition", metadataRepair)
		return nil
	case isAbsent(err):
		return c.missingTopicID()
	case err != nil || s == nil || c.target.LogDir == "" || c.target.Mark != "" || c.inUse ||
		c.target.isMetadata():
		return err
	}
	known, ok := s.topicID(c.target)
	switch {
	case ok && known != id:
		c.add(Error, NotAssigned, checkpoint.PartitionMetadataFile, -1,
			fmt.Sprintf("the topic's id is %s; the metadata log has a topic of that name with the id %s",
				checkpoint.FormatID(id), checkpoint.FormatID(known)),
			"Kafka starts, but fails to take on what changed in the metadata: clients find no topics",
			"none: it may be the folder of an older topic of that name; move it away")
	case !ok && s.metadata(c.target.LogDir).whole:
		c.add(Warning, NotAssigned, checkpoint.PartitionMetadataFile, -1, "the metadata log knows no topic of that name",
			"the next start renames the folder to one that ends in -stray, and nobody can read it", "none")
	}
	return nil
}

const metadataRepair = "write it anew where the metadata log knows the topic's id"

// missingTopicID tells of a folder without the topic's id, in a directory of a node that goes by ids.
//
// Kafka: LogManager of 4.3.1 takes such a folder for a stray, and begins a new one.
func (c *folderCheck) missingTopicID() error {
	if c.target.LogDir == "" || c.target.Mark != "" || c.inUse || c.target.isMetadata() {
		return nil
	}
	_, err := checkpoint.ReadMetaProperties(c.fs, filepath.Join(c.target.LogDir, checkpoint.MetaPropertiesFile))
	if err != nil {
		return nil //nolint:nilerr // no node's, or one of ZooKeeper's time; what is wrong with it is told elsewhere
	}
	c.add(Error, MetadataWrong, checkpoint.PartitionMetadataFile, -1, "there is no "+checkpoint.PartitionMetadataFile,
		"Kafka's next start renames the folder to one that ends in -stray, and begins the partition anew, empty",
		metadataRepair)
	return nil
}

// checkSnapshots decodes the producer snapshots.
func (c *folderCheck) checkSnapshots() error {
	for i, at := range c.folder.snapshots {
		if c.inUse && i == len(c.folder.snapshots)-1 {
			return nil // it may be being written
		}
		_, err := readSnapshot(c.fs, c.target.Dir, at)
		var corrupt *producerstate.CorruptSnapshotError
		switch {
		case errors.As(err, &corrupt):
			c.add(Warning, SnapshotCorrupt, producerstate.SnapshotName(at), at, "it cannot be used: "+corrupt.Reason,
				"the next start removes it and reads the log from the snapshot before, which takes time",
				"write it anew from the log")
		case err != nil && !isAbsent(err):
			return err
		}
	}
	return nil
}

// wholeLog judges what the segments tell together.
func (c *folderCheck) wholeLog(reports []segmentReport, compacting, closed bool, interval int64) {
	if c.target.Segments != nil || len(reports) == 0 {
		return
	}
	c.gaps(reports, compacting)
	c.sparse(reports, interval)
	c.missingSnapshots(reports, closed)
	c.lateSnapshots(reports)
	c.missingEpochs(reports)
}

// gaps tells of offsets without records, unless the log was compacted.
func (c *folderCheck) gaps(reports []segmentReport, compacting bool) {
	damaged := false
	for i := range reports {
		compacting = compacting || reports[i].compacted || reports[i].gaps > 1
		damaged = damaged || reports[i].damaged
	}
	if compacting {
		return
	}
	for i := range reports {
		r := &reports[i]
		if r.gaps > 0 {
			c.gap(r.base, r.firstGapPos, r.firstGap[0], r.firstGap[1], "inside the segment")
		}
		if i > 0 && !reports[i-1].damaged && reports[i-1].next < r.base {
			c.gap(r.base, 0, reports[i-1].next, r.base, "between this segment and the one before")
		}
	}
}

func (c *folderCheck) gap(base, pos, from, to int64, where string) {
	c.finds.add(Finding{
		Severity: Warning, Kind: OffsetGap, File: filepath.Join(c.target.Dir, segment.Name(base, segment.LogSuffix)),
		Pos: pos, Offset: from, base: -1,
		What:   fmt.Sprintf("offsets %d to %d are missing %s, and nothing tells of compaction", from, to-1, where),
		Breaks: "readers go on behind them; records that were there are gone",
		Repair: "restore a flipped bit of an offset if that is all; else none: the bytes are not there",
	})
}

// restartsTolerated is by how much a part of the log without index entries may be longer than the interval: a broker
// that starts begins to count anew.
const restartsTolerated = 4

// sparse tells of long parts without index entries. Without a configured interval the entries tell what it was.
func (c *folderCheck) sparse(reports []segmentReport, interval int64) {
	for i := range reports {
		interval = max(interval, reports[i].leastStep)
	}
	for i := range reports {
		r := &reports[i]
		allowed := restartsTolerated*max(interval, r.leastStep) + r.largestSize
		if !r.hasIndex || r.damaged || r.told(IndexZeros, IndexEntry) || r.longestRun <= allowed ||
			c.inUse && i == len(reports)-1 {
			continue
		}
		name := segment.Name(r.base, segment.IndexSuffix)
		c.finds.add(Finding{
			Severity: Warning, Kind: IndexSparse, File: filepath.Join(c.target.Dir, name), Pos: -1, Offset: -1, base: r.base,
			What: fmt.Sprintf("no entry for %d bytes of log from position %d on", r.longestRun, r.runStart),
			Breaks: fmt.Sprintf("look-ups there scan up to %d bytes, where about %d are meant", r.longestRun,
				max(interval, r.leastStep)),
			Repair: rebuildText,
		})
	}
}

// missingSnapshots tells of segment starts without a producer snapshot, where there are producers.
func (c *folderCheck) missingSnapshots(reports []segmentReport, closed bool) {
	producers := false
	for i := range reports {
		if c.inUse && i == len(reports)-1 {
			return // the segment is there before its snapshot
		}
		if i > 0 && producers && !slices.Contains(c.folder.snapshots, reports[i].base) {
			c.add(Warning, SnapshotMissing, producerstate.SnapshotName(reports[i].base), reports[i].base,
				"there is no producer snapshot for the start of this segment",
				"an unclean start reads more of the log; after a clean stop without any snapshot Kafka forgets all producers: "+
					"duplicates may be stored, open transactions forgotten", "write it from the log")
		}
		producers = producers || reports[i].producers
	}
	end := reports[len(reports)-1].next
	if producers && closed && len(c.folder.snapshots) == 0 && len(reports) == 1 && !reports[0].damaged {
		c.add(Warning, SnapshotMissing, producerstate.SnapshotName(end), end, "there is no producer snapshot at all",
			"Kafka forgets all producers at its next start: duplicates may be stored, open transactions forgotten",
			"write it from the log")
	}
}

// lateSnapshots tells of snapshots of a state that the log does not reach.
func (c *folderCheck) lateSnapshots(reports []segmentReport) {
	last := reports[len(reports)-1]
	for _, at := range c.folder.snapshots {
		if at > last.next && !last.damaged && !c.inUse {
			c.add(Note, Leftover, producerstate.SnapshotName(at), at,
				fmt.Sprintf("a producer snapshot for offset %d; the log ends at %d", at, last.next),
				"nothing; the next start removes it", "none")
		}
	}
}

func (c *folderCheck) missingEpochs(reports []segmentReport) {
	end := reports[len(reports)-1].next
	if n := len(c.epochs); n > 0 && c.epochs[n-1].StartOffset > end && !c.inUse {
		c.add(Warning, EpochsWrong, checkpoint.LeaderEpochFile, c.epochs[n-1].StartOffset,
			fmt.Sprintf("epoch %d begins at offset %d, but the log ends at %d",
				c.epochs[n-1].Epoch, c.epochs[n-1].StartOffset, end),
			"records were lost behind the end of the log, or the file is of another log; the next start drops the entry",
			epochsRepair)
	}
	epochs := slices.ContainsFunc(reports, func(r segmentReport) bool { return r.newMagic })
	if !epochs || len(c.epochs) > 0 || c.inUse && c.epochsKnown {
		return
	}
	what := "there is no " + checkpoint.LeaderEpochFile
	if c.epochsKnown {
		what = "it has no entries, but batches have leader epochs"
	}
	c.add(Warning, EpochsMissing, checkpoint.LeaderEpochFile, -1, what,
		"followers and consumers that ask where an epoch ended get no answer, and may truncate too much or not notice a loss",
		epochsRepair)
}

// checkBatches checks a file of batches that is no segment: a snapshot of the metadata log.
func (c *folderCheck) checkBatches(name string) error {
	path := filepath.Join(c.target.Dir, name)
	size, err := fileSize(c.fs, path)
	if err != nil || size < 0 {
		return err
	}
	f, err := c.fs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sc := record.NewScanner(f, 0, size)
	sc.File = path
	for sc.Next() {
		good, err := sc.ValidCRC()
		if err != nil {
			return err
		}
		if !good {
			c.add(Error, BadChecksum, name, sc.Header().BaseOffset,
				fmt.Sprintf("the checksum of the batch at %d is wrong", sc.Pos()),
				"a controller cannot load this snapshot of the metadata", "none: take it from another controller")
			return nil
		}
	}
	var damage *record.CorruptError
	if errors.As(sc.Err(), &damage) {
		c.add(Error, BadBatch, name, -1, damage.Error(), "a controller cannot load this snapshot of the metadata",
			"none: take it from another controller")
		return nil
	}
	return sc.Err()
}
