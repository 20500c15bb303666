package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/checkpoint"
	"tidemark/internal/config"
	"tidemark/internal/inspect"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/vfs"
)

// Serving read-only: partitions that are lying about (a copy, a snapshot or a mounted disk of a broker, single
// folders) are opened over a file system that keeps every change in memory. An image is made of what the folders say,
// and of what a metadata log in one of the directories says about them; it never changes.

// foundPartitions is what was found below Options.ReadOnly.
type foundPartitions struct {
	dirs    []string                   // log directories, in the order in which they were met
	folders map[string][]logdir.Folder // by log directory
	places  map[checkpoint.TopicPartition]string
	ids     map[string][16]byte // of topics, as the folders say it
	idFrom  map[string]string   // which folder said it
	nodeID  int32               // of the first directory that tells one; firstNodeID without
	cluster string              // its cluster; "" when none tells
	clustOf string              // the directory that tells
	stored  *metadata.Image     // of the metadata log; empty without one
}

// readOnly tells whether this broker changes nothing.
func (b *Broker) readOnly() bool { return len(b.opts.ReadOnly) > 0 }

// findPartitions looks for partitions in what was given, before anything else is done: configs depend on them.
func (b *Broker) findPartitions(context.Context) error {
	b.opts.FS = vfs.Overlay(b.opts.FS)
	f := &foundPartitions{folders: map[string][]logdir.Folder{}, places: map[checkpoint.TopicPartition]string{},
		ids: map[string][16]byte{}, idFrom: map[string]string{}, nodeID: -1}
	for _, path := range b.opts.ReadOnly {
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		targets, err := inspect.Resolve(b.opts.FS, []string{path})
		if err != nil {
			return fmt.Errorf("serve read-only: %w", err)
		}
		if len(targets) == 0 {
			b.log.Warn("no partition is in this directory", "dir", path)
			err = b.addDir(f, path)
		}
		for _, target := range targets {
			err = errors.Join(err, b.addFolder(f, path, target))
			if err != nil {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	b.found = f
	b.readStoredMetadata(f)
	return f.checkTopicIDs()
}

// addDir takes in a log directory and reads whose it is. Nodes may differ, clusters may not.
func (b *Broker) addDir(f *foundPartitions, dir string) error {
	if slices.Contains(f.dirs, dir) {
		return nil
	}
	f.dirs = append(f.dirs, dir)
	m, err := checkpoint.ReadAnyMetaProperties(b.opts.FS, filepath.Join(dir, checkpoint.MetaPropertiesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || m.ClusterID == "" {
		b.log.Warn("meta.properties does not tell whose the directory is", "dir", dir, "error", err)
		return nil
	}
	if f.cluster != "" && m.ClusterID != f.cluster {
		return fmt.Errorf("serve read-only: %s is of cluster %s, %s of cluster %s: serve them one by one", f.clustOf,
			f.cluster, dir, m.ClusterID)
	}
	if f.cluster == "" {
		f.cluster, f.clustOf, f.nodeID = m.ClusterID, dir, m.NodeID
	}
	return nil
}

// addFolder takes in one folder that the path given leads to.
func (b *Broker) addFolder(f *foundPartitions, path string, target inspect.Target) error {
	folder := target.Dir
	if target.Segments != nil {
		return fmt.Errorf("serve read-only: %s is a file: give the folder of the partition, %s", path, folder)
	}
	dir, name := filepath.Dir(folder), filepath.Base(folder)
	if err := b.addDir(f, dir); err != nil {
		return err
	}
	if name == logdir.MetadataFolder {
		return nil
	}
	if config.CheckTopicName(target.Topic) != nil {
		return fmt.Errorf("serve read-only: %s: %q is no name of a topic: rename the copy, as in events-0", folder,
			target.Topic)
	}
	if target.Mark == "" && name != target.Name() {
		b.log.Warn("the folder's name is not TOPIC-PARTITION", "folder", folder, "served_as", target.Name())
	}
	if target.Mark != "" && folder != path {
		b.log.Warn("folder left out: its name says that it is not in use; to read it, name it itself", "folder", folder)
		return nil
	}
	tp := checkpoint.TopicPartition{Topic: target.Topic, Partition: target.Partition}
	switch other, twice := f.places[tp]; {
	case other == folder:
		return nil
	case twice:
		return fmt.Errorf("serve read-only: %s is both in %s and in %s: give only one of them", tp, other, folder)
	}
	f.places[tp] = folder
	f.folders[dir] = append(f.folders[dir], logdir.Folder{Name: name, Partition: tp})
	return b.noteTopicID(f, tp.Topic, folder)
}

// noteTopicID reads the topic's id from a folder. All partitions of a topic must agree on it.
func (b *Broker) noteTopicID(f *foundPartitions, topic, folder string) error {
	name := filepath.Join(folder, checkpoint.PartitionMetadataFile)
	id, err := checkpoint.ReadPartitionMetadata(b.opts.FS, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		b.log.Warn("topic id cannot be read; another is taken", "error", err)
		return b.opts.FS.Remove(name) // in memory
	}
	if other, known := f.ids[topic]; known && other != id {
		return fmt.Errorf("serve read-only: topic %s has the id %s in %s and %s in %s: these are partitions of two topics "+
			"of that name, give only those of one", topic, checkpoint.FormatID(other), f.idFrom[topic],
			checkpoint.FormatID(id), folder)
	}
	f.ids[topic], f.idFrom[topic] = id, folder
	return nil
}

// checkTopicIDs proves that no two topics have the same id.
func (f *foundPartitions) checkTopicIDs() error {
	topics := map[[16]byte]string{}
	for topic, id := range f.ids {
		if other, twice := topics[id]; twice {
			return fmt.Errorf("serve read-only: topics %s and %s have the same id %s: one is a copy of the other under "+
				"another name, give only one of them", min(topic, other), max(topic, other), checkpoint.FormatID(id))
		}
		topics[id] = topic
	}
	return nil
}

// readOnlyProperties are the configs of a broker that only reads: where it is in the cluster is of no concern.
func (b *Broker) readOnlyProperties(props map[string]string) {
	for key := range props {
		if slices.Contains([]string{"process.roles", "broker.id", "node.id", "log.dir", "metadata.log.dir"}, key) ||
			strings.HasPrefix(key, "controller.quorum.") {
			delete(props, key)
		}
	}
	props["log.dirs"] = strings.Join(b.found.dirs, ",")
	props["node.id"] = strconv.Itoa(firstNodeID)
	if b.found.nodeID >= 0 {
		props["node.id"] = strconv.Itoa(int(b.found.nodeID))
	}
	props["auto.create.topics.enable"] = "false"
}

// openReadOnly opens the directories and loads what was found.
func (b *Broker) openReadOnly(context.Context) error {
	o := b.dirOptions(b.found.dirs)
	o.ReadOnly = b.found.folders
	dirs, err := logdir.Open(o)
	if err != nil {
		return err
	}
	b.dirs = dirs
	return nil
}

// loadReadOnly loads the logs, all of which are wanted, with the configs that the metadata log has for them.
func (b *Broker) loadReadOnly(ctx context.Context) error {
	return b.dirs.Load(ctx, func(tp checkpoint.TopicPartition, _ [16]byte) logdir.Assignment {
		log, err := b.node.Load().Topic(b.found.topicConfigs(tp.Topic))
		if err != nil { // told when the partition gets its role
			log, _ = b.node.Load().Topic(nil)
		}
		return logdir.Assignment{Assigned: true, TopicID: b.found.topicID(tp.Topic), Config: log}
	})
}
