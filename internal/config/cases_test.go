package config

import (
	"strconv"
	"strings"
)

// refusal is a change that is asked for (validate only) and what is answered; an error code of 0 is a consent.
// A file of them has a line each: code, quoted message, and the case as [parseCase] reads it, with tabs between.
type refusal struct {
	Resource Resource
	Changes  []Change
	Code     int16
	Message  string
}

// valuesToTry are values at the edges of a type and of its checks.
func valuesToTry(t Type) []string {
	switch t {
	case Boolean:
		return []string{"true", " False\t", "TRUE", "yes", "1", ""}
	case Int, Short, Long:
		return []string{
			"", "x", "1.5", "0x10", "1_000", "+7", " 8 ", "-3", "-2", "-1", "0", "1", "100", "1048575", "1048576",
			"2147483648", "9223372036854775808", "32768",
		}
	case Double:
		return []string{
			"", "x", "0", "1", "-0.1", "1.1", ".5", "5.", "1d", "0x1p-1", "NaN", "nan", "Infinity", "inf", "1e400",
		}
	case List:
		return []string{
			"", ",", "a", "a,", "a,,b", "a, a", "delete", " compact\t,  delete ", "COMPACT", "delete,x", "*",
			"0:1, 2:3", "0:1,*", "*,*", "PLAINTEXT://:1",
		}
	case String:
		return []string{"", " ", "x", "Producer", " gzip ", "LogAppendTime", "latest", "read_committed", "required"}
	default:
		return []string{"", "x"}
	}
}

// errorCases are the changes to ask for. The topic and the node exist.
func errorCases() []refusal {
	var cases []refusal
	add := func(r Resource, changes ...Change) { cases = append(cases, refusal{Resource: r, Changes: changes}) }
	kinds := []struct {
		r Resource
		d *Definitions
	}{
		{Resource{TopicResource, "plain"}, topicDefinitions},
		{Resource{GroupResource, "plain"}, groupDefinitions},
		{Resource{ClientMetricsResource, "plain"}, clientMetricsDefinitions},
		{Resource{BrokerResource, ""}, dynamicBrokerDefinitions},
		{Resource{BrokerResource, "1"}, dynamicBrokerDefinitions},
	}
	for _, k := range kinds {
		for _, def := range k.d.ordered {
			if k.r.Type == BrokerResource && def.Name == "min.insync.replicas" {
				continue // the controller has rules of its own for it
			}
			if k.r == (Resource{BrokerResource, ""}) {
				add(k.r, Change{def.Name, Set, "1"})
				continue
			}
			for _, v := range valuesToTry(def.Type) {
				add(k.r, Change{def.Name, Set, v})
			}
			add(k.r, Change{def.Name, Delete, ""})
			add(k.r, Change{def.Name, Append, "a"})
			add(k.r, Change{def.Name, Subtract, "a,delete"})
		}
		add(k.r, Change{"no.such.key", Set, "1"})
		add(k.r, Change{"no.such.key", Append, "1"})
		add(k.r, Change{"no.such.key", Delete, ""})
		add(k.r, Change{"", Set, "1"})
	}
	for _, def := range brokerDefinitions.ordered {
		if def.Update == ReadOnly {
			add(Resource{BrokerResource, ""}, Change{def.Name, Set, "1"})
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(severalKeys), "\n") {
		cases = append(cases, parseCase(line))
	}
	return cases
}

var caseKinds = map[string]ResourceType{
	"topic": TopicResource, "broker": BrokerResource, "group": GroupResource, "metrics": ClientMetricsResource,
}

// parseCase reads KIND|NAME|KEY=VALUE…, with values as in a Go string. KEY+=VALUE appends, KEY-=VALUE subtracts,
// KEY- deletes.
func parseCase(text string) refusal {
	fields := strings.Split(text, "|")
	c := refusal{Resource: Resource{caseKinds[fields[0]], fields[1]}}
	for _, f := range fields[2:] {
		name, v, set := strings.Cut(f, "=")
		v, err := strconv.Unquote(`"` + v + `"`)
		if err != nil {
			panic(err)
		}
		change := Change{name, Set, v}
		switch {
		case set && strings.HasSuffix(name, "+"):
			change = Change{strings.TrimSuffix(name, "+"), Append, v}
		case set && strings.HasSuffix(name, "-"):
			change = Change{strings.TrimSuffix(name, "-"), Subtract, v}
		case !set:
			change = Change{strings.TrimSuffix(name, "-"), Delete, ""}
		}
		c.Changes = append(c.Changes, change)
	}
	return c
}

// String returns the form that parseCase reads.
func (c refusal) String() string {
	var b strings.Builder
	for kind, t := range caseKinds {
		if t == c.Resource.Type {
			b.WriteString(kind + "|" + c.Resource.Name)
		}
	}
	for _, ch := range c.Changes {
		quoted := strconv.Quote(ch.Value)
		b.WriteString("|" + ch.Name)
		b.WriteString([]string{"=", "-", "+=", "-="}[ch.Op])
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// severalKeys are cases of names, of rules between keys, and of lists.
const severalKeys = `
topic||retention.ms=1
topic|a/b|retention.ms=1
topic|..|retention.ms=1
topic|nosuchtopic|retention.ms=x
topic|plain|min.compaction.lag.ms=2|max.compaction.lag.ms=1
topic|plain|min.compaction.lag.ms=1|max.compaction.lag.ms=1
topic|plain|remote.storage.enable=true
topic|plain|remote.storage.enable=true|cleanup.policy=compact
topic|plain|remote.log.copy.disable=true|local.retention.ms=5
topic|plain|local.retention.ms=100|retention.ms=50
topic|plain|segment.bytes=1|retention.ms=x
topic|plain|retention.ms=x|segment.bytes=1
topic|plain|cleanup.policy+=compact
topic|plain|cleanup.policy+=delete
topic|plain|cleanup.policy+=compact,delete
topic|plain|cleanup.policy-=delete
topic|plain|cleanup.policy-=compact
topic|plain|cleanup.policy+=x
topic|plain|retention.ms+=1
topic|plain|retention.ms-=1
topic|plain|retention.ms=1|retention.ms=2
topic|plain|leader.replication.throttled.replicas+=0:1
topic|plain|leader.replication.throttled.replicas-=0:1
topic|plain|leader.replication.throttled.replicas+=
topic|plain|internal.segment.bytes=1
topic|plain|compression.gzip.level=9
topic|plain|compression.gzip.level=10
topic|plain|compression.lz4.level=17
topic|plain|compression.lz4.level=18
topic|plain|compression.zstd.level=22
topic|plain|compression.zstd.level=23
topic|plain|compression.zstd.level=-131072
topic|plain|compression.zstd.level=-131073
topic|plain|segment.index.bytes=3
topic|plain|segment.index.bytes=4
topic|plain|cleanup.policy=delete,delete
topic|plain|cleanup.policy=a,a
topic|plain|message.timestamp.type=createtime
topic|plain|leader.replication.throttled.replicas=0:1,2:x
topic|plain|internal.segment.bytes=x
topic|plain
broker|x|log.retention.ms=1
broker|-1|log.retention.ms=1
broker|2|log.retention.ms=1
broker|1
broker|1|log.roll.ms=0
broker|1|log.roll.ms=-1
broker|1|log.roll.jitter.ms=-1
broker|1|log.retention.ms=0
broker|1|log.retention.ms=-5
broker|1|log.cleaner.threads=2
broker|1|log.cleaner.threads=3
broker|1|log.cleaner.threads=0
broker|1|log.cleaner.dedupe.buffer.size=1000
broker|1|log.cleaner.io.buffer.size=1
broker|1|num.io.threads=4
broker|1|num.io.threads=3
broker|1|num.io.threads=16
broker|1|num.io.threads=17
broker|1|num.network.threads=1
broker|1|num.network.threads=2
broker|1|num.network.threads=6
broker|1|num.network.threads=7
broker|1|num.replica.fetchers=2
broker|1|num.replica.fetchers=3
broker|1|num.recovery.threads.per.data.dir=1
broker|1|num.recovery.threads.per.data.dir=5
broker|1|background.threads=4
broker|1|background.threads=21
broker|1|remote.log.reader.threads=21
broker|1|remote.log.reader.threads=5
broker|1|remote.log.reader.threads=4
broker|1|remote.log.manager.copier.thread.pool.size=21
broker|1|remote.log.manager.copier.thread.pool.size=4
broker|1|max.connections.per.ip=0
broker|1|max.connections.per.ip=0|max.connections.per.ip.overrides=127.0.0.1:1
broker|1|max.connections.per.ip.overrides=a
broker|1|max.connections.per.ip.overrides=a:x
broker|1|max.connections.per.ip.overrides=a b:1
broker|1|log.local.retention.ms=5
broker|1|log.local.retention.ms=604800001
broker|1|log.local.retention.ms=-1
broker|1|log.local.retention.bytes=-1
broker|1|log.local.retention.bytes=10|log.retention.bytes=5
broker|1|log.local.retention.bytes=-1|log.retention.bytes=5
broker|1|listeners=PLAINTEXT://127.0.0.1:19222
broker|1|listeners=
broker|1|listeners=x
broker|1|listeners=PLAINTEXT://127.0.0.1:19222,CONTROLLER://127.0.0.1:19223,FOO://127.0.0.1:1
broker|1|listeners=PLAINTEXT://127.0.0.1:19222,CONTROLLER://127.0.0.1:19222
broker|1|listeners=PLAINTEXT://127.0.0.1:19222,plaintext://127.0.0.1:19223
broker|1|listeners=CONTROLLER://127.0.0.1:19223
broker|1|listener.security.protocol.map=x
broker|1|listener.security.protocol.map=PLAINTEXT:FOO
broker|1|listener.security.protocol.map=PLAINTEXT:PLAINTEXT
broker|1|listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
broker|1|ssl.keystore.location=/x
broker|1|ssl.keystore.password=y|ssl.keystore.location=/x
broker|1|listener.name.plaintext.ssl.keystore.location=/x
broker||listener.name.plaintext.ssl.keystore.location=/x
broker||listener.name.plaintext.max.connections=5
broker||listener.name.plaintext.max.connections=x
broker|1|listener.name.plaintext.max.connections=0
broker|1|listener.name.plaintext.max.connections=x
broker|1|listener.name.nosuch.max.connections=x
broker||log.dirs=/a
broker|1|log.dirs=/a|node.id=3
broker||cordoned.log.dirs=*
broker|1|cordoned.log.dirs=/nope
broker|1|cordoned.log.dirs=*
broker|1|cordoned.log.dirs=*,/tmp/tidemark-config-default
broker|1|cordoned.log.dirs+=/tmp/tidemark-config-default
broker|1|metric.reporters+=a.b.C
broker|1|metric.reporters-=org.apache.kafka.common.metrics.JmxReporter
broker|1|sasl.enabled.mechanisms+=PLAIN
broker|1|config.providers=x
broker|1|config.providers.x=1
broker||log.cleanup.policy+=compact
broker||log.cleanup.policy-=delete
broker||log.segment.bytes+=1
broker||log.retention.hours=1
broker|1|my.own.key=1
broker|1|leader.replication.throttled.rate=5
broker|1|producer.id.expiration.ms=5
broker|1|principal.builder.class=x
broker|1|group.consumer.assignment.interval.ms=15001
broker|1|group.share.assignment.interval.ms=15001
broker|1|message.max.bytes=10|message.max.bytes=11
group||consumer.session.timeout.ms=50000
group|plain|consumer.session.timeout.ms=44999
group|plain|share.auto.offset.reset=Latest
group|plain|share.auto.offset.reset=none
group|plain|share.auto.offset.reset=by_duration
group|plain|share.auto.offset.reset=by_duration:
group|plain|share.auto.offset.reset=by_duration:PT1H
group|plain|share.auto.offset.reset=by_duration:-PT1H
group|plain|share.auto.offset.reset=by_duration:-PT-1H
group|plain|share.auto.offset.reset=by_duration:P1DT-24H
group|plain|share.auto.offset.reset=by_duration:P1DT-25H
group|plain|share.auto.offset.reset=by_duration:P1Y
group|plain|share.auto.offset.reset=by_duration:p1dt2h3m4.5s
group|plain|share.auto.offset.reset=by_duration:PT
group|plain|share.auto.offset.reset=by_duration:P
group|plain|share.auto.offset.reset=by_duration:PT-0.5S
group|plain|consumer.session.timeout.ms=60001
group|plain|consumer.heartbeat.interval.ms=4999
group|plain|consumer.heartbeat.interval.ms=15001
group|plain|consumer.assignment.interval.ms=15001
group|plain|share.record.lock.duration.ms=14999
group|plain|share.record.lock.duration.ms=60001
group|plain|share.delivery.count.limit=11
group|plain|share.delivery.count.limit=25
group|plain|share.partition.max.record.locks=99
group|plain|share.partition.max.record.locks=4001
group|plain|share.session.timeout.ms=60001
group|plain|streams.num.standby.replicas=3
group|plain|streams.session.timeout.ms=1
group|plain|streams.heartbeat.interval.ms=1
group|plain|streams.initial.rebalance.delay.ms=-1
metrics||interval.ms=1000
metrics|plain|interval.ms=99
metrics|plain|interval.ms=3600001
metrics|plain|interval.ms=3600000
metrics|plain|match=a
metrics|plain|match=a=b
metrics|plain|match=client_id
metrics|plain|match=client_id=
metrics|plain|match=client_id=x=y
metrics|plain|match=client_id=x=
metrics|plain|match=client_id=[
metrics|plain|match= client_id = x , client_software_name=y
metrics|plain|match=client_id=(?=a)
metrics|plain|match=client_id=a,client_id=b
metrics|plain|metrics=a,a
metrics|plain|metrics+=a
`
