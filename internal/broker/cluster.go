package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"tidemark/internal/auth"
	"tidemark/internal/controller"
	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
	"tidemark/internal/quorum"
)

// follow takes on a new image: configs first, since partitions are opened with them.
func (b *Broker) follow(d *metadata.Delta, image *metadata.Image) {
	if len(d.Configs()) > 0 {
		b.applyConfigs(image)
	}
	if err := b.replicas.Apply(d); err != nil {
		b.log.Error("partitions do not follow the metadata", "error", err)
	}
	b.tellGroups(d, image)
	if d.QuotasChanged() && b.ready.Load() {
		b.scheduler.Soon(b.limitConnections)
	}
	if len(b.dirs.Directories()) > 1 && len(d.Topics()) > 0 {
		b.assignDirectoriesSoon()
	}
}

// applyConfigs puts the dynamic broker configs over the static ones.
func (b *Broker) applyConfigs(image *metadata.Image) {
	cluster := image.Config(metadata.ClusterConfigs).Map()
	own := image.Config(metadata.ConfigResource{Type: metadata.ResourceBroker,
		Name: strconv.Itoa(int(b.config().NodeID))}).Map()
	node, unusable := b.static.WithDynamic(cluster, own)
	for _, err := range unusable {
		b.log.Warn("dynamic config is not usable and left out", "error", err)
	}
	b.node.Store(node)
	b.configureCleaner()
	b.reconfigure()
}

// builtFeatures are the features that this broker can follow, with the range of levels. Levels above what is
// built are not offered, so that clients do not choose protocols that nobody answers.
var builtFeatures = map[string]metadata.FeatureRange{
	metadata.MetadataVersionFeature: {Name: metadata.MetadataVersionFeature, Min: 7, Max: 30},
	transactionVersionFeature:       {Name: transactionVersionFeature, Min: 0, Max: 2},
	"group.version":                 {Name: "group.version", Min: 0, Max: 1},
	"kraft.version":                 {Name: "kraft.version", Min: 0, Max: 1},
}

// features is what ApiVersions tells: the ranges that are built, and the finalized levels cut to them.
func (b *Broker) features() protocol.Features {
	image := b.quorum.Image()
	f := protocol.Features{FinalizedEpoch: image.Offset()}
	followed := controller.FollowedFeatures(image)
	for _, name := range slices.Sorted(maps.Keys(builtFeatures)) {
		r := builtFeatures[name]
		if name == metadata.MetadataVersionFeature {
			i := slices.IndexFunc(followed, func(f metadata.FeatureRange) bool { return f.Name == name })
			r.Max = followed[i].Max
		}
		f.Supported = append(f.Supported, protocol.SupportedFeature{Name: r.Name, Min: r.Min, Max: r.Max})
	}
	for name, level := range image.Features() {
		built, ok := builtFeatures[name]
		if name != metadata.MetadataVersionFeature {
			level = min(level, built.Max)
		}
		if ok && level > 0 {
			f.Finalized = append(f.Finalized, protocol.FinalizedFeature{Name: name, Min: level, Max: level})
		}
	}
	return f
}

// register makes this process known to the cluster as a new incarnation of its broker, and then unfences it: the
// leader epochs of its partitions rise.
func (b *Broker) register(ctx context.Context) error {
	c := b.config()
	_, previous := b.dirs.CleanShutdown()
	r := controller.Registration{BrokerID: c.NodeID, ClusterID: b.clusterID(), IncarnationID: ownIncarnation(),
		Features: controller.FollowedFeatures(b.quorum.Image()), PreviousEpoch: previous}
	if c.Rack != "" {
		r.Rack = &c.Rack
	}
	for _, l := range b.listeners {
		r.Endpoints = append(r.Endpoints, l.advertised)
	}
	for _, d := range b.dirs.Directories() {
		if d.Err == nil {
			r.LogDirs = append(r.LogDirs, d.ID)
		}
	}
	slices.SortFunc(r.LogDirs, metadata.UUID.Compare)
	registered, err := quorum.Ask[controller.BrokerRegistered](ctx, b.quorum, controller.RegisterBroker{Registration: r},
		auth.Anonymous)
	if err != nil {
		return fmt.Errorf("register broker: %w", err)
	}
	b.epoch = registered.Epoch
	reply, err := b.heartbeat(ctx, false)
	if err != nil || reply.IsFenced {
		return fmt.Errorf("unfence broker: still fenced: %v: %w", reply.IsFenced, err)
	}
	return b.assignDirectories(ctx)
}

func (b *Broker) heartbeat(ctx context.Context, shutdown bool) (controller.HeartbeatReply, error) {
	return quorum.Ask[controller.HeartbeatReply](ctx, b.quorum, controller.BrokerHeartbeat{BrokerID: b.config().NodeID,
		BrokerEpoch: b.epoch, CurrentOffset: b.quorum.Image().Offset(), WantShutdown: shutdown,
		CordonedDirs: b.cordonedIDs()}, auth.Anonymous)
}

// leave gives up the leaderships and fences the broker, as a controlled shutdown does.
func (b *Broker) leave(ctx context.Context) error {
	if b.quorum == nil || b.epoch < 0 {
		return nil
	}
	for range 3 { // in shutdown, then fenced
		reply, err := b.heartbeat(ctx, true)
		if err != nil || reply.ShouldShutDown {
			return err
		}
	}
	return errors.New("broker was not fenced")
}
