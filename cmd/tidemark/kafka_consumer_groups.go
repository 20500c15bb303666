package main

import (
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"tidemark/cmd/internal/cli"
)

// consumerGroupsTool is Kafka's ConsumerGroupCommand: list, describe and delete consumer groups, and move their
// offsets.
var consumerGroupsTool = tool{
	name:    "kafka-consumer-groups",
	short:   "List, describe or delete consumer groups, reset their offsets",
	run:     runConsumerGroups,
	options: func() *cli.Parser { return &newConsumerGroupsOptions().parser },
}

const (
	consumerGroupsIntro = "This tool helps to list all consumer groups, describe a consumer group, delete consumer " +
		"group info, or reset consumer group offsets."
	consumerGroupsLogger = "org.apache.kafka.tools.OffsetsUtils"
	noExecuteWarning     = "WARN: No action will be performed as the --execute option is missing. In version 5.0, " +
		"this command will require either --dry-run or --execute to be specified. You should add the --dry-run option " +
		"explicitly if you are scripting this command and want to keep the current default behavior without prompting."
)

type consumerGroupsOptions struct {
	parser                                       cli.Parser
	bootstrap, commandConfig, timeout            *cli.Option
	group, allGroups, topic, allTopics           *cli.Option
	list, describe, delete, reset, deleteOffsets *cli.Option
	validateRegex                                *cli.Option
	dryRun, execute, export                      *cli.Option
	toOffset, fromFile, toDatetime, byDuration   *cli.Option
	toEarliest, toLatest, toCurrent, shiftBy     *cli.Option
	members, verbose, offsets, state, kind       *cli.Option
}

func newConsumerGroupsOptions() *consumerGroupsOptions {
	o := &consumerGroupsOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "server to connect to",
		"REQUIRED, but for --validate-regex: Brokers to ask first.")
	o.commandConfig = p.Text("command-config", "command config property file", "File with settings for the client.")
	o.timeout = p.Number("Long", "timeout", "timeout (ms)", "How long to try, in milliseconds.", "30000")
	o.group = p.Text("group", "consumer group", "The group, or several by several options.")
	o.allGroups = p.Flag("all-groups", "All groups.")
	o.topic = p.Text("topic", "topic", "The topic whose offsets to reset or delete: NAME, or NAME:0,1,2 for some of "+
		"its partitions. May be given several times.")
	o.allTopics = p.Flag("all-topics", "With --reset-offsets: all partitions for which the group has offsets.")
	o.list = p.Flag("list", "Show the names of groups.")
	o.describe = p.Flag("describe", "Show a group: its offsets and how far behind they are, its members or its state.")
	o.delete = p.Flag("delete", "Delete groups with all their offsets.")
	o.deleteOffsets = p.Flag("delete-offsets", "Delete offsets of a group for --topic.")
	o.validateRegex = p.Text("validate-regex", "regex", "Tell whether a regular expression is one for topic "+
		"subscriptions (RE2).")
	o.members = p.Flag("members", "With --describe: the members.")
	o.offsets = p.Flag("offsets", "With --describe: the offsets; this is what is shown anyway.")
	o.verbose = p.Flag("verbose", "With --describe: more columns.")
	o.state = p.Add(cli.Option{Name: "state", Arity: cli.OptionalArg, Help: "With --describe: the state. With --list: " +
		"the states too, or only groups in the states given, as stable,empty."})
	o.kind = p.Add(cli.Option{Name: "type", Arity: cli.OptionalArg, Help: "With --list: the protocols too, or " +
		"only groups of the protocols given, as classic,consumer."})
	o.addReset(p)
	return o
}

func (o *consumerGroupsOptions) addReset(p *cli.Parser) {
	o.reset = p.Flag("reset-offsets", "Move the offsets of a group without members, for --topic, --all-topics or the "+
		"partitions in a file, to where one of the --to options says. Without --execute it only shows the new offsets.")
	o.dryRun = p.Flag("dry-run", "With --reset-offsets: change nothing.")
	o.execute = p.Flag("execute", "With --reset-offsets: change the offsets.")
	o.export = p.Flag("export", "With --reset-offsets: show the new offsets as CSV, for --from-file.")
	o.toOffset = p.Number("Long", "to-offset", "offset", "This offset.", "")
	o.fromFile = p.Text("from-file", "path to CSV file", "The offsets in a file: lines TOPIC,PARTITION,OFFSET, with "+
		"several groups GROUP,TOPIC,PARTITION,OFFSET.")
	o.toDatetime = p.Text("to-datetime", "datetime", "The first record of a time or later: YYYY-MM-DDThh:mm:ss.sss, "+
		"in UTC unless a zone follows: Z, +hh or +hh:mm.")
	o.byDuration = p.Text("by-duration", "duration", "The first record of so long ago or later: PnDTnHnMnS.")
	o.toEarliest = p.Flag("to-earliest", "The first offset.")
	o.toLatest = p.Flag("to-latest", "The end.")
	o.toCurrent = p.Flag("to-current", "The present offset; the end where there is none.")
	o.shiftBy = p.Number("Long", "shift-by", "number-of-offsets", "So many offsets on, or back when negative.", "")
}

func (o *consumerGroupsOptions) actions() []*cli.Option {
	return []*cli.Option{o.list, o.describe, o.delete, o.reset, o.deleteOffsets, o.validateRegex}
}

// scenarios are the places to reset to, of which one is given.
func (o *consumerGroupsOptions) scenarios() []*cli.Option {
	return []*cli.Option{o.toOffset, o.toDatetime, o.byDuration, o.toEarliest, o.toLatest, o.toCurrent, o.shiftBy,
		o.fromFile}
}

// consumerGroupsCommand is one run of the tool.
type consumerGroupsCommand struct {
	*consumerGroupsOptions
	env   *cli.Env
	admin *cli.Admin
}

func runConsumerGroups(ctx context.Context, env *cli.Env, args []string) int {
	o := newConsumerGroupsOptions()
	c := &consumerGroupsCommand{consumerGroupsOptions: o, env: env}
	err := c.prepare(args)
	if err == nil {
		err = c.finish(c.act(ctx))
	}
	return o.parser.Finish(env, err, func(f *cli.Failure) {
		fmt.Fprint(env.Stderr, "Exception in thread \"main\" "+f.Trace())
	})
}

// finish reports a failure as Kafka does: on the output, with status 0. Arguments that make no sense show the usage.
func (c *consumerGroupsCommand) finish(err error) error {
	var exit *cli.Exit
	var usage *cli.UsageError
	if err == nil || errors.As(err, &exit) || errors.As(err, &usage) {
		return err
	}
	f := cli.AsFailure(err)
	if f.Class == cli.BadArgument("").Class {
		return cli.Usagef("%s", f.Message)
	}
	c.failed("Executing consumer group command failed due to "+f.Message, f)
	return nil
}

// failed prints an error and, when there is one, what is behind it.
func (c *consumerGroupsCommand) failed(message string, f *cli.Failure) {
	fmt.Fprintln(c.env.Stdout, "\nError: "+message)
	if f != nil {
		fmt.Fprint(c.env.Stderr, f.Trace())
	}
}

// runtimeFailure wraps a failure as Java does where a checked exception cannot be thrown.
func runtimeFailure(err error) error {
	cause := cli.AsFailure(err)
	if cause == nil {
		return nil
	}
	return &cli.Failure{Class: "java.lang.RuntimeException", Message: cause.String(), Cause: cause}
}

func (c *consumerGroupsCommand) prepare(args []string) error {
	if err := c.parser.Parse(args); err != nil {
		return err
	}
	if err := c.checkAvailable(); err != nil {
		return err
	}
	if err := c.parser.HelpOrVersion(c.env, consumerGroupsIntro); err != nil {
		return err
	}
	if !c.validateRegex.Has() {
		if err := cli.Require(c.bootstrap); err != nil {
			return err
		}
	}
	for _, check := range []func() error{c.checkDescribe, c.checkDelete, c.checkReset, c.checkScope} {
		if err := check(); err != nil {
			return err
		}
	}
	if given := slices.DeleteFunc(c.actions(), func(o *cli.Option) bool { return !o.Has() }); len(given) != 1 {
		return cli.Usagef("Command must include exactly one action: --list, --describe, --delete, --reset-offsets, " +
			"--delete-offsets, --validate-regex")
	}
	return nil
}

// checkAvailable refuses options that go with another action.
func (c *consumerGroupsCommand) checkAvailable() error {
	var names []string
	for _, o := range []*cli.Option{c.members, c.verbose, c.offsets, c.state, c.kind} {
		available := c.describe.Has()
		switch o {
		case c.state:
			available = available || c.list.Has()
		case c.kind:
			available = c.list.Has()
		}
		if o.Has() && !available {
			names = append(names, o.Name)
		}
	}
	if names == nil {
		return nil
	}
	return cli.Fail("joptsimple.UnavailableOptionException",
		"Option(s) [%s] are unavailable given other options on the command line", strings.Join(names, ", "))
}

func (c *consumerGroupsCommand) checkGroups(action *cli.Option) error {
	if !c.group.Has() && !c.allGroups.Has() {
		return cli.Usagef("Option %s takes one of these options: [group], [all-groups]", action)
	}
	return nil
}

func (c *consumerGroupsCommand) checkDescribe() error {
	if !c.describe.Has() {
		return nil
	}
	if err := c.checkGroups(c.describe); err != nil {
		return err
	}
	views := 0
	for _, o := range []*cli.Option{c.members, c.offsets, c.state} {
		if o.Has() {
			views++
		}
	}
	if views > 1 {
		return cli.Usagef("Option %s takes at most one of these options: %s, %s, %s", c.describe, c.members, c.offsets,
			c.state)
	}
	if len(c.state.Values()) > 0 {
		return cli.Usagef("Option %s does not take a value for %s", c.describe, c.state)
	}
	return nil
}

func (c *consumerGroupsCommand) checkDelete() error {
	if c.delete.Has() {
		if err := c.checkGroups(c.delete); err != nil {
			return err
		}
		if c.topic.Has() {
			return cli.Usagef("The consumer does not support topic-specific offset deletion from a consumer group.")
		}
	}
	if c.deleteOffsets.Has() && (!c.group.Has() || !c.topic.Has()) {
		return cli.Usagef("Option %s takes the following options: %s, %s", c.deleteOffsets, c.topic, c.group)
	}
	return nil
}

func (c *consumerGroupsCommand) checkReset() error {
	if !c.reset.Has() {
		return nil
	}
	if c.dryRun.Has() && c.execute.Has() {
		return cli.Usagef("Option %s only accepts one of %s and %s", c.reset, c.execute, c.dryRun)
	}
	if !c.dryRun.Has() && !c.execute.Has() {
		fmt.Fprintln(c.env.Stderr, noExecuteWarning)
	}
	if err := c.checkGroups(c.reset); err != nil {
		return err
	}
	for _, used := range c.scenarios() {
		others := slices.DeleteFunc(c.scenarios(), func(o *cli.Option) bool { return o == used })
		if err := cli.Forbid(used, others...); err != nil {
			return err
		}
	}
	return nil
}

func (c *consumerGroupsCommand) checkScope() error {
	if err := cli.Forbid(c.group, c.allGroups); err != nil {
		return err
	}
	if err := cli.Forbid(c.group, c.list); err != nil {
		return err
	}
	return cli.Forbid(c.topic, c.list, c.describe)
}

func (c *consumerGroupsCommand) act(ctx context.Context) error {
	if c.validateRegex.Has() {
		return c.checkRegex()
	}
	if err := c.connect(); err != nil {
		return err
	}
	defer c.admin.Close()
	switch {
	case c.list.Has():
		return c.listGroups(ctx)
	case c.describe.Has():
		return c.describeGroups(ctx)
	case c.delete.Has():
		return c.deleteGroups(ctx)
	case c.reset.Has():
		return c.resetOffsets(ctx)
	default:
		return c.deleteGroupOffsets(ctx)
	}
}

func (c *consumerGroupsCommand) checkRegex() error {
	text, err := c.validateRegex.Value()
	if err != nil {
		return err
	}
	var bad *syntax.Error
	if _, err := syntax.Parse(text, syntax.Perl); errors.As(err, &bad) {
		fmt.Fprintf(c.env.Stdout, "The regular expression `%s` is invalid: %s.\n", text, bad.Code)
		return nil
	}
	fmt.Fprintf(c.env.Stdout, "The regular expression `%s` is valid.\n", text)
	return nil
}

func (c *consumerGroupsCommand) connect() error {
	for _, number := range []*cli.Option{c.toOffset, c.shiftBy, c.timeout} {
		if _, err := number.Int(); err != nil {
			return err
		}
	}
	settings := cli.Properties{}
	if c.commandConfig.Has() {
		file, err := c.commandConfig.Value()
		if err != nil {
			return err
		}
		if settings, err = cli.LoadProperties(file); err != nil {
			return runtimeFailure(err)
		}
	}
	brokers, err := c.bootstrap.Value()
	if err != nil {
		return err
	}
	timeout, err := c.timeout.Value()
	if err != nil {
		return err
	}
	settings["bootstrap.servers"], settings["default.api.timeout.ms"] = brokers, timeout
	c.admin, err = cli.NewAdmin(c.env, settings)
	return err
}
