package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strconv"

	"tidemark/cmd/internal/cli"
)

// consumerPerfTool is Kafka's ConsumerPerformance: how fast topics are read.
var consumerPerfTool = tool{
	name:    "kafka-consumer-perf-test",
	short:   "Consume records and say how fast that went",
	run:     runConsumerPerf,
	options: func() *cli.Parser { return &newConsumerPerfOptions().parser },
}

const consumerPerfIntro = "This tool is used to verify the consumer performance."

type consumerPerfOptions struct {
	parser                                                 cli.Parser
	bootstrap, topic, include, group, fetchSize            *cli.Option
	commandProperty, fromLatest, socketBuffer              *cli.Option
	consumerConfig, commandConfig, printMetrics, detailed  *cli.Option
	timeout, messages, records, interval, date, hideHeader *cli.Option
}

func newConsumerPerfOptions() *consumerPerfOptions {
	o := &consumerPerfOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "server to connect to", "REQUIRED: Brokers to ask first.")
	o.topic = p.Text("topic", "topic", "The topic to read.")
	o.include = p.Text("include", "Java regex (String)", "Regular expression for the topics to read.")
	o.group = p.Text("group", "gid", "The consumer group to join; one with a random number when left out.")
	o.fetchSize = p.Number("Integer", "fetch-size", "size", "At most so many bytes of a partition at once.", "1048576")
	o.commandProperty = p.Text("command-property", "prop1=val1",
		"Setting of the consumer, as key=value; it goes before those of a file.")
	o.fromLatest = p.Flag("from-latest", "Start at the end where the group has no offset yet, not at the first record.")
	o.socketBuffer = p.Number("Integer", "socket-buffer-size", "size", "Taken and not heeded.", "2097152")
	o.consumerConfig = p.Text("consumer.config", "config file", "(DEPRECATED) The same as --command-config.")
	o.commandConfig = p.Text("command-config", "config file", "File with settings of the consumer.")
	o.printMetrics = p.Flag("print-metrics", "At the end print the metrics that this consumer has: those of versions, "+
		"connections, requests, bytes and\nrecords of Kafka's consumer, as totals, averages and maxima. Not printed: "+
		"rates, ratios, and all metrics of the\ncoordinator, polls, authentication, throttling, lag, partitions and nodes.")
	o.detailed = p.Flag("show-detailed-stats", "Tell of the progress every reporting-interval, not of the end.")
	o.timeout = p.Add(cli.Option{Name: "timeout", Help: "End when no record came for so long.", ArgName: "milliseconds",
		Arity: cli.OptionalArg, Type: "Long", Default: "10000"})
	o.messages = p.Number("Long", "messages", "count", "(DEPRECATED) The same as --num-records.", "")
	o.records = p.Number("Long", "num-records", "count", "REQUIRED: How many records to read.", "")
	o.interval = p.Number("Long", "reporting-interval", "interval_ms", "Tell of the progress every so many milliseconds.",
		"5000")
	o.date = p.Text("date-format", "date format", "The form of times, in the letters of Java's SimpleDateFormat.")
	o.date.Default = "yyyy-MM-dd HH:mm:ss:SSS"
	o.hideHeader = p.Flag("hide-header", "Leave out the line with the names of the columns.")
	return o
}

// consumerPerf is what a command line asks for. Times are ms.
type consumerPerf struct {
	topic, include    string // one of them
	settings          cli.Properties
	wanted            int64 // records
	timeoutMs         int64
	reportingMs       int64
	detailed, metrics bool
	format            javaDate
	maxPoll           int64
}

func runConsumerPerf(ctx context.Context, env *cli.Env, args []string) int {
	ctx, interrupted := interruptible(ctx)
	o := newConsumerPerfOptions()
	err := o.check(env, args)
	if err == nil {
		if !o.hideHeader.Has() {
			printPerfHeader(env, o.detailed.Has())
		}
		var c *consumerPerf
		if c, err = o.read(); err == nil {
			err = c.run(ctx, env)
		}
	}
	return interrupted(o.parser.Finish(env, err, func(f *cli.Failure) {
		fmt.Fprintln(env.Stderr, f.Message)
		fmt.Fprintln(env.Stderr, f.Trace())
	}))
}

// check finds out whether the command line makes sense.
func (o *consumerPerfOptions) check(env *cli.Env, args []string) error {
	if err := o.parser.Parse(args); err != nil {
		return cli.Usagef("%s", err)
	}
	if err := o.parser.HelpOrVersion(env, consumerPerfIntro); err != nil {
		return err
	}
	if err := cli.Require(o.bootstrap); err != nil {
		return err
	}
	for _, pair := range [][2]*cli.Option{{o.topic, o.include}, {o.messages, o.records}} {
		if pair[0].Has() == pair[1].Has() {
			return cli.Usagef("Exactly one of the following arguments is required: %s, %s", pair[0], pair[1])
		}
	}
	if err := cli.Forbid(o.consumerConfig, o.commandConfig); err != nil {
		return err
	}
	if o.messages.Has() {
		fmt.Fprintln(env.Stdout, "Warning: --messages is deprecated. Use --num-records instead.")
	}
	if o.consumerConfig.Has() {
		fmt.Fprintln(env.Stdout, "Warning: --consumer.config is deprecated. Use --command-config instead.")
	}
	return nil
}

// read turns the command line into what to do, in the order in which Kafka's tool looks at the options.
func (o *consumerPerfOptions) read() (c *consumerPerf, err error) {
	c = &consumerPerf{detailed: o.detailed.Has(), metrics: o.printMetrics.Has()}
	if c.settings, err = o.readSettings(); err != nil {
		return nil, err
	}
	records := o.records
	if o.messages.Has() {
		records = o.messages
	}
	for _, n := range []struct {
		into *int64
		from *cli.Option
	}{{&c.wanted, records}, {&c.timeoutMs, o.timeout}, {&c.reportingMs, o.interval}} {
		if *n.into, err = n.from.Int(); err != nil {
			return nil, err
		}
	}
	if c.reportingMs <= 0 {
		return nil, cli.BadArgument("Reporting interval must be greater than 0.")
	}
	pattern, err := o.date.Value()
	if err != nil {
		return nil, err
	}
	if c.format, err = parseJavaDate(pattern); err != nil {
		return nil, err
	}
	if c.topic, err = o.topic.Value(); err != nil {
		return nil, err
	}
	c.include, err = o.include.Value()
	return c, err
}

func (o *consumerPerfOptions) readSettings() (cli.Properties, error) {
	p := cli.Properties{}
	file := o.commandConfig
	if o.consumerConfig.Has() {
		file = o.consumerConfig
	}
	if file.Has() {
		name, err := file.Value()
		if err != nil {
			return nil, err
		}
		if p, err = cli.LoadProperties(name); err != nil {
			return nil, noSuchFile(name, err)
		}
	}
	p.Merge(cli.KeyValues(o.commandProperty.Values()))
	o.group.Default = "perf-consumer-" + strconv.Itoa(rand.IntN(100_000))
	for _, s := range []struct {
		key  string
		from *cli.Option
	}{{"bootstrap.servers", o.bootstrap}, {"group.id", o.group}, {"receive.buffer.bytes", o.socketBuffer},
		{"max.partition.fetch.bytes", o.fetchSize}} {
		text, err := s.from.Value()
		if err == nil && s.from.Type != "" {
			_, err = s.from.Int()
		}
		if err != nil {
			return nil, err
		}
		p[s.key] = text
	}
	p["auto.offset.reset"] = "earliest"
	if o.fromLatest.Has() {
		p["auto.offset.reset"] = "latest"
	}
	p["client.id"] = p.Get("client.id", "perf-consumer-client")
	return p, nil
}

// noSuchFile is the error of a file that is not there in Java's words.
func noSuchFile(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Fail("java.nio.file.NoSuchFileException", "%s", name)
	}
	return err
}

func printPerfHeader(env *cli.Env, detailed bool) {
	first := "start.time, end.time"
	if detailed {
		first = "time, threadId"
	}
	fmt.Fprintln(env.Stdout, first+", data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "+
		"fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec")
}
