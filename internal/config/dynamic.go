package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkDynamic checks the dynamic configs of one broker, or of all (perBroker false), each on its own.
func checkDynamic(props map[string]string, perBroker bool) error {
	names := slices.Sorted(maps.Keys(props))
	if bad := filter(names, isStatic); bad != nil {
		return invalidConfig("Cannot update these configs dynamically: %s", javaList(inJavaOrder(bad)))
	}
	if bad := filter(names, func(s string) bool { return slices.Contains(listenerSecurityKeys, s) }); bad != nil {
		return invalidConfig("These security configs can be dynamically updated only per-listener using the listener "+
			"prefix: %s", javaList(inJavaOrder(bad)))
	}
	if err := checkDynamicTypes(props); err != nil {
		return err
	}
	if perBroker {
		return nil
	}
	if bad := filter(names, isPerBroker); bad != nil {
		return invalidConfig("Cannot update these configs at default cluster level, broker id must be specified: %s",
			javaList(inJavaOrder(bad)))
	}
	return nil
}

// inJavaOrder sorts names as a Java HashSet of less than 13 of them does.
func inJavaOrder(names []string) []string {
	bucket := func(name string) uint32 {
		var h uint32
		for _, b := range []byte(name) {
			h = 31*h + uint32(b)
		}
		return (h ^ h>>16) & 15
	}
	slices.SortStableFunc(names, func(a, b string) int { return int(bucket(a)) - int(bucket(b)) })
	return names
}

func filter(names []string, keep func(string) bool) []string {
	var kept []string
	for _, name := range names {
		if keep(name) {
			kept = append(kept, name)
		}
	}
	return kept
}

func isStatic(name string) bool {
	return dynamicBrokerDefinitions.Lookup(name) == nil &&
		(brokerDefinitions.Lookup(name) != nil || ownDefinitions.Lookup(name) != nil)
}

func isPerBroker(name string) bool {
	if base, ok := listenerBase(name); ok {
		return !slices.Contains(clusterWideListenerKeys, base)
	}
	return slices.Contains(perBrokerKeys, name)
}

// checkDynamicTypes checks the values; keys with the prefix of a listener are checked as the key behind it.
func checkDynamicTypes(props map[string]string) error {
	bases := make(map[string]string, len(props))
	for name, text := range props {
		if base, ok := listenerBase(name); ok {
			name = base
		}
		bases[name] = text
	}
	dropProviders(bases)
	_, err := parseAll(dynamicBrokerDefinitions, bases)
	return firstError(err, checkClasses(bases))
}

// dropProviders removes the settings of plugins that supply values.
// Kafka: a dynamic change of them is stored, but neither checked nor used.
func dropProviders(props map[string]string) {
	maps.DeleteFunc(props, func(name, _ string) bool { return strings.HasPrefix(name, "config.providers") })
}

// checkClasses refuses Java classes that Kafka itself does not use by default: there are no others here.
func checkClasses(props map[string]string) error {
	for _, def := range dynamicBrokerDefinitions.ordered {
		text, set := props[def.Name]
		if def.Type == Class && set && (def.Null || strings.TrimSpace(text) != def.Default) {
			return badValue(def.Name, text, fmt.Sprintf("Class %s could not be found.", text))
		}
	}
	return nil
}

// CheckBrokerChanges is what a broker checks before it hands a change of broker configs to the controller: changes to
// current, the configs of the BROKER resource named as this node (perBroker) or of the one named "".
// The error is an [*Error]: [ErrInvalidConfig] when an operation is refused, [ErrInvalidRequest] when the result is.
func (n *Node) CheckBrokerChanges(perBroker bool, current map[string]string, changes []Change) error {
	props, _ := usable(current, perBroker)
	for _, c := range changes {
		if err := applyToBroker(props, c); err != nil {
			return err
		}
	}
	if err := n.checkBrokerProps(perBroker, props); err != nil {
		return &Error{ErrInvalidRequest, err.Error()}
	}
	return nil
}

// CheckBrokerConfigs is CheckBrokerChanges for a whole new set, as the older AlterConfigs request has it.
func (n *Node) CheckBrokerConfigs(perBroker bool, props map[string]string) error {
	if err := n.checkBrokerProps(perBroker, props); err != nil {
		return &Error{ErrInvalidRequest, err.Error()}
	}
	return nil
}

func (n *Node) checkBrokerProps(perBroker bool, props map[string]string) error {
	if err := checkDynamic(props, perBroker); err != nil {
		return err
	}
	props = maps.Clone(props)
	dropProviders(props)
	next := *n
	if perBroker {
		next.effective = override(override(n.static, n.dynamicDefault), props)
	} else {
		next.effective = override(override(n.static, props), n.dynamicBroker)
	}
	if err := next.resolve(); err != nil {
		return err
	}
	if err := n.checkSteps(&next); err != nil {
		// Kafka: the cause ends up in the place of a value.
		return invalidConfig("Invalid value %s%s for configuration Invalid dynamic configuration",
			"org.apache.kafka.common.config.ConfigException: ", err)
	}
	return nil
}

// steadyThreads are the thread counts that may at most halve or double while the broker runs.
var steadyThreads = []string{
	"num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads",
	"num.network.threads", "remote.log.manager.copier.thread.pool.size",
	"remote.log.manager.expiration.thread.pool.size", "remote.log.manager.follower.thread.pool.size",
	"remote.log.reader.threads",
}

// checkSteps checks what must not change too much while the broker runs.
func (n *Node) checkSteps(next *Node) error {
	if err := firstError(n.checkReporters(next), next.checkMaxConnections()); err != nil {
		return err
	}
	for _, name := range steadyThreads {
		if err := n.checkThreadStep(next, name); err != nil {
			return err
		}
	}
	return firstError(n.checkCleanerStep(next), next.checkLocalRetention())
}

// checkReporters refuses Java classes of metric reporters, except Kafka's own.
func (n *Node) checkReporters(next *Node) error {
	now, then := n.list("metric.reporters"), next.list("metric.reporters")
	own := brokerDefinitions.Lookup("metric.reporters").Default
	if slices.Equal(now, then) || subset(then, []string{own}) {
		return nil
	}
	//nolint:staticcheck // Kafka's text
	return fmt.Errorf("Validation of dynamic config update of Set(metric.reporters) failed with class class " +
		"kafka.server.DynamicMetricsReporters")
}

func (n *Node) checkMaxConnections() error {
	for _, l := range n.broker.Listeners {
		for _, name := range []string{"max.connections", "max.connection.creation.rate"} {
			if v := n.ofListener(l, name); v <= 0 {
				return fmt.Errorf("Invalid %s %d", name, v) //nolint:staticcheck // Kafka's text
			}
		}
	}
	return nil
}

// ofListener returns the value of an integer key that a listener may have for itself.
func (n *Node) ofListener(l Listener, name string) int64 {
	text, set := n.effective["listener.name."+strings.ToLower(l.Name)+"."+name]
	v, err := parseValue(name, text, Int)
	if !set || err != nil {
		return n.long(name)
	}
	return v.i
}

func (n *Node) checkThreadStep(next *Node, name string) error {
	now, then := n.long(name), next.long(name)
	text := fmt.Sprintf("Dynamic thread count update validation failed for %s=%d", name, then)
	switch {
	case then < now/2:
		return fmt.Errorf("%s, value should be at least half the current value %d", text, now)
	case then > now*2:
		return fmt.Errorf("%s, value should not be greater than double the current value %d", text, now)
	default:
		return nil
	}
}

func (n *Node) checkCleanerStep(next *Node) error {
	now, then := n.long("log.cleaner.threads"), next.long("log.cleaner.threads")
	//nolint:staticcheck // Kafka's texts
	switch {
	case then < 1:
		return fmt.Errorf("Log cleaner threads should be at least 1")
	case then < now/2:
		return fmt.Errorf("Log cleaner threads cannot be reduced to less than half the current value %d", now)
	case then > now*2:
		return fmt.Errorf("Log cleaner threads cannot be increased to more than double the current value %d", now)
	default:
		return nil
	}
}

// checkLocalRetention wants local retention within retention.
func (n *Node) checkLocalRetention() error {
	return firstError(
		localWithin("log.local.retention.ms", n.long("log.local.retention.ms"), "log.retention.ms", n.retentionMs()),
		localWithin("log.local.retention.bytes", n.long("log.local.retention.bytes"),
			"log.retention.bytes", n.long("log.retention.bytes")),
	)
}

// localWithin wants local ≤ total; -2 stands for the total, -1 for no limit.
func localWithin(name string, local int64, totalName string, total int64) error {
	text := fmt.Sprint(local)
	switch {
	case total == -1 || local == -2:
		return nil
	case local == -1:
		return badValue(name, text, fmt.Sprintf("Value must not be -1 as %s value is set as %d.", totalName, total))
	case local > total:
		return badValue(name, text, fmt.Sprintf("Value must not be more than %s property value: %d", totalName, total))
	default:
		return nil
	}
}

// CheckBrokerName is what a broker checks of the name of a BROKER resource before anything else: "" or its own number.
// The error is an [*Error] of [ErrInvalidRequest].
func (n *Node) CheckBrokerName(name string) error {
	if name == "" {
		return nil
	}
	id, ok := parseInteger(name, 32)
	if !ok {
		return invalidRequest("Node id must be an integer, but it is: %s", name)
	}
	if id != int64(n.broker.NodeID) {
		return invalidRequest("Unexpected broker id, expected %d, but received %s", n.broker.NodeID, name)
	}
	return nil
}
