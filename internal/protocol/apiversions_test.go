package protocol

import (
	"fmt"
	"testing"
)

var someFeatures = Features{
	Supported:      []SupportedFeature{{"metadata.version", 7, 30}, {"group.version", 0, 1}},
	FinalizedEpoch: 12,
	Finalized:      []FinalizedFeature{{"group.version", 1, 1}},
}

func TestApiVersions(t *testing.T) {
	table := NewTable(Full, []Range{{Key: 18, Max: 4}})
	// Tags 0, 1, 2 in this order, as Kafka 4.3.1 writes them.
	want := []string{
		"0000 00000001 0012 0000 0004",
		"0000 00000001 0012 0000 0004 00000000",
		"0000 00000001 0012 0000 0004 00000000",
		"0000 02 0012 0000 0004 00 00000000 03 " +
			"00 17 02 11 6d657461646174612e76657273696f6e 0007 001e 00 " +
			"01 08 000000000000000c " +
			"02 14 02 0e 67726f75702e76657273696f6e 0001 0001 00",
		"0000 02 0012 0000 0004 00 00000000 03 " +
			"00 2a 03 11 6d657461646174612e76657273696f6e 0007 001e 00 " +
			"0e 67726f75702e76657273696f6e 0000 0001 00 " +
			"01 08 000000000000000c " +
			"02 14 02 0e 67726f75702e76657273696f6e 0001 0001 00",
	}
	for version, hex := range want {
		got := fmt.Sprintf("%x", table.ApiVersions(int16(version), someFeatures).AppendTo(nil))
		if got != without(hex) {
			t.Errorf("version %d:\n%s want\n%s", version, got, without(hex))
		}
	}
}

func without(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] != ' ' {
			b = append(b, s[i])
		}
	}
	return string(b)
}

// Both as measured on 4.3.1.
func TestApiVersionsErrors(t *testing.T) {
	table := NewTable(Full, everything())
	if got := fmt.Sprintf("%x", table.UnsupportedApiVersions().AppendTo(nil)); got != "002300000001001200000004" {
		t.Errorf("unsupported: %s", got)
	}
	if got := fmt.Sprintf("%x", InvalidApiVersions(3).AppendTo(nil)); got != "002a010000000000" {
		t.Errorf("invalid: %s", got)
	}
}

func TestValidSoftware(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "apache-kafka-java": true, "4.3.1": true, "a.-b": true, "0": true,
		"": false, "-": false, "-a": false, "a-": false, "a.": false, "a b": false, "é": false,
		"a_b": false, "(none)": false,
	} {
		if ValidSoftware(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func TestNames(t *testing.T) {
	var n Names
	b := []byte("topic")
	first := n.Get(b)
	b[0] = 'X'
	if first != "topic" || n.Get([]byte("topic")) != "topic" {
		t.Error("a name changed with its bytes")
	}
	if allocs := testing.AllocsPerRun(100, func() { n.Get([]byte("topic")) }); allocs != 0 {
		t.Errorf("%v allocations for a known name", allocs)
	}
	for i := range 3 * maxNames {
		n.Get(fmt.Append(nil, "name ", i))
		if len(n.kept) > maxNames || n.bytes > maxNamesBytes {
			t.Fatalf("keeps %d names, %d bytes", len(n.kept), n.bytes)
		}
	}
	if n.Get(make([]byte, maxNamesBytes+1)); n.bytes > maxNamesBytes {
		t.Error("keeps a name that is too long")
	}
}
