package inspect

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/internal/segment"
	"tidemark/record"
	"tidemark/vfs"
)

// Settings are the topic configs that a directory is looked at with. What a topic sets is taken from the metadata log
// in the log directory, where there is one; the rest from the settings given, and else from Kafka's defaults.
type Settings struct {
	node      *config.Node
	overrides map[string]string
	stored    map[string]*configReader // by log directory
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
		node: node, overrides: overrides, fsys: fsys, stored: make(map[string]*configReader),
	}, nil
}

// Topic is the config of a target's topic, and the keys that were set for it, by the metadata or by hand.
func (s *Settings) Topic(t Target) (commitlog.Config, map[string]string) {
	set := make(map[string]string)
	if t.LogDir != "" {
		maps.Copy(set, s.metadata(t.LogDir).configs[t.Topic])
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
	for id, name := range s.metadata(t.LogDir).topics {
		if name == t.Topic {
			return id, true
		}
	}
	return id, false
}

// metadata reads what is needed of a log directory's metadata log, once.
func (s *Settings) metadata(dir string) *configReader {
	if s.stored[dir] == nil {
		s.stored[dir] = readMetadata(s.fsys, filepath.Join(dir, metadataFolder))
	}
	return s.stored[dir]
}

// readMetadata reads the ids and configs of topics from a metadata log and its newest snapshot, as far as they can be
// read.
func readMetadata(fsys vfs.FS, dir string) *configReader {
	c := &configReader{topics: make(map[metadata.UUID]string), configs: make(map[string]map[string]string)}
	f, err := readFolder(fsys, dir)
	if err != nil {
		return c
	}
	from := int64(-1)
	if name := newestCheckpoint(f.others); name != "" {
		from, _, _ = splitName(name[:20] + ".x")
		c.read(fsys, filepath.Join(dir, name), -1)
	}
	for _, base := range f.logs {
		c.read(fsys, filepath.Join(dir, segment.Name(base, segment.LogSuffix)), from)
	}
	return c
}

// newestCheckpoint is the name of the newest complete snapshot of the metadata log, "" when there is none.
func newestCheckpoint(names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return len(n) < 32 || n[20] != '-' || !strings.HasSuffix(n, ".checkpoint")
	})
	if len(names) == 0 {
		return ""
	}
	return slices.Max(names)
}

type configReader struct {
	topics  map[metadata.UUID]string
	configs map[string]map[string]string
}

// read replays the batches of a file whose base offset is at least from, up to what cannot be read.
func (c *configReader) read(fsys vfs.FS, name string, from int64) {
	size, err := fileSize(fsys, name)
	if err != nil || size <= 0 {
		return
	}
	f, err := fsys.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	sc := record.NewScanner(f, 0, size)
	for sc.Next() {
		if h := sc.Header(); h.IsControl() || h.BaseOffset < from || h.Magic < 2 {
			continue
		}
		entry, err := sc.Batch()
		if err != nil {
			return
		}
		it, err := record.NewIterator(entry, record.IterOptions{})
		if err != nil {
			return
		}
		for it.Next() {
			if rec, err := metadata.DecodeRecord(it.Record().Value); err == nil {
				c.replay(rec)
			}
		}
	}
}

func (c *configReader) replay(rec metadata.Record) {
	switch b := rec.Body.(type) {
	case *metadata.TopicRecord:
		c.topics[b.TopicID] = b.Name
	case *metadata.RemoveTopicRecord:
		delete(c.configs, c.topics[b.TopicID])
		delete(c.topics, b.TopicID)
	case *metadata.ConfigRecord:
		if b.ResourceType != metadata.ResourceTopic {
			return
		}
		if c.configs[b.ResourceName] == nil {
			c.configs[b.ResourceName] = make(map[string]string)
		}
		if b.Value == nil {
			delete(c.configs[b.ResourceName], b.Name)
		} else {
			c.configs[b.ResourceName][b.Name] = *b.Value
		}
	}
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
