package inspect

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"tidemark/vfs"
)

const quorumStateFile = "quorum-state"

// checkMetadata checks what only the folder of a metadata log has: snapshots, and the state of the quorum.
func (c *folderCheck) checkMetadata() error {
	for _, name := range c.folder.others {
		if strings.HasSuffix(name, ".checkpoint") {
			if err := c.checkBatches(name); err != nil {
				return err
			}
		}
	}
	data, err := vfs.ReadFile(c.fs, filepath.Join(c.target.Dir, quorumStateFile))
	if err != nil {
		return ignoreAbsent(err) // it is made anew
	}
	var state struct {
		LeaderEpoch *int32 `json:"leaderEpoch"`
		Version     *int16 `json:"data_version"`
	}
	err = json.Unmarshal(data, &state)
	what := "the leader epoch or the version is missing"
	switch {
	case err != nil:
		what = err.Error()
	case state.LeaderEpoch != nil && state.Version != nil:
		return nil
	}
	c.add(Error, CheckpointBad, quorumStateFile, -1, what, "the controller does not start",
		"none: it says whom this node has voted for; the only controller of a cluster starts without the file")
	return nil
}
