package metadata

import (
	"errors"
	"fmt"
)

// ReplayError means a record that does not fit the image: the log is damaged, or
// was written by something that kept other rules.
type ReplayError struct {
	Record Record
	Reason error
}

// Error names the record's type and what does not fit.
func (e *ReplayError) Error() string {
	return fmt.Sprintf("replay %v: %v", e.Record.Body.Kind(), e.Reason)
}

// Unwrap is the reason.
func (e *ReplayError) Unwrap() error { return e.Reason }

// errTransaction means a transaction marker in front of a Delta; only a Loader
// knows what to do with one.
var errTransaction = errors.New("a metadata transaction cannot be replayed record by record")

// Replay adds a record. The error is a *[ReplayError] and leaves the delta as it
// was. Markers of metadata transactions are for a [Loader].
func (d *Delta) Replay(rec Record) error {
	if err := d.replay(rec.Body); err != nil {
		return &ReplayError{Record: rec, Reason: err}
	}
	return nil
}

func (d *Delta) replay(body Body) error {
	switch r := body.(type) {
	case *TopicRecord:
		return d.replayTopic(r)
	case *PartitionRecord:
		return d.replayPartition(r)
	case *PartitionChangeRecord:
		return d.replayPartitionChange(r)
	case *RemoveTopicRecord:
		return d.replayRemoveTopic(r)
	case *ClearELRRecord:
		return d.replayClearELR(r)
	case *ConfigRecord:
		d.replayConfig(r)
	case *RegisterBrokerRecord:
		d.setBroker(newBroker(r))
	case *UnregisterBrokerRecord:
		d.brokers[r.BrokerID] = struct{}{}
		d.next.brokers = d.next.brokers.delete(r.BrokerID)
	case *BrokerRegistrationChangeRecord:
		return d.changeBroker(r)
	case *FenceBrokerRecord:
		return d.changeBroker(&BrokerRegistrationChangeRecord{BrokerID: r.ID, BrokerEpoch: r.Epoch, Fenced: Fence})
	case *UnfenceBrokerRecord:
		return d.changeBroker(&BrokerRegistrationChangeRecord{BrokerID: r.ID, BrokerEpoch: r.Epoch, Fenced: Unfence})
	case *RegisterControllerRecord:
		d.next.controllers = d.next.controllers.set(r.ControllerID, newController(r))
	case *UnregisterControllerRecord:
		d.next.controllers = d.next.controllers.delete(r.ControllerID)
	case *FeatureLevelRecord:
		return d.replayFeature(r)
	case *ProducerIDsRecord:
		d.producer = true
		d.next.nextProducerID = r.NextProducerID
	case *NoOpRecord, *ZkMigrationStateRecord:
	case *BeginTransactionRecord, *EndTransactionRecord, *AbortTransactionRecord:
		return errTransaction
	default:
		return d.replaySecurity(body)
	}
	return nil
}

func (d *Delta) replaySecurity(body Body) error {
	switch r := body.(type) {
	case *ClientQuotaRecord:
		d.replayQuota(r)
	case *AccessControlEntryRecord:
		d.security = true
		d.next.acls = d.next.acls.set(r.ID, r)
	case *RemoveAccessControlEntryRecord:
		if _, ok := d.next.acls.get(r.ID); !ok {
			return fmt.Errorf("there is no ACL %v", r.ID)
		}
		d.security = true
		d.next.acls = d.next.acls.delete(r.ID)
	case *UserScramCredentialRecord:
		d.security = true
		d.next.scram = d.next.scram.set(scramKey{r.Mechanism, r.Name}, r)
	case *RemoveUserScramCredentialRecord:
		d.security = true
		d.next.scram = d.next.scram.delete(scramKey{r.Mechanism, r.Name})
	case *DelegationTokenRecord:
		d.security = true
		d.next.tokens = d.next.tokens.set(r.TokenID, r)
	case *RemoveDelegationTokenRecord:
		d.security = true
		d.next.tokens = d.next.tokens.delete(r.TokenID)
	default:
		panic(fmt.Sprintf("metadata: no replay of %v", body.Kind()))
	}
	return nil
}

func (d *Delta) replayTopic(r *TopicRecord) error {
	if t := d.next.Topic(r.Name); t != nil && t.ID != r.TopicID {
		return fmt.Errorf("topic %q exists already, with id %v", r.Name, t.ID)
	}
	if t := d.next.TopicByID(r.TopicID); t != nil {
		return fmt.Errorf("topic id %v exists already, for %q", r.TopicID, t.Name)
	}
	d.setTopic(newTopic(r.Name, r.TopicID))
	return nil
}

func (d *Delta) setTopic(t *Topic) {
	d.topics[t.ID] = struct{}{}
	if old := d.next.TopicByID(t.ID); old != nil {
		d.next.numPartitions -= old.NumPartitions()
	} else {
		d.next.topicIDs = d.next.topicIDs.set(t.Name, t.ID)
	}
	d.next.numPartitions += t.NumPartitions()
	d.next.topics = d.next.topics.set(t.ID, t)
}

func (d *Delta) replayPartition(r *PartitionRecord) error {
	t := d.next.TopicByID(r.TopicID)
	if t == nil {
		return fmt.Errorf("there is no topic %v for partition %d", r.TopicID, r.PartitionID)
	}
	p, err := newPartition(r)
	if err != nil {
		return fmt.Errorf("partition %s-%d: %w", t.Name, r.PartitionID, err)
	}
	d.setTopic(t.with(r.PartitionID, p))
	return nil
}

func (d *Delta) replayPartitionChange(r *PartitionChangeRecord) error {
	t := d.next.TopicByID(r.TopicID)
	if t == nil {
		return fmt.Errorf("there is no topic %v for partition %d", r.TopicID, r.PartitionID)
	}
	p := t.Partition(r.PartitionID)
	if p == nil {
		return fmt.Errorf("topic %q has no partition %d", t.Name, r.PartitionID)
	}
	p, err := p.With(r)
	if err != nil {
		return fmt.Errorf("partition %s-%d: %w", t.Name, r.PartitionID, err)
	}
	d.setTopic(t.with(r.PartitionID, p))
	return nil
}

func (d *Delta) replayRemoveTopic(r *RemoveTopicRecord) error {
	t := d.next.TopicByID(r.TopicID)
	if t == nil {
		return fmt.Errorf("there is no topic %v", r.TopicID)
	}
	d.topics[t.ID] = struct{}{}
	d.next.numPartitions -= t.NumPartitions()
	d.next.topics = d.next.topics.delete(t.ID)
	d.next.topicIDs = d.next.topicIDs.delete(t.Name)
	if res := TopicConfigs(t.Name); d.next.Config(res).Len() > 0 {
		d.configs[res] = struct{}{}
		d.next.configs = d.next.configs.delete(res)
	}
	return nil
}

func (d *Delta) replayClearELR(r *ClearELRRecord) error {
	if r.TopicName == "" {
		for t := range d.Image().Topics() {
			d.clearELR(t)
		}
		return nil
	}
	t := d.next.Topic(r.TopicName)
	if t == nil {
		return fmt.Errorf("there is no topic %q", r.TopicName)
	}
	d.clearELR(t)
	return nil
}

func (d *Delta) clearELR(t *Topic) {
	next := t
	for id, p := range t.Partitions() {
		if cleared := p.clearELR(); cleared != p {
			next = next.with(id, cleared)
		}
	}
	if next != t {
		d.setTopic(next)
	}
}

func (d *Delta) replayConfig(r *ConfigRecord) {
	res := ConfigResource{r.ResourceType, r.ResourceName}
	d.configs[res] = struct{}{}
	c := d.next.Config(res).with(r.Name, r.Value)
	if c.Len() == 0 {
		d.next.configs = d.next.configs.delete(res)
	} else {
		d.next.configs = d.next.configs.set(res, c)
	}
}

func (d *Delta) setBroker(b *Broker) {
	d.brokers[b.ID] = struct{}{}
	d.next.brokers = d.next.brokers.set(b.ID, b)
}

func (d *Delta) changeBroker(r *BrokerRegistrationChangeRecord) error {
	b := d.next.Broker(r.BrokerID)
	switch {
	case b == nil:
		return fmt.Errorf("broker %d is not registered", r.BrokerID)
	case b.Epoch != r.BrokerEpoch:
		return fmt.Errorf("broker %d has epoch %d, not %d", r.BrokerID, b.Epoch, r.BrokerEpoch)
	case r.Fenced < Unfence || r.Fenced > Fence:
		return fmt.Errorf("unknown fencing change %d", r.Fenced)
	case r.InControlledShutdown < 0 || r.InControlledShutdown > InControlledShutdown:
		return fmt.Errorf("unknown controlled shutdown change %d", r.InControlledShutdown)
	}
	d.setBroker(b.with(r))
	return nil
}

// kraftVersionFeature is kept in control records, not in the image.
const kraftVersionFeature = "kraft.version"

func (d *Delta) replayFeature(r *FeatureLevelRecord) error {
	level := r.FeatureLevel
	if r.Name == MetadataVersionFeature && (level < MinMetadataVersion || level > MaxFollowedMetadataVersion) {
		return fmt.Errorf("%s %d is outside of %d to %d",
			r.Name, level, MinMetadataVersion, MaxFollowedMetadataVersion)
	}
	if r.Name == kraftVersionFeature {
		return nil
	}
	d.features = true
	if level == 0 {
		d.next.features = d.next.features.delete(r.Name)
	} else {
		d.next.features = d.next.features.set(r.Name, level)
	}
	return nil
}

func (d *Delta) replayQuota(r *ClientQuotaRecord) {
	d.quotas = true
	key, entity := quotaKey(r.Entity)
	old, _ := d.next.quotas.get(key)
	if q := old.with(r, entity); q == nil {
		d.next.quotas = d.next.quotas.delete(key)
	} else {
		d.next.quotas = d.next.quotas.set(key, q)
	}
}
