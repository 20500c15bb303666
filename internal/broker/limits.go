package broker

import (
	"context"
	"math"
	"net"
	"net/netip"
	"slices"

	"tidemark/internal/config"
	"tidemark/internal/metadata"
	"tidemark/internal/server"
)

// The quota entity that is about addresses, and its only quota.
const (
	ipQuotas          = "ip"
	creationRateQuota = "connection_creation_rate"
)

// limitConnections puts the limits of configs and quotas in force, the latest ones: looking up names takes time.
func (b *Broker) limitConnections() {
	b.limiting.Lock()
	defer b.limiting.Unlock()
	b.server.SetLimits(connectionLimits(b.node.Load(), b.quorum.Image()))
}

// connectionLimits are the limits of the listeners. Names of hosts are looked up.
func connectionLimits(n *config.Node, image *metadata.Image) server.Limits {
	c := n.Broker()
	l := server.Limits{
		MaxConnections: bound(int(c.MaxConnections)), PerListener: bounds(n.PerListener("max.connections")),
		CreationRate:  bound(int(c.MaxConnectionCreationRate)),
		CreationRates: bounds(n.PerListener("max.connection.creation.rate")),
		PerIP:         bound(int(c.MaxConnectionsPerIP)), PerIPOverrides: map[netip.Addr]int{},
		IPCreationRates: map[netip.Addr]int{},
	}
	if clientListeners(c) > 1 {
		l.Protected = c.InterBrokerListenerName
	}
	for host, n := range c.MaxConnectionsPerIPOverrides {
		for _, addr := range addresses(host) {
			l.PerIPOverrides[addr] = int(n)
		}
	}
	for q := range image.ClientQuotas() {
		limitAddress(&l, q)
	}
	return l
}

// limitAddress takes over the quota of an address, or of all that have none of their own, if it is one.
func limitAddress(l *server.Limits, q *metadata.ClientQuota) {
	rate, ok := q.Get(creationRateQuota)
	if !ok || len(q.Entity) != 1 || q.Entity[0].Type != ipQuotas {
		return
	}
	perSecond := bound(int(min(rate, math.MaxInt32)))
	if host := q.Entity[0].Name; host == nil {
		l.IPCreationRate = perSecond
	} else if found := addresses(*host); len(found) > 0 {
		l.IPCreationRates[found[0]] = perSecond // Kafka: the first address of a name
	}
}

// bound is a limit as the server has it: no limit is 0, and a limit of 0 is negative.
func bound(n int) int {
	switch n {
	case 0:
		return -1
	case math.MaxInt32:
		return 0
	default:
		return n
	}
}

func bounds(perListener map[string]int) map[string]int {
	for name, n := range perListener {
		perListener[name] = bound(n)
	}
	return perListener
}

// addresses are those of a host; none when its name is not known.
func addresses(host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.Unmap()}
	}
	found, _ := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found
}

// clientListeners is how many listeners there are without those of controllers.
func clientListeners(c *config.Broker) (n int) {
	for _, l := range c.Listeners {
		if !slices.Contains(c.ControllerListenerNames, l.Name) {
			n++
		}
	}
	return n
}
