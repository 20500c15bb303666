package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tidemark/cmd/internal/cli"
)

// topicsTool is Kafka's TopicCommand: create, delete, alter, describe and list topics.
var topicsTool = tool{
	name:    "kafka-topics",
	short:   "Create, delete, describe, list or extend topics",
	run:     runTopics,
	options: func() *cli.Parser { return &newTopicsOptions().parser },
}

const (
	topicsIntro     = "This tool helps to create, delete, describe, or change a topic."
	topicsShort     = "Create, delete, describe, or change a topic."
	topicConfigHint = " (To alter topic configurations, the kafka-configs tool can be used.)"
	topicsLogger    = "org.apache.kafka.tools.TopicCommand"
)

// topicConfigNames are the names that --config takes, for the usage text.
var topicConfigNames = []string{
	"cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level",
	"delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
	"follower.replication.throttled.replicas", "index.interval.bytes", "leader.replication.throttled.replicas",
	"local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms", "max.message.bytes",
	"message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "message.timestamp.type",
	"min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "preallocate",
	"remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable", "retention.bytes",
	"retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
	"unclean.leader.election.enable",
}

func nameList(names []string) string { return "\n\t" + strings.Join(names, "\n\t") + "\n" }

type topicsOptions struct {
	parser                                            cli.Parser
	bootstrap, commandConfig                          *cli.Option
	list, create, delete, alter, describe             *cli.Option
	topic, topicID, config, deleteConfig              *cli.Option
	partitions, replicationFactor, replicaAssignment  *cli.Option
	underReplicated, unavailable, underMinISR, atMin  *cli.Option
	overrides, ifExists, ifNotExists, excludeInternal *cli.Option
	partitionSizeLimit                                *cli.Option
}

func newTopicsOptions() *topicsOptions {
	o := &topicsOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "server to connect to", "REQUIRED: Brokers to ask first.")
	o.commandConfig = p.Text("command-config", "command config property file", "File with settings for the client.")
	o.list = p.Flag("list", "Show the names of topics.")
	o.create = p.Flag("create", "Make a topic.")
	o.delete = p.Flag("delete", "Delete topics.")
	o.alter = p.Flag("alter", "Add partitions to topics."+topicConfigHint)
	o.describe = p.Flag("describe", "Show topics and their partitions.")
	o.topic = p.Text("topic", "topic",
		"The topic; with every action but --create, or a regular expression for several.")
	o.topicID = p.Text("topic-id", "topic-id", "The id of the topic to describe.")
	o.config = p.Text("config", "name=value", "A setting of the topic to create. Settings are:"+
		nameList(topicConfigNames)+"Only with --create."+topicConfigHint)
	o.deleteConfig = p.Text("delete-config", "name", "Without effect since 4.0.")
	o.partitions = p.Number("Integer", "partitions", "# of partitions",
		"How many partitions the topic shall have. With --create the cluster's default when left out. More partitions "+
			"change which keys go to which partition.", "")
	o.replicationFactor = p.Number("Integer", "replication-factor", "replication factor",
		"How many copies of each partition to create. The cluster's default when left out.", "")
	o.replicaAssignment = p.Text("replica-assignment", "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , "+
		"broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...", "The brokers of each partition, by hand.")
	o.addFilters(p)
	return o
}

func (o *topicsOptions) addFilters(p *cli.Parser) {
	o.underReplicated = p.Flag("under-replicated-partitions", "With --describe: only partitions that lack a copy in sync.")
	o.unavailable = p.Flag("unavailable-partitions", "With --describe: only partitions without a live leader.")
	o.underMinISR = p.Flag("under-min-isr-partitions",
		"With --describe: only partitions with fewer copies in sync than the configured minimum.")
	o.atMin = p.Flag("at-min-isr-partitions",
		"With --describe: only partitions with exactly the configured minimum of copies in sync.")
	o.overrides = p.Flag("topics-with-overrides", "With --describe: only topics with settings of their own.")
	o.ifExists = p.Flag("if-exists", "With --alter, --delete or --describe: no error when the topic is not there.")
	o.ifNotExists = p.Flag("if-not-exists", "With --create: no error when the topic is there already.")
	o.excludeInternal = p.Flag("exclude-internal", "With --list or --describe: leave internal topics out.")
	o.partitionSizeLimit = p.Number("Integer", "partition-size-limit-per-response",
		"maximum number of partitions per response", "How many partitions to ask for at once.", "")
}

func (o *topicsOptions) actions() []*cli.Option {
	return []*cli.Option{o.alter, o.create, o.describe, o.list, o.delete}
}

func runTopics(ctx context.Context, env *cli.Env, args []string) int {
	o := newTopicsOptions()
	command := &topicsCommand{env: env, topicsOptions: o}
	err := command.prepare(args)
	if err == nil {
		defer command.admin.Close()
		return command.finish(command.act(ctx))
	}
	return o.parser.Finish(env, err, func(f *cli.Failure) {
		fmt.Fprintln(env.Stderr, f.Message)
		fmt.Fprintln(env.Stderr, f.Trace())
	})
}

// topicsCommand is one run of the tool.
type topicsCommand struct {
	*topicsOptions
	env   *cli.Env
	admin *cli.Admin
}

// finish reports what went wrong in an action, and is the exit status.
func (c *topicsCommand) finish(err error) int {
	if err == nil {
		return 0
	}
	f := cli.AsFailure(err)
	fmt.Fprintln(c.env.Stdout, "Error while executing topic command : "+f.Message)
	c.env.Log("ERROR", topicsLogger, f.Trace())
	return 1
}

func (c *topicsCommand) prepare(args []string) error {
	if err := c.parser.Parse(args); err != nil {
		return err
	}
	if len(args) == 0 {
		return cli.Usagef(topicsShort)
	}
	if err := c.parser.HelpOrVersion(c.env, topicsIntro); err != nil {
		return err
	}
	if given := slices.DeleteFunc(c.actions(), func(o *cli.Option) bool { return !o.Has() }); len(given) != 1 {
		return cli.Usagef("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
	}
	if c.deleteConfig.Has() {
		fmt.Fprintln(c.env.Stderr, "delete-config option is no longer supported and deprecated since version 4.0. "+
			"The config will be fully removed in future releases.")
	}
	if err := c.checkRequired(); err != nil {
		return err
	}
	if err := c.checkInvalid(); err != nil {
		return err
	}
	return c.connect()
}

func (c *topicsCommand) connect() error {
	settings := cli.Properties{}
	if c.commandConfig.Has() {
		file, err := c.commandConfig.Value()
		if err != nil {
			return err
		}
		if settings, err = cli.LoadProperties(file); err != nil {
			return err
		}
	}
	brokers, err := c.bootstrap.Value()
	if err != nil {
		return err
	}
	settings["bootstrap.servers"] = brokers
	c.admin, err = cli.NewAdmin(c.env, settings)
	return err
}

func (o *topicsOptions) checkRequired() error {
	if !o.bootstrap.Has() {
		return cli.BadArgument("--bootstrap-server must be specified")
	}
	if o.describe.Has() && o.ifExists.Has() && !o.topic.Has() && !o.topicID.Has() {
		return cli.Usagef("--topic or --topic-id is required to describe a topic")
	}
	if !o.list.Has() && !o.describe.Has() {
		if err := cli.Require(o.topic); err != nil {
			return err
		}
	}
	if !o.alter.Has() {
		return nil
	}
	if o.config.Has() {
		return cli.Usagef("Option combination \"[%s, %s]\" can't be used with option \"%s\"%s",
			o.bootstrap, o.config, o.alter, topicConfigHint)
	}
	return cli.Require(o.partitions)
}

// checkInvalid refuses options that do not go with the action.
func (o *topicsOptions) checkInvalid() error {
	rules := []struct {
		used    *cli.Option
		allowed []*cli.Option // actions
		not     []*cli.Option // other options
	}{
		{o.config, []*cli.Option{o.alter, o.create}, nil},
		{o.partitions, []*cli.Option{o.alter, o.create}, nil},
		{o.replicationFactor, []*cli.Option{o.create}, nil},
		{o.replicaAssignment, []*cli.Option{o.alter, o.create}, o.notWithAssignment()},
		{o.underReplicated, []*cli.Option{o.describe}, []*cli.Option{o.overrides}},
		{o.underMinISR, []*cli.Option{o.describe}, []*cli.Option{o.overrides}},
		{o.atMin, []*cli.Option{o.describe}, []*cli.Option{o.overrides}},
		{o.unavailable, []*cli.Option{o.describe}, []*cli.Option{o.overrides}},
		{o.overrides, []*cli.Option{o.describe}, nil},
		{o.ifExists, []*cli.Option{o.alter, o.delete, o.describe}, nil},
		{o.ifNotExists, []*cli.Option{o.create}, nil},
		{o.excludeInternal, []*cli.Option{o.list, o.describe}, nil},
	}
	for _, r := range rules {
		others := slices.DeleteFunc(o.actions(), func(a *cli.Option) bool { return slices.Contains(r.allowed, a) })
		if err := cli.Forbid(r.used, append(others, r.not...)...); err != nil {
			return err
		}
	}
	return nil
}

func (o *topicsOptions) notWithAssignment() []*cli.Option {
	if o.create.Has() {
		return []*cli.Option{o.partitions, o.replicationFactor}
	}
	return nil
}

func (c *topicsCommand) act(ctx context.Context) error {
	switch {
	case c.create.Has():
		return c.createTopic(ctx)
	case c.alter.Has():
		return c.alterTopics(ctx)
	case c.list.Has():
		return c.listTopics(ctx)
	case c.describe.Has():
		return c.describeTopics(ctx)
	}
	return c.deleteTopics(ctx)
}

// matching lists the topics that --topic takes, sorted. When there is none and the
// topic was asked for by name, that is an error, but not with --if-exists.
func (c *topicsCommand) matching(ctx context.Context, mustExist bool) ([]string, error) {
	names, err := c.admin.TopicNames(ctx, c.excludeInternal.Has())
	if err != nil || !c.topic.Has() {
		return names, err
	}
	text, err := c.topic.Value()
	if err != nil {
		return nil, err
	}
	pattern, err := cli.ParseTopicPattern(text)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !pattern.Match(name) })
	if mustExist && len(names) == 0 && text != "" {
		return nil, cli.BadArgument("Topic '%s' does not exist as expected", text)
	}
	return names, nil
}

func (c *topicsCommand) listTopics(ctx context.Context) error {
	names, err := c.matching(ctx, false)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.env.Stdout, strings.Join(names, "\n"))
	return err
}
