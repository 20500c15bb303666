package controller

import (
	"errors"
	"fmt"
	"io"

	"tidemark/internal/config"
	"tidemark/internal/metadata"
)

// MaxRecords is how many records one command may produce.
const MaxRecords = 10000

// Options says what a Controller is to know of its node; [NodeOptions] fills it
// in from the node's settings.
type Options struct {
	ClusterID                string
	NodeID                   int32
	DefaultPartitions        int32                   // num.partitions
	DefaultReplicationFactor int16                   // default.replication.factor
	MinInsyncReplicas        int32                   // min.insync.replicas, without dynamic configuration
	UncleanLeaderElection    bool                    // unclean.leader.election.enable, likewise
	NoTopicDeletion          bool                    // delete.topic.enable=false
	Features                 []metadata.FeatureRange // what this node can follow
	// Validate checks all of what a resource's configuration would be, before
	// being what it is. An error that is no *Error is refused as ErrInvalidConfig
	// with its text.
	Validate func(r metadata.ConfigResource, after, before map[string]string) error
}

// NodeOptions returns the options for a node: static is its settings without
// dynamic configuration, current those in force. The error is that of static's
// topic defaults.
func NodeOptions(clusterID string, static *config.Node, current func() *config.Node) (Options, error) {
	b := static.Broker()
	topic, err := static.Topic(nil)
	if err != nil {
		return Options{}, err
	}
	v := config.Validator{Node: current}
	return Options{
		ClusterID: clusterID, NodeID: b.NodeID,
		DefaultPartitions: b.NumPartitions, DefaultReplicationFactor: int16(b.DefaultReplicationFactor),
		MinInsyncReplicas: topic.MinInsyncReplicas, UncleanLeaderElection: topic.UncleanLeaderElectionEnable,
		NoTopicDeletion: !b.DeleteTopicEnable,
		Features:        SupportedFeatures(),
		Validate: func(r metadata.ConfigResource, after, before map[string]string) error {
			return refusal(v.Validate(config.Resource{Type: config.ResourceType(r.Type), Name: r.Name}, after, before))
		},
	}, nil
}

// refusal gives a refusal of package config this package's reason.
func refusal(err error) error {
	var e *config.Error
	if !errors.As(err, &e) {
		return err
	}
	reason := ErrInvalidConfig
	switch {
	case errors.Is(e, config.ErrInvalidRequest):
		reason = ErrInvalidRequest
	case errors.Is(e, config.ErrInvalidTopic):
		reason = ErrInvalidTopic
	}
	return &Error{Reason: reason, Message: e.Message}
}

// Controller decides commands.
type Controller struct {
	o Options
}

// New returns a Controller.
func New(o Options) *Controller { return &Controller{o: o} }

// State is what a decision is based on.
type State struct {
	Image *metadata.Image
	// NextOffset is the offset that the first record of the decision will have.
	NextOffset int64
	// Random gives the ids of new topics.
	Random io.Reader
}

// Decision is what a command comes to.
type Decision struct {
	Records []metadata.Record
	// Atomic means that the records must be in one batch.
	Atomic bool
	// Result is the command's result, of the type that the command names.
	Result any
}

// Command is one of this package's command structs.
type Command interface {
	decide(*decider) (any, error)
}

// Decide works out a command. The error is an *[Error], or that of reading
// State.Random; nothing is to be appended then.
func (c *Controller) Decide(s State, cmd Command) (Decision, error) {
	d := decider{Options: &c.o, State: s, level: s.Image.MetadataVersion(), atomic: true}
	result, err := cmd.decide(&d)
	if err != nil {
		return Decision{}, err
	}
	if d.atomic && len(d.records) > MaxRecords {
		return Decision{}, refuse(ErrPolicyViolation, "Unable to perform excessively large batch operation.")
	}
	return Decision{Records: d.records, Atomic: d.atomic, Result: result}, nil
}

// decider is the state of one decision.
type decider struct {
	*Options
	State
	level   int16 // of metadata.version
	records []metadata.Record
	atomic  bool
}

func (d *decider) add(version int16, body metadata.Body) {
	d.records = append(d.records, metadata.Record{Version: version, Body: body})
}

func (d *decider) randomID() (metadata.UUID, error) {
	return NewUUID(d.Random)
}

// NewUUID draws a version 4 id that is not reserved and does not begin with a
// hyphen in its text form, as Kafka does it, so that it can stand on a command
// line.
func NewUUID(random io.Reader) (metadata.UUID, error) {
	for range 1000 {
		var id metadata.UUID
		if _, err := io.ReadFull(random, id[:]); err != nil {
			return id, fmt.Errorf("draw a random id: %w", err)
		}
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if !id.Reserved() && id.String()[0] != '-' {
			return id, nil
		}
	}
	return metadata.UUID{}, fmt.Errorf("draw a random id: the source repeats itself")
}

const elrFeature = "eligible.leader.replicas.version"

func (d *decider) elrEnabled() bool { return d.Image.FeatureLevel(elrFeature) >= 1 }

// isActive reports whether a broker may lead and count as in sync.
func (d *decider) isActive(broker int32) bool {
	b := d.Image.Broker(broker)
	return b != nil && b.Active()
}

// topicConfig resolves a topic configuration that has the same name as its
// broker key; false when only the node's properties have it.
func (d *decider) topicConfig(topic, key string) (string, bool) {
	for _, r := range []metadata.ConfigResource{
		metadata.TopicConfigs(topic),
		{Type: metadata.ResourceBroker, Name: fmt.Sprint(d.NodeID)},
		metadata.ClusterConfigs,
	} {
		if v, ok := d.Image.Config(r).Get(key); ok {
			return v, true
		}
	}
	return "", false
}

// checkEpoch refuses a broker that is not registered, or not with that epoch.
func (d *decider) checkEpoch(broker int32, epoch int64) (*metadata.Broker, error) {
	b := d.Image.Broker(broker)
	if b == nil {
		return nil, refuse(ErrStaleBrokerEpoch, "No broker registration found for broker id %d", broker)
	}
	if b.Epoch != epoch {
		return nil, refuse(ErrStaleBrokerEpoch, "Expected broker epoch %d, but got broker epoch %d", b.Epoch, epoch)
	}
	return b, nil
}
