package quorum

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tidemark/vfs"
)

// Names of the files.
const (
	// Topic is the name of the metadata topic, which has the one partition 0.
	Topic = "__cluster_metadata"
	// BootstrapFile is the file in a log directory with the records that a new
	// cluster begins with.
	BootstrapFile = "bootstrap.checkpoint"

	folder         = Topic + "-0"
	stateFile      = "quorum-state"
	snapshotSuffix = ".checkpoint"
)

// topicID is Kafka's fixed id of the metadata topic.
var topicID = [16]byte{15: 1}

// SnapshotID names a snapshot: it holds every record below EndOffset, the last
// of which has leader epoch Epoch.
type SnapshotID struct {
	EndOffset int64
	Epoch     int32
}

// FileName is the name of the snapshot's file.
func (s SnapshotID) FileName() string {
	return fmt.Sprintf("%020d-%010d%s", s.EndOffset, s.Epoch, snapshotSuffix)
}

// parseSnapshotName reads what [SnapshotID.FileName] writes.
func parseSnapshotName(name string) (SnapshotID, bool) {
	id, ok := strings.CutSuffix(name, snapshotSuffix)
	if !ok || len(id) != 31 || id[20] != '-' {
		return SnapshotID{}, false
	}
	end, err1 := strconv.ParseUint(id[:20], 10, 63)
	epoch, err2 := strconv.ParseUint(id[21:], 10, 31)
	return SnapshotID{int64(end), int32(epoch)}, err1 == nil && err2 == nil
}

// listSnapshots returns the snapshots of a folder, oldest first, and removes
// what an interrupted write or removal left behind.
func listSnapshots(fsys vfs.FS, dir string) ([]SnapshotID, error) {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		for _, leftover := range []string{".part", ".deleted"} {
			if base, ok := strings.CutSuffix(name, leftover); ok && strings.HasSuffix(base, snapshotSuffix) {
				if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
					return nil, err
				}
			}
		}
	}
	return snapshotsOf(entries), nil
}

// snapshotsOf are the snapshots among the entries of a folder, oldest first.
func snapshotsOf(entries []fs.DirEntry) (list []SnapshotID) {
	for _, e := range entries {
		if id, ok := parseSnapshotName(e.Name()); ok {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b SnapshotID) int {
		if a.EndOffset != b.EndOffset {
			return int(min(max(a.EndOffset-b.EndOffset, -1), 1))
		}
		return int(a.Epoch) - int(b.Epoch)
	})
	return list
}

// electionState is the content of quorum-state: one line of JSON in one of two
// versions, the second with a quorum whose voters are in the log (KIP-853).
type electionState struct {
	LeaderID    int32
	LeaderEpoch int32
	Voters      []int32 // version 0 only
	DataVersion int16
}

type votersV0 struct {
	VoterID int32 `json:"voterId"`
}

type stateV0 struct {
	ClusterID     string     `json:"clusterId"`
	LeaderID      int32      `json:"leaderId"`
	LeaderEpoch   int32      `json:"leaderEpoch"`
	VotedID       int32      `json:"votedId"`
	AppliedOffset int64      `json:"appliedOffset"`
	CurrentVoters []votersV0 `json:"currentVoters"`
	DataVersion   int16      `json:"data_version"`
}

type stateV1 struct {
	LeaderID         int32  `json:"leaderId"`
	LeaderEpoch      int32  `json:"leaderEpoch"`
	VotedID          int32  `json:"votedId"`
	VotedDirectoryID string `json:"votedDirectoryId"`
	DataVersion      int16  `json:"data_version"`
}

// readState reads quorum-state; false when there is none.
func readState(fsys vfs.FS, dir string) (electionState, bool, error) {
	name := filepath.Join(dir, stateFile)
	text, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return electionState{}, false, nil
	}
	if err != nil {
		return electionState{}, false, err
	}
	var s stateV0
	if err := json.Unmarshal(text, &s); err != nil {
		return electionState{}, false, fmt.Errorf("read %s: %w", name, err)
	}
	if s.DataVersion < 0 || s.DataVersion > 1 || s.LeaderEpoch < 0 {
		return electionState{}, false, fmt.Errorf("read %s: data_version %d, leaderEpoch %d",
			name, s.DataVersion, s.LeaderEpoch)
	}
	e := electionState{LeaderID: s.LeaderID, LeaderEpoch: s.LeaderEpoch, DataVersion: s.DataVersion}
	for _, v := range s.CurrentVoters {
		e.Voters = append(e.Voters, v.VoterID)
	}
	return e, true, nil
}

// encode is the file's content as Kafka writes it.
func (e electionState) encode() []byte {
	var s any
	if e.DataVersion == 0 {
		v0 := stateV0{LeaderID: e.LeaderID, LeaderEpoch: e.LeaderEpoch, VotedID: -1}
		for _, id := range e.Voters {
			v0.CurrentVoters = append(v0.CurrentVoters, votersV0{id})
		}
		s = v0
	} else {
		s = stateV1{LeaderID: e.LeaderID, LeaderEpoch: e.LeaderEpoch, VotedID: -1,
			VotedDirectoryID: "AAAAAAAAAAAAAAAAAAAAAA", DataVersion: e.DataVersion}
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // of fixed structs of numbers and strings
	}
	return text
}

func (e electionState) write(fsys vfs.FS, dir string) error {
	return vfs.WriteFileAtomic(fsys, filepath.Join(dir, stateFile), e.encode())
}
