package config

import (
	"slices"
	"strings"
	"testing"
)

func TestDefinitionsHold(t *testing.T) {
	counts := map[*Definitions]int{Topics(): 34, Brokers(): 360, Groups(): 17, ClientMetrics(): 3, Own(): 7}
	for d, want := range counts {
		if d.Len() != want || len(d.Names()) != want {
			t.Errorf("%d keys, %d names, want %d", d.Len(), len(d.Names()), want)
		}
		for _, name := range d.Names() {
			checkDefinition(t, d.Lookup(name))
		}
	}
}

// checkDefinition wants a default that stands its own checks in canonical form, and a short documentation.
func checkDefinition(t *testing.T, d *Definition) {
	t.Helper()
	if d.Doc == "" || len(d.Doc) > 250 || !strings.HasSuffix(strings.TrimSuffix(d.Doc, "…"), ".") {
		t.Errorf("%s: documentation %q", d.Name, d.Doc)
	}
	if d.Null || d.Required {
		return
	}
	v, err := d.value(map[string]string{d.Name: d.Default})
	if err != nil {
		t.Errorf("%s: %v", d.Name, err)
	}
	if got := v.canonical(); got != d.Default {
		t.Errorf("%s: default %q is canonically %q", d.Name, d.Default, got)
	}
}

func TestSetsNameKnownKeys(t *testing.T) {
	for topic, broker := range topicSynonyms {
		if Topics().Lookup(topic).Type != Brokers().Lookup(broker).Type {
			t.Errorf("%s and %s differ in type", topic, broker)
		}
	}
	for _, d := range groupDefinitions.ordered {
		if broker := groupSynonym(d.Name); broker != "" && Brokers().Lookup(broker) == nil {
			t.Errorf("%s: no broker key %s", d.Name, broker)
		}
	}
	for _, name := range listsWithDuplicates {
		if Topics().Lookup(name) == nil && Brokers().Lookup(name) == nil {
			t.Errorf("no key %s", name)
		}
	}
	for _, name := range perBrokerKeys {
		if slices.Contains(clusterWideKeys, name) {
			t.Errorf("%s has two update modes", name)
		}
	}
}

func TestFormatDouble(t *testing.T) {
	for text, want := range map[string]string{
		"0.5": "0.5", "1": "1.0", "1e7": "1.0E7", "9999999": "9999999.0", "0.001": "0.001", "0.0001": "1.0E-4",
		"-0": "-0.0", "1.7976931348623157E308": "1.7976931348623157E308", "1e400": "Infinity", "-1e400": "-Infinity",
		"NaN": "NaN", "12345678": "1.2345678E7", "0x1p-1": "0.5", "5.": "5.0", ".5f": "0.5",
	} {
		f, ok := parseDouble(text)
		if got := formatDouble(f); !ok || got != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, ok, want)
		}
	}
}
