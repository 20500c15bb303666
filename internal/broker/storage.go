package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"tidemark/internal/checkpoint"
	"tidemark/internal/commitlog"
	"tidemark/internal/config"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
	"tidemark/internal/replica"
)

// openDirectories locks the log directories and reads whose they are.
func (b *Broker) openDirectories(context.Context) error {
	dirs, err := logdir.Open(b.dirOptions(b.config().LogDirs))
	var foreign *logdir.IdentityError
	if errors.As(err, &foreign) {
		return &RefusedError{Reason: foreign.Error(), Dirs: foreign.Together, Cause: err}
	}
	if err != nil {
		return err
	}
	b.dirs = dirs
	return nil
}

// dirOptions are those of log directories.
func (b *Broker) dirOptions(dirs []string) logdir.Options {
	return logdir.Options{
		FS: b.opts.FS, Dirs: dirs, Settings: dirSettings(b), Clock: time.Now, Rand: mathrand.Uint64, NewID: newID,
		Scheduler: b.scheduler, Logger: b.loggers.logger(logdirLogger), Files: b.files, Pages: b.pages, Metrics: &b.logs,
		Memory: newDecompression(b.config()), Offline: b.directoryFailed,
	}
}

func dirSettings(b *Broker) logdir.Settings {
	c := b.config()
	return logdir.Settings{
		RecoveryThreadsPerDataDir:    int(c.NumRecoveryThreadsPerDataDir),
		InitialTaskDelay:             c.LogInitialTaskDelay,
		RetentionCheckInterval:       c.LogRetentionCheckInterval,
		FlushSchedulerInterval:       c.LogFlushSchedulerInterval,
		RecoveryPointInterval:        c.LogFlushOffsetCheckpointInterval,
		StartOffsetInterval:          c.LogFlushStartOffsetCheckpointInterval,
		ProducerIDExpirationMs:       c.ProducerIDExpiration.Milliseconds(),
		ProducerIDExpirationInterval: c.ProducerIDExpirationCheckInterval,
		VerifyTransactions:           c.Transactions.VerifyPartitions,
		ScrubInterval:                c.ScrubInterval,
		ScrubBytesPerSecond:          c.ScrubBytesPerSecond,
		Cleaner:                      cleanerConfig(c),
	}
}

// directoryFailed is told by logdir; it may be while partitions are still being loaded. It returns at once: the append
// that met the failure holds its partition's lock.
func (b *Broker) directoryFailed(dir string, partitions []checkpoint.TopicPartition, err error) {
	if b.replicas != nil {
		b.scheduler.Soon(func() { b.replicas.Offline(dir, partitions, err) })
	}
}

// openMetadata replays the metadata log, or makes a new one in directories that hold nothing yet.
func (b *Broker) openMetadata(context.Context) error {
	home, err := b.metadataDirectory()
	if err != nil {
		return err
	}
	if err := b.writeBootstrap(home); err != nil {
		return err
	}
	options, err := b.quorumOptions(home)
	if err != nil {
		return err
	}
	q, err := quorum.Open(options)
	if err != nil {
		return err
	}
	b.quorum = q
	b.scheduler.Every(snapshotCheck, snapshotCheck, func() {
		if _, _, err := q.MaybeSnapshot(); err != nil && !quorum.IsFailure(err) {
			b.log.Error("snapshot of the metadata", "error", err)
		}
	})
	return nil
}

// snapshotCheck is how often it is looked at whether a snapshot of the metadata is due.
const snapshotCheck = 10 * time.Second

// neverIfZero: Kafka's 0 means no snapshots by time, the quorum's any negative interval.
func neverIfZero(c *config.Broker) time.Duration {
	if c.MetadataLogMaxSnapshotInterval == 0 {
		return -1
	}
	return c.MetadataLogMaxSnapshotInterval
}

func controllerEndpoints(c *config.Broker) []metadata.Endpoint {
	var out []metadata.Endpoint
	for _, l := range c.Listeners {
		if slices.Contains(c.ControllerListenerNames, l.Name) {
			out = append(out, metadata.Endpoint{Name: l.Name, Host: l.Host, Port: uint16(l.Port)})
		}
	}
	return out
}

// metadataDirectory is the log directory that holds, or will hold, the metadata log.
func (b *Broker) metadataDirectory() (logdir.Directory, error) {
	want, err := filepath.Abs(b.config().MetadataLogDir)
	if err != nil {
		return logdir.Directory{}, err
	}
	for _, d := range b.dirs.Directories() {
		if d.Path == want {
			return d, nil
		}
	}
	return logdir.Directory{}, fmt.Errorf("metadata.log.dir %s is not one of log.dirs: a directory of its own for the "+
		"metadata log is not built yet", want)
}

// writeBootstrap writes the records that a new cluster begins with, as formatting does, unless there is a metadata
// log already.
func (b *Broker) writeBootstrap(home logdir.Directory) error {
	_, err := b.opts.FS.Stat(filepath.Join(home.Path, logdir.MetadataFolder))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range b.dirs.Directories() {
		if err := quorum.WriteBootstrap(b.opts.FS, d.Path, time.Now()); err != nil {
			return fmt.Errorf("format log directory %s: %w", d.Path, err)
		}
	}
	return nil
}

// makeReplicas makes what will hold the partitions.
func (b *Broker) makeReplicas(context.Context) error {
	b.applyConfigs(b.quorum.Image())
	b.replicas = replica.NewManager(replica.Options{NodeID: b.config().NodeID, Dirs: b.dirs,
		TopicConfig: b.topicConfig, Timer: replica.RealTimer, Leadership: b.leadership,
		Logger: b.loggers.logger(replicaLogger)})
	b.markers.Replicas = b.replicas
	return nil
}

// loadPartitions opens the logs and gives every partition its role.
func (b *Broker) loadPartitions(ctx context.Context) error {
	image := b.quorum.Image()
	assign := func(tp checkpoint.TopicPartition, id [16]byte) logdir.Assignment {
		return b.assignment(image, tp, id)
	}
	if err := b.dirs.Load(ctx, assign); err != nil {
		return err
	}
	b.quorum.Subscribe(b.follow)
	every := b.config().ReplicaHighWatermarkCheckpointInterval
	b.scheduler.Every(every, every, b.replicas.CheckpointHighWatermarks)
	return nil
}

// assignment tells whether the cluster wants a partition here that was found in a log directory.
func (b *Broker) assignment(image *metadata.Image, tp checkpoint.TopicPartition, id [16]byte) logdir.Assignment {
	topic := image.Topic(tp.Topic)
	if topic == nil || id != [16]byte{} && topic.ID != metadata.UUID(id) {
		return logdir.Assignment{Config: commitlog.DefaultConfig()}
	}
	return logdir.Assignment{TopicID: topic.ID, Config: b.topicConfig(image, tp.Topic).Log,
		Assigned: b.isAssigned(image, tp, id)}
}

// isAssigned tells whether the cluster has a replica of the partition here. id is what its folder says of the topic's.
func (b *Broker) isAssigned(image *metadata.Image, tp checkpoint.TopicPartition, id [16]byte) bool {
	topic := image.Topic(tp.Topic)
	if topic == nil || id != [16]byte{} && topic.ID != metadata.UUID(id) {
		return false
	}
	p := topic.Partition(tp.Partition)
	return p != nil && slices.Contains(p.Replicas, b.config().NodeID)
}

// topicConfig resolves a topic's configs. Stored overrides were checked when they were set; what an older or newer
// Kafka stored and this one cannot use is left out, with a warning.
func (b *Broker) topicConfig(image *metadata.Image, topic string) replica.TopicConfig {
	node := b.node.Load()
	overrides := image.Config(metadata.TopicConfigs(topic)).Map()
	log, err := node.Topic(overrides)
	if err != nil {
		b.log.Warn("configs of topic are not usable: the broker's defaults apply", "topic", topic, "error", err)
		log, _ = node.Topic(nil)
	}
	return replica.TopicConfig{Log: log, MinInSyncReplicas: int(log.MinInsyncReplicas)}
}
