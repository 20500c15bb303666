package broker

import (
	"context"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/quorum"
)

// assignDirectories tells the cluster in which log directory each partition is, where the metadata says otherwise
// (KIP-858). With one directory the controller knows by itself.
func (b *Broker) assignDirectories(ctx context.Context) error {
	image := b.quorum.Image()
	command := controller.AssignReplicasToDirs{BrokerID: b.config().NodeID, BrokerEpoch: b.epoch}
	for _, p := range b.replicas.Partitions() {
		dir, ok := b.dirs.DirectoryOf(p.Name())
		topic := image.TopicByID(p.TopicID)
		if !ok || dir.Err != nil || topic == nil {
			continue
		}
		known := topic.Partition(p.ID)
		if known == nil || len(known.Directories) != 1 || known.Directories[0] == metadata.UUID(dir.ID) {
			continue
		}
		command.Assignments = append(command.Assignments, controller.DirectoryAssignment{
			Directory: metadata.UUID(dir.ID), TopicID: p.TopicID, Partition: p.ID})
	}
	if len(command.Assignments) == 0 {
		return nil
	}
	result, err := quorum.Ask[controller.AssignReplicasToDirsResult](ctx, b.quorum, command, auth.Anonymous)
	for _, refused := range result.Errs {
		if refused != nil {
			return refused
		}
	}
	return err
}

// assignDirectoriesSoon does so in the background: the caller follows an image and must not wait for the next one.
func (b *Broker) assignDirectoriesSoon() {
	b.scheduler.Soon(func() {
		if !b.ready.Load() {
			return
		}
		if err := b.assignDirectories(context.Background()); err != nil && !quorum.IsFailure(err) {
			b.log.Warn("log directories of partitions were not told to the cluster", "error", err)
		}
	})
}
