package controller

import (
	"errors"
	"testing"

	"tidemark/internal/config"
	"tidemark/internal/metadata"
)

// TestNodeOptions decides with the settings of a real node: golden answers of
// Kafka about configurations.
func TestNodeOptions(t *testing.T) {
	props := map[string]string{"num.partitions": "3", "min.insync.replicas": "2", "log.dirs": "/data", "node.id": "1"}
	config.FillStandalone(props)
	static, err := config.NewNode(props)
	if err != nil {
		t.Fatal(err)
	}
	o, err := NodeOptions("4L6g3nShT-eMCtK--X86sw", static, func() *config.Node { return static })
	if err != nil {
		t.Fatal(err)
	}
	if o.DefaultPartitions != 3 || o.MinInsyncReplicas != 2 || o.NodeID != 1 || o.NoTopicDeletion ||
		o.UncleanLeaderElection {
		t.Errorf("%+v", o)
	}
	k := newCluster(t)
	k.c = New(o)
	k.addBroker(1)
	for key, tt := range map[string]struct{ value, text string }{
		"segment.bytes": {"1000", "Invalid value 1000 for configuration segment.bytes: " +
			"Value must be at least 1048576"},
		"message.format.version": {"1.0", "Unknown topic config name: message.format.version"},
		"cleanup.policy": {"x", "Invalid value x for configuration cleanup.policy: String must be one of: " +
			"compact, delete"},
		"retention.ms": {"-1", ""},
	} {
		got := k.create(NewTopic{Name: "t-" + key, Partitions: -1, ReplicationFactor: -1,
			Configs: []ConfigEntry{{key, &tt.value}}})
		switch {
		case tt.text == "" && (got.Err != nil || got.Partitions != 3):
			t.Errorf("%s: %+v", key, got)
		case tt.text != "" && (got.Err == nil || got.Err.Message != tt.text || !errors.Is(got.Err, ErrInvalidConfig)):
			t.Errorf("%s: %v", key, got.Err)
		}
	}
	for r, reason := range map[metadata.ConfigResource]error{
		metadata.TopicConfigs(""):            ErrInvalidRequest,
		metadata.TopicConfigs("a/b"):         ErrInvalidTopic,
		{Type: metadata.ResourceGroup}:       ErrInvalidRequest,
		metadata.TopicConfigs("t-retention"): ErrUnknownTopic,
	} {
		out := k.do(IncrementalAlterConfigs{Resources: []AlterResource{{Resource: r}}}).(AlterConfigsResult).Resources[0]
		if !errors.Is(out.Err, reason) {
			t.Errorf("%v: %v, want %v", r, out.Err, reason)
		}
	}
}
