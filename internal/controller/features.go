package controller

import (
	"fmt"
	"slices"
	"strconv"

	"tidemark/internal/metadata"
)

// feature is what this program knows of one feature.
type feature struct {
	name     string
	min, max int16
	initial  int16 // finalized when a cluster is made; 0 = not
	follows  int16 // a level above max up to this one is followed where it is finalized already
	// needs is the level of metadata.version that a level of the feature needs.
	needs map[int16]int16
}

// features are those of Kafka 4.3.1, by name.
var features = []feature{
	{name: elrFeature, max: 1, initial: 1, needs: map[int16]int16{1: 23}},
	{name: "group.version", max: 1, initial: 1},
	{name: kraftVersion, max: 1},
	{name: metadata.MetadataVersionFeature,
		min: metadata.MinMetadataVersion, max: metadata.MaxMetadataVersion, initial: metadata.MaxMetadataVersion,
		follows: metadata.MaxFollowedMetadataVersion},
	{name: "share.version", max: 1, initial: 1, follows: 2}, // of Kafka 4.4; share groups are not served
	{name: "streams.version", max: 1, initial: 1},
	{name: "transaction.version", max: 2, initial: 2},
}

const kraftVersion = "kraft.version"

// SupportedFeatures is what a node that writes Kafka 4.3.1's metadata declares,
// by name.
func SupportedFeatures() []metadata.FeatureRange {
	list := make([]metadata.FeatureRange, len(features))
	for i, f := range features {
		list[i] = metadata.FeatureRange{Name: f.name, Min: f.min, Max: f.max}
	}
	return list
}

// FollowedFeatures is SupportedFeatures for a cluster whose features may be finalized at levels of a newer Kafka: those
// that are followed are declared.
func FollowedFeatures(image *metadata.Image) []metadata.FeatureRange {
	list := SupportedFeatures()
	for i, f := range features {
		if level := image.FeatureLevel(f.name); level > f.max && level <= f.follows {
			list[i].Max = level
		}
	}
	return list
}

// CheckFeatures says which finalized feature this program does not know, or not at that level; nil when it can follow
// all of them.
func CheckFeatures(image *metadata.Image) error {
	for name, level := range image.Features() {
		i := slices.IndexFunc(features, func(f feature) bool { return f.name == name })
		if i < 0 {
			return fmt.Errorf("feature %s (level %d) is not known: a newer Kafka has led this cluster", name, level)
		}
		if f := features[i]; level < f.min || level > max(f.max, f.follows) {
			return fmt.Errorf("feature %s has level %d, known are levels %d to %d: a newer Kafka has led this cluster",
				name, level, f.min, max(f.max, f.follows))
		}
	}
	return nil
}

// BootstrapFeatures returns the records that a new cluster begins with: the
// features at the levels of Kafka 4.3.1, metadata.version first.
func BootstrapFeatures() []metadata.Record {
	level := func(name string, level int16) metadata.Record {
		return metadata.Record{Body: &metadata.FeatureLevelRecord{Name: name, FeatureLevel: level}}
	}
	records := []metadata.Record{level(metadata.MetadataVersionFeature, metadata.MaxMetadataVersion)}
	for _, f := range features {
		if f.initial > 0 && f.name != metadata.MetadataVersionFeature {
			records = append(records, level(f.name, f.initial))
		}
	}
	return records
}

// Activate makes a node the controller of its cluster. On an empty image it
// writes Bootstrap in a metadata transaction; otherwise it aborts a transaction
// that was left open. It has no result.
type Activate struct {
	Bootstrap       []metadata.Record // of [BootstrapFeatures], or of a file that says otherwise
	TransactionOpen bool
}

func (c Activate) decide(d *decider) (any, error) {
	d.atomic = false
	if c.TransactionOpen {
		d.add(0, &metadata.AbortTransactionRecord{Reason: ptr("Controller failover")})
	}
	if d.level > 0 {
		return nil, nil
	}
	var level, elr int16
	for _, rec := range c.Bootstrap {
		if f, ok := rec.Body.(*metadata.FeatureLevelRecord); ok {
			switch f.Name {
			case metadata.MetadataVersionFeature:
				level = f.FeatureLevel
			case elrFeature:
				elr = f.FeatureLevel
			}
		}
	}
	if metadata.SupportsTransactions(level) {
		d.add(0, &metadata.BeginTransactionRecord{Name: ptr("Bootstrap records")})
	}
	d.records = append(d.records, c.Bootstrap...)
	if elr > 0 {
		d.add(0, &metadata.ConfigRecord{
			ResourceType: metadata.ResourceBroker, Name: minISRKey, Value: ptr(strconv.Itoa(int(d.MinInsyncReplicas))),
		})
	}
	if metadata.SupportsTransactions(level) {
		d.add(0, &metadata.EndTransactionRecord{})
	}
	return nil, nil
}

func ptr[T any](v T) *T { return &v }

// UpgradeType says whether a feature may go down.
type UpgradeType int8

// The upgrade types, with their numbers on the wire.
const (
	Upgrade         UpgradeType = 1
	SafeDowngrade   UpgradeType = 2
	UnsafeDowngrade UpgradeType = 3
)

// FeatureUpdate is a feature with the level it is to have; 0 disables it.
type FeatureUpdate struct {
	Name  string
	Level int16
	Type  UpgradeType
}

// UpdateFeatures changes finalized features, all of them or none. It has no
// result; the error says which update was refused.
type UpdateFeatures struct {
	Updates      []FeatureUpdate
	ValidateOnly bool
}

func (c UpdateFeatures) decide(d *decider) (any, error) {
	proposed := map[string]int16{}
	for name, level := range d.Image.Features() {
		proposed[name] = level
	}
	for _, u := range c.Updates {
		proposed[u.Name] = u.Level
	}
	for _, u := range c.Updates {
		if err := d.updateFeature(u, proposed); err != nil {
			return nil, refuse(err.Reason,
				"The update failed for all features since the following feature had an error: %s", err.Message)
		}
	}
	if !d.elrEnabled() && proposed[elrFeature] > 0 {
		d.records = append(d.elrSafetyRecords(), d.records...)
	}
	if c.ValidateOnly {
		d.records = nil
	}
	return nil, nil
}

// elrSafetyRecords make min.insync.replicas the same for all brokers, on which
// eligible leader replicas rely.
func (d *decider) elrSafetyRecords() []metadata.Record {
	var out []metadata.Record
	if storedValue(d.Image, metadata.ClusterConfigs, minISRKey) == nil {
		out = append(out, metadata.Record{Body: configRecord(metadata.ClusterConfigs, minISRKey,
			ptr(strconv.Itoa(int(d.MinInsyncReplicas))))})
	}
	for r, c := range d.Image.ConfigResources() {
		if _, ok := c.Get(minISRKey); ok && r.Type == metadata.ResourceBroker && r.Name != "" {
			out = append(out, metadata.Record{Body: configRecord(r, minISRKey, nil)})
		}
	}
	return out
}

func (d *decider) updateFeature(u FeatureUpdate, proposed map[string]int16) *Error {
	invalid := func(format string, args ...any) *Error {
		return refuse(ErrInvalidUpdateVersion, "Invalid update version %d for feature %s. %s",
			u.Level, u.Name, fmt.Sprintf(format, args...))
	}
	current := d.Image.FeatureLevel(u.Name)
	switch {
	case u.Type < Upgrade || u.Type > UnsafeDowngrade:
		return invalid("The controller does not support the given upgrade type.")
	case u.Level < 0:
		return invalid("A feature version cannot be less than 0.")
	}
	if reason := d.notSupported(u.Name, u.Level); reason != "" {
		return invalid("%s", reason)
	}
	switch {
	case u.Level < current && u.Type == Upgrade:
		return invalid("Can't downgrade the version of this feature without setting the upgrade type to either safe " +
			"or unsafe downgrade.")
	case u.Level > current && u.Type != Upgrade:
		return invalid("Can't downgrade to a newer version.")
	case u.Name == metadata.MetadataVersionFeature:
		if err := d.checkMetadataVersion(u); err != nil {
			return err
		}
	case u.Name == kraftVersion && u.Level != current:
		return invalid("The static quorum of this node does not support it.")
	case u.Name == kraftVersion:
		return nil
	default:
		if err := checkDependencies(u, proposed); err != nil {
			return invalid("%s", err.Error())
		}
	}
	d.add(0, &metadata.FeatureLevelRecord{Name: u.Name, FeatureLevel: u.Level})
	return nil
}

// notSupported says which node cannot follow a level, "" when all can.
func (d *decider) notSupported(name string, level int16) string {
	var local metadata.FeatureRange
	for _, f := range d.Features {
		if f.Name == name {
			local = f
		}
	}
	if reason := outOfRange("Local controller "+strconv.Itoa(int(d.NodeID)), local, level); reason != "" {
		return reason
	}
	for b := range d.Image.Brokers() {
		if reason := outOfRange("Broker "+strconv.Itoa(int(b.ID)), b.Feature(name), level); reason != "" {
			return reason
		}
	}
	return ""
}

func outOfRange(who string, r metadata.FeatureRange, level int16) string {
	switch {
	case level >= r.Min && level <= r.Max:
		return ""
	case r.Max == 0:
		return who + " does not support this feature."
	case r.Min == r.Max:
		return fmt.Sprintf("%s only supports versions %d", who, r.Min)
	default:
		return fmt.Sprintf("%s only supports versions %d-%d", who, r.Min, r.Max)
	}
}

// changesRecords has the levels of metadata.version that changed what records
// there are, so that going below one could lose what they say.
var changesRecords = map[int16]bool{
	7: true, 8: true, 11: true, 13: true, 14: true, 15: true, 17: true, 23: true, 30: true,
}

func (d *decider) checkMetadataVersion(u FeatureUpdate) *Error {
	if u.Level >= d.level {
		return nil
	}
	for level := d.level; level > u.Level; level-- {
		if !changesRecords[level] {
			continue
		}
		text := "Refusing to perform the requested downgrade because it might delete metadata information."
		if u.Type == UnsafeDowngrade {
			text = "Unsafe metadata downgrade is not supported in this version."
		}
		return refuse(ErrInvalidUpdateVersion, "Unsupported metadata.version downgrade from %d to %d. %s",
			d.level, u.Level, text)
	}
	return nil
}

func checkDependencies(u FeatureUpdate, proposed map[string]int16) error {
	for _, f := range features {
		if f.name != u.Name {
			continue
		}
		if need := f.needs[u.Level]; need > proposed[metadata.MetadataVersionFeature] {
			return fmt.Errorf("%s could not be set to %d because it depends on metadata.version level %d",
				u.Name, u.Level, need)
		}
		return nil
	}
	return fmt.Errorf("Feature %s not found.", u.Name) //nolint:staticcheck // Kafka's text
}
