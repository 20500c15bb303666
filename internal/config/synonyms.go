package config

import (
	"slices"
	"strings"
)

var (
	rollKeys      = []string{"log.roll.ms", "log.roll.hours"}
	jitterKeys    = []string{"log.roll.jitter.ms", "log.roll.jitter.hours"}
	retentionKeys = []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours"}
	flushKeys     = []string{"log.flush.interval.ms", "log.flush.scheduler.interval.ms"}
)

// listenerBase returns the key behind a listener.name.NAME. prefix.
func listenerBase(name string) (base string, ok bool) {
	rest, ok := strings.CutPrefix(name, "listener.name.")
	if !ok {
		return "", false
	}
	_, base, ok = strings.Cut(rest, ".")
	return base, ok
}

// brokerSynonyms returns the broker keys of which the first one set decides the value of name.
func brokerSynonyms(name string) []string {
	if same := unitSynonyms(name); same != nil {
		return same
	}
	base, ok := listenerBase(name)
	if !ok {
		return []string{name}
	}
	for _, m := range listenerMechanismKeys {
		if strings.HasSuffix(base, m) {
			return []string{name, m}
		}
	}
	return []string{name, base}
}

// unitSynonyms returns the keys that say the same in several units, nil when name is not one of them.
// Kafka: log.flush.scheduler.interval.ms has a meaning of its own, hence only its counterpart is looked up.
func unitSynonyms(name string) []string {
	switch {
	case slices.Contains(rollKeys, name):
		return rollKeys
	case slices.Contains(jitterKeys, name):
		return jitterKeys
	case slices.Contains(retentionKeys, name):
		return retentionKeys
	case name == flushKeys[0]:
		return flushKeys
	default:
		return nil
	}
}

// brokerDefinition finds the definition of a broker key, also of one with the prefix of a listener.
func brokerDefinition(name string) *Definition {
	for _, candidate := range append([]string{name}, brokerSynonyms(name)...) {
		for _, d := range []*Definitions{brokerDefinitions, dynamicBrokerDefinitions, ownDefinitions} {
			if def := d.Lookup(candidate); def != nil {
				return def
			}
		}
	}
	return nil
}
