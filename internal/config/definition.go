package config

import (
	"maps"
	"slices"
)

// Type is the type of a configuration value; the numbers are those of a DescribeConfigs answer.
type Type int8

// The types of configuration values. Unknown is what custom keys have.
const (
	Unknown Type = iota
	Boolean
	String
	Int    // 32 bit
	Short  // 16 bit
	Long   // 64 bit
	Double // 64 bit
	List   // separated by commas, white space around them ignored
	Class  // the name of a Java class
	Password
)

// String returns Kafka's name of the type, as its error texts have it.
func (t Type) String() string {
	names := [...]string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}
	if t < 0 || int(t) >= len(names) {
		return "UNKNOWN"
	}
	return names[t]
}

// Importance says how many users need a key.
type Importance int8

// The importances, most important first.
const (
	High Importance = iota
	Medium
	Low
)

// UpdateMode says whether and where a broker key can be changed while the broker runs.
type UpdateMode int8

// The update modes of broker keys.
const (
	ReadOnly    UpdateMode = iota // only in server.properties, with a restart
	PerBroker                     // for one broker at a time
	ClusterWide                   // for one broker, or as the default of all
)

// Definition is what is known of one key.
type Definition struct {
	Name       string
	Type       Type
	Default    string // in canonical form; meaningless when Null or Required
	Null       bool   // the default is null
	Required   bool   // there is no default
	Internal   bool   // not shown unless set
	Importance Importance
	Update     UpdateMode // broker keys only
	Doc        string

	check check // nil: every value of the type
}

// Sensitive reports whether the value is a secret that no answer and no log line may show.
func (d *Definition) Sensitive() bool { return d.Type == Password }

// listsWithDuplicates are the list keys of which Kafka keeps elements that come twice.
var listsWithDuplicates = []string{
	"controller.quorum.bootstrap.servers", "controller.quorum.voters", "follower.replication.throttled.replicas",
	"leader.replication.throttled.replicas",
}

// parse reads a value, without checking it.
func (d *Definition) parse(text string) (value, error) {
	v, err := parseValue(d.Name, text, d.Type)
	if d.Type == List && !slices.Contains(listsWithDuplicates, d.Name) {
		v.list = distinct(v.list)
	}
	return v, err
}

// distinct drops the elements that stood in the list before.
func distinct(elements []string) []string {
	kept := make([]string, 0, len(elements))
	seen := make(map[string]bool, len(elements))
	for _, e := range elements {
		if !seen[e] {
			kept = append(kept, e)
		}
		seen[e] = true
	}
	return kept
}

// Definitions are the keys of one kind of resource. They never change.
type Definitions struct {
	ordered []*Definition // the order in which Kafka checks them: the first bad value is the one reported
	byName  map[string]*Definition
}

// Lookup returns the definition of a key, nil when there is none.
func (d *Definitions) Lookup(name string) *Definition { return d.byName[name] }

// Names returns all keys, sorted.
func (d *Definitions) Names() []string { return slices.Sorted(maps.Keys(d.byName)) }

// Len returns the number of keys.
func (d *Definitions) Len() int { return len(d.ordered) }

func define(groups ...[]Definition) *Definitions {
	d := &Definitions{byName: make(map[string]*Definition)}
	for _, g := range groups {
		for i := range g {
			d.ordered = append(d.ordered, &g[i])
			d.byName[g[i].Name] = &g[i]
		}
	}
	return d
}

// key, nullKey and requiredKey are the rows of the tables of definitions.
func key(name string, t Type, value string, c check, i Importance, doc string) Definition {
	return Definition{Name: name, Type: t, Default: value, check: c, Importance: i, Doc: doc}
}

func nullKey(name string, t Type, c check, i Importance, doc string) Definition {
	return Definition{Name: name, Type: t, Null: true, check: c, Importance: i, Doc: doc}
}

func requiredKey(name string, t Type, c check, i Importance, doc string) Definition {
	return Definition{Name: name, Type: t, Required: true, check: c, Importance: i, Doc: doc}
}

func (d Definition) internal() Definition {
	d.Internal = true
	return d
}
