//go:build oracle

package differential

import (
	"fmt"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The operations of IncrementalAlterConfigs.
const (
	set      = kmsg.IncrementalAlterConfigOpSet
	remove   = kmsg.IncrementalAlterConfigOpDelete
	add      = kmsg.IncrementalAlterConfigOpAppend
	subtract = kmsg.IncrementalAlterConfigOpSubtract
)

type configOp struct {
	key   string
	op    kmsg.IncrementalAlterConfigOp
	value string
	null  bool
}

type alterCase struct {
	kind     kmsg.ConfigResourceType
	name     string
	ops      []configOp
	validate bool
	twice    bool // the resource twice
}

func (c alterCase) incremental(version int16) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.SetVersion(version)
		req.ValidateOnly = c.validate
		rr := kmsg.NewIncrementalAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = c.kind, c.name
		for _, o := range c.ops {
			rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
			if rc.Name, rc.Op = o.key, o.op; !o.null {
				rc.Value = kmsg.StringPtr(o.value)
			}
			rr.Configs = append(rr.Configs, rc)
		}
		req.Resources = append(req.Resources, rr)
		if c.twice {
			req.Resources = append(req.Resources, rr)
		}
		return req
	}
}

func (c alterCase) whole(version int16) request {
	return func(*side) kmsg.Request {
		req := kmsg.NewPtrAlterConfigsRequest()
		req.SetVersion(version)
		req.ValidateOnly = c.validate
		rr := kmsg.NewAlterConfigsRequestResource()
		rr.ResourceType, rr.ResourceName = c.kind, c.name
		for _, o := range c.ops {
			rc := kmsg.NewAlterConfigsRequestResourceConfig()
			if rc.Name = o.key; !o.null {
				rc.Value = kmsg.StringPtr(o.value)
			}
			rr.Configs = append(rr.Configs, rc)
		}
		req.Resources = append(req.Resources, rr)
		if c.twice {
			req.Resources = append(req.Resources, rr)
		}
		return req
	}
}

// alterCases are changes that are refused, or that change nothing because they are only validated.
func alterCases() map[string]alterCase {
	const topic, broker = kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker
	one := oneOp
	retention := one("retention.ms", set, "1000")
	out := map[string]alterCase{
		"validate only":              {kind: topic, name: "alter", ops: retention, validate: true},
		"unknown topic":              {kind: topic, name: "nope", ops: retention},
		"illegal topic":              {kind: topic, name: "a/b", ops: retention},
		"empty topic":                {kind: topic, ops: retention},
		"no configs":                 {kind: topic, name: "alter"},
		"resource twice":             {kind: topic, name: "alter", ops: retention, twice: true},
		"unknown key":                {kind: topic, name: "alter", ops: one("nope", set, "1")},
		"empty key":                  {kind: topic, name: "alter", ops: one("", set, "1")},
		"bad value":                  {kind: topic, name: "alter", ops: one("retention.ms", set, "x")},
		"empty value":                {kind: topic, name: "alter", ops: one("retention.ms", set, "")},
		"null value":                 {kind: topic, name: "alter", ops: []configOp{{key: "retention.ms", null: true}}},
		"key twice":                  {kind: topic, name: "alter", ops: append(one("retention.ms", set, "1"), retention...)},
		"append to a number":         {kind: topic, name: "alter", ops: one("retention.ms", add, "1")},
		"subtract from a number":     {kind: topic, name: "alter", ops: one("retention.ms", subtract, "1")},
		"append a bad element":       {kind: topic, name: "alter", ops: one("cleanup.policy", add, "x")},
		"subtract all":               {kind: topic, name: "alter", ops: one("cleanup.policy", subtract, "compact,delete")},
		"remove an unknown key":      {kind: topic, name: "alter", ops: one("nope", remove, "")},
		"operation 9":                {kind: topic, name: "alter", ops: one("retention.ms", 9, "1")},
		"segment.ms 0":               {kind: topic, name: "alter", ops: one("segment.ms", set, "0")},
		"one good, one bad":          {kind: topic, name: "alter", ops: append(one("segment.bytes", set, "x"), retention...)},
		"type 0":                     {kind: 0, name: "alter", ops: retention},
		"type 3":                     {kind: 3, name: "alter", ops: retention},
		"type 99":                    {kind: 99, name: "alter", ops: retention},
		"other broker":               {kind: broker, name: "7", ops: one("log.retention.ms", set, "1000")},
		"broker x":                   {kind: broker, name: "x", ops: one("log.retention.ms", set, "1000")},
		"broker, read only":          {kind: broker, name: "1", ops: one("node.id", set, "2")},
		"broker, unknown key":        {kind: broker, name: "1", ops: one("nope", set, "2")},
		"broker, bad value":          {kind: broker, name: "1", ops: one("log.cleaner.threads", set, "x")},
		"broker, cluster-wide only":  {kind: broker, name: "1", ops: one("message.max.bytes", set, "1000"), validate: true},
		"all, bad value":             {kind: broker, ops: one("log.cleaner.threads", set, "x")},
		"all, per-broker only":       {kind: broker, ops: one("listeners", set, "PLAINTEXT://:1")},
		"all, read only":             {kind: broker, ops: one("num.partitions", set, "2")},
		"all, validate only":         {kind: broker, ops: one("log.retention.ms", set, "99"), validate: true},
		"all, minimum in sync":       {kind: broker, ops: one("min.insync.replicas", remove, "")},
		"broker, minimum in sync":    {kind: broker, name: "1", ops: one("min.insync.replicas", set, "1")},
		"group, unknown key":         {kind: 32, name: "g", ops: one("nope", set, "1")},
		"group, bad value":           {kind: 32, name: "g", ops: one("consumer.session.timeout.ms", set, "1")},
		"group, empty name":          {kind: 32, ops: one("consumer.session.timeout.ms", set, "50000")},
		"client metrics, bad key":    {kind: 16, name: "m", ops: one("nope", set, "1")},
		"client metrics, bad value":  {kind: 16, name: "m", ops: one("interval.ms", set, "1")},
		"client metrics, empty name": {kind: 16, ops: one("interval.ms", set, "1000")},
	}
	for key, value := range map[string]string{"compression.type": "x", "message.timestamp.type": "x",
		"min.cleanable.dirty.ratio": "1.5", "max.message.bytes": "-1", "index.interval.bytes": "-1", "preallocate": "maybe",
		"retention.bytes": "99999999999999999999", "min.insync.replicas": "0", "segment.bytes": "10"} {
		out["value of "+key] = alterCase{kind: topic, name: "alter", ops: one(key, set, value)}
	}
	maps.Copy(out, loggerCases())
	return out
}

func oneOp(key string, op kmsg.IncrementalAlterConfigOp, value string) []configOp {
	return []configOp{{key: key, op: op, value: value}}
}

// loggerCases are those of [alterCases] that change the levels of loggers.
func loggerCases() map[string]alterCase {
	one := oneOp
	return map[string]alterCase{
		"logger, other broker":      {kind: 8, name: "7", ops: one("root", set, "INFO")},
		"logger, broker x":          {kind: 8, name: "x", ops: one("root", set, "INFO")},
		"logger, no broker":         {kind: 8, ops: one("root", set, "INFO")},
		"logger, unknown":           {kind: 8, name: "1", ops: one("nope", set, "INFO")},
		"logger, empty":             {kind: 8, name: "1", ops: one("", set, "INFO")},
		"logger, unknown level":     {kind: 8, name: "1", ops: one("root", set, "LOUD")},
		"logger, lower case":        {kind: 8, name: "1", ops: one("root", set, "info")},
		"logger, off":               {kind: 8, name: "1", ops: one("root", set, "OFF")},
		"logger, empty level":       {kind: 8, name: "1", ops: one("root", set, "")},
		"logger, null":              {kind: 8, name: "1", ops: []configOp{{key: "root", null: true}}},
		"logger, append":            {kind: 8, name: "1", ops: one("root", add, "INFO")},
		"logger, subtract":          {kind: 8, name: "1", ops: one("root", subtract, "INFO")},
		"logger, operation 9":       {kind: 8, name: "1", ops: one("root", 9, "INFO")},
		"logger, root removed":      {kind: 8, name: "1", ops: one("root", remove, "")},
		"logger, unknown removed":   {kind: 8, name: "1", ops: one("nope", remove, "")},
		"logger, nothing":           {kind: 8, name: "1"},
		"logger, twice":             {kind: 8, name: "1", ops: append(one("root", set, "WARN"), one("root", set, "")...)},
		"logger, validate only":     {kind: 8, name: "1", ops: one("root", set, "FATAL"), validate: true},
		"logger, one good, one bad": {kind: 8, name: "1", ops: append(one("root", set, "FATAL"), one("x", set, "INFO")...)},
	}
}

func (w *world) testIncrementalAlterConfigs(t *testing.T) {
	w.create(t, "alter", 1, "cleanup.policy", "compact,delete")
	for name, c := range alterCases() {
		for v := int16(0); v <= 1; v++ {
			w.same(t, name, c.incremental(v))
		}
	}
	w.same(t, "nothing changed", describeConfigs(4, kmsg.ConfigResourceTypeTopic, "alter"), byName)
	steps := []struct {
		name string
		ops  []configOp
	}{
		{"set", []configOp{{key: "retention.ms", value: "1000"}, {key: "segment.bytes", value: "2000000"}}},
		{"subtract", []configOp{{key: "cleanup.policy", op: subtract, value: "delete"}}},
		{"subtract again", []configOp{{key: "cleanup.policy", op: subtract, value: "delete"}}},
		{"append", []configOp{{key: "cleanup.policy", op: add, value: "delete"}}},
		{"append again", []configOp{{key: "cleanup.policy", op: add, value: "delete,compact"}}},
		{"append to what is not set", []configOp{{key: "leader.replication.throttled.replicas", op: add, value: "0:1"}}},
		{"append with spaces", []configOp{{key: "leader.replication.throttled.replicas", op: add, value: " 1:1 , 2:1"}}},
		{"subtract with spaces", []configOp{{key: "leader.replication.throttled.replicas", op: subtract, value: "1:1"}}},
		{"remove", []configOp{{key: "retention.ms", op: remove}, {key: "segment.bytes", op: remove, value: "ignored"}}},
		{"remove what is not set", []configOp{{key: "flush.ms", op: remove, null: true}}},
		{"the default", []configOp{{key: "flush.messages", value: "9223372036854775807"}}},
		{"spaces around a number", []configOp{{key: "retention.ms", value: " 77 "}}},
	}
	for _, step := range steps {
		w.same(t, step.name, alterCase{kind: kmsg.ConfigResourceTypeTopic, name: "alter", ops: step.ops}.incremental(1))
		w.sameSoon(t, "after: "+step.name, describeConfigs(4, kmsg.ConfigResourceTypeTopic, "alter"), byName)
	}
	w.alterOthers(t)
}

// alterOthers changes what is not a topic's, looks at it and takes it back.
func (w *world) alterOthers(t *testing.T) {
	w.create(t, "alter-default", 1)
	for _, c := range []alterCase{
		{kind: kmsg.ConfigResourceTypeBroker, ops: []configOp{{key: "log.retention.ms", value: "7777"}}},
		{kind: kmsg.ConfigResourceTypeBroker, name: "1", ops: []configOp{{key: "log.cleaner.threads", value: "2"}}},
		{kind: 32, name: "g", ops: []configOp{{key: "consumer.session.timeout.ms", value: "50000"}}},
		{kind: 16, name: "m", ops: []configOp{{key: "interval.ms", value: "1000"},
			{key: "metrics", value: "org.apache.kafka."}}},
	} {
		name := fmt.Sprintf("resource type %d %q", c.kind, c.name)
		look := func(when string) {
			w.same(t, name+when, describeConfigs(4, c.kind, c.name, c.ops[0].key), byName)
			w.same(t, name+when+", topic", describeConfigs(4, kmsg.ConfigResourceTypeTopic, "alter-default"), byName)
		}
		w.same(t, name, c.incremental(1))
		w.waitDynamic(t, c, true)
		look(" set")
		for i := range c.ops {
			c.ops[i].op = remove
		}
		w.same(t, name, c.incremental(1))
		w.waitDynamic(t, c, false)
		look(" removed")
	}
}

// waitDynamic waits until the first config of a case is set, or is not: Kafka answers before its broker has taken on a
// change of its own configs.
func (w *world) waitDynamic(t *testing.T, c alterCase, set bool) {
	t.Helper()
	for _, s := range w.sides {
		s.waitFor(t, c.ops[0].key+" taken on", func() bool {
			answer, ok := s.ask(t, describeConfigs(4, c.kind, c.name, c.ops[0].key)(s)).(*kmsg.DescribeConfigsResponse)
			if !ok || len(answer.Resources) != 1 {
				return false
			}
			found := false
			for _, one := range answer.Resources[0].Configs {
				found = found || one.Value != nil && *one.Value == c.ops[0].value
			}
			return found == set
		})
	}
}

func (w *world) testAlterConfigs(t *testing.T) {
	w.create(t, "alter-whole", 1, "cleanup.policy", "compact", "retention.ms", "5000")
	for name, c := range alterCases() {
		if c.name == "alter" {
			c.name = "alter-whole"
		}
		if c.ops != nil && c.ops[0].op != set || name == "no configs" || c.twice { // Kafka never answers one twice
			continue
		}
		for v := int16(0); v <= 2; v++ {
			w.same(t, name, c.whole(v))
		}
	}
	for _, ops := range [][]configOp{{{key: "segment.bytes", value: "3000000"}}, {}} {
		c := alterCase{kind: kmsg.ConfigResourceTypeTopic, name: "alter-whole", ops: ops}
		w.same(t, fmt.Sprintf("%d configs in the place of all", len(ops)), c.whole(2))
		w.sameSoon(t, "after that", describeConfigs(4, kmsg.ConfigResourceTypeTopic, "alter-whole"), byName)
	}
}
