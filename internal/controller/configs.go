package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tidemark/internal/config"
	"tidemark/internal/metadata"
)

// OpType is what is done to a configuration key.
type OpType int8

// The operations, with their numbers on the wire.
const (
	OpSet      OpType = 0
	OpDelete   OpType = 1
	OpAppend   OpType = 2
	OpSubtract OpType = 3
)

// ConfigOp is one operation on one key; Value is not used by OpDelete.
type ConfigOp struct {
	Key   string
	Op    OpType
	Value *string
}

// AlterResource is the operations on one resource; all are done or none.
type AlterResource struct {
	Resource metadata.ConfigResource
	Ops      []ConfigOp
}

// IncrementalAlterConfigs changes single configuration keys. Its result is an
// [AlterConfigsResult].
type IncrementalAlterConfigs struct {
	Resources    []AlterResource
	ValidateOnly bool
}

// ReplaceConfigs is the whole new configuration of one resource.
type ReplaceConfigs struct {
	Resource metadata.ConfigResource
	Configs  []ConfigEntry
}

// AlterConfigs replaces configurations; keys that are not named go back to their
// defaults. Its result is an [AlterConfigsResult].
type AlterConfigs struct {
	Resources    []ReplaceConfigs
	ValidateOnly bool
}

// AlterConfigsResult has the resources in the order of the command.
type AlterConfigsResult struct {
	Resources []AlteredResource
}

// AlteredResource is the outcome for one resource.
type AlteredResource struct {
	Resource metadata.ConfigResource
	Err      *Error
}

func (c IncrementalAlterConfigs) decide(d *decider) (any, error) {
	resources := make([]metadata.ConfigResource, len(c.Resources))
	for i, r := range c.Resources {
		resources[i] = r.Resource
	}
	return d.alterAll(resources, c.ValidateOnly, func(i int) ([]metadata.Record, error) {
		if err := checkOps(c.Resources[i].Ops); err != nil {
			return nil, err
		}
		return d.alterConfig(resources[i], c.Resources[i].Ops, false)
	})
}

func (c AlterConfigs) decide(d *decider) (any, error) {
	resources := make([]metadata.ConfigResource, len(c.Resources))
	for i, r := range c.Resources {
		resources[i] = r.Resource
	}
	return d.alterAll(resources, c.ValidateOnly, func(i int) ([]metadata.Record, error) {
		ops := make([]ConfigOp, len(c.Resources[i].Configs))
		for k, entry := range c.Resources[i].Configs {
			ops[k] = ConfigOp{entry.Key, OpSet, entry.Value}
		}
		if err := checkOps(ops); err != nil {
			return nil, err
		}
		return d.replaceConfig(resources[i], ops)
	})
}

// alterAll decides resource by resource; one that comes twice is refused.
func (d *decider) alterAll(resources []metadata.ConfigResource, validateOnly bool,
	alter func(i int) ([]metadata.Record, error)) (any, error) {
	count := map[metadata.ConfigResource]int{}
	for _, r := range resources {
		count[r]++
	}
	var res AlterConfigsResult
	for i, r := range resources {
		out := AlteredResource{Resource: r}
		switch {
		case count[r] > 1:
			out.Err = refuse(ErrInvalidRequest, "Each resource must appear at most once.")
		case !storable(r.Type):
			out.Err = refuse(ErrInvalidRequest, "Unknown resource type %d", r.Type)
		default:
			records, err := alter(i)
			out.Err = asError(err, ErrInvalidConfig)
			d.records = append(d.records, records...)
		}
		res.Resources = append(res.Resources, out)
	}
	d.records = append(d.records, d.clearELRAsNeeded(d.records)...)
	if validateOnly {
		d.records = nil
	}
	return res, nil
}

func storable(t metadata.ResourceType) bool {
	switch t {
	case metadata.ResourceTopic, metadata.ResourceBroker, metadata.ResourceClientMetrics, metadata.ResourceGroup:
		return true
	}
	return false
}

// checkOps refuses keys that come twice and values that are null.
func checkOps(ops []ConfigOp) error {
	seen := map[string]bool{}
	var nulls []string
	for _, op := range ops {
		if seen[op.Key] {
			return refuse(ErrInvalidRequest, "Error due to duplicate config keys")
		}
		seen[op.Key] = true
		if op.Op != OpDelete && op.Value == nil {
			nulls = append(nulls, op.Key)
		}
	}
	if nulls != nil {
		return refuse(ErrInvalidRequest, "Null value not supported for : %s", strings.Join(nulls, ", "))
	}
	return nil
}

// alterConfig returns the records of operations on one resource, which is new
// when it comes into being with the same decision.
func (d *decider) alterConfig(r metadata.ConfigResource, ops []ConfigOp, isNew bool) ([]metadata.Record, error) {
	var changes []*metadata.ConfigRecord
	for _, op := range ops {
		current := storedValue(d.Image, r, op.Key)
		value, err := applyOp(r, op, current)
		if err != nil {
			return nil, err
		}
		// Kafka: KAFKA-14136, a broker's configuration is written even when it stays
		// the same, so that the broker loads it anew (a renewed key store).
		if r.Type == metadata.ResourceBroker || !equalValues(current, value) {
			changes = append(changes, configRecord(r, op.Key, value))
		}
	}
	return d.checkedChanges(r, changes, nil, isNew)
}

// applyOp returns the new value of a key, nil when it has none.
func applyOp(r metadata.ConfigResource, op ConfigOp, current *string) (*string, error) {
	before := map[string]string{}
	if current != nil {
		before[op.Key] = *current
	}
	change := config.Change{Name: op.Key, Op: config.Op(op.Op)}
	if op.Value != nil {
		change.Value = *op.Value
	}
	value, present, err := config.Apply(config.ResourceType(r.Type), before, change)
	if err != nil {
		return nil, refusal(err)
	}
	if !present {
		return nil, nil
	}
	return &value, nil
}

// replaceConfig returns the records that make ops, all of them OpSet, the whole
// configuration of a resource.
func (d *decider) replaceConfig(r metadata.ConfigResource, ops []ConfigOp) ([]metadata.Record, error) {
	var changes, removals []*metadata.ConfigRecord
	named := map[string]bool{}
	for _, op := range ops {
		named[op.Key] = true
		current := storedValue(d.Image, r, op.Key)
		if r.Type == metadata.ResourceBroker || !equalValues(current, op.Value) {
			changes = append(changes, configRecord(r, op.Key, op.Value))
		}
	}
	for key := range d.Image.Config(r).All() {
		if !named[key] {
			removals = append(removals, configRecord(r, key, nil))
		}
	}
	return d.checkedChanges(r, changes, removals, false)
}

func configRecord(r metadata.ConfigResource, key string, value *string) *metadata.ConfigRecord {
	return &metadata.ConfigRecord{ResourceType: r.Type, ResourceName: r.Name, Name: key, Value: value}
}

func storedValue(i *metadata.Image, r metadata.ConfigResource, key string) *string {
	if v, ok := i.Config(r).Get(key); ok {
		return &v
	}
	return nil
}

func equalValues(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// checkedChanges checks what the configuration would be after the changes and
// removals, and returns their records.
func (d *decider) checkedChanges(r metadata.ConfigResource, changes, removals []*metadata.ConfigRecord,
	isNew bool) ([]metadata.Record, error) {
	before := d.Image.Config(r).Map()
	after := maps.Clone(before)
	var records []metadata.Record
	for _, c := range slices.Concat(changes, removals) {
		if err := d.checkMinISR(c); err != nil {
			return nil, err
		}
		switch {
		case c.Value == nil:
			delete(after, c.Name)
		case len(*c.Value) > maxConfigValue:
			return nil, refuse(ErrInvalidConfig, "The configuration value cannot be added because it exceeds the maximum "+
				"value size of %d bytes.", maxConfigValue)
		default:
			after[c.Name] = *c.Value
		}
		records = append(records, metadata.Record{Body: c})
	}
	if err := d.Validate(r, after, before); err != nil {
		return nil, asError(err, ErrInvalidConfig)
	}
	if !isNew {
		if err := d.checkExists(r); err != nil {
			return nil, err
		}
	}
	return records, nil
}

const (
	maxConfigValue = 32767
	minISRKey      = "min.insync.replicas"
	uncleanKey     = "unclean.leader.election.enable"
)

// checkMinISR keeps min.insync.replicas the same for all brokers and always
// there, as long as eligible leader replicas depend on it (KIP-966).
func (d *decider) checkMinISR(c *metadata.ConfigRecord) error {
	if c.Name != minISRKey || c.ResourceType != metadata.ResourceBroker || !d.elrEnabled() {
		return nil
	}
	if c.ResourceName != "" {
		return refuse(ErrInvalidConfig, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
	}
	if c.Value == nil {
		return refuse(ErrInvalidConfig, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
	}
	return nil
}

// checkExists refuses topics and brokers that are not there.
func (d *decider) checkExists(r metadata.ConfigResource) error {
	switch {
	case r.Type == metadata.ResourceTopic && d.Image.Topic(r.Name) == nil:
		return refuse(ErrUnknownTopic, "The topic '%s' does not exist.", r.Name)
	case r.Type == metadata.ResourceBroker && r.Name != "":
		id, err := strconv.ParseInt(r.Name, 10, 32)
		if err != nil {
			return refuse(ErrInvalidRequest, "Invalid broker name %s", r.Name)
		}
		if d.Image.Broker(int32(id)) == nil && int32(id) != d.NodeID {
			return refuse(ErrBrokerNotRegistered, "No node with id %d found.", id)
		}
	}
	return nil
}

// clearELRAsNeeded returns the records that forget eligible leader replicas
// where min.insync.replicas changes.
func (d *decider) clearELRAsNeeded(records []metadata.Record) []metadata.Record {
	if !d.elrEnabled() {
		return nil
	}
	var out []metadata.Record
	for _, rec := range records {
		c, ok := rec.Body.(*metadata.ConfigRecord)
		if !ok || c.Name != minISRKey {
			continue
		}
		clear := &metadata.ClearELRRecord{}
		if c.ResourceType == metadata.ResourceTopic {
			clear.TopicName = c.ResourceName
		}
		out = append(out, metadata.Record{Body: clear})
	}
	return out
}

// minISR is min.insync.replicas of a topic, at most its replication factor.
func (d *decider) minISR(t *metadata.Topic) int {
	n := int(d.MinInsyncReplicas)
	if text, ok := d.topicConfig(t.Name, minISRKey); ok {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			panic(fmt.Sprintf("controller: min.insync.replicas of %s: %v", t.Name, err))
		}
	}
	return min(n, replicationFactor(t))
}

// unclean reports whether the topic may elect a leader that is not in sync.
func (d *decider) unclean(t *metadata.Topic) bool {
	if text, ok := d.topicConfig(t.Name, uncleanKey); ok {
		return strings.EqualFold(text, "true")
	}
	return d.UncleanLeaderElection
}
