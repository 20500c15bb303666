package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"unicode/utf16"

	"tidemark/vfs"
)

// UnknownBrokerEpoch stands for a broker epoch that was not kept.
const UnknownBrokerEpoch int64 = -1

// CleanShutdown is what .kafka_cleanshutdown told: that all logs of the directory
// were flushed, closed and checkpointed. Its being there is what counts.
type CleanShutdown struct {
	Found       bool
	BrokerEpoch int64 // UnknownBrokerEpoch when the file is odd
}

// TakeCleanShutdown reads and removes the mark of a clean shutdown, durably, so
// that a crash from now on counts as one. Errors are those of the disk.
func TakeCleanShutdown(fsys vfs.FS, dir string) (CleanShutdown, error) {
	name := filepath.Join(dir, CleanShutdownFile)
	data, err := vfs.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return CleanShutdown{BrokerEpoch: UnknownBrokerEpoch}, nil
	}
	if err != nil {
		return CleanShutdown{}, fmt.Errorf("read clean shutdown mark: %w", err)
	}
	if err := fsys.Remove(name); err != nil {
		return CleanShutdown{}, fmt.Errorf("remove clean shutdown mark: %w", err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return CleanShutdown{}, fmt.Errorf("remove clean shutdown mark: %w", err)
	}
	return CleanShutdown{Found: true, BrokerEpoch: parseCleanShutdown(data)}, nil
}

func parseCleanShutdown(data []byte) int64 {
	var content struct {
		Version     *int   `json:"version"`
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	if json.Unmarshal(data, &content) != nil || content.Version == nil || content.BrokerEpoch == nil ||
		*content.Version != textVersion {
		return UnknownBrokerEpoch
	}
	return *content.BrokerEpoch
}

// WriteCleanShutdown marks the directory as cleanly closed, durably. It is the
// last thing a stop does there, and must not happen after any flush failed.
func WriteCleanShutdown(fsys vfs.FS, dir string, brokerEpoch int64) error {
	data := fmt.Sprintf(`{"version":%d,"brokerEpoch":%d}`, textVersion, brokerEpoch)
	if err := vfs.WriteFileAtomic(fsys, filepath.Join(dir, CleanShutdownFile), []byte(data)); err != nil {
		return fmt.Errorf("write clean shutdown mark: %w", err)
	}
	return nil
}

func utf16Units(r rune) []uint16 { return utf16.AppendRune(nil, r) }
