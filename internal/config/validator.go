package config

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Validator checks the configs of a resource before the controller stores them.
type Validator struct {
	// Node returns the settings of the controller's node, below those of topics and groups.
	Node func() *Node
}

// Validate checks the whole set of configs that r would have; old is what it has now. The error is an [*Error].
func (v Validator) Validate(r Resource, configs, old map[string]string) error {
	switch r.Type {
	case TopicResource:
		if r.Name == "" {
			return invalidRequest("Default topic resources are not allowed.")
		}
		if err := CheckTopicName(r.Name); err != nil {
			return err
		}
		return v.Node().checkTopic(configs, old)
	case BrokerResource:
		return checkBrokerName(r.Name)
	case ClientMetricsResource:
		if r.Name == "" {
			return invalidRequest("Subscription name can't be empty")
		}
		return checkClientMetrics(configs)
	case GroupResource:
		if r.Name == "" {
			return invalidRequest("Default group resources are not allowed.")
		}
		return v.Node().checkGroup(configs)
	default:
		return invalidRequest("Unknown resource type %s", r.Type)
	}
}

func checkBrokerName(name string) error {
	if name == "" {
		return nil
	}
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return invalidRequest("Unable to parse broker name as a base 10 number.")
	}
	if id < 0 {
		return invalidRequest("Invalid negative broker ID.")
	}
	return nil
}

// maxTopicName is the longest name of a topic in bytes; folder names need some room for the partition.
const maxTopicName = 249

func legalTopicName(name string) bool { return onlyOf(name, "._-") }

// onlyOf reports whether text has ASCII letters and digits only, and the characters in others.
func onlyOf(text, others string) bool {
	for _, r := range text {
		alphanumeric := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !alphanumeric && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return true
}

// CheckTopicName refuses what Kafka does not take as the name of a topic; the error is an [*Error] of
// [ErrInvalidTopic].
func CheckTopicName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == "." || name == "..":
		reason = "'" + name + "' is not allowed"
	case len(name) > maxTopicName && legalTopicName(name), utf16Len(name) > maxTopicName:
		reason = "the length of '" + name + "' is longer than the max allowed length " + strconv.Itoa(maxTopicName)
	case !legalTopicName(name):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return &Error{ErrInvalidTopic, "Topic name is invalid: " + reason}
}

// utf16Len is the length of a text as Java counts it.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// CheckTopicConfigs checks the configs of a topic as a client can: without the settings of a broker, so with Kafka's
// defaults for what is not given. The error is an [*Error] of [ErrInvalidConfig].
func CheckTopicConfigs(configs map[string]string) error {
	if err := checkTopicNames(configs); err != nil {
		return err
	}
	values, err := parseAll(topicDefinitions, configs)
	if err != nil {
		return err
	}
	return checkCompactionLags(values)
}

func checkTopicNames(configs map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if topicDefinitions.Lookup(name) == nil {
			return invalidConfig("Unknown topic config name: %s", name)
		}
	}
	return nil
}

func checkCompactionLags(values map[string]value) error {
	if low, high := values["min.compaction.lag.ms"].i, values["max.compaction.lag.ms"].i; low > high {
		return invalidConfig("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)",
			low, high)
	}
	return nil
}

func (n *Node) checkTopic(configs, old map[string]string) error {
	if err := checkTopicNames(configs); err != nil {
		return err
	}
	values, err := n.topicValues(configs)
	if err != nil {
		return err
	}
	if err := checkCompactionLags(values); err != nil {
		return err
	}
	if values["remote.storage.enable"].b {
		return n.checkRemoteTopic(values)
	}
	if strings.EqualFold(old["remote.storage.enable"], "true") && !values["remote.log.delete.on.disable"].b {
		return invalidConfig("It is invalid to disable remote storage without deleting remote data. If you want to keep " +
			"the remote data and turn to read only, please set `remote.storage.enable=true,remote.log.copy.disable=true`. " +
			"If you want to disable remote storage and delete all remote data, please set " +
			"`remote.storage.enable=false,remote.log.delete.on.disable=true`.")
	}
	return nil
}

func (n *Node) checkRemoteTopic(values map[string]value) error {
	if !n.bool("remote.log.storage.system.enable") {
		return invalidConfig("Tiered Storage functionality is disabled in the broker. Topic cannot be configured with " +
			"remote log storage.")
	}
	if p := values["cleanup.policy"].list; len(p) > 0 && !slices.Equal(p, []string{"delete"}) {
		return invalidConfig("Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being " +
			"an empty list.")
	}
	local := func(unit string) (name string, value int64) {
		return "local.retention." + unit, values["local.retention."+unit].i
	}
	bytesName, bytes := local("bytes")
	msName, ms := local("ms")
	totalBytes, totalMs := values["retention.bytes"].i, values["retention.ms"].i
	if err := firstError(
		localWithin(bytesName, bytes, "retention.bytes", max(totalBytes, -1)),
		localWithin(msName, ms, "retention.ms", totalMs),
	); err != nil || !values["remote.log.copy.disable"].b {
		return err
	}
	return firstError(
		sameRetention(bytesName, bytes, "retention.bytes", totalBytes),
		sameRetention(msName, ms, "retention.ms", totalMs),
	)
}

// sameRetention is the rule for topics that copy nothing more to remote storage.
func sameRetention(name string, local int64, totalName string, total int64) error {
	if local == -2 || local == total {
		return nil
	}
	return invalidConfig("When `remote.log.copy.disable` is set to true, the `%s` and `%s` must be set to the identical "+
		"value because there will be no more logs copied to the remote storage.", name, totalName)
}

var clientSelectors = []string{
	"client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address",
	"client_source_port",
}

func checkClientMetrics(configs map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if clientMetricsDefinitions.Lookup(name) == nil {
			return invalidRequest("Unknown client metrics configuration: %s", name)
		}
	}
	values, err := parseAll(clientMetricsDefinitions, configs)
	if err != nil {
		return err
	}
	if ms := values["interval.ms"].i; ms < 100 || ms > 3600000 {
		return invalidRequest("Invalid value %d for interval.ms, interval must be between 100 and 3600000 (1 hour)", ms)
	}
	for _, pattern := range values["match"].list {
		pair := strings.Split(strings.TrimRight(pattern, "="), "=")
		if len(pair) != 2 || !slices.Contains(clientSelectors, strings.TrimSpace(pair[0])) || !isPattern(pair[1]) {
			return invalidConfig("Illegal client matching pattern: %s", pattern)
		}
	}
	return nil
}

// isPattern reports whether text is a regular expression. Java knows some forms that Go does not, such as look-ahead.
func isPattern(text string) bool {
	_, err := regexp.Compile(strings.TrimSpace(text))
	return err == nil
}

func (n *Node) checkGroup(configs map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if groupDefinitions.Lookup(name) == nil {
			return invalidConfig("Unknown group config name: %s", name)
		}
	}
	values, err := parseAll(groupDefinitions, n.groupProps(configs))
	if err != nil {
		return err
	}
	for _, key := range groupBounds {
		if err := n.checkGroupBounds(key, values); err != nil {
			return err
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		session, heartbeat := kind+".session.timeout.ms", kind+".heartbeat.interval.ms"
		if values[session].i <= values[heartbeat].i {
			return invalidConfig("%s must be greater than %s", session, heartbeat)
		}
	}
	return nil
}

// groupBounds are the group keys with bounds among the broker keys, in the order in which Kafka checks them.
var groupBounds = []string{
	"consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "consumer.assignment.interval.ms",
	"share.heartbeat.interval.ms", "share.session.timeout.ms", "share.record.lock.duration.ms",
	"share.delivery.count.limit", "share.partition.max.record.locks", "share.assignment.interval.ms",
	"streams.heartbeat.interval.ms", "streams.session.timeout.ms", "streams.num.standby.replicas",
	"streams.assignment.interval.ms",
}

// checkGroupBounds checks a group key against group.KIND.min.… and group.KIND.max.… of the broker.
func (n *Node) checkGroupBounds(key string, values map[string]value) error {
	kind, rest, _ := strings.Cut(key, ".")
	low, high := "group."+kind+".min."+rest, "group."+kind+".max."+rest
	if key == "streams.num.standby.replicas" {
		high = "group.streams.max.standby.replicas"
	}
	got := values[key].i
	if v, ok := n.values[low]; ok && got < v.i {
		return invalidConfig("%s must be greater than or equal to %s", key, low)
	}
	if v, ok := n.values[high]; ok && got > v.i {
		return invalidConfig("%s must be less than or equal to %s", key, high)
	}
	return nil
}
