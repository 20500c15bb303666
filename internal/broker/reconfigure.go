package broker

import (
	"context"
	"path/filepath"
	"slices"

	"tidemark/internal/config"
	"tidemark/internal/logdir"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// reconfigure hands the configs in force to those who do not ask for them anew each time.
func (b *Broker) reconfigure() {
	c := b.config()
	b.dirs.Configure(logdir.Dynamic{
		RecoveryThreadsPerDataDir: int(c.NumRecoveryThreadsPerDataDir),
		ProducerIDExpirationMs:    c.ProducerIDExpiration.Milliseconds(),
		VerifyTransactions:        c.Transactions.VerifyPartitions,
		Cordoned:                  cordonedPaths(c),
	})
	if !b.ready.Load() {
		return // what follows begins with the configs as they are
	}
	if !slices.Equal(c.Listeners, b.opened) {
		b.log.Warn("listeners were changed dynamically: the change takes effect at the next start")
	}
	b.scheduler.Soon(func() {
		b.limitConnections()
		b.tellCordoned()
	})
}

func cordonedPaths(c *config.Broker) []string {
	var out []string
	for _, dir := range c.CordonedLogDirs {
		if path, err := filepath.Abs(dir); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// cordonedIDs are the ids of the log directories that take no new partitions; nil when the cluster knows of none and
// there is none.
func (b *Broker) cordonedIDs() []metadata.UUID {
	paths := cordonedPaths(b.config())
	self := b.quorum.Image().Broker(b.config().NodeID)
	if len(paths) == 0 && (self == nil || len(self.CordonedLogDirs) == 0) {
		return nil
	}
	ids := []metadata.UUID{}
	for _, d := range b.dirs.Directories() {
		if slices.Contains(paths, d.Path) {
			ids = append(ids, d.ID)
		}
	}
	slices.SortFunc(ids, metadata.UUID.Compare)
	return ids
}

// tellCordoned tells the cluster which log directories take no new partitions (KIP-1066).
func (b *Broker) tellCordoned() {
	self := b.quorum.Image().Broker(b.config().NodeID)
	if self == nil || slices.Equal(self.CordonedLogDirs, b.cordonedIDs()) {
		return
	}
	if _, err := b.heartbeat(context.Background(), false); err != nil && !quorum.IsFailure(err) {
		b.log.Warn("cordoned log directories were not told to the cluster", "error", err)
	}
}
