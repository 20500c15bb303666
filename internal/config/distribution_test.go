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

// TestOlderDistributions starts from what the files of Kafka 3.9 and 4.0 set besides: nothing is refused.
func TestOlderDistributions(t *testing.T) {
	common := map[string]string{
		"num.network.threads": "3", "num.io.threads": "8", "socket.send.buffer.bytes": "102400",
		"socket.receive.buffer.bytes": "102400", "socket.request.max.bytes": "104857600", "num.partitions": "1",
		"num.recovery.threads.per.data.dir": "1", "offsets.topic.replication.factor": "1",
		"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
		"log.retention.hours": "168", "log.retention.check.interval.ms": "300000", "log.segment.bytes": "1073741824",
	}
	kraft := map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
		"inter.broker.listener.name": "PLAINTEXT", "controller.listener.names": "CONTROLLER",
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL," +
			"SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
		"advertised.listeners": "PLAINTEXT://localhost:9092", "log.dirs": "/tmp/kraft-combined-logs",
	}
	for name, own := range map[string]map[string]string{
		"3.9, fixed voters": {"controller.quorum.voters": "1@localhost:9093"},
		"4.0": {"controller.quorum.bootstrap.servers": "localhost:9093",
			"advertised.listeners":                             "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
			"share.coordinator.state.topic.replication.factor": "1", "share.coordinator.state.topic.min.isr": "1"},
	} {
		props := maps.Clone(common)
		maps.Copy(props, kraft)
		maps.Copy(props, own)
		n, err := NewNode(props)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if unknown := append(n.Unknown(), n.WithoutEffect()...); unknown != nil {
			t.Errorf("%s: not known or without effect: %v", name, unknown)
		}
	}
	zookeeper := maps.Clone(common)
	maps.Copy(zookeeper, map[string]string{"broker.id": "0", "listeners": "PLAINTEXT://:9092",
		"log.dirs": "/tmp/kafka-logs", "zookeeper.connect": "localhost:2181", "zookeeper.connection.timeout.ms": "18000",
		"group.initial.rebalance.delay.ms": "0"})
	FillStandalone(zookeeper)
	n, err := NewNode(zookeeper)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"zookeeper.connect", "zookeeper.connection.timeout.ms"}; !slices.Equal(n.Unknown(), want) {
		t.Errorf("not known: %v, want %v", n.Unknown(), want)
	}
}
