package inspect

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
	"tidemark/vfs"
)

// Settings are the topic configs that a directory is looked at with. What a topic sets is taken from the metadata log
// in the log directory, where there is one; the rest from the settings given, and else from Kafka's defaults.
type Settings struct {
	node      *config.Node
	overrides map[string]string
	stored    map[string]*storedMetadata // by log directory
	fsys      vfs.FS
}

// NewSettings takes settings of a server.properties (nil: none) and topic configs that hold for every topic, whatever
// the metadata says. The error names a key or value that is not allowed.
func NewSettings(fsys vfs.FS, properties, overrides map[string]string) (*Settings, error) {
	static := maps.Clone(properties)
	if static == nil {
		static = make(map[string]string)
	}
	if static["node.id"] == "" {
		static["node.id"] = "0"
	}
	config.FillStandalone(static)
	node, err := config.NewNode(static)
	if err != nil {
		return nil, err
	}
	if _, err := node.Topic(overrides); err != nil {
		return nil, err
	}
	return &Settings{
		node: node, overrides: overrides, fsys: fsys, stored: make(map[string]*storedMetadata),
	}, nil
}

// Topic is the config of a target's topic, and the keys that were set for it, by the metadata or by hand.
func (s *Settings) Topic(t Target) (commitlog.Config, map[string]string) {
	set := make(map[string]string)
	if t.LogDir != "" {
		maps.Copy(set, s.metadata(t.LogDir).image.Config(metadata.TopicConfigs(t.Topic)).Map())
	}
	maps.Copy(set, s.overrides)
	cfg, err := s.node.Topic(set)
	if err != nil { // a config of a later Kafka: go on without it
		set = maps.Clone(s.overrides)
		if cfg, err = s.node.Topic(set); err != nil {
			cfg = commitlog.DefaultConfig()
		}
	}
	return cfg, set
}

// topicID is the id of a topic, when the metadata log in the log directory knows it.
func (s *Settings) topicID(t Target) (id [16]byte, ok bool) {
	if t.LogDir == "" {
		return id, false
	}
	topic := s.metadata(t.LogDir).image.Topic(t.Topic)
	if topic == nil {
		return id, false
	}
	return topic.ID, true
}

// storedMetadata is what the metadata log of a log directory says, as far as it can be read.
type storedMetadata struct {
	image *metadata.Image
	whole bool // there is a metadata log, and all of it was read
}

// metadata reads the metadata log of a log directory, once.
func (s *Settings) metadata(dir string) *storedMetadata {
	if s.stored[dir] == nil {
		image, err := quorum.ReadImage(s.fsys, dir)
		s.stored[dir] = &storedMetadata{image, err == nil}
	}
	return s.stored[dir]
}

// checkpointOffset is this partition's line of an offset checkpoint of the log directory, 0 when there is none or the
// file cannot be read.
func checkpointOffset(fsys vfs.FS, t Target, file string) int64 {
	if t.LogDir == "" || t.Mark != "" {
		return 0
	}
	offsets, err := readOffsets(fsys, t.LogDir, file)
	if err != nil {
		return 0
	}
	return offsets[t.key()]
}

// Open opens the log of a target for look-ups; see [commitlog.OpenTolerant].
func Open(fsys vfs.FS, t Target, cfg commitlog.Config) (*commitlog.Log, error) {
	log, err := commitlog.OpenTolerant(options(fsys, t, cfg))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Dir, err)
	}
	return log, nil
}

func options(fsys vfs.FS, t Target, cfg commitlog.Config) commitlog.Options {
	return commitlog.Options{
		FS: segmentsOnly(fsys, t), Dir: t.Dir, Topic: t.Topic, Partition: t.Partition, Config: cfg,
		StartOffset: checkpointOffset(fsys, t, logStartFile),
	}
}

// segmentsOnly hides the segments that a target does not mean.
func segmentsOnly(fsys vfs.FS, t Target) vfs.FS {
	if t.Segments == nil {
		return fsys
	}
	return &filteredFS{FS: fsys, target: t}
}

type filteredFS struct {
	vfs.FS
	target Target
}

// ReadDir leaves out the files of other segments.
func (f *filteredFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.FS.ReadDir(name)
	if filepath.Clean(name) != filepath.Clean(f.target.Dir) {
		return entries, err
	}
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		base, _, ok := splitName(e.Name())
		return ok && !f.target.wants(base)
	}), err
}
