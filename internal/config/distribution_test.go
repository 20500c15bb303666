package config

import (
	"maps"
	"slices"
	"testing"
)

// TestDistributionFiles reads the settings of the files that come with Kafka 4.3.1 (config/*.properties): every key is
// known, and nothing is refused. With them alone, and filled up for a node that stands alone, the node is the same.
func TestDistributionFiles(t *testing.T) {
	for name, roles := range map[string][]string{
		"server": {"broker", "controller"}, "broker": {"broker"}, "controller": {"controller"},
	} {
		t.Run(name, func(t *testing.T) {
			props, err := ParseProperties(readFile(t, "testdata", "distribution", name+".properties"))
			if err != nil {
				t.Fatal(err)
			}
			n, err := NewNode(props)
			if err != nil {
				t.Fatal(err)
			}
			if unknown := n.Unknown(); unknown != nil {
				t.Errorf("not known: %v", unknown)
			}
			if !slices.Equal(n.Broker().ProcessRoles, roles) {
				t.Errorf("roles %v", n.Broker().ProcessRoles)
			}
			filled := maps.Clone(props)
			FillStandalone(filled)
			if !maps.Equal(filled, props) {
				t.Errorf("filled up to %v", filled)
			}
		})
	}
}
