package metadata

import "iter"

// Records yields the records that lead from an empty image to this one, in
// Kafka's order of kinds and sorted within each, so that equal images give equal
// snapshots. metadata.version comes first, since it says how to read the rest.
func (i *Image) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		_ = i.featureRecords(yield) && i.clusterRecords(yield) && i.topicRecords(yield) &&
			i.configRecords(yield) && i.quotaRecords(yield) && i.securityRecords(yield)
	}
}

func (i *Image) featureRecords(yield func(Record) bool) bool {
	feature := func(name string, level int16) bool {
		return yield(Record{Body: &FeatureLevelRecord{Name: name, FeatureLevel: level}})
	}
	if v := i.MetadataVersion(); v > 0 && !feature(MetadataVersionFeature, v) {
		return false
	}
	for name, level := range i.Features() {
		if name != MetadataVersionFeature && !feature(name, level) {
			return false
		}
	}
	return true
}

func (i *Image) clusterRecords(yield func(Record) bool) bool {
	for b := range i.Brokers() {
		if !yield(b.record(i.MetadataVersion())) {
			return false
		}
	}
	if !SupportsControllerRegistration(i.MetadataVersion()) {
		return true
	}
	for c := range i.Controllers() {
		if !yield(c.record()) {
			return false
		}
	}
	return true
}

func (i *Image) topicRecords(yield func(Record) bool) bool {
	for _, t := range i.topics.all() {
		if !yield(Record{Body: &TopicRecord{Name: t.Name, TopicID: t.ID}}) {
			return false
		}
		for id, p := range t.Partitions() {
			if !yield(p.Record(t.ID, id, i.MetadataVersion())) {
				return false
			}
		}
	}
	return true
}

func (i *Image) configRecords(yield func(Record) bool) bool {
	for res, c := range i.ConfigResources() {
		for key, value := range c.All() {
			r := &ConfigRecord{ResourceType: res.Type, ResourceName: res.Name, Name: key, Value: &value}
			if !yield(Record{Body: r}) {
				return false
			}
		}
	}
	return true
}

func (i *Image) quotaRecords(yield func(Record) bool) bool {
	for q := range i.ClientQuotas() {
		for key, value := range q.Values() {
			if !yield(Record{Body: &ClientQuotaRecord{Entity: q.Entity, Key: key, Value: value}}) {
				return false
			}
		}
	}
	return true
}

func (i *Image) securityRecords(yield func(Record) bool) bool {
	if id := i.nextProducerID; id >= 0 {
		// Kafka: a snapshot no longer knows who got the last block.
		if !yield(Record{Body: &ProducerIDsRecord{BrokerID: -1, BrokerEpoch: -1, NextProducerID: id}}) {
			return false
		}
	}
	for r := range i.ACLs() {
		if !yield(Record{Body: r}) {
			return false
		}
	}
	for r := range i.ScramCredentials() {
		if !yield(Record{Body: r}) {
			return false
		}
	}
	for r := range i.DelegationTokens() {
		if !yield(Record{Body: r}) {
			return false
		}
	}
	return true
}
