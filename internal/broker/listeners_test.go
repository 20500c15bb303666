package broker

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Clients are told the addresses of the listener that they came in on.
func TestListenersAdvertiseTheirOwnAddresses(t *testing.T) {
	b := startBroker(t, t.TempDir(), map[string]string{
		"listeners":                      "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
		"advertised.listeners":           "INSIDE://inside.example:1001,OUTSIDE://outside.example:1002",
		"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name":     "INSIDE",
	})
	for i, want := range []string{"inside.example:1001", "outside.example:1002"} {
		c, err := kgo.NewClient(kgo.SeedBrokers(b.Addresses()[i]))
		if err != nil {
			t.Fatal(err)
		}
		response, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), c.SeedBrokers()[0])
		c.Close()
		if err != nil || len(response.Brokers) != 1 {
			t.Fatalf("metadata on listener %d: %v, %d brokers", i, err, len(response.Brokers))
		}
		if got := fmt.Sprintf("%s:%d", response.Brokers[0].Host, response.Brokers[0].Port); got != want {
			t.Errorf("advertised on listener %d: got %s, want %s", i, got, want)
		}
	}
}

func TestSecureListenersAreRefused(t *testing.T) {
	_, err := Start(t.Context(), Options{Properties: map[string]string{"log.dirs": t.TempDir(),
		"listeners": "SSL://127.0.0.1:0", "inter.broker.listener.name": "SSL", "tidemark.admin.listener": ""}})
	if err == nil {
		t.Error("a broker started with a listener that it cannot serve")
	}
}
