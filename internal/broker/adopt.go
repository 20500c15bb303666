package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/controller"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
	"tidemark/vfs"
)

// RefusedError is a data directory that this program must not lead: it belongs to more than this node, or holds what
// this program does not know. Nothing was written to it.
type RefusedError struct {
	Reason string
	Dirs   []string // the log directories that can be read together
	Cause  error    // nil when Reason is all there is
}

// Unwrap is the cause.
func (e *RefusedError) Unwrap() error { return e.Cause }

// Error says why, and what can be done instead.
func (e *RefusedError) Error() string {
	return "this program must not lead this directory, nothing was changed: " + e.Reason +
		"\nto read what is in it without changing anything: " + ReadOnlyCommand(e.Dirs)
}

// ReadOnlyCommand is the command line that serves directories without changing them.
func ReadOnlyCommand(dirs []string) string {
	command := "tidemark serve --read-only"
	for _, dir := range dirs {
		command += " " + shellWord(dir)
	}
	return command
}

// shellWord writes a word so that a shell takes it as it is.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (b *Broker) refuse(format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	e := &RefusedError{Reason: cause.Error(), Cause: errors.Unwrap(cause)}
	for _, d := range b.dirs.Directories() {
		e.Dirs = append(e.Dirs, d.Path)
	}
	return e
}

// prove shows, before the first byte is written, that the directories are this node's to lead: the metadata log, if
// there is one, names it as the only voter, and no partition has a replica elsewhere. The metadata is replayed once
// over a file system that keeps changes in memory.
func (b *Broker) prove(context.Context) error {
	if !slices.Contains(b.config().ProcessRoles, "controller") {
		return b.refuse("process.roles is %v: a broker without the controller role is part of a larger cluster",
			b.config().ProcessRoles)
	}
	if !slices.Contains(b.config().ProcessRoles, "broker") {
		return b.refuse("process.roles is %v: a controller without the broker role serves other brokers, which is not built",
			b.config().ProcessRoles)
	}
	if err := b.checkNodeID(); err != nil {
		return err
	}
	home, err := b.metadataDirectory()
	if err != nil {
		return err
	}
	_, err = b.opts.FS.Stat(filepath.Join(home.Path, logdir.MetadataFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return b.proveEmpty(home)
	}
	if err != nil {
		return err
	}
	if _, found := b.dirs.Identity(); !found {
		return b.refuse("%s has a metadata log but no meta.properties that says whose it is", home.Path)
	}
	image, err := b.previewMetadata(home)
	if err != nil {
		return err
	}
	if err := b.proveAlone(image); err != nil {
		return err
	}
	return b.proveNoStrays(image)
}

// proveNoStrays refuses, in the first start after another program led the directory, partitions that the metadata does
// not know: they would be renamed -stray.
func (b *Broker) proveNoStrays(image *metadata.Image) error {
	last := image.Broker(b.config().NodeID)
	if b.opts.AcceptStrays || last != nil && isOwnIncarnation(last.IncarnationID) {
		return nil
	}
	folders, err := b.dirs.Folders()
	if err != nil {
		return err
	}
	var strays []string
	for _, f := range folders {
		id, err := checkpoint.ReadPartitionMetadata(b.opts.FS, filepath.Join(f.Path, checkpoint.PartitionMetadataFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !b.isAssigned(image, f.Partition, id) {
			strays = append(strays, f.Path)
		}
	}
	if len(strays) == 0 {
		return nil
	}
	named := strays[:min(len(strays), maxNoted)]
	return b.refuse("%d folders are of partitions that the metadata does not know (deleted and made anew, of another "+
		"cluster, or the metadata is older than they are); as Kafka does, the start would rename them -stray, and nobody "+
		"could read them: start once with --accept-strays to have that, or move them away: %s", len(strays),
		strings.Join(named, ", ")+andMore(len(strays)-len(named)))
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// ownIncarnation draws an incarnation id that tells that this program made it: a UUID of version 8, which random ones
// are not.
func ownIncarnation() metadata.UUID {
	id := metadata.UUID(newID())
	id[6] = id[6]&0x0f | 0x80
	return id
}

// isOwnIncarnation tells whether this program made an incarnation id.
func isOwnIncarnation(id metadata.UUID) bool { return id[6]>>4 == 8 }

// checkNodeID proves that the configured number is that of the directories.
func (b *Broker) checkNodeID() error {
	node := b.config().NodeID
	if m, found := b.dirs.Identity(); found && m.NodeID != node {
		return b.refuse("configured node.id %d does not match node.id %d in meta.properties: if you moved your data, "+
			"make sure your configured node.id matches", node, m.NodeID)
	}
	return nil
}

// proveEmpty refuses partitions without their metadata log: starting would make a new, empty cluster beside them.
func (b *Broker) proveEmpty(home logdir.Directory) error {
	folders, err := b.dirs.Folders()
	if err != nil || len(folders) == 0 {
		return err
	}
	return b.refuse("%s is a partition, but %s has no %s: starting would make a new, empty cluster beside it; put the "+
		"log directory that holds the metadata log into log.dirs", folders[0].Path, home.Path, logdir.MetadataFolder)
}

// previewMetadata replays the metadata as opening it would, in memory.
func (b *Broker) previewMetadata(home logdir.Directory) (*metadata.Image, error) {
	o, err := b.quorumOptions(home)
	if err != nil {
		return nil, err
	}
	o.FS, o.Files, o.Pages, o.Logger = vfs.Overlay(b.opts.FS), nil, nil, nil
	o.Background, o.After, o.Metrics = nil, nil, nil
	q, err := quorum.Open(o)
	if err != nil {
		return nil, b.refuse("%w", err)
	}
	return q.Image(), q.Close()
}

// proveAlone refuses an image in which another node has a part.
func (b *Broker) proveAlone(image *metadata.Image) error {
	node := b.config().NodeID
	for c := range image.Controllers() {
		if c.ID != node {
			return b.refuse("the metadata knows another controller, node %d", c.ID)
		}
	}
	own := map[metadata.UUID]bool{}
	for _, d := range b.dirs.Directories() {
		own[metadata.UUID(d.ID)] = true
	}
	if last := image.Broker(node); last != nil {
		for _, dir := range last.LogDirs {
			if !own[dir] {
				return b.refuse("the node had a log directory with id %s that is not among those given: give all of "+
					"log.dirs", dir)
			}
		}
	}
	for topic := range image.Topics() {
		for id, p := range topic.Partitions() {
			if !slices.Equal(p.Replicas, []int32{node}) {
				return b.refuse("partition %s-%d has replicas %v, this is node %d", topic.Name, id, p.Replicas, node)
			}
		}
	}
	return nil
}

// quorumOptions are how the metadata log is opened.
func (b *Broker) quorumOptions(home logdir.Directory) (quorum.Options, error) {
	c := b.config()
	decides, err := controller.NodeOptions(b.clusterID(), b.static, b.node.Load)
	if err != nil {
		return quorum.Options{}, err
	}
	return quorum.Options{
		FS: b.opts.FS, LogDir: home.Path, DirectoryID: home.ID, NodeID: c.NodeID, Controller: controller.New(decides),
		Clock: time.Now, Random: rand.Reader, Logger: b.loggers.logger(quorumLogger), Endpoints: controllerEndpoints(c),
		SegmentBytes: c.MetadataLogSegmentBytes, SegmentMs: c.MetadataLogSegmentAge.Milliseconds(),
		SnapshotBytes: c.MetadataLogMaxRecordBytesBetweenSnapshots, SnapshotInterval: neverIfZero(c),
		MaxRetentionBytes: c.MetadataMaxRetentionBytes, MaxRetention: c.MetadataMaxRetention,
		Files: b.files, Pages: b.pages, Background: b.scheduler.Background, After: b.scheduler.After,
	}, nil
}
