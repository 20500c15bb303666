//go:build oracle

package relay

import "testing"

// TestVersions hands directories of other versions of Kafka to Tidemark and back: one whose metadata is older, one of
// the first without ZooKeeper, and a newer one with levels of features that Kafka 4.3 does not know.
func TestVersions(t *testing.T) {
	for _, version := range []string{"3.9.2", "4.0.1", "4.4.0"} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, version, 1)
			for _, l := range legs("K T K") {
				w.run(l)
			}
		})
	}
}
