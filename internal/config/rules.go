package config

import (
	"fmt"
	"slices"
	"strings"
)

// checkRules checks what one broker key demands of another.
func (n *Node) checkRules() error {
	for _, check := range []func() error{
		n.checkLogTimes, n.checkReplication, n.checkRoles, n.checkBrokerListeners, n.checkConnections,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// require is an error with Kafka's prefix unless ok.
func require(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return invalidConfig("requirement failed: %s", fmt.Sprintf(format, args...))
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) checkLogTimes() error {
	if n.int("node.id") != n.int("broker.id") {
		return invalidConfig("You must set `node.id` to the same value as `broker.id`.")
	}
	retention := n.retentionMs()
	if n.long("log.cleaner.threads") == 0 {
		return invalidConfig("/ by zero")
	}
	return firstError(
		require(n.rollMs() >= 1, "log.roll.ms must be greater than or equal to 1"),
		require(n.jitterMs() >= 0, "log.roll.jitter.ms must be greater than or equal to 0"),
		require(retention >= 1 || retention == -1,
			"log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
		require(n.long("log.cleaner.dedupe.buffer.size")/n.long("log.cleaner.threads") > 1<<20,
			"log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."),
	)
}

func (n *Node) checkReplication() error {
	wait := n.long("replica.fetch.wait.max.ms")
	return firstError(
		require(wait <= n.long("replica.socket.timeout.ms"), "replica.socket.timeout.ms should always be at least "+
			"replica.fetch.wait.max.ms to prevent unnecessary socket timeouts"),
		require(wait <= n.long("replica.lag.time.max.ms"), "replica.fetch.wait.max.ms should always be less than or "+
			"equal to replica.lag.time.max.ms to prevent frequent changes in ISR"),
	)
}

// checkRoles checks the quorum against the roles of the node.
func (n *Node) checkRoles() error {
	b := n.broker
	voter := slices.ContainsFunc(b.QuorumVoters, func(v Voter) bool { return v.ID == b.NodeID })
	if len(b.QuorumVoters) == 0 && len(b.QuorumBootstrapServers) == 0 {
		if slices.Contains(b.ProcessRoles, "controller") && slices.Contains(b.ProcessRoles, "broker") {
			return nil // alone: Kafka demands a quorum and a controller listener, Tidemark needs neither
		}
		return invalidConfig("If using process.roles, either controller.quorum.bootstrap.servers must\n" +
			"contain the set of bootstrap controllers or controller.quorum.voters must contain a parseable\n" +
			"set of controllers.")
	}
	if !slices.Contains(b.ProcessRoles, "controller") {
		return firstError(
			require(!voter, "If process.roles contains just the 'broker' role, the node id %d must not be included in "+
				"the set of voters controller.quorum.voters=%s", b.NodeID, n.text("controller.quorum.voters")),
			require(len(n.controllerListeners()) == 0, "controller.listener.names must not contain a value appearing in "+
				"the 'listeners' configuration when running KRaft with just the broker role"),
		)
	}
	names := listenerNames(b.Listeners)
	return firstError(
		require(voter || len(b.QuorumVoters) == 0, "If process.roles contains the 'controller' role, the node id %d "+
			"must be included in the set of voters controller.quorum.voters=%v", b.NodeID, voterIDs(b.QuorumVoters)),
		require(len(n.controllerListeners()) > 0, "controller.listener.names must contain at least one value appearing "+
			"in the 'listeners' configuration when running the KRaft controller role"),
		require(subset(b.ControllerListenerNames, names), "controller.listener.names must only contain values appearing "+
			"in the 'listeners' configuration when running the KRaft controller role"),
	)
}

func voterIDs(voters []Voter) string {
	ids := make([]string, len(voters))
	for i, v := range voters {
		ids[i] = fmt.Sprint(v.ID)
	}
	return "Set(" + strings.Join(ids, ", ") + ")"
}

func (n *Node) controllerListeners() []Listener {
	var own []Listener
	for _, l := range n.broker.Listeners {
		if slices.Contains(n.broker.ControllerListenerNames, l.Name) {
			own = append(own, l)
		}
	}
	return own
}

func listenerNames(listeners []Listener) []string {
	names := make([]string, len(listeners))
	for i, l := range listeners {
		names[i] = l.Name
	}
	return names
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

func (n *Node) checkBrokerListeners() error {
	b := n.broker
	advertised, names := listenerNames(b.AdvertisedListeners), listenerNames(b.Listeners)
	unroutable := func(l Listener) bool { return l.Host == "0.0.0.0" }
	if !slices.Contains(b.ProcessRoles, "broker") {
		return nil
	}
	return firstError(
		require(len(advertised) > 0, "There must be at least one broker advertised listener. Perhaps all listeners "+
			"appear in controller.listener.names?"),
		require(slices.Contains(advertised, b.InterBrokerListenerName), "inter.broker.listener.name must be a listener "+
			"name defined in advertised.listeners. The valid options based on currently configured listeners are %s",
			strings.Join(advertised, ",")),
		require(subset(advertised, names), "advertised.listeners listener names must be equal to or a subset of the "+
			"ones defined in listeners. Found %s. The valid options based on the current configuration are %s",
			strings.Join(advertised, ","), strings.Join(names, ",")),
		n.checkCordonedDirs(),
		require(!slices.ContainsFunc(b.AdvertisedListeners, unroutable), "advertised.listeners cannot use the "+
			"nonroutable meta-address 0.0.0.0. Use a routable IP address."),
	)
}

func (n *Node) checkCordonedDirs() error {
	cordoned := n.list("cordoned.log.dirs")
	if slices.Contains(cordoned, "*") {
		return require(len(cordoned) == 1, "When cordoned.log.dirs is set to *, it must not contain other values")
	}
	unknown := slices.DeleteFunc(slices.Clone(cordoned), func(dir string) bool {
		return slices.Contains(n.broker.LogDirs, dir)
	})
	return require(len(unknown) == 0, "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "+
		"Missing entries : %s", strings.Join(unknown, ", "))
}

func (n *Node) checkConnections() error {
	queued, idle := n.long("queued.max.request.bytes"), n.long("connections.max.idle.ms")
	delay := n.long("connection.failed.authentication.delay.ms")
	return firstError(
		require(queued <= 0 || queued >= n.long("socket.request.max.bytes"),
			"queued.max.request.bytes must be larger or equal to socket.request.max.bytes"),
		require(n.int("max.connections.per.ip") != 0 || len(n.broker.MaxConnectionsPerIPOverrides) > 0,
			"max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."),
		require(idle < 0 || delay < idle, "connection.failed.authentication.delay.ms=%d should always be less than "+
			"connections.max.idle.ms=%d to prevent failed authentication responses from timing out", delay, idle),
	)
}

// checkCoordinators checks the bounds of the group coordinators against each other and against their defaults.
func (n *Node) checkCoordinators() error {
	if !slices.Contains(n.list("group.coordinator.rebalance.protocols"), "classic") {
		return invalidConfig("Disabling the 'classic' protocol is not supported.")
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		prefix := "group." + kind + "."
		err := firstError(
			n.checkRange(prefix, "heartbeat.interval.ms"),
			n.checkRange(prefix, "session.timeout.ms"),
			n.orderedBelow(prefix+"heartbeat.interval.ms", prefix+"session.timeout.ms"),
			n.checkShareAssignors(kind),
			n.checkRange(prefix, "assignment.interval.ms"),
		)
		if err != nil {
			return err
		}
	}
	const share = "group.share."
	return firstError(
		n.atMost("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
		n.atLeast(share+"max.delivery.count.limit", share+"delivery.count.limit"),
		n.atLeast(share+"delivery.count.limit", share+"min.delivery.count.limit"),
		n.atLeast(share+"max.partition.max.record.locks", share+"partition.max.record.locks"),
		n.atLeast(share+"partition.max.record.locks", share+"min.partition.max.record.locks"),
		n.atLeast(share+"record.lock.duration.ms", share+"min.record.lock.duration.ms"),
		n.atLeast(share+"max.record.lock.duration.ms", share+"record.lock.duration.ms"),
		n.atLeast(share+"max.share.sessions", share+"max.size"),
	)
}

func (n *Node) checkRange(prefix, name string) error {
	low, high := prefix+"min."+name, prefix+"max."+name
	return firstError(n.atLeast(high, low), n.atLeast(prefix+name, low), n.atMost(prefix+name, high))
}

func (n *Node) checkShareAssignors(kind string) error {
	count := len(n.list("group.share.assignors"))
	if kind != "share" || count == 1 {
		return nil
	}
	return invalidConfig("group.share.assignors must contain exactly one assignor, but found %d", count)
}

func (n *Node) atLeast(name, other string) error {
	if n.long(name) >= n.long(other) {
		return nil
	}
	return invalidConfig("%s must be greater than or equal to %s", name, other)
}

func (n *Node) atMost(name, other string) error {
	if n.long(name) <= n.long(other) {
		return nil
	}
	return invalidConfig("%s must be less than or equal to %s", name, other)
}

func (n *Node) orderedBelow(name, other string) error {
	if n.long(name) < n.long(other) {
		return nil
	}
	return invalidConfig("%s must be less than %s", name, other)
}
