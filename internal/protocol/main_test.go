package protocol

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs properties on fewer messages than rapid does by default, since
// there is one property per version; -rapid.checks overrides it.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
