package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

// consoleProducerTool is Kafka's ConsoleProducer: one record for each line of input.
var consoleProducerTool = tool{
	name:    "kafka-console-producer",
	short:   "Write lines of input to a topic",
	run:     runConsoleProducer,
	options: func() *cli.Parser { return &newProducerOptions().parser },
}

const (
	producerIntro   = "This tool helps to read data from standard input and publish it to Kafka."
	lineReaderClass = "org.apache.kafka.tools.LineMessageReader"
	signalStatus    = 128 // plus the signal: the status of a process that it ended
)

type producerOptions struct {
	parser                                           cli.Parser
	topic, bootstrap, sync, codec                    *cli.Option
	batchSize, retries, backoff, linger, acks        *cli.Option
	requestTimeout, metadataAge, maxBlock, maxMemory *cli.Option
	maxPartitionMemory, reader, socketBuffer         *cli.Option
	property, readerProperty, readerConfig           *cli.Option
	producerProperty, commandProperty                *cli.Option
	producerConfig, commandConfig                    *cli.Option
}

const readerPropertyHelp = "Setting of the line reader, as key=value:\n" +
	" parse.key=false\n parse.headers=false\n ignore.error=false\n key.separator=\\t\n headers.delimiter=\\t\n" +
	" headers.separator=,\n headers.key.separator=:\n null.marker=   (what equals it is null)\n" +
	"With headers and key a line is \"h1:v1,h2:v2...\\tkey\\tvalue\"."

func newProducerOptions() *producerOptions {
	o := &producerOptions{}
	p := &o.parser
	p.AddHelp()
	o.topic = p.Text("topic", "topic", "REQUIRED: The topic to write to.")
	o.bootstrap = p.Text("bootstrap-server", "server to connect to",
		"REQUIRED: Brokers to ask first, as HOST1:PORT1,HOST2:PORT2.")
	o.sync = p.Flag("sync", "Wait for the answer to each record before the next.")
	o.codec = p.Add(cli.Option{Name: "compression-codec", ArgName: "compression-codec", Arity: cli.OptionalArg,
		Help: "How to compress: 'none', 'gzip', 'snappy', 'lz4' or 'zstd'; 'gzip' when no name is given."})
	o.batchSize = p.Number("Integer", "batch-size", "size", "Bytes of records to gather before a batch is sent "+
		"(batch.size); --max-partition-memory-bytes wins over it.", "16384")
	o.retries = p.Number("Integer", "message-send-max-retries", "", "How often to send again what failed (retries).", "3")
	o.backoff = p.Number("Long", "retry-backoff-ms", "", "How long to wait before that (retry.backoff.ms).", "100")
	o.linger = p.Number("Long", "timeout", "timeout_ms",
		"How long a record waits for others of its batch (linger.ms).", "1000")
	o.acks = p.Text("request-required-acks", "request required acks", "Which answer to wait for (acks).")
	o.acks.Default = "-1"
	o.requestTimeout = p.Number("Integer", "request-timeout-ms", "request timeout ms",
		"How long to wait for an answer (request.timeout.ms).", "1500")
	o.metadataAge = p.Number("Long", "metadata-expiry-ms", "metadata expiration interval",
		"When to ask for the partitions again (metadata.max.age.ms).", "300000")
	o.maxBlock = p.Number("Long", "max-block-ms", "max block on send",
		"How long a record waits to be taken (max.block.ms).", "60000")
	o.maxMemory = p.Number("Long", "max-memory-bytes", "total memory in bytes", "Bytes of records not sent yet "+
		"(buffer.memory).", "33554432")
	o.maxPartitionMemory = p.Number("Integer", "max-partition-memory-bytes", "memory in bytes per partition",
		"(Deprecated) The same as --batch-size.", "16384")
	o.reader = p.Text("line-reader", "reader_class", "Class that reads the input; only the one here is known.")
	o.reader.Default = lineReaderClass
	o.socketBuffer = p.Number("Integer", "socket-buffer-size", "size", "Taken, and without effect (send.buffer.bytes).",
		"102400")
	o.addProperties(p)
	return o
}

func (o *producerOptions) addProperties(p *cli.Parser) {
	o.property = p.Text("property", "prop", "(DEPRECATED) The same as --reader-property.")
	o.readerProperty = p.Text("reader-property", "prop", readerPropertyHelp)
	o.readerConfig = p.Text("reader-config", "config file",
		"File with settings of the line reader; [reader-property] wins.")
	o.producerProperty = p.Text("producer-property", "producer_prop", "(DEPRECATED) The same as --command-property.")
	o.commandProperty = p.Text("command-property", "producer_prop", "Setting of the producer, as key=value.")
	o.producerConfig = p.Text("producer.config", "config file", "(DEPRECATED) The same as --command-config.")
	o.commandConfig = p.Text("command-config", "config file",
		"File with settings of the producer; [command-property] wins.")
}

func runConsoleProducer(ctx context.Context, env *cli.Env, args []string) int {
	ctx, interrupted := interruptible(ctx)
	o := newProducerOptions()
	return interrupted(o.parser.Finish(env, produceLines(ctx, env, o, args), func(f *cli.Failure) {
		if strings.HasPrefix(f.Class, "joptsimple.") {
			fmt.Fprintln(env.Stderr, f.Message)
			return
		}
		fmt.Fprint(env.Stderr, f.Trace())
	}))
}

// interruptible makes a context that SIGINT and SIGTERM end. The function it returns
// gives the exit status: the usual one, or that of a process which the signal ended.
func interruptible(ctx context.Context) (context.Context, func(status int) int) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			cancel(signalError(s.(syscall.Signal)))
		case <-ctx.Done():
		}
	}()
	return ctx, func(status int) int {
		signal.Stop(signals)
		defer cancel(nil)
		var by signalError
		if errors.As(context.Cause(ctx), &by) {
			return signalStatus + int(by)
		}
		return status
	}
}

// signalError is the signal that ended a tool.
type signalError syscall.Signal

func (s signalError) Error() string { return syscall.Signal(s).String() }

func produceLines(ctx context.Context, env *cli.Env, o *producerOptions, args []string) error {
	if err := o.parser.Parse(args); err != nil {
		return cli.Usagef("%s", err)
	}
	if err := o.check(env); err != nil {
		return err
	}
	reader, err := o.lineReader(env)
	if err != nil {
		return err
	}
	settings, err := o.settings()
	if err != nil {
		return err
	}
	s, err := newSender(ctx, env, settings, reader.topic, o.sync.Has())
	if err != nil {
		return err
	}
	defer s.close()
	err = s.sendAll(ctx, reader)
	s.flush()
	return err
}

func (o *producerOptions) check(env *cli.Env) error {
	if err := o.parser.HelpOrVersion(env, producerIntro); err != nil {
		return err
	}
	if err := cli.Require(o.topic); err != nil {
		return err
	}
	pairs := []struct{ a, b *cli.Option }{
		{o.commandConfig, o.producerConfig}, {o.commandProperty, o.producerProperty}, {o.readerProperty, o.property},
	}
	for _, p := range pairs {
		if p.a.Has() && p.b.Has() {
			return cli.Usagef("Options --%s and --%s cannot be specified together.", p.a.Name, p.b.Name)
		}
	}
	renamed := []struct {
		old, successor **cli.Option
	}{
		{&o.producerProperty, &o.commandProperty}, {&o.producerConfig, &o.commandConfig}, {&o.property, &o.readerProperty},
	}
	for _, r := range renamed {
		if (*r.old).Has() {
			fmt.Fprintf(env.Stdout, "Warning: --%s is deprecated and will be removed in a future version. Use --%s instead.\n",
				(*r.old).Name, (*r.successor).Name)
			*r.successor = *r.old
		}
	}
	if o.maxPartitionMemory.Has() {
		fmt.Fprintln(env.Stdout, "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka "+
			"5.0. Use --batch-size instead.")
	}
	brokers, err := o.bootstrap.Value()
	if err != nil {
		return err
	}
	return cli.CheckBootstrap(brokers)
}

func (o *producerOptions) lineReader(env *cli.Env) (*lineReader, error) {
	class, err := o.reader.Value()
	if err != nil {
		return nil, err
	}
	if class != lineReaderClass {
		return nil, cli.Fail("java.lang.ClassNotFoundException", "%s", class)
	}
	settings := cli.Properties{}
	if o.readerConfig.Has() {
		file, err := o.readerConfig.Value()
		if err != nil {
			return nil, err
		}
		if settings, err = cli.LoadProperties(file); err != nil {
			return nil, err
		}
	}
	topic, err := o.topic.Value()
	if err != nil {
		return nil, err
	}
	settings["topic"] = topic
	settings.Merge(cli.KeyValues(o.readerProperty.Values()))
	return newLineReader(env, settings)
}

// settings are the producer's, by Kafka's names: from the file, then single ones, then
// options of their own. An option's default counts only when nothing else is said.
func (o *producerOptions) settings() (cli.Properties, error) {
	p := cli.Properties{}
	if o.commandConfig.Has() {
		file, err := o.commandConfig.Value()
		if err != nil {
			return nil, err
		}
		if p, err = cli.LoadProperties(file); err != nil {
			return nil, err
		}
	}
	p.Merge(cli.KeyValues(o.commandProperty.Values()))
	var err error
	if p["bootstrap.servers"], err = o.bootstrap.Value(); err != nil {
		return nil, err
	}
	if p["compression.type"], err = o.compression(); err != nil {
		return nil, err
	}
	p["client.id"] = p.Get("client.id", "console-producer")
	merged := []struct {
		key    string
		option *cli.Option
	}{
		{"linger.ms", o.linger}, {"acks", o.acks}, {"request.timeout.ms", o.requestTimeout}, {"retries", o.retries},
		{"retry.backoff.ms", o.backoff}, {"send.buffer.bytes", o.socketBuffer}, {"buffer.memory", o.maxMemory},
		{"batch.size", o.batchSize}, {"batch.size", o.maxPartitionMemory}, {"metadata.max.age.ms", o.metadataAge},
		{"max.block.ms", o.maxBlock},
	}
	for _, m := range merged {
		if err := mergeOption(p, m.key, m.option); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func mergeOption(p cli.Properties, key string, o *cli.Option) error {
	if _, said := p[key]; said && !o.Has() {
		return nil
	}
	text, err := o.Value()
	if err != nil {
		return err
	}
	if o.Type != "" {
		if _, err := o.Int(); err != nil {
			return err
		}
	}
	p[key] = text
	return nil
}

func (o *producerOptions) compression() (string, error) {
	if !o.codec.Has() {
		return "none", nil
	}
	name, err := o.codec.Value()
	if name == "" {
		name = "gzip"
	}
	return name, err
}

// producerSettings are the settings that this producer heeds, checked.
type producerSettings struct {
	codec                                  record.Codec
	level                                  int
	acks                                   int16 // −1 = all
	idempotent                             bool
	lingerMs, batchSize, retries           int64
	requestTimeoutMs, maxBlockMs           int64
	backoffMs, deliveryMs, maxRequestBytes int64
}

const classConfigException = "org.apache.kafka.common.config.ConfigException"

func parseProducerSettings(p cli.Properties) (s producerSettings, err error) {
	name := p["compression.type"]
	codec, ok := record.ParseCodec(name)
	if !ok {
		return s, cli.Fail(classConfigException, "Invalid value %s for configuration compression.type: String must be one "+
			"of: none, gzip, snappy, lz4, zstd", name)
	}
	s.codec = codec
	acks, ok := map[string]int16{"all": -1, "-1": -1, "0": 0, "1": 1}[p["acks"]]
	if !ok {
		return s, cli.Fail(classConfigException, "Invalid value %s for configuration acks: String must be one of: "+
			"all, -1, 0, 1", p["acks"])
	}
	s.acks = acks
	wanted := p.Get("enable.idempotence", "")
	s.idempotent = acks == -1 && !strings.EqualFold(wanted, "false")
	if acks != -1 && strings.EqualFold(wanted, "true") {
		return s, cli.Fail(classConfigException, "Must set acks to all in order to use the idempotent producer. Otherwise "+
			"we cannot guarantee idempotence.")
	}
	level := int64(0)
	numbers := []struct {
		key     string
		def     string
		least   int64
		setting *int64
	}{
		{"linger.ms", "1000", 0, &s.lingerMs}, {"batch.size", "16384", 0, &s.batchSize},
		{"retries", "3", 0, &s.retries}, {"request.timeout.ms", "1500", 0, &s.requestTimeoutMs},
		{"max.block.ms", "60000", 0, &s.maxBlockMs}, {"retry.backoff.ms", "100", 0, &s.backoffMs},
		{"delivery.timeout.ms", "120000", 0, &s.deliveryMs}, {"max.request.size", "1048576", 0, &s.maxRequestBytes},
		{"compression." + name + ".level", "0", math.MinInt32, &level},
	}
	for _, n := range numbers {
		if *n.setting, err = number(p, n.key, n.def, n.least); err != nil {
			return s, err
		}
	}
	s.level = int(level)
	return s, nil
}

func number(p cli.Properties, key, def string, least int64) (int64, error) {
	text := strings.TrimSpace(p.Get(key, def))
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, cli.Fail(classConfigException, "Invalid value %s for configuration %s: Not a number of type LONG",
			text, key)
	}
	if n < least {
		return 0, cli.Fail(classConfigException, "Invalid value %s for configuration %s: Value must be at least %d",
			text, key, least)
	}
	return n, nil
}
