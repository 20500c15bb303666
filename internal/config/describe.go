package config

import (
	"maps"
	"slices"
)

// Source says where a value comes from; the numbers are those of a DescribeConfigs answer.
type Source int8

// The sources of values.
const (
	SourceUnknown Source = iota
	SourceTopic
	SourceDynamicBroker
	SourceDynamicDefaultBroker
	SourceStaticBroker
	SourceDefault
	SourceBrokerLogger
	SourceClientMetrics
	SourceGroup
)

// Entry is one key of a DescribeConfigs answer.
type Entry struct {
	Name      string
	Value     *string // nil: null, and every secret
	Source    Source  // of Value: that of the first synonym
	Sensitive bool
	ReadOnly  bool
	Type      Type
	Doc       string    // "" when nothing is known of the key
	Synonyms  []Synonym // every place that gives the key a value, the deciding one first
}

// Synonym is one place that gives a key a value.
type Synonym struct {
	Name   string
	Value  *string // nil: a secret
	Source Source
}

// DescribeTopic returns the configs of a topic whose own configs are overrides, sorted by name.
// The error is an [*Error]: an override that cannot be used.
func (n *Node) DescribeTopic(overrides map[string]string) ([]Entry, error) {
	values, err := n.topicValues(overrides)
	if err != nil {
		return nil, err
	}
	return describe(topicDefinitions, values, overrides, SourceTopic, func(name string) []Synonym {
		broker, ok := topicSynonyms[name]
		if !ok {
			return nil
		}
		return n.synonyms(broker, false)
	}), nil
}

// DescribeGroup returns the configs of a group whose own configs are overrides, sorted by name.
// The error is an [*Error]: an override that cannot be used.
func (n *Node) DescribeGroup(overrides map[string]string) ([]Entry, error) {
	values, err := parseAll(groupDefinitions, n.groupProps(overrides))
	if err != nil {
		return nil, err
	}
	return describe(groupDefinitions, values, overrides, SourceGroup, func(name string) []Synonym {
		if broker := groupSynonym(name); broker != "" {
			return n.synonyms(broker, false)
		}
		return []Synonym{{name, &groupDefinitions.Lookup(name).Default, SourceDefault}}
	}), nil
}

// groupProps returns overrides over what the broker keys say.
func (n *Node) groupProps(overrides map[string]string) map[string]string {
	props := make(map[string]string, groupDefinitions.Len())
	for _, def := range groupDefinitions.ordered {
		if broker := groupSynonym(def.Name); broker != "" {
			props[def.Name] = n.values[broker].canonical()
		}
	}
	maps.Copy(props, overrides)
	return props
}

// DescribeClientMetrics returns the configs of a client metrics subscription whose own configs are overrides, sorted by
// name. The error is an [*Error]: an override that cannot be used.
func DescribeClientMetrics(overrides map[string]string) ([]Entry, error) {
	values, err := parseAll(clientMetricsDefinitions, overrides)
	if err != nil {
		return nil, err
	}
	none := func(string) []Synonym { return nil }
	return describe(clientMetricsDefinitions, values, overrides, SourceClientMetrics, none), nil
}

// describe makes entries of values. Internal keys are shown when set, and so are unknown ones, as secrets.
func describe(d *Definitions, values map[string]value, overrides map[string]string, own Source,
	inherited func(name string) []Synonym,
) []Entry {
	entries := make([]Entry, 0, d.Len())
	for _, def := range d.ordered {
		text, set := overrides[def.Name]
		if def.Internal && !set {
			continue
		}
		e := Entry{Name: def.Name, Type: def.Type, Doc: def.Doc, Source: SourceDefault}
		if v := values[def.Name]; !v.null {
			text = v.canonical()
			e.Value = &text
		}
		if set {
			e.Synonyms = []Synonym{{def.Name, e.Value, own}}
		}
		e.Synonyms = append(e.Synonyms, inherited(def.Name)...)
		entries = append(entries, e.withSource())
	}
	for name := range overrides {
		if d.Lookup(name) == nil {
			e := Entry{Name: name, Sensitive: true, Synonyms: []Synonym{{name, nil, own}}}
			entries = append(entries, e.withSource())
		}
	}
	return sorted(entries)
}

func (e Entry) withSource() Entry {
	e.Source = SourceDefault
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

func sorted(entries []Entry) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		default:
			return 0
		}
	})
	return entries
}

// DescribeBroker returns the configs of the broker, sorted by name: every key of Kafka, and of the others those that
// are set. Keys that nobody knows count as secrets.
func (n *Node) DescribeBroker() []Entry {
	entries := make([]Entry, 0, brokerDefinitions.Len())
	for _, def := range brokerDefinitions.ordered {
		if _, set := n.effective[def.Name]; set || !def.Internal {
			entries = append(entries, n.brokerEntry(def.Name, n.values[def.Name]))
		}
	}
	for name, text := range n.effective {
		if brokerDefinitions.Lookup(name) == nil {
			entries = append(entries, n.brokerEntry(name, value{typ: String, s: text}))
		}
	}
	return sorted(entries)
}

// DescribeClusterDefault returns the dynamic configs that all brokers have in common, sorted by name.
func (n *Node) DescribeClusterDefault() []Entry {
	entries := make([]Entry, 0, len(n.dynamicDefault))
	for name, text := range n.dynamicDefault {
		e := n.brokerEntry(name, value{typ: String, s: text})
		e.Synonyms = slices.DeleteFunc(e.Synonyms, func(s Synonym) bool { return s.Source != SourceDynamicDefaultBroker })
		entries = append(entries, e.withSource())
	}
	return sorted(entries)
}

func (n *Node) brokerEntry(name string, v value) Entry {
	e := Entry{Name: name, Sensitive: true, ReadOnly: true}
	if def := brokerDefinition(name); def != nil {
		e.Type, e.Sensitive = def.Type, def.Sensitive()
	}
	if def := dynamicBrokerDefinitions.Lookup(name); def != nil {
		e.ReadOnly = false
	}
	if def := documented(name); def != nil {
		e.Doc = def.Doc
	}
	if !v.null && !e.Sensitive {
		text := v.canonical()
		e.Value = &text
	}
	e.Synonyms = n.synonyms(name, e.Sensitive)
	return e.withSource()
}

// documented finds the definition of exactly this key.
func documented(name string) *Definition {
	for _, d := range []*Definitions{brokerDefinitions, ownDefinitions} {
		if def := d.Lookup(name); def != nil {
			return def
		}
	}
	return nil
}

// synonyms lists where the broker key name gets a value: dynamic settings of the broker, of the cluster, static ones,
// Kafka's default, each for all synonyms.
// Kafka: what stands before the first entry of the key itself is left out, even when it decides the value.
func (n *Node) synonyms(name string, sensitive bool) []Synonym {
	var all []Synonym
	add := func(key, text string, source Source) {
		s := Synonym{key, nil, source}
		if !sensitive {
			s.Value = &text
		}
		all = append(all, s)
	}
	keys := brokerSynonyms(name)
	for _, level := range []struct {
		props  map[string]string
		source Source
	}{
		{n.dynamicBroker, SourceDynamicBroker},
		{n.dynamicDefault, SourceDynamicDefaultBroker},
		{n.static, SourceStaticBroker},
	} {
		for _, key := range keys {
			if text, ok := level.props[key]; ok {
				add(key, text, level.source)
			}
		}
	}
	for _, key := range keys {
		if def := documented(key); def != nil && !def.Null && !def.Required {
			add(key, def.Default, SourceDefault)
		}
	}
	first := slices.IndexFunc(all, func(s Synonym) bool { return s.Name == name })
	if first < 0 {
		return nil
	}
	return all[first:]
}
