//go:build oracle

// Package clients runs stock clients of Kafka against Tidemark, each through the same steps: topics, codecs, idempotent
// producers, groups whose members come and go with every assignor, committed offsets, look-ups by time, transactions,
// and a broker that is killed while they work. What was seen is the table of clients in doc/compat.md; after a change,
//
//	go test -tags oracle ./test/clients -run TestMatrix -update
//
// writes it. Each client is a small program (testdata, go) that carries out requests; what they lead to is compared
// here, and looked at from outside where that says more.
//
// Clients come from the package registries in the versions that are pinned beside their programs, into a cache
// directory of the user. With TIDEMARK_TWIN set, Kafka plays Tidemark's part: it tests the tests.
package clients

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "32") // the clients wait for each other more than they work
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// client is one client library and what it can do.
type client struct {
	name, title  string // for topics, and for people
	start        func(t *testing.T, addr string) *exec.Cmd
	codecs       []string
	assignors    []assignor
	idempotent   bool
	transactions bool
	static       []string // protocols with static members
	pattern      []string // protocols with patterns of topics
	silent       bool     // it does not tell which partitions a member has
}

var (
	allCodecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}
	classic   = []string{"classic"}
	both      = []string{"classic", "consumer"}
)

func classicAssignors(names ...string) (all []assignor) {
	for _, n := range names {
		all = append(all, assignor{"classic", n})
	}
	return all
}

var allAssignors = append(classicAssignors("range", "roundrobin", "sticky", "cooperative-sticky"),
	assignor{"consumer", "uniform"}, assignor{"consumer", "range"})

var clients = []client{
	{
		name: "java", title: "Kafka's own (Java)", start: javaClient, codecs: allCodecs, assignors: allAssignors,
		idempotent: true, transactions: true, static: both, pattern: both,
	},
	{
		name: "franz", title: "franz-go (Go)", start: goClient("franz-go"), codecs: allCodecs, assignors: allAssignors,
		idempotent: true, transactions: true, static: classic, pattern: both,
	},
	{
		name: "sarama", title: "sarama (Go)", start: goClient("sarama"), codecs: allCodecs,
		assignors:  classicAssignors("range", "roundrobin", "sticky", "cooperative-sticky"),
		idempotent: true, transactions: true, static: classic,
	},
	{
		name: "librdkafka", title: "confluent-kafka (Python)", start: pythonClient("librdkafka"), codecs: allCodecs,
		assignors: append(classicAssignors("range", "roundrobin", "cooperative-sticky"),
			assignor{"consumer", "uniform"}, assignor{"consumer", "range"}),
		idempotent: true, transactions: true, static: both, pattern: both,
	},
	{
		name: "kafka-python", title: "kafka-python", start: pythonClient("kafka_python"), codecs: allCodecs,
		assignors:  classicAssignors("range", "roundrobin", "sticky"),
		idempotent: true, transactions: true, static: classic, pattern: classic,
	},
	{
		name: "aiokafka", title: "aiokafka (Python)", start: pythonClient("aio_kafka"), codecs: allCodecs,
		assignors:  classicAssignors("range", "roundrobin", "sticky"),
		idempotent: true, transactions: true, static: classic, pattern: classic,
	},
	{
		name: "kafkajs", title: "KafkaJS (Node.js)", start: nodeClient, codecs: allCodecs,
		assignors: classicAssignors("RoundRobinAssigner"), idempotent: true, transactions: true, pattern: classic,
	},
	{
		name: "kafka-go", title: "kafka-go (Go)", start: goClient("kafka-go"), codecs: allCodecs,
		assignors: classicAssignors("range", "roundrobin"), silent: true,
	},
}

// TestMatrix runs all clients at once against one broker, which is killed when all have done their work; then they go
// on.
func TestMatrix(t *testing.T) {
	w := newWorld(t)
	var runs []*run
	for _, c := range clients {
		runs = append(runs, &run{world: w, client: c, driver: startDriver(t, c.name, c.start(t, w.addr)),
			saw: make(map[column][]string)})
	}
	each := func(what string, do func(r *run, t *testing.T)) {
		t.Run(what, func(t *testing.T) {
			for _, r := range runs {
				t.Run(r.client.name, func(t *testing.T) {
					t.Parallel()
					do(r, t)
				})
			}
		})
	}
	each("work", (*run).work)
	w.kill(t)
	w.judge = newJudge(t, w.addr)
	each("after-kill", func(r *run, t *testing.T) {
		r.afterKill(t)
		r.saw[offsetsColumn] = append(r.saw[offsetsColumn], "after SIGKILL too")
	})
	compareTable(t, runs)
}

// work are the steps before the broker is killed.
func (r *run) work(t *testing.T) {
	r.version = r.call(t, request{Do: "version"}).Version
	step := func(c column, cell, name string, do func(t *testing.T)) {
		if t.Run(name, do) {
			r.saw[c] = append(r.saw[c], cell)
		}
	}
	step(topicsColumn, "yes", "topics", r.topics)
	for _, codec := range r.client.codecs {
		step(codecsColumn, codec, "codec-"+codec, func(t *testing.T) { r.codec(t, codec) })
	}
	step(timeColumn, "yes", "time", r.byTime)
	if r.client.idempotent {
		step(idempotentColumn, "yes", "idempotent", r.idempotent)
	}
	if r.client.transactions {
		step(transactionsColumn, "commit, abort, fencing", "transactions", r.transactions)
		step(transactionsColumn, "copy with offsets", "copy", r.copyInTransactions)
	}
	for _, a := range r.client.assignors {
		c := classicColumn
		if a.protocol == "consumer" {
			c = consumerColumn
		}
		step(c, a.name, "group-"+a.String(), func(t *testing.T) { r.group(t, a) })
	}
	for _, protocol := range r.client.static {
		step(staticColumn, protocol, "static-"+protocol, func(t *testing.T) { r.static(t, protocol) })
	}
	for _, protocol := range r.client.pattern {
		step(patternColumn, protocol, "pattern-"+protocol, func(t *testing.T) { r.pattern(t, protocol) })
	}
	step(offsetsColumn, "yes", "offsets", r.offsets)
}
