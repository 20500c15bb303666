package inspect

import (
	"maps"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

const checkpointRepair = "keep it in a cut-* file, and write it anew from the lines that can be read"

// planDirs plans the repair of the log directories' own files, each directory once.
func (r *repairer) planDirs(targets []Target, found map[string][]Finding, ends checkpoint.Offsets) ([]*partitionPlan,
	error) {
	var plans []*partitionPlan
	seen := make(map[string]bool)
	for _, t := range targets {
		dir := filepath.Clean(t.LogDir)
		if t.LogDir == "" || seen[dir] {
			continue
		}
		seen[dir] = true
		if len(found[dir]) == 0 {
			continue
		}
		p := &partitionPlan{fs: r.fs, target: Target{Dir: dir, LogDir: dir, Partition: -1}, found: found[dir],
			answered: make([]bool, len(found[dir])), settings: r.o.Settings}
		for _, f := range p.found {
			if f.Kind == CheckpointBad {
				if err := p.planCheckpoint(f.File, ends); err != nil {
					return nil, err
				}
			}
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// planCheckpoint writes a checkpoint of offsets anew. A line that points behind the end of its log is not taken over:
// its number is wrong, and for a log start there Kafka would begin the log anew. Where nothing stands for a partition
// Kafka takes 0: with a recovery point of 0 it reads all of a log after an unclean stop, so nothing is kept of that
// file, whose numbers may be wrong too.
func (p *partitionPlan) planCheckpoint(file string, ends checkpoint.Offsets) error {
	name := filepath.Base(file)
	switch name {
	case checkpoint.RecoveryPointFile, checkpoint.LogStartOffsetFile, checkpoint.HighWatermarkFile,
		checkpoint.CleanerOffsetFile:
	default:
		return nil
	}
	data, err := vfs.ReadFile(p.fs, file)
	if err != nil {
		return err
	}
	offsets, what := readableOffsets(data), "write it anew with the lines that can be read"
	if name == checkpoint.RecoveryPointFile {
		offsets, what = nil, "write it anew, without recovery points: after an unclean stop all of the logs is read"
	}
	maps.DeleteFunc(offsets, func(tp checkpoint.TopicPartition, offset int64) bool {
		end, known := ends[tp]
		return known && offset > end
	})
	kept, size := p.path("cut-"+name), int64(len(data))
	p.steps = append(p.steps,
		step{
			action: Action{File: file, What: "keep its bytes", Kept: kept, WriteBytes: size},
			do:     func(fsys vfs.FS) error { return keepBytes(fsys, file, kept, 0, size) },
		},
		step{
			action: Action{File: file, What: what, WriteBytes: size},
			do:     func(fsys vfs.FS) error { return checkpoint.WriteOffsets(fsys, file, offsets) },
		})
	p.answer(func(f Finding) bool { return f.File == file && f.Kind == CheckpointBad })
	return nil
}

// readableOffsets are the lines of a checkpoint that say something of a partition; of two for the same the smaller one.
func readableOffsets(data []byte) checkpoint.Offsets {
	out := make(checkpoint.Offsets)
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !strings.HasSuffix(line, "\n") {
			continue
		}
		partition, err1 := strconv.ParseInt(fields[1], 10, 32)
		offset, err2 := strconv.ParseInt(fields[2], 10, 64)
		if err1 != nil || err2 != nil || partition < 0 || offset < 0 {
			continue
		}
		tp := checkpoint.TopicPartition{Topic: fields[0], Partition: int32(partition)}
		before, twice := out[tp]
		if !twice {
			before = math.MaxInt64
		}
		out[tp] = min(before, offset)
	}
	return out
}
