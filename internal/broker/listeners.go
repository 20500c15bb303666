package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"math/rand/v2"

	"tidemark/internal/api"
	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
	"tidemark/internal/server"
)

// boundListener is a listener whose socket is open.
type boundListener struct {
	name       string
	net        net.Listener
	advertised metadata.Endpoint
}

// listen opens the sockets of the broker's listeners. Nothing is accepted yet.
func (b *Broker) listen(ctx context.Context) error {
	c := b.config()
	b.opened = c.Listeners
	for _, l := range c.Listeners {
		if slices.Contains(c.ControllerListenerNames, l.Name) {
			continue
		}
		if l.Protocol != "PLAINTEXT" {
			return fmt.Errorf("listener %s: security protocol %s is not built yet, only PLAINTEXT is", l.Name, l.Protocol)
		}
		bound, err := b.bind(ctx, l)
		if err != nil {
			return err
		}
		b.listeners = append(b.listeners, bound)
	}
	return nil
}

func (b *Broker) bind(ctx context.Context, l config.Listener) (boundListener, error) {
	var lc net.ListenConfig
	address := net.JoinHostPort(l.Host, strconv.Itoa(l.Port))
	n, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return boundListener{}, fmt.Errorf("open listener %s: %w", l.Name, err)
	}
	if !isLoopback(n.Addr()) {
		b.log.Warn("listener is reachable from other machines and has no authentication", "listener", l.Name,
			"address", n.Addr().String())
	}
	port := n.Addr().(*net.TCPAddr).Port
	return boundListener{name: l.Name, net: n, advertised: b.advertised(l, port)}, nil
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// advertised is the address that clients are told: the advertised listener of the name, else the listener's own.
// A port 0 becomes the one that the system chose; no host becomes this machine's name, as Kafka does it.
func (b *Broker) advertised(l config.Listener, port int) metadata.Endpoint {
	e := metadata.Endpoint{Name: l.Name, Host: l.Host, Port: uint16(port)}
	for _, a := range b.config().AdvertisedListeners {
		if a.Name != l.Name {
			continue
		}
		e.Host = a.Host
		if a.Port != 0 {
			e.Port = uint16(a.Port)
		}
	}
	if e.Host == "" {
		e.Host = hostName()
	}
	return e
}

// serve begins to accept connections.
func (b *Broker) serve(context.Context) error {
	c := b.config()
	profile, err := protocol.ParseProfile(profileNames[c.APIVersions])
	if err != nil {
		return err
	}
	b.api = api.New(api.Options{NodeID: c.NodeID, ClusterID: b.clusterID(), Profile: profile, Metadata: b.quorum,
		Replicas: b.replicas, Dirs: b.dirs, Quorum: b.quorumState, LookupHost: lookupHost, Node: b.node.Load,
		Authorizer: b.authorizer(), Clock: time.Now, Rand: rand.Uint64,
		Logger: b.loggers.logger(apiLogger), Loggers: b.loggers, Metrics: b.metrics.api(),
		Features: b.features, ConsumerGroups: b.consumerGroups,
		SlowLookup:    max(0, c.LookupSlow),
		NewProducerID: b.producerIDs.New, Transactions: b.transactions, Markers: b.markers,
		Groups: b.groups})
	b.server, err = server.New(server.Options{Handler: b.api, Versions: b.api.Versions(), Now: time.Now,
		Logger: b.loggers.logger(serverLogger), Metrics: b.metrics, MaxRequestBytes: c.SocketRequestMaxBytes,
		MaxQueuedBytes: queuedBytes(c), IdleTimeout: c.ConnectionsMaxIdle,
		Limits:          connectionLimits(b.node.Load(), b.quorum.Image()),
		Windows:         server.Windows{Num: int(c.QuotaWindows), Size: c.QuotaWindow},
		SendBufferBytes: int(c.SocketSendBufferBytes), ReceiveBufferBytes: int(c.SocketReceiveBufferBytes)})
	if err != nil {
		return err
	}
	for _, l := range b.listeners {
		b.serving.Go(func() {
			if err := b.server.Serve(server.Listener{Name: l.name, Net: l.net}); !errors.Is(err, server.ErrClosed) {
				b.log.Error("listener failed", "listener", l.name, "error", err)
			}
		})
	}
	return nil
}

// lookupHost tells whether a name has an address.
func lookupHost(ctx context.Context, host string) error {
	_, err := net.DefaultResolver.LookupHost(ctx, host)
	return err
}

// quorumState is what the metadata quorum tells of itself.
func (b *Broker) quorumState() api.Quorum {
	return api.Quorum{LeaderEpoch: b.quorum.LeaderEpoch(), EndOffset: b.quorum.EndOffset(),
		DirectoryID: b.quorum.VoterDirectory()}
}

// profileNames are the values of tidemark.api.versions as protocol names them.
var profileNames = map[string]string{"wide": "full", "kafka": "strict-4.3"}

// Addresses are the addresses of the listeners, by order of the config.
func (b *Broker) Addresses() []string {
	out := make([]string, len(b.listeners))
	for i, l := range b.listeners {
		out[i] = l.net.Addr().String()
	}
	return out
}
