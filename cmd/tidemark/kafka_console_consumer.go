package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"tidemark/cmd/internal/cli"
)

// consoleConsumerTool is Kafka's ConsoleConsumer: records of topics as text.
var consoleConsumerTool = tool{
	name:    "kafka-console-consumer",
	short:   "Show records of topics",
	run:     runConsoleConsumer,
	options: func() *cli.Parser { return &newConsumerOptions().parser },
}

const (
	consumerIntro    = "This tool helps to read data from Kafka topics and outputs it to standard output."
	consumerLogger   = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	formatterPackage = "org.apache.kafka.tools.consumer."
	fromEarliest     = -2
	fromLatest       = -1
)

type consumerOptions struct {
	parser                                      cli.Parser
	topic, include, partition, offset           *cli.Option
	consumerProperty, commandProperty           *cli.Option
	consumerConfig, commandConfig               *cli.Option
	formatter, property, formatterProperty      *cli.Option
	formatterConfig, fromBeginning, maxMessages *cli.Option
	timeout, skipOnError, bootstrap             *cli.Option
	keyDeserializer, valueDeserializer, systest *cli.Option
	isolation, group                            *cli.Option
}

const formatterPropertyHelp = "Setting of the formatter, as key=value:\n" +
	" print.timestamp=true|false\n print.key=true|false\n print.offset=true|false\n print.epoch=true|false\n" +
	" print.partition=true|false\n print.headers=true|false\n print.value=true|false\n key.separator=<key.separator>\n" +
	" line.separator=<line.separator>\n headers.separator=<headers.separator>\n null.literal=<null.literal>\n" +
	" key.deserializer=<key.deserializer>\n value.deserializer=<value.deserializer>\n" +
	" headers.deserializer=<headers.deserializer>\n" +
	"What starts with the name of a deserializer and a dot is a setting of that deserializer."

func newConsumerOptions() *consumerOptions {
	o := &consumerOptions{}
	p := &o.parser
	p.AddHelp()
	o.topic = p.Text("topic", "topic", "The topic to read.")
	o.include = p.Text("include", "Java regex (String)", "Regular expression for the topics to read.")
	o.partition = p.Number("Integer", "partition", "partition",
		"The partition to read, from its end unless --offset says otherwise.", "")
	o.offset = p.Text("offset", "consume offset", "The offset to start at, or 'earliest' or 'latest'.")
	o.offset.Default = "latest"
	o.consumerProperty = p.Text("consumer-property", "consumer_prop", "(DEPRECATED) The same as --command-property.")
	o.commandProperty = p.Text("command-property", "consumer_prop", "Setting of the consumer, as key=value.")
	o.consumerConfig = p.Text("consumer.config", "config file", "(DEPRECATED) The same as --command-config.")
	o.commandConfig = p.Text("command-config", "config file",
		"File with settings of the consumer; [command-property] wins.")
	o.addFormatting(p)
	o.fromBeginning = p.Flag("from-beginning", "Start at the first record where the group has no offset yet.")
	o.maxMessages = p.Number("Integer", "max-messages", "num_messages", "How many records to show; all when left out.", "")
	o.timeout = p.Number("Long", "timeout-ms", "timeout_ms", "End when no record came for so long.", "")
	o.skipOnError = p.Flag("skip-message-on-error", "Leave out records that cannot be shown, instead of ending.")
	o.bootstrap = p.Text("bootstrap-server", "server to connect to", "REQUIRED: Brokers to ask first.")
	o.systest = p.Flag("enable-systest-events", "Say when the tool ends.")
	o.isolation = p.Text("isolation-level", "",
		"read_committed to leave out what is not committed, else read_uncommitted.")
	o.isolation.Default = "read_uncommitted"
	o.group = p.Text("group", "consumer group id", "The consumer group to join.")
	return o
}

func (o *consumerOptions) addFormatting(p *cli.Parser) {
	o.formatter = p.Text("formatter", "class", "Class that shows the records.")
	o.formatter.Default = formatterPackage + "DefaultMessageFormatter"
	o.property = p.Text("property", "prop", "(DEPRECATED) The same as --formatter-property.")
	o.formatterProperty = p.Text("formatter-property", "prop", formatterPropertyHelp)
	o.formatterConfig = p.Text("formatter-config", "config file",
		"File with settings of the formatter; [formatter-property] wins.")
	o.keyDeserializer = p.Text("key-deserializer", "deserializer for keys", "Class that reads the keys.")
	o.valueDeserializer = p.Text("value-deserializer", "deserializer for values", "Class that reads the values.")
}

// consumption is what the command line asks for.
type consumption struct {
	topic, include string // one of them
	partition      int32  // −1 = all
	offset         int64  // where to start in the partition; see fromEarliest
	maxMessages    int64  // −1 = no end
	timeoutMs      int64
	group          string // "" = none was given
	settings       cli.Properties
	format         formatter
	skipOnError    bool
	systest        bool
}

func runConsoleConsumer(ctx context.Context, env *cli.Env, args []string) int {
	ctx, interrupted := interruptible(ctx)
	signal.Ignore(syscall.SIGPIPE) // a closed output is told as Kafka's tool tells it
	o := newConsumerOptions()
	c, err := o.read(env, args)
	if err != nil {
		return o.parser.Finish(env, err, func(f *cli.Failure) {
			fmt.Fprint(env.Stderr, "Exception in thread \"main\" "+f.Trace())
		})
	}
	return interrupted(consume(ctx, env, c))
}

// read turns the command line into what to do. A Failure is one that Kafka's tool does
// not catch.
func (o *consumerOptions) read(env *cli.Env, args []string) (c consumption, err error) {
	if err := o.parser.Parse(args); err != nil {
		return c, cli.Usagef("%s", err)
	}
	if err := o.parser.HelpOrVersion(env, consumerIntro); err != nil {
		return c, err
	}
	if err := o.checkRequired(); err != nil {
		return c, err
	}
	if err := o.renamed(env); err != nil {
		return c, err
	}
	if err := o.readSettings(env, &c); err != nil {
		return c, err
	}
	c.partition = -1
	if o.partition.Has() {
		n, err := o.partition.Int()
		if err != nil {
			return c, err
		}
		c.partition = int32(n)
	}
	if c.offset, err = o.startOffset(); err != nil {
		return c, err
	}
	if c.timeoutMs, err = o.timeoutMs(); err != nil {
		return c, err
	}
	if c.format, err = o.newFormatter(env); err != nil {
		return c, err
	}
	return c, o.readRest(&c)
}

func (o *consumerOptions) readRest(c *consumption) (err error) {
	c.maxMessages = -1
	if o.maxMessages.Has() {
		if c.maxMessages, err = o.maxMessages.Int(); err != nil {
			return err
		}
	}
	if c.topic, err = o.topic.Value(); err != nil {
		return err
	}
	if c.include, err = o.include.Value(); err != nil {
		return err
	}
	c.skipOnError, c.systest = o.skipOnError.Has(), o.systest.Has()
	return nil
}

func (o *consumerOptions) checkRequired() error {
	if o.topic.Has() == o.include.Has() {
		return cli.Usagef("Exactly one of the following arguments is required: %s, %s", o.topic, o.include)
	}
	if !o.partition.Has() {
		if o.offset.Has() {
			return cli.Usagef("The partition is required when offset is specified.")
		}
		return cli.Require(o.bootstrap)
	}
	if _, err := o.partition.Int(); err != nil {
		return err
	}
	if !o.topic.Has() {
		return cli.Usagef("The topic is required when partition is specified.")
	}
	if o.fromBeginning.Has() && o.offset.Has() {
		return cli.Usagef("Options from-beginning and offset cannot be specified together.")
	}
	return cli.Require(o.bootstrap)
}

// renamed puts the old spellings of options in the place of the new ones.
func (o *consumerOptions) renamed(env *cli.Env) error {
	pairs := []struct{ old, successor **cli.Option }{
		{&o.consumerProperty, &o.commandProperty}, {&o.consumerConfig, &o.commandConfig},
	}
	for _, p := range pairs {
		if (*p.old).Has() && (*p.successor).Has() {
			return cli.Usagef("Options --%s and --%s cannot be specified together.", (*p.old).Name, (*p.successor).Name)
		}
	}
	for _, p := range pairs {
		if (*p.old).Has() {
			sayRenamed(env, *p.old, *p.successor)
			*p.successor = *p.old
		}
	}
	return nil
}

func sayRenamed(env *cli.Env, old, successor *cli.Option) {
	fmt.Fprintf(env.Stdout, "Option --%s is deprecated and will be removed in a future version. Use --%s instead.\n",
		old.Name, successor.Name)
}

// readSettings gathers the consumer's settings, by Kafka's names.
func (o *consumerOptions) readSettings(env *cli.Env, c *consumption) (err error) {
	p := cli.Properties{}
	if o.commandConfig.Has() {
		file, err := o.commandConfig.Value()
		if err != nil {
			return err
		}
		if p, err = cli.LoadProperties(file); err != nil {
			return err
		}
	}
	extra := cli.KeyValues(o.commandProperty.Values())
	if c.group, err = o.groupID(p, extra); err != nil {
		return err
	}
	p.Merge(extra)
	if err := o.setReset(env, p); err != nil {
		return err
	}
	if p["bootstrap.servers"], err = o.bootstrap.Value(); err != nil {
		return err
	}
	p["client.id"] = p.Get("client.id", "console-consumer")
	if err := mergeOption(p, "isolation.level", o.isolation); err != nil {
		return err
	}
	p["group.id"] = c.group
	if c.group == "" {
		p["group.id"] = "console-consumer-" + strconv.Itoa(rand.IntN(100000))
	}
	c.settings = p
	return nil
}

// groupID is the group that was given, in one or several places.
func (o *consumerOptions) groupID(file, extra cli.Properties) (string, error) {
	var groups []string
	if o.group.Has() {
		group, err := o.group.Value()
		if err != nil {
			return "", err
		}
		groups = append(groups, group)
	}
	for _, p := range []cli.Properties{file, extra} {
		if group, ok := p["group.id"]; ok {
			groups = append(groups, group)
		}
	}
	groups = distinct(groups)
	if len(groups) > 1 {
		cli.HashOrder(groups, 0, func(s string) string { return s })
		return "", cli.Usagef("The group ids provided in different places (directly using '--group', via "+
			"'--consumer-property', or via '--consumer.config') do not match. Detected group ids: '%s'",
			strings.Join(groups, "', '"))
	}
	if len(groups) == 1 && o.partition.Has() {
		return "", cli.Usagef("Options group and partition cannot be specified together.")
	}
	return strings.Join(groups, ""), nil
}

func distinct(items []string) (unique []string) {
	seen := map[string]bool{}
	for _, item := range items {
		if !seen[item] {
			seen[item] = true
			unique = append(unique, item)
		}
	}
	return unique
}

func (o *consumerOptions) setReset(env *cli.Env, p cli.Properties) error {
	given, ok := p["auto.offset.reset"]
	switch {
	case ok && o.fromBeginning.Has() && given != "earliest":
		fmt.Fprintf(env.Stderr, "Can't simultaneously specify --from-beginning and 'auto.offset.reset=%s', please remove "+
			"one option\n", given)
		return &cli.Exit{Code: 1}
	case ok:
	case o.fromBeginning.Has():
		p["auto.offset.reset"] = "earliest"
	default:
		p["auto.offset.reset"] = "latest"
	}
	return nil
}

func (o *consumerOptions) startOffset() (int64, error) {
	if !o.offset.Has() {
		if o.fromBeginning.Has() {
			return fromEarliest, nil
		}
		return fromLatest, nil
	}
	text, err := o.offset.Value()
	if err != nil {
		return 0, err
	}
	switch strings.ToLower(text) {
	case "earliest":
		return fromEarliest, nil
	case "latest":
		return fromLatest, nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return 0, cli.Usagef("The provided offset value '%s' is incorrect. Valid values are 'earliest', 'latest', or a "+
			"non-negative long.", text)
	}
	return offset, nil
}

func (o *consumerOptions) timeoutMs() (int64, error) {
	if !o.timeout.Has() {
		return math.MaxInt64, nil
	}
	ms, err := o.timeout.Int()
	if ms < 0 {
		ms = math.MaxInt64
	}
	return ms, err
}

// newFormatter makes the formatter; what goes wrong is shown with the usage.
func (o *consumerOptions) newFormatter(env *cli.Env) (formatter, error) {
	class, err := o.formatter.Value()
	if err != nil {
		return formatter{}, cli.Usagef("%s", err)
	}
	name, ok := strings.CutPrefix(class, formatterPackage)
	if !ok || !knownFormatter(name) {
		return formatter{}, cli.Usagef("%s", class)
	}
	if o.property.Has() && o.formatterProperty.Has() {
		return formatter{}, cli.Usagef("Options --property and --formatter-property cannot be specified together.")
	}
	if o.property.Has() {
		sayRenamed(env, o.property, o.formatterProperty)
		o.formatterProperty = o.property
	}
	p := cli.Properties{}
	if o.formatterConfig.Has() {
		file, err := o.formatterConfig.Value()
		if err == nil {
			p, err = cli.LoadProperties(file)
		}
		if err != nil {
			return formatter{}, cli.Usagef("%s", err)
		}
	}
	for key, option := range map[string]*cli.Option{
		"key.deserializer": o.keyDeserializer, "value.deserializer": o.valueDeserializer,
	} {
		deserializer, err := option.Value()
		if err != nil {
			return formatter{}, cli.Usagef("%s", err)
		}
		if deserializer != "" {
			p[key] = deserializer
		}
	}
	p.Merge(cli.KeyValues(o.formatterProperty.Values()))
	if internal, ok := internalFormatters[name]; ok {
		return formatter{internal: internal}, nil
	}
	return configuredFormatter(env, p), nil
}

// knownFormatter reports whether a class of Kafka's own is here; the one that also logs
// shows the same.
func knownFormatter(name string) bool {
	_, internal := internalFormatters[name]
	return internal || name == "DefaultMessageFormatter" || name == "LoggingMessageFormatter"
}
