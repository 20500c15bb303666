package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// leaderElectionTool is Kafka's LeaderElectionCommand: has partitions elect their leaders.
var leaderElectionTool = tool{
	name:    "kafka-leader-election",
	short:   "Elect leaders of partitions",
	run:     runLeaderElection,
	options: func() *cli.Parser { return &newElectionOptions().parser },
}

const (
	electionIntro = "This tool attempts to elect a new leader for a set of topic partitions. The type of elections " +
		"supported are preferred replicas and unclean replicas."
	classRuntime      = "java.lang.RuntimeException"
	electionTimeoutMs = "30000"
	requestTimeoutMs  = "15000"
)

// The kinds of elections, with their numbers on the wire.
var electionKinds = []string{"PREFERRED", "UNCLEAN"}

type electionOptions struct {
	parser                                          cli.Parser
	bootstrap, adminFile, commandFile, electionType *cli.Option
	jsonFile, topic, partition, allTopicPartitions  *cli.Option
	kind                                            int8
	partitions                                      []cli.Partition // nil: all
}

func newElectionOptions() *electionOptions {
	o := &electionOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "host:port", "Brokers to ask first. REQUIRED.")
	o.adminFile = p.Text("admin.config", "config file", "(DEPRECATED) As --command-config.")
	o.commandFile = p.Text("command-config", "Config file", "File with settings for the client.")
	o.jsonFile = p.Text("path-to-json-file", "Path to JSON file", "JSON file that names the partitions:\n"+
		"{\"partitions\":\n\t[{\"topic\": \"foo\", \"partition\": 1},\n\t {\"topic\": \"foobar\", \"partition\": 2}]\n}")
	o.topic = p.Text("topic", "topic name", "Topic of the partition.")
	o.partition = p.Number("Integer", "partition", "partition id", "Number of the partition. REQUIRED with --topic.", "")
	o.allTopicPartitions = p.Flag("all-topic-partitions", "All partitions that need an election.")
	o.electionType = p.Text("election-type", "election type", "preferred: the first replica shall lead; unclean: where "+
		"nobody leads, any replica shall. REQUIRED.")
	o.electionType.Type = "[PREFERRED,UNCLEAN]"
	return o
}

func runLeaderElection(ctx context.Context, env *cli.Env, args []string) int {
	o := newElectionOptions()
	return o.parser.Finish(env, electLeaders(ctx, env, o, args), printTraced(env))
}

func electLeaders(ctx context.Context, env *cli.Env, o *electionOptions, args []string) error {
	if err := o.parser.Parse(args); err != nil {
		return err
	}
	if err := o.parser.HelpOrVersion(env, electionIntro); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := o.read(); err != nil {
		return err
	}
	admin, err := o.connect(env)
	if err != nil {
		return err
	}
	defer admin.Close()
	request := kmsg.NewPtrElectLeadersRequest()
	request.ElectionType, request.TimeoutMillis = o.kind, 15_000
	if !o.allTopicPartitions.Has() {
		request.Topics = []kmsg.ElectLeadersRequestTopic{}
	}
	for _, p := range o.partitions {
		request.Topics = append(request.Topics, kmsg.ElectLeadersRequestTopic{Topic: p.Topic, Partitions: []int32{p.ID}})
	}
	response, err := cli.Ask[*kmsg.ElectLeadersResponse](ctx, admin, "electLeaders", request)
	if err == nil && response.ErrorCode != 0 {
		err = cli.APIFailure(response.ErrorCode, nil)
	}
	if err != nil {
		return notElected(env, cli.AsFailure(err))
	}
	return o.print(env, response)
}

// notElected is the failure of the whole request.
func notElected(env *cli.Env, cause *cli.Failure) error {
	message := ""
	switch {
	case strings.HasSuffix(cause.Class, ".TimeoutException"):
		message = "Timeout waiting for election results"
	case cause.Code == kerr.ClusterAuthorizationFailed.Code:
		message = "Not authorized to perform leader election"
	default:
		return inRuntime(cli.Execution(cause))
	}
	fmt.Fprintln(env.Stdout, message)
	return &cli.Failure{Class: classAdminFailed, Message: message, Cause: cause}
}

// inRuntime is an error in a RuntimeException.
func inRuntime(err error) error {
	cause := cli.AsFailure(err)
	return &cli.Failure{Class: classRuntime, Message: cause.String(), Cause: cause}
}

// check refuses command lines that make no sense, in the order of Kafka's tool.
func (o *electionOptions) check() error {
	refuse := func(format string, args ...any) error { return cli.Fail(classAdminFailed, format, args...) }
	var missing []string
	for _, option := range []*cli.Option{o.bootstrap, o.electionType} {
		if !option.Has() {
			missing = append(missing, option.Name)
		}
	}
	if missing != nil {
		return refuse("Missing required option(s): %s", strings.Join(missing, ", "))
	}
	given := 0
	for _, option := range []*cli.Option{o.topic, o.allTopicPartitions, o.jsonFile} {
		if option.Has() {
			given++
		}
	}
	switch {
	case given != 1:
		return refuse("One and only one of the following options is required: topic, all-topic-partitions, " +
			"path-to-json-file")
	case o.topic.Has() && !o.partition.Has():
		return refuse("Missing required option(s): partition")
	case !o.topic.Has() && o.partition.Has():
		return refuse("Option partition is only allowed if topic is used")
	}
	return nil
}

// read reads the values of the options.
func (o *electionOptions) read() error {
	kind, err := o.electionType.Value()
	if err != nil {
		return err
	}
	o.kind = -1
	for i, name := range electionKinds {
		if strings.EqualFold(kind, name) {
			o.kind = int8(i)
		}
	}
	if o.kind < 0 {
		message := fmt.Sprintf("Cannot parse argument '%s' of option election-type", kind)
		cause := cli.Fail("joptsimple.ValueConversionException", "Value [%s] is not one of [[PREFERRED,UNCLEAN]]", kind)
		return &cli.Failure{Class: "joptsimple.OptionArgumentConversionException", Message: message, Cause: cause}
	}
	if o.jsonFile.Has() {
		o.partitions, err = electionFile(o.jsonFile)
		return err
	}
	if !o.topic.Has() {
		return nil
	}
	p := cli.Partition{}
	if p.Topic, err = o.topic.Value(); err != nil {
		return err
	}
	id, err := o.partition.Int()
	p.ID = int32(id)
	o.partitions = []cli.Partition{p}
	return err
}

func (o *electionOptions) connect(env *cli.Env) (*cli.Admin, error) {
	file := o.commandFile
	if o.adminFile.Has() {
		file = o.adminFile
	}
	settings := cli.Properties{}
	if file.Has() {
		name, err := file.Value()
		if err != nil {
			return nil, err
		}
		if settings, err = cli.LoadProperties(name); err != nil {
			return nil, err
		}
	}
	servers, err := o.bootstrap.Value()
	if err != nil {
		return nil, err
	}
	settings["bootstrap.servers"] = servers
	for key, value := range map[string]string{"default.api.timeout.ms": electionTimeoutMs,
		"request.timeout.ms": requestTimeoutMs} {
		if settings[key] == "" {
			settings[key] = value
		}
	}
	return cli.NewAdmin(env, settings)
}

// electionFile reads the partitions of a file.
func electionFile(option *cli.Option) ([]cli.Partition, error) {
	text, err := readJSONFile(option)
	if err != nil {
		return nil, inRuntime(err)
	}
	root, ok := cli.ParseJSON(text)
	if !ok {
		return nil, cli.Fail(classAdminOperation, "Replica election data is empty")
	}
	fields, err := root.Object()
	if err != nil {
		return nil, inRuntime(err)
	}
	list, ok := fields["partitions"]
	if !ok {
		return nil, cli.Fail(classAdminOperation, "Replica election data is missing \"partitions\" field")
	}
	partitions, err := electionPartitions(list)
	if err != nil && cli.AsFailure(err).Class != classAdminOperation {
		err = inRuntime(err)
	}
	return partitions, err
}

func electionPartitions(list cli.JSON) (partitions []cli.Partition, err error) {
	elements, err := list.Array()
	if err != nil {
		return nil, err
	}
	times := map[cli.Partition]int{}
	for _, e := range elements {
		fields, err := e.Object()
		if err != nil {
			return nil, err
		}
		var p cli.Partition
		topic, err := cli.Field(fields, "topic")
		if err == nil {
			p.Topic, err = topic.Text()
		}
		if err != nil {
			return nil, err
		}
		id, err := cli.Field(fields, "partition")
		if err == nil {
			p.ID, err = id.Int()
		}
		if err != nil {
			return nil, err
		}
		if times[p]++; times[p] == 1 {
			partitions = append(partitions, p)
		}
	}
	hashOrder(partitions)
	var twice []string
	for _, p := range partitions {
		if times[p] > 1 {
			twice = append(twice, fmt.Sprintf("%s-%d", p.Topic, p.ID))
		}
	}
	if twice != nil {
		return nil, cli.Fail(classAdminOperation, "Replica election data contains duplicate partitions: [%s]",
			strings.Join(twice, ", "))
	}
	return partitions, nil
}

// hashOrder is the order of partitions in a Java set.
func hashOrder(partitions []cli.Partition) {
	cli.HashOrderBy(partitions, 0, func(p cli.Partition) uint32 { return cli.PartitionHash(p.Topic, p.ID) })
}

// print says what came of each partition.
func (o *electionOptions) print(env *cli.Env, response *kmsg.ElectLeadersResponse) error {
	outcome := map[cli.Partition]*cli.Failure{}
	var all []cli.Partition
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			name := cli.Partition{Topic: t.Topic, ID: p.Partition}
			outcome[name] = cli.APIFailure(p.ErrorCode, p.ErrorMessage)
			all = append(all, name)
		}
	}
	hashOrder(all)
	kind := electionKinds[o.kind]
	var succeeded, needless, failed []string
	root := &cli.Failure{Class: classAdminFailed}
	for _, p := range all {
		name := fmt.Sprintf("%s-%d", p.Topic, p.ID)
		switch f := outcome[p]; {
		case f == nil:
			succeeded = append(succeeded, name)
		case f.Code == kerr.ElectionNotNeeded.Code:
			needless = append(needless, name)
		default:
			failed = append(failed, fmt.Sprintf("Error completing leader election (%s) for partition: %s: %s", kind, name,
				f.String()))
			root.Suppressed = append(root.Suppressed, f)
		}
	}
	if succeeded != nil {
		fmt.Fprintf(env.Stdout, "Successfully completed leader election (%s) for partitions %s\n", kind,
			strings.Join(succeeded, ", "))
	}
	if needless != nil {
		fmt.Fprintf(env.Stdout, "Valid replica already elected for partitions %s\n", strings.Join(needless, ", "))
	}
	for _, line := range failed {
		fmt.Fprintln(env.Stdout, line)
	}
	if failed == nil {
		return nil
	}
	root.Message = fmt.Sprintf("%d replica(s) could not be elected", len(failed))
	return root
}
