package quorum

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/vfs"
)

// WriteBootstrap writes the file with the records that a new cluster begins
// with, as Kafka's `kafka-storage format` writes it into every log directory. A
// file that is there already is left alone.
func WriteBootstrap(fsys vfs.FS, logDir string, now time.Time) error {
	name := filepath.Join(logDir, BootstrapFile)
	if _, err := fsys.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeSnapshot(fsys, name, 0, 0, now, voters{}, slices.Values(controller.BootstrapFeatures()))
}

// readBootstrap returns the records of the file, or Kafka's defaults without
// one.
func readBootstrap(fsys vfs.FS, logDir string) ([]metadata.Record, error) {
	c, err := readSnapshot(fsys, filepath.Join(logDir, BootstrapFile))
	if errors.Is(err, fs.ErrNotExist) {
		return controller.BootstrapFeatures(), nil
	}
	if err != nil {
		return nil, err
	}
	if len(c.records) == 0 {
		return nil, fmt.Errorf("%s has no records", filepath.Join(logDir, BootstrapFile))
	}
	return c.records, nil
}
