package inspect

import (
	"errors"
	"fmt"
	"path/filepath"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

// dirState is what a log directory's own files say.
type dirState struct {
	clean    bool // .kafka_cleanshutdown is there
	recovery checkpoint.Offsets
	start    checkpoint.Offsets
	high     checkpoint.Offsets
	cleaner  checkpoint.Offsets
}

// checkDir checks the files of a log directory itself.
func checkDir(fsys vfs.FS, dir string) (*dirState, []Finding, error) {
	s := &dirState{}
	c := &folderCheck{fs: fsys, target: Target{Dir: dir, Partition: -1}}
	c.finds.target = c.target
	if _, err := fsys.Stat(filepath.Join(dir, checkpoint.CleanShutdownFile)); err == nil {
		s.clean = true
	}
	for file, into := range map[string]*checkpoint.Offsets{
		checkpoint.RecoveryPointFile: &s.recovery, checkpoint.LogStartOffsetFile: &s.start,
		checkpoint.HighWatermarkFile: &s.high, checkpoint.CleanerOffsetFile: &s.cleaner,
	} {
		offsets, err := readOffsets(fsys, dir, file)
		var malformed *checkpoint.MalformedError
		switch {
		case errors.As(err, &malformed):
			c.add(Error, CheckpointBad, file, -1, malformed.Error(), "Kafka takes the whole log directory offline at its start",
				checkpointRepair)
		case err != nil:
			return nil, nil, err
		}
		*into = offsets
	}
	_, err := checkpoint.ReadMetaProperties(fsys, filepath.Join(dir, checkpoint.MetaPropertiesFile))
	var malformed *checkpoint.MalformedError
	switch {
	case errors.As(err, &malformed):
		c.add(Error, CheckpointBad, checkpoint.MetaPropertiesFile, -1, malformed.Error(), notStarted, "none")
	case isAbsent(err):
		if _, err := fsys.Stat(filepath.Join(dir, metadataFolder)); err == nil {
			c.add(Error, CheckpointBad, checkpoint.MetaPropertiesFile, -1,
				"there is no "+checkpoint.MetaPropertiesFile+" in the directory of a node", notStarted, "none")
		}
	case err != nil && !isAbsent(err):
		return nil, nil, err
	}
	if err := c.checkNames(); err != nil {
		return nil, nil, err
	}
	return s, c.finds.sorted(), nil
}

const notStarted = "the broker does not start"

// checkNames tells of folders that are named as no partition: Kafka does not start over one.
func (c *folderCheck) checkNames() error {
	entries, err := c.fs.ReadDir(c.target.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := parseFolder(e.Name()); ok || !e.IsDir() || e.Name() == "remote-log-index-cache" ||
			e.Name() == "lost+found" {
			continue
		}
		c.add(Error, FolderName, e.Name(), -1, "a folder that is not named as a partition (TOPIC-N)",
			"the broker does not start over this log directory", "none: move it away")
	}
	return c.checkBatches(bootstrapFile)
}

// checkOffsets compares a partition's lines of the checkpoints with its log [first, end).
func (s *dirState) checkOffsets(t Target, first, end int64) []Finding {
	if t.Mark != "" {
		return nil
	}
	f := findings{target: t}
	add := func(file string, severity Severity, offset int64, what, breaks string) {
		f.add(Finding{
			Severity: severity, Kind: CheckpointLies, File: filepath.Join(t.LogDir, file), Pos: -1, Offset: offset,
			What: what, Breaks: breaks, Repair: "none", base: -1,
		})
	}
	if p := s.recovery[t.key()]; p > end {
		add(checkpoint.RecoveryPointFile, Error, p, fmt.Sprintf("%d was flushed, but the log ends at %d", p, end),
			fmt.Sprintf("records from %d to %d were on disk and are gone", end, p-1))
	}
	if p := s.start[t.key()]; p > end {
		add(checkpoint.LogStartOffsetFile, Error, p, fmt.Sprintf("the log starts at %d, but ends at %d", p, end),
			fmt.Sprintf("the next start removes all segments and begins anew at %d", p))
	}
	if p := s.high[t.key()]; p > end {
		add(checkpoint.HighWatermarkFile, Warning, p,
			fmt.Sprintf("the high watermark was %d, but the log ends at %d", p, end),
			fmt.Sprintf("records from %d to %d could be read by consumers and are gone from this replica", end, p-1))
	}
	return f.list
}
