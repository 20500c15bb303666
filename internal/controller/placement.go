package controller

import (
	"errors"
	"fmt"
	"slices"

	"tidemark/internal/metadata"
)

// place spreads the replicas of new partitions over the brokers: each partition
// begins one broker further than the last, leaders only on unfenced ones.
// The errors are texts of Kafka's, without the part that names the request.
//
// Kafka: StripedReplicaPlacer begins at a random broker and mixes racks. With
// one broker the result is the same.
//
//nolint:staticcheck // Kafka's texts
func (d *decider) place(partitions, factor int) ([]*metadata.Partition, error) {
	usable, unfenced := d.usableBrokers()
	switch {
	case factor <= 0:
		return nil, fmt.Errorf("Invalid replication factor %d: the replication factor must be positive.", factor)
	case len(unfenced) == 0:
		return nil, errors.New("All brokers are currently fenced, or have all their log directories cordoned.")
	case factor > len(usable):
		return nil, fmt.Errorf("The target replication factor of %d cannot be reached because only %d broker(s) are "+
			"registered or some brokers have all their log directories cordoned.", factor, len(usable))
	}
	start, err := d.randomID()
	if err != nil {
		return nil, err
	}
	list := make([]*metadata.Partition, partitions)
	for i := range list {
		turn := int(start[0]) + i
		leader := unfenced[turn%len(unfenced)]
		replicas := []int32{leader}
		for next := slices.Index(usable, leader) + 1; len(replicas) < factor; next++ {
			if b := usable[next%len(usable)]; b != leader {
				replicas = append(replicas, b)
			}
		}
		if list[i] = d.newPartition(replicas); len(list[i].ISR) == 0 {
			return nil, errors.New("All brokers are currently fenced or in controlled shutdown.")
		}
	}
	return list, nil
}

// usableBrokers returns the brokers that replicas can be placed on, and those of
// them that can lead.
func (d *decider) usableBrokers() (usable, unfenced []int32) {
	for b := range d.Image.Brokers() {
		if b.InControlledShutdown || allCordoned(b) {
			continue
		}
		usable = append(usable, b.ID)
		if !b.Fenced {
			unfenced = append(unfenced, b.ID)
		}
	}
	return usable, unfenced
}

func allCordoned(b *metadata.Broker) bool {
	return len(b.LogDirs) > 0 && !slices.ContainsFunc(b.LogDirs, func(dir metadata.UUID) bool {
		return !slices.Contains(b.CordonedLogDirs, dir)
	})
}
