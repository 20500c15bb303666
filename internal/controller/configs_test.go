package controller

import (
	"errors"
	"strings"
	"testing"

	"tidemark/internal/metadata"
)

func TestIncrementalAlterConfigs(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	k.create(simple("a"))
	topic := metadata.TopicConfigs("a")
	op := func(key string, o OpType, value string) ConfigOp {
		return ConfigOp{Key: key, Op: o, Value: text(value)}
	}
	for _, tt := range []struct {
		name   string
		r      metadata.ConfigResource
		ops    []ConfigOp
		reason error  // nil: done
		text   string // of the refusal, or key=value,… afterwards
	}{
		{"set", topic, []ConfigOp{op("x", OpSet, "1"), op("y", OpSet, "2")}, nil, "x=1,y=2"},
		{"delete", topic, []ConfigOp{{Key: "y", Op: OpDelete}}, nil, "x=1"},
		{"append to the default", topic, []ConfigOp{op("cleanup.policy", OpAppend, "compact")}, nil,
			"cleanup.policy=delete,compact,x=1"},
		{"append again", topic, []ConfigOp{op("cleanup.policy", OpAppend, "compact")}, nil,
			"cleanup.policy=delete,compact,x=1"},
		{"subtract", topic, []ConfigOp{op("cleanup.policy", OpSubtract, "delete,none")}, nil, "cleanup.policy=compact,x=1"},
		{"append to no list", topic, []ConfigOp{op("x", OpAppend, "2")}, ErrInvalidConfig,
			"Can't APPEND to key x because its type is not LIST."},
		{"subtract from no list", topic, []ConfigOp{op("x", OpSubtract, "2")}, ErrInvalidConfig,
			"Can't SUBTRACT to key x because its type is not LIST."},
		{"one of two is bad", topic, []ConfigOp{op("x", OpSet, "5"), op("z", OpSet, "bad")}, ErrInvalidConfig,
			"Invalid value bad for configuration z"},
		{"key twice", topic, []ConfigOp{op("x", OpSet, "5"), op("x", OpSet, "6")}, ErrInvalidRequest,
			"Error due to duplicate config keys"},
		{"null", topic, []ConfigOp{{Key: "x", Op: OpSet}, {Key: "z", Op: OpAppend}}, ErrInvalidRequest,
			"Null value not supported for : x, z"},
		{"unknown operation", topic, []ConfigOp{op("x", 9, "5")}, ErrInvalidRequest, "Unknown operations type 9"},
		{"value too long", topic, []ConfigOp{op("x", OpSet, strings.Repeat("v", 32768))}, ErrInvalidConfig,
			"The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."},
		{"no such topic", metadata.TopicConfigs("b"), []ConfigOp{op("x", OpSet, "5")}, ErrUnknownTopic,
			"The topic 'b' does not exist."},
		{"no such broker", broker("7"), []ConfigOp{op("x", OpSet, "5")}, ErrBrokerNotRegistered, "No node with id 7 found."},
		{"no broker id", broker("x"), []ConfigOp{op("x", OpSet, "5")}, ErrInvalidRequest, "Invalid broker name x"},
		{"broker", broker("1"), []ConfigOp{op("x", OpSet, "5")}, nil, "x=5"},
		{"broker min isr", broker("1"), []ConfigOp{op(minISRKey, OpSet, "2")}, ErrInvalidConfig,
			"Broker-level min.insync.replicas cannot be altered while ELR is enabled."},
		{"cluster min isr away", broker(""), []ConfigOp{{Key: minISRKey, Op: OpDelete}}, ErrInvalidConfig,
			"Cluster-level min.insync.replicas cannot be removed while ELR is enabled."},
		{"cluster", broker(""), []ConfigOp{op("x", OpSet, "5")}, nil, minISRKey + "=1,x=5"},
		{"group", metadata.ConfigResource{Type: metadata.ResourceGroup, Name: "g"}, []ConfigOp{op("x", OpSet, "5")}, nil,
			"x=5"},
		{"logger", metadata.ConfigResource{Type: metadata.ResourceBrokerLogger, Name: "1"}, []ConfigOp{op("x", OpSet, "5")},
			ErrInvalidRequest, "Unknown resource type 8"},
	} {
		before := k.image.Config(tt.r).Len()
		out := k.do(IncrementalAlterConfigs{Resources: []AlterResource{{tt.r, tt.ops}}}).(AlterConfigsResult).Resources[0]
		if tt.reason != nil {
			if out.Err == nil || !errors.Is(out.Err, tt.reason) || out.Err.Message != tt.text ||
				k.image.Config(tt.r).Len() != before {
				t.Errorf("%s: %v, want %s", tt.name, out.Err, tt.text)
			}
			continue
		}
		if got := stored(k.image, tt.r); out.Err != nil || got != tt.text {
			t.Errorf("%s: %s (%v), want %s", tt.name, got, out.Err, tt.text)
		}
	}
}

func broker(name string) metadata.ConfigResource {
	return metadata.ConfigResource{Type: metadata.ResourceBroker, Name: name}
}

func stored(i *metadata.Image, r metadata.ConfigResource) string {
	var list []string
	for key, value := range i.Config(r).All() {
		list = append(list, key+"="+value)
	}
	return strings.Join(list, ",")
}

func TestAlterConfigsOfSeveralResources(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	k.create(NewTopic{Name: "a", Partitions: 1, ReplicationFactor: 1,
		Configs: []ConfigEntry{{"x", text("1")}, {"y", text("2")}}})
	k.create(simple("b"))
	replace := func(topic string, entries ...ConfigEntry) ReplaceConfigs {
		return ReplaceConfigs{metadata.TopicConfigs(topic), entries}
	}
	cmd := AlterConfigs{Resources: []ReplaceConfigs{
		replace("a", ConfigEntry{"x", text("9")}, ConfigEntry{"z", text("3")}),
		replace("none", ConfigEntry{"x", text("9")}),
		replace("b"), replace("b"),
	}}
	cmd.ValidateOnly = true
	k.do(cmd)
	if got := stored(k.image, metadata.TopicConfigs("a")); got != "x=1,y=2" {
		t.Errorf("validation only changed it: %s", got)
	}
	cmd.ValidateOnly = false
	res := k.do(cmd).(AlterConfigsResult)
	if got := stored(k.image, metadata.TopicConfigs("a")); got != "x=9,z=3" || res.Resources[0].Err != nil {
		t.Errorf("replaced: %s", got)
	}
	if !errors.Is(res.Resources[1].Err, ErrUnknownTopic) {
		t.Errorf("no such topic: %v", res.Resources[1].Err)
	}
	for _, r := range res.Resources[2:] {
		if r.Err == nil || r.Err.Message != "Each resource must appear at most once." {
			t.Errorf("twice the same resource: %v", r.Err)
		}
	}
}

// TestUnchangedConfigs writes nothing for a topic and the same again for a
// broker.
func TestUnchangedConfigs(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	k.create(NewTopic{Name: "a", Partitions: 1, ReplicationFactor: 1, Configs: []ConfigEntry{{"x", text("1")}}})
	for r, want := range map[metadata.ConfigResource]int{metadata.TopicConfigs("a"): 0, broker("1"): 1} {
		k.do(IncrementalAlterConfigs{Resources: []AlterResource{{r, []ConfigOp{{"x", OpSet, text("1")}}}}})
		d, err := k.decide(IncrementalAlterConfigs{Resources: []AlterResource{{r, []ConfigOp{{"x", OpSet, text("1")}}}}})
		if err != nil || len(d.Records) != want {
			t.Errorf("%v: %d records, %v", r, len(d.Records), err)
		}
	}
}

func TestMinISRClearsELR(t *testing.T) {
	k := newCluster(t)
	k.addBroker(1)
	k.create(simple("a"))
	for r, topic := range map[metadata.ConfigResource]string{metadata.TopicConfigs("a"): "a", broker(""): ""} {
		d, err := k.decide(IncrementalAlterConfigs{Resources: []AlterResource{{r,
			[]ConfigOp{{minISRKey, OpSet, text("2")}}}}})
		if err != nil || len(d.Records) != 2 {
			t.Fatalf("%v: %d records, %v", r, len(d.Records), err)
		}
		if c, ok := d.Records[1].Body.(*metadata.ClearELRRecord); !ok || c.TopicName != topic {
			t.Errorf("%v: %+v", r, d.Records[1].Body)
		}
	}
}
