package main

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
)

// getOffsetsTool is Kafka's GetOffsetShell: offsets of partitions by time.
var getOffsetsTool = tool{
	name:    "kafka-get-offsets",
	short:   "Offsets of partitions: first, last, or by time",
	run:     runGetOffsets,
	options: func() *cli.Parser { return &newGetOffsetsOptions().parser },
}

const (
	getOffsetsIntro = "An interactive shell for getting topic-partition offsets."
	classTerse      = "org.apache.kafka.tools.TerseException"
)

type getOffsetsOptions struct {
	parser                                        cli.Parser
	bootstrap, topicPartitions, topic, partitions *cli.Option
	time, commandConfig, excludeInternal          *cli.Option
	bootstrapList                                 string
}

func newGetOffsetsOptions() *getOffsetsOptions {
	o := &getOffsetsOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "HOST1:PORT1,...,HOST3:PORT3",
		"REQUIRED. Brokers to ask first, as HOST1:PORT1,HOST2:PORT2.")
	o.topicPartitions = p.Text("topic-partitions", "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
		"Which partitions to show, as a comma separated list of TOPIC:PARTITIONS. TOPIC is a regular expression, any "+
			"topic when left out. PARTITIONS is one number, a range FROM-TO without TO itself, FROM- or -TO; all "+
			"partitions when left out.")
	o.topic = p.Text("topic", "topic",
		"The topic, or a regular expression for several. All topics when left out. Not together with --topic-partitions.")
	o.partitions = p.Text("partitions", "partition ids",
		"Comma separated list of partition numbers. All partitions when left out. Not together with --topic-partitions.")
	o.time = p.Text("time", "<timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / "+
		"-5 or latest-tiered / -6 or earliest-pending-upload",
		"A time in milliseconds: the first offset whose record is not older; nothing is shown for a partition without "+
			"such a record. Or one of the special values.")
	o.time.Default = "latest"
	o.commandConfig = p.Text("command-config", "config file", "File with settings for the client.")
	o.excludeInternal = p.Flag("exclude-internal-topics", "Leave internal topics out.")
	return o
}

func runGetOffsets(ctx context.Context, env *cli.Env, args []string) int {
	options := newGetOffsetsOptions()
	return options.parser.Finish(env, getOffsets(ctx, env, options, args), func(f *cli.Failure) {
		fmt.Fprintln(env.Stderr, "Error occurred: "+f.Message)
		if f.Class != classTerse {
			fmt.Fprintln(env.Stderr, f.Trace())
		}
	})
}

func getOffsets(ctx context.Context, env *cli.Env, o *getOffsetsOptions, args []string) error {
	if err := o.parse(env, args); err != nil {
		return err
	}
	timestamp, err := o.timestamp()
	if err != nil {
		return err
	}
	filter, err := o.filter()
	if err != nil {
		return err
	}
	settings := cli.Properties{}
	if o.commandConfig.Has() {
		file, err := o.commandConfig.Value()
		if err != nil {
			return err
		}
		if settings, err = cli.LoadProperties(file); err != nil {
			return err
		}
	}
	settings["bootstrap.servers"], settings["client.id"] = o.bootstrapList, "GetOffsetShell"
	admin, err := cli.NewAdmin(env, settings)
	if err != nil {
		return err
	}
	defer admin.Close()
	return printOffsets(ctx, env, admin, filter, o.excludeInternal.Has(), timestamp)
}

func (o *getOffsetsOptions) parse(env *cli.Env, args []string) (err error) {
	if len(args) == 0 {
		return cli.Usagef(getOffsetsIntro)
	}
	if err := o.parser.Parse(args); err != nil {
		return cli.Fail(classTerse, "%s", err)
	}
	if err := o.parser.HelpOrVersion(env, getOffsetsIntro); err != nil {
		return err
	}
	if err := cli.Require(o.bootstrap); err != nil {
		return err
	}
	if o.bootstrapList, err = o.bootstrap.Value(); err != nil {
		return err
	}
	if err := cli.CheckBootstrap(o.bootstrapList); err != nil {
		return err
	}
	if o.topicPartitions.Has() && (o.topic.Has() || o.partitions.Has()) {
		return cli.Fail(classTerse, "--topic-partitions cannot be used with --topic or --partitions")
	}
	return nil
}

var offsetNames = map[string]int64{
	"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5,
	"earliest-pending-upload": -6,
}

func (o *getOffsetsOptions) timestamp() (int64, error) {
	text, err := o.time.Value()
	if err != nil {
		return 0, err
	}
	if special, ok := offsetNames[text]; ok {
		return special, nil
	}
	timestamp, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, cli.Fail(classTerse, "Malformed time argument %s. Please use -1 or latest / -2 or earliest / "+
			"-3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, "+
			"or a specified long format timestamp", text)
	}
	return timestamp, nil
}

// partitionFilter tells which partitions to show: those that any of its rules takes.
type partitionFilter []partitionRule

// partitionRule takes topics by pattern, and of those the partitions from ≤ p < to, or
// those listed when ids is not nil.
type partitionRule struct {
	topic    *cli.TopicPattern
	from, to int64
	ids      []int64
}

func (f partitionFilter) topic(name string) bool {
	return slices.ContainsFunc(f, func(r partitionRule) bool { return r.topic.Match(name) })
}

func (f partitionFilter) partition(topic string, id int32) bool {
	return slices.ContainsFunc(f, func(r partitionRule) bool { return r.topic.Match(topic) && r.partition(int64(id)) })
}

func (r partitionRule) partition(id int64) bool {
	if r.ids != nil {
		return slices.Contains(r.ids, id)
	}
	return r.from <= id && id < r.to
}

func (o *getOffsetsOptions) filter() (partitionFilter, error) {
	if o.topicPartitions.Has() {
		return o.ruleList()
	}
	topic, err := o.topic.Value()
	if err != nil {
		return nil, err
	}
	if !o.topic.Has() {
		topic = ".*"
	}
	rule := partitionRule{to: math.MaxInt64}
	if rule.topic, err = cli.ParseTopicPattern(topic); err != nil {
		return nil, err
	}
	list, err := o.partitions.Value()
	if err != nil {
		return nil, err
	}
	if list != "" {
		rule.ids, err = parsePartitionIDs(list)
	}
	return partitionFilter{rule}, err
}

func parsePartitionIDs(list string) ([]int64, error) {
	ids := []int64{}
	for text := range strings.SplitSeq(strings.TrimRight(list, ","), ",") {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, cli.Fail(classTerse,
				"--partitions expects a comma separated list of numeric partition ids, but received: %s", list)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (o *getOffsetsOptions) ruleList() (partitionFilter, error) {
	list, err := o.topicPartitions.Value()
	if err != nil {
		return nil, err
	}
	var filter partitionFilter
	for text := range strings.SplitSeq(strings.TrimRight(list, ","), ",") {
		rule, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		filter = append(filter, rule)
	}
	return filter, nil
}

var rulePattern = cli.Pattern(`^([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?$`)

func parseRule(text string) (partitionRule, error) {
	rule := partitionRule{to: math.MaxInt32}
	parts := rulePattern().FindStringSubmatch(text)
	if parts == nil {
		cause := cli.Fail(classTerse, "Invalid rule specification: %s", text)
		failure := cli.Fail("java.lang.RuntimeException", "%s", cause.String())
		failure.Cause = cause
		return rule, failure
	}
	topic := parts[1]
	if topic == "" {
		topic = ".*"
	}
	var err error
	if rule.topic, err = cli.ParseTopicPattern(topic); err != nil {
		return rule, err
	}
	bounds := []struct {
		text string
		set  func(int64)
	}{
		{parts[2], func(n int64) { rule.from, rule.to = n, n+1 }},
		{parts[3], func(n int64) { rule.from = n }},
		{parts[4], func(n int64) { rule.to = n }},
	}
	for _, b := range bounds {
		if b.text == "" {
			continue
		}
		n, err := strconv.ParseInt(b.text, 10, 32)
		if err != nil {
			return rule, cli.Fail("java.lang.NumberFormatException", "For input string: \"%s\"", b.text)
		}
		b.set(n)
	}
	return rule, nil
}

func printOffsets(ctx context.Context, env *cli.Env, admin *cli.Admin, filter partitionFilter,
	excludeInternal bool, timestamp int64,
) error {
	partitions, err := matchingPartitions(ctx, admin, filter, excludeInternal)
	if err != nil {
		return err
	}
	if len(partitions) == 0 {
		return cli.Fail(classTerse, "Could not match any topic-partitions with the specified filters")
	}
	found, err := admin.ListOffsets(ctx, partitions, timestamp)
	if err != nil {
		return err
	}
	var lines []cli.Offset
	for _, f := range found {
		if f.Err != nil {
			fmt.Fprintf(env.Stderr, "Skip getting offsets for topic-partition %s-%d due to error: %s\n",
				f.Topic, f.ID, f.Err.String())
		} else if f.Offset != -1 {
			lines = append(lines, f)
		}
	}
	name := func(f cli.Offset) string { return f.Topic + "-" + strconv.Itoa(int(f.ID)) }
	slices.SortFunc(lines, func(a, b cli.Offset) int { return strings.Compare(name(a), name(b)) })
	out := bufio.NewWriter(env.Stdout)
	for _, f := range lines {
		fmt.Fprintf(out, "%s:%d:%d\n", f.Topic, f.ID, f.Offset)
	}
	return out.Flush()
}

func matchingPartitions(ctx context.Context, admin *cli.Admin, filter partitionFilter, excludeInternal bool,
) ([]cli.Partition, error) {
	topics, err := admin.Topics(ctx)
	if err != nil {
		return nil, cli.Execution(err)
	}
	topics = slices.DeleteFunc(topics, func(t cli.Topic) bool {
		return t.Topic == nil || excludeInternal && t.IsInternal || !filter.topic(*t.Topic)
	})
	cli.HashOrder(topics, len(topics), func(t cli.Topic) string { return *t.Topic })
	for _, t := range topics {
		if f := cli.APIFailure(t.ErrorCode, nil); f != nil && len(t.Partitions) == 0 {
			return nil, cli.Fail("java.util.concurrent.ExecutionException", "%s", f.String())
		}
	}
	return slices.DeleteFunc(cli.Partitions(topics), func(p cli.Partition) bool {
		return !filter.partition(p.Topic, p.ID)
	}), nil
}
