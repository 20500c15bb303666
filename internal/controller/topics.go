package controller

import (
	"strings"

	"tidemark/internal/metadata"
)

const (
	metadataTopic      = "__cluster_metadata"
	maxTopicNameLength = 249
	maxNewPartitions   = 10000 // of one CreateTopics
)

// ConfigEntry is a configuration key with a value; nil stands for null.
type ConfigEntry struct {
	Key   string
	Value *string
}

// Assignment is the replicas of one partition, in order of preference.
type Assignment struct {
	Partition int32
	Brokers   []int32
}

// NewTopic is a topic to be created.
type NewTopic struct {
	Name              string
	Partitions        int32        // -1 = default, and with Assignments
	ReplicationFactor int16        // -1 = default, and with Assignments
	Assignments       []Assignment // empty: the controller places the replicas
	Configs           []ConfigEntry
}

// CreateTopics creates topics. Its result is a [CreateTopicsResult].
type CreateTopics struct {
	Topics       []NewTopic
	ValidateOnly bool
}

// CreatedTopic is one topic of a [CreateTopicsResult]; when Err is nil, what was
// or would be created.
type CreatedTopic struct {
	Name              string
	ID                metadata.UUID
	Partitions        int32
	ReplicationFactor int16
	Err               *Error
}

// CreateTopicsResult has the topics in the order of the command, each name once;
// names given more than once come last.
type CreateTopicsResult struct {
	Topics []CreatedTopic
}

func (c CreateTopics) decide(d *decider) (any, error) {
	topics, result := c.separate()
	if err := d.checkTotalPartitions(topics); err != nil {
		return nil, err
	}
	collisions := d.collisions()
	var created []CreatedTopic
	for _, t := range topics {
		res, err := d.createTopic(t, collisions)
		if err != nil {
			res.Err = asError(err, ErrUnknownServerError)
		}
		created = append(created, res)
	}
	if c.ValidateOnly {
		d.records = nil
	}
	return CreateTopicsResult{append(created, result...)}, nil
}

// separate takes out names that may not be or come twice, with their refusals.
func (c CreateTopics) separate() (topics []NewTopic, refused []CreatedTopic) {
	count := map[string]int{}
	for _, t := range c.Topics {
		count[t.Name]++
	}
	for _, t := range c.Topics {
		switch n := count[t.Name]; {
		case n < 0: // seen
		case n > 1:
			count[t.Name] = -1
			refused = append(refused, CreatedTopic{Name: t.Name, Err: refuse(ErrInvalidRequest, "Duplicate topic name.")})
		case t.Name == metadataTopic:
			refused = append(refused, CreatedTopic{Name: t.Name,
				Err: refuse(ErrInvalidRequest, "Creation of internal topic %s is prohibited.", metadataTopic)})
		default:
			topics = append(topics, t)
		}
	}
	return topics, refused
}

func (d *decider) checkTotalPartitions(topics []NewTopic) error {
	total := 0
	for _, t := range topics {
		switch {
		case len(t.Assignments) > 0:
			total += len(t.Assignments)
		case t.Partitions == -1:
			total += int(d.DefaultPartitions)
		case t.Partitions > 0:
			total += int(t.Partitions)
		}
	}
	if total > maxNewPartitions {
		return refuse(ErrPolicyViolation, "Excessively large number of partitions per request.")
	}
	return nil
}

// collisions maps names with their periods made underscores to an existing
// topic: names that differ in nothing else would share the names of metrics.
func (d *decider) collisions() map[string]string {
	m := map[string]string{}
	for t := range d.Image.Topics() {
		if strings.ContainsAny(t.Name, "._") {
			m[strings.ReplaceAll(t.Name, ".", "_")] = t.Name
		}
	}
	return m
}

func (d *decider) createTopic(t NewTopic, collisions map[string]string) (CreatedTopic, error) {
	res := CreatedTopic{Name: t.Name}
	if d.Image.Topic(t.Name) != nil {
		return res, refuse(ErrTopicExists, "Topic '%s' already exists.", t.Name)
	}
	if other, ok := collisions[strings.ReplaceAll(t.Name, ".", "_")]; ok && strings.ContainsAny(t.Name, "._") {
		return res, refuse(ErrInvalidTopic, "Topic '%s' collides with existing topic: %s", t.Name, other)
	}
	if err := CheckTopicName(t.Name); err != nil {
		return res, err
	}
	configs, err := d.newTopicConfigs(t)
	if err != nil {
		return res, err
	}
	partitions, err := d.newPartitions(t)
	if err != nil {
		return res, err
	}
	if res.ID, err = d.randomID(); err != nil {
		return res, err
	}
	d.add(0, &metadata.TopicRecord{Name: t.Name, TopicID: res.ID})
	d.records = append(d.records, configs...)
	for i, p := range partitions {
		d.records = append(d.records, p.Record(res.ID, int32(i), d.level))
	}
	res.Partitions = int32(len(partitions))
	res.ReplicationFactor = int16(len(partitions[0].Replicas))
	return res, nil
}

// CheckTopicName refuses names that no topic may have; the error is an *[Error]
// with reason [ErrInvalidTopic].
func CheckTopicName(name string) error {
	reason := ""
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == "." || name == "..":
		reason = "'" + name + "' is not allowed"
	case len(name) > maxTopicNameLength:
		return refuse(ErrInvalidTopic, "Topic name is invalid: the length of '%s' is longer than the max allowed length %d",
			name, maxTopicNameLength)
	case strings.ContainsFunc(name, func(r rune) bool { return !legalInTopicName(r) }):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return refuse(ErrInvalidTopic, "Topic name is invalid: %s", reason)
}

func legalInTopicName(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// newTopicConfigs returns the records of a new topic's configuration.
func (d *decider) newTopicConfigs(t NewTopic) ([]metadata.Record, error) {
	var nulls []string
	ops := make([]ConfigOp, 0, len(t.Configs))
	for _, c := range t.Configs {
		if c.Value == nil {
			nulls = append(nulls, c.Key)
		}
		ops = append(ops, ConfigOp{Key: c.Key, Op: OpSet, Value: c.Value})
	}
	if nulls != nil {
		return nil, refuse(ErrInvalidConfig, "Null value not supported for topic configs: %s", strings.Join(nulls, ","))
	}
	if len(ops) == 0 {
		return nil, nil
	}
	changes, err := d.alterConfig(metadata.TopicConfigs(t.Name), ops, true)
	if err != nil {
		return nil, err
	}
	return append(changes, d.clearELRAsNeeded(changes)...), nil
}

// DeleteTopics deletes topics by id or by name. Its result is a
// [DeleteTopicsResult].
type DeleteTopics struct {
	IDs   []metadata.UUID
	Names []string
}

// DeletedTopic is one topic of a [DeleteTopicsResult]. Name is "" when an id is
// not known, ID zero when a name is not.
type DeletedTopic struct {
	ID   metadata.UUID
	Name string
	Err  *Error
}

// DeleteTopicsResult has the topics that are refused first, then those that are deleted.
type DeleteTopicsResult struct {
	Topics []DeletedTopic
}

func (c DeleteTopics) decide(d *decider) (any, error) {
	if d.NoTopicDeletion {
		return nil, &Error{Reason: ErrTopicDeletionDisabled}
	}
	x := deletion{chosen: map[metadata.UUID]*metadata.Topic{}}
	for _, id := range unique(c.IDs) {
		x.byID(d.Image.TopicByID(id.value), id)
	}
	for _, name := range unique(c.Names) {
		x.byName(d.Image.Topic(name.value), name)
	}
	for _, id := range x.order {
		if t := x.chosen[id]; t != nil {
			x.result.Topics = append(x.result.Topics, d.deleteTopic(t))
		}
	}
	return x.result, nil
}

// deletion is which topics a request chooses, and what it is refused.
type deletion struct {
	chosen map[metadata.UUID]*metadata.Topic // nil: refused after all
	order  []metadata.UUID
	result DeleteTopicsResult
}

func (x *deletion) refuse(t DeletedTopic, reason error, text string) {
	t.Err = refuse(reason, "%s", text)
	x.result.Topics = append(x.result.Topics, t)
}

func (x *deletion) choose(t *metadata.Topic) {
	x.chosen[t.ID] = t
	x.order = append(x.order, t.ID)
}

func (x *deletion) byID(t *metadata.Topic, id counted[metadata.UUID]) {
	switch {
	case id.times > 1:
		x.chosen[id.value] = nil
		x.refuse(DeletedTopic{ID: id.value}, ErrInvalidRequest, "Duplicate topic id.")
	case t == nil:
		x.refuse(DeletedTopic{ID: id.value}, ErrUnknownTopicID, unknownTopicIDText)
	default:
		x.choose(t)
	}
}

// byName also takes back a topic that was chosen by its id: that id gets no answer of its own.
func (x *deletion) byName(t *metadata.Topic, name counted[string]) {
	if name.times > 1 {
		x.refuse(DeletedTopic{Name: name.value}, ErrInvalidRequest, "Duplicate topic name.")
		return
	}
	if t == nil {
		x.refuse(DeletedTopic{Name: name.value}, ErrUnknownTopic, unknownTopicText)
		return
	}
	if _, again := x.chosen[t.ID]; again {
		x.chosen[t.ID] = nil
		x.refuse(DeletedTopic{ID: t.ID, Name: t.Name}, ErrInvalidRequest,
			"The provided topic name maps to an ID that was already supplied.")
		return
	}
	x.choose(t)
}

// Texts of errors that Kafka sends with their standard message.
const (
	unknownTopicText   = "This server does not host this topic-partition."
	unknownTopicIDText = "This server does not host this topic ID."
)

func (d *decider) deleteTopic(t *metadata.Topic) DeletedTopic {
	d.add(0, &metadata.RemoveTopicRecord{TopicID: t.ID})
	return DeletedTopic{ID: t.ID, Name: t.Name}
}

// counted is an element of a list and how often it is in there.
type counted[T comparable] struct {
	value T
	times int
}

// unique keeps the first of equal elements, in order, and counts them.
func unique[T comparable](list []T) []counted[T] {
	var out []counted[T]
	at := make(map[T]int, len(list))
	for _, v := range list {
		i, known := at[v]
		if !known {
			i = len(out)
			at[v] = i
			out = append(out, counted[T]{value: v})
		}
		out[i].times++
	}
	return out
}
