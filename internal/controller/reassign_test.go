package controller

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/internal/metadata"
)

// moved reassigns partition 0 of a topic and returns its state then.
func (k *cluster) moved(topic string, keepFactor bool, replicas ...int32) (*metadata.Partition, *Error) {
	k.t.Helper()
	r := k.do(AlterReassignments{KeepFactor: keepFactor, Topics: []TopicReassignment{{Topic: topic,
		Partitions: []NewReplicas{{Partition: 0, Replicas: replicas}}}}}).(PartitionResults)
	return k.image.Topic(topic).Partition(0), r.Topics[0].Partitions[0].Err
}

func placed(topic string, brokers ...int32) NewTopic {
	return NewTopic{Name: topic, Partitions: -1, ReplicationFactor: -1, Assignments: []Assignment{{0, brokers}}}
}

func threeBrokers(t *testing.T) *cluster {
	k := newCluster(t)
	for id := int32(1); id <= 3; id++ {
		k.addBroker(id)
	}
	return k
}

func TestReassignments(t *testing.T) {
	k := threeBrokers(t)
	k.create(placed("t", 1, 2))
	first := k.image.Topic("t").Partition(0)

	// Another order is there at once.
	p, err := k.moved("t", true, 2, 1)
	if err != nil || !slices.Equal(p.Replicas, []int32{2, 1}) || reassigning(p) || p.Leader != 1 {
		t.Fatalf("another order: %v %+v", err, p)
	}
	// A new replica has to catch up first.
	p, err = k.moved("t", false, 3)
	want := &metadata.Partition{Replicas: []int32{3, 1, 2}, RemovingReplicas: []int32{1, 2}, AddingReplicas: []int32{3},
		ISR: first.ISR, Leader: 1}
	if err != nil || !cmp.Equal(p.Replicas, want.Replicas) || !cmp.Equal(p.AddingReplicas, want.AddingReplicas) ||
		!cmp.Equal(p.RemovingReplicas, want.RemovingReplicas) || p.Leader != 1 || len(p.Directories) != 3 {
		t.Fatalf("a new replica: %v %+v", err, p)
	}
	// Taken back, the replicas are those before.
	p, err = k.moved("t", false)
	if err != nil || !slices.Equal(p.Replicas, []int32{1, 2}) || reassigning(p) {
		t.Fatalf("taken back: %v %+v", err, p)
	}
	if _, err = k.moved("t", false); !errors.Is(err, ErrNoReassignment) {
		t.Errorf("taken back twice: %v", err)
	}
	// To take a replica away raises the leader epoch.
	before := p.LeaderEpoch
	p, err = k.moved("t", false, 2)
	if err != nil || !slices.Equal(p.Replicas, []int32{2}) || p.Leader != 2 || p.LeaderEpoch <= before {
		t.Fatalf("a replica less: %v %+v", err, p)
	}
	_, err = k.moved("t", true, 2, 3)
	if !errors.Is(err, ErrInvalidReplicationFactor) || err.Message != "The replication factor is changed from 1 to 2" {
		t.Errorf("another number of replicas: %v", err)
	}
}

func TestElectLeaders(t *testing.T) {
	k := threeBrokers(t)
	k.create(placed("t", 1, 2))
	elect := func(kind int8) *Error {
		r := k.do(ElectLeaders{Type: kind, Topics: []PartitionsOf{{"t", []int32{0}}}}).(PartitionResults)
		return r.Topics[0].Partitions[0].Err
	}
	if err := elect(0); !errors.Is(err, ErrElectionNotNeeded) {
		t.Errorf("the preferred leader leads: %v", err)
	}
	if _, err := k.moved("t", true, 2, 1); err != nil {
		t.Fatal(err)
	}
	if err := elect(1); !errors.Is(err, ErrElectionNotNeeded) {
		t.Errorf("someone leads: %v", err)
	}
	if err := elect(0); err != nil || k.image.Topic("t").Partition(0).Leader != 2 {
		t.Errorf("preferred: %v, leader %d", err, k.image.Topic("t").Partition(0).Leader)
	}
	all := k.do(ElectLeaders{All: true}).(PartitionResults)
	if len(all.Topics) != 1 || len(all.Topics[0].Partitions) != 0 {
		t.Errorf("all: %+v", all)
	}
}

func TestClientQuotas(t *testing.T) {
	k := newCluster(t)
	user := []metadata.QuotaEntity{{Type: "user", Name: text("u")}}
	alter := func(ops ...QuotaOp) *Error {
		r := k.do(AlterClientQuotas{Alterations: []QuotaAlteration{{Entity: user, Ops: ops}}}).(AlterClientQuotasResult)
		return r.Entities[0].Err
	}
	if err := alter(QuotaOp{Key: "producer_byte_rate", Value: 7}); err != nil {
		t.Fatal(err)
	}
	if v, ok := k.image.ClientQuota(user).Get("producer_byte_rate"); !ok || v != 7 {
		t.Errorf("stored: %v %v", v, ok)
	}
	before := k.image.Offset()
	if err := alter(QuotaOp{Key: "producer_byte_rate", Value: 7}); err != nil || k.image.Offset() != before {
		t.Errorf("the same again: %v, %d records", err, k.image.Offset()-before)
	}
	if err := alter(QuotaOp{Key: "producer_byte_rate", Value: 1.5}); err == nil ||
		err.Message != "producer_byte_rate cannot be a fractional value." {
		t.Errorf("a fraction: %v", err)
	}
	if err := alter(QuotaOp{Key: "producer_byte_rate", Remove: true}); err != nil || k.image.ClientQuota(user) != nil {
		t.Errorf("removed: %v %+v", err, k.image.ClientQuota(user))
	}
}
