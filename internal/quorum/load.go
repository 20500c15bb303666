package quorum

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"tidemark/internal/commitlog"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/record"
)

// readChunkBytes is how much of the log is read at a time.
const readChunkBytes = 1 << 20

// load opens the log and replays the newest snapshot and what follows it.
func (q *Quorum) load() error {
	list, err := listSnapshots(q.o.FS, q.dir)
	if err != nil {
		return err
	}
	err = q.replayAll(list, q.o.Clean)
	var damage *record.CorruptError
	inLog := errors.As(err, &damage) && filepath.Ext(damage.File) != snapshotSuffix
	if q.o.Clean && q.log != nil && inLog {
		q.o.Logger.Warn("metadata log is damaged though it was closed in good order; recovering it", "error", err)
		if err := q.log.Abandon(); err != nil {
			return err
		}
		err = q.replayAll(list, false)
	}
	return err
}

func (q *Quorum) replayAll(list []SnapshotID, clean bool) error {
	q.log, q.voters, q.snapshots = nil, voters{}, snapshotState{}
	if !clean {
		if err := q.checkInside(); err != nil {
			return err
		}
	}
	log, err := commitlog.Open(q.logOptions(clean))
	if err != nil {
		return err
	}
	q.log = log
	if list, err = q.dropOldSnapshots(list); err != nil {
		return err
	}
	base, err := q.loadSnapshot(list)
	if err != nil {
		return err
	}
	q.snapshots.list, q.snapshots.takenAt = list, q.o.Clock()
	q.loader = metadata.NewLoader(base)
	if err := q.replayLog(base.Offset() + 1); err != nil {
		return err
	}
	q.image.Store(q.loader.Publish().Image())
	return nil
}

func (q *Quorum) logOptions(clean bool) commitlog.Options {
	config := commitlog.DefaultConfig()
	config.SegmentBytes, config.SegmentMs = q.o.SegmentBytes, q.o.SegmentMs
	config.MaxMessageBytes = maxBatchBytes
	config.RetentionMs, config.RetentionBytes = -1, -1
	return commitlog.Options{
		FS: q.o.FS, Dir: q.dir, Topic: Topic, TopicID: topicID, Config: config, Clean: clean,
		Clock: q.o.Clock, Logger: q.o.Logger, Files: q.o.Files, Pages: q.o.Pages,
		Background: q.o.Background, After: q.o.After, Failed: q.o.Failed, Metrics: q.o.Metrics,
	}
}

// dropOldSnapshots removes snapshots that end before the log begins.
func (q *Quorum) dropOldSnapshots(list []SnapshotID) ([]SnapshotID, error) {
	start := q.log.StartOffset()
	for len(list) > 0 && list[0].EndOffset < start {
		if err := q.o.FS.Remove(filepath.Join(q.dir, list[0].FileName())); err != nil {
			return nil, err
		}
		list = list[1:]
	}
	if start > 0 && len(list) == 0 {
		return nil, fmt.Errorf("the log begins at offset %d and there is no snapshot of what came before", start)
	}
	return list, nil
}

// loadSnapshot returns the image of the newest snapshot, an empty one without
// any. A log that ends before it, as after a loss of the log alone, begins anew
// at its end.
func (q *Quorum) loadSnapshot(list []SnapshotID) (*metadata.Image, error) {
	if len(list) == 0 {
		return metadata.NewImage(), nil
	}
	id := list[len(list)-1]
	epoch, _ := q.log.LatestEpoch()
	if id.Epoch > epoch || id.EndOffset > q.log.EndOffset() {
		if err := q.log.TruncateFully(id.EndOffset); err != nil {
			return nil, err
		}
	}
	content, err := readSnapshot(q.o.FS, filepath.Join(q.dir, id.FileName()))
	if err != nil {
		return nil, err
	}
	q.voters = content.voters
	return content.at(id), nil
}

// replayLog replays the log from an offset on.
func (q *Quorum) replayLog(offset int64) error {
	end := q.log.EndOffset()
	var buf []byte
	for offset < end {
		slice, err := q.log.Read(offset, commitlog.ReadOptions{MaxBytes: readChunkBytes, MinOneBatch: true, UpTo: end})
		if err != nil {
			return err
		}
		buf, err = slice.AppendTo(buf[:0])
		slice.Release()
		if err != nil {
			return err
		}
		next, n, err := q.replayChunk(buf, offset)
		if err != nil {
			return err
		}
		if next == offset {
			return &record.CorruptError{Offset: offset, Pos: slice.Pos, Reason: "no whole batch can be read here"}
		}
		offset = next
		q.snapshots.bytesSince += n
	}
	return nil
}

// replayChunk replays the whole batches of a piece of log that lie at or above
// the offset; it returns the offset behind them and how many bytes they had.
func (q *Quorum) replayChunk(chunk []byte, offset int64) (next int64, n int64, err error) {
	for len(chunk) > 0 {
		h, entry, rest, err := record.NextEntry(chunk)
		if errors.Is(err, record.ErrShort) {
			break
		}
		if err != nil {
			return offset, n, err
		}
		if !record.ValidCRC(entry) {
			return offset, n, &record.CorruptError{Offset: h.BaseOffset, Reason: "the checksum of a batch is wrong"}
		}
		chunk = rest
		if h.LastOffset < offset {
			continue
		}
		if err := q.replayBatch(h, entry); err != nil {
			return offset, n, fmt.Errorf("batch at offset %d: %w", h.BaseOffset, err)
		}
		offset, n = h.NextOffset(), n+int64(h.SizeBytes)
	}
	return offset, n, nil
}

func (q *Quorum) replayBatch(h record.Header, entry []byte) error {
	b, err := decodeBatch(h, entry, func(m record.ControlMessage) error { q.voters.note(m); return nil }, nil)
	if err != nil {
		return err
	}
	return q.loader.Replay(b)
}

// maxKRaftVersion is the newest level of kraft.version that is followed.
const maxKRaftVersion = 1

// checkVoters refuses the metadata of a quorum that is not this node alone.
func (q *Quorum) checkVoters(state electionState, known bool) error {
	if q.voters.kraftVersion == 0 {
		if known && len(state.Voters) > 0 && !slices.Equal(state.Voters, []int32{q.o.NodeID}) {
			return fmt.Errorf("%w: node %d, voters %v", ErrNotSoleVoter, q.o.NodeID, state.Voters)
		}
		return nil
	}
	if q.voters.list == nil {
		return fmt.Errorf("%w: kraft.version is %d and no voters are known", ErrNotSoleVoter, q.voters.kraftVersion)
	}
	if q.voters.kraftVersion > maxKRaftVersion {
		return fmt.Errorf("kraft.version %d is not known: a newer Kafka has led this cluster", q.voters.kraftVersion)
	}
	for _, v := range q.voters.list.Voters {
		if v.ID != q.o.NodeID || v.DirectoryID != q.o.DirectoryID {
			return fmt.Errorf("%w: voter %d in directory %v", ErrNotSoleVoter, v.ID, metadata.UUID(v.DirectoryID))
		}
	}
	return nil
}

// lead begins a new epoch of leadership, writes what a new cluster needs, and
// registers this node as a controller.
func (q *Quorum) lead(state electionState) error {
	bootstrap, err := readBootstrap(q.o.FS, q.o.LogDir)
	if err != nil {
		return err
	}
	latest, _ := q.log.LatestEpoch()
	q.epoch = max(state.LeaderEpoch, latest, q.Image().Epoch(), 0) + 1
	state = electionState{LeaderID: q.o.NodeID, LeaderEpoch: q.epoch, Voters: []int32{q.o.NodeID}}
	if q.voters.kraftVersion > 0 {
		state.DataVersion = 1
	}
	if err := state.write(q.o.FS, q.dir); err != nil {
		return err
	}
	if err := q.log.AssignEpoch(q.epoch); err != nil {
		return err
	}
	if err := q.appendLeaderChange(); err != nil {
		return err
	}
	transaction := q.loader.TransactionStart() >= 0
	if err := q.decideAndAppend(controller.Activate{Bootstrap: bootstrap, TransactionOpen: transaction}); err != nil {
		return err
	}
	if !metadata.SupportsControllerRegistration(q.Image().MetadataVersion()) {
		return nil
	}
	return q.registerController()
}

func (q *Quorum) registerController() error {
	id, err := controller.NewUUID(q.o.Random)
	if err != nil {
		return err
	}
	return q.decideAndAppend(controller.RegisterController{
		ControllerID: q.o.NodeID, IncarnationID: id, Endpoints: q.o.Endpoints,
		Features: controller.FollowedFeatures(q.Image()),
	})
}

// decideAndAppend decides a command of the start, before anybody waits for it.
func (q *Quorum) decideAndAppend(cmd controller.Command) error {
	d, err := q.decide(cmd)
	if err != nil {
		return err
	}
	if err := q.append(d); err != nil {
		return err
	}
	q.image.Store(q.loader.Publish().Image())
	return nil
}
