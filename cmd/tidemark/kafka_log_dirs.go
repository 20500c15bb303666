package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// logDirsTool is Kafka's LogDirsCommand: what the log directories of brokers hold.
var logDirsTool = tool{
	name:    "kafka-log-dirs",
	short:   "Sizes of partitions in the log directories",
	run:     runLogDirs,
	options: func() *cli.Parser { return &newLogDirsOptions().parser },
}

const logDirsIntro = "This tool helps to query log directory usage on the specified brokers."

type logDirsOptions struct {
	parser                                               cli.Parser
	bootstrap, commandFile, describe, topics, brokerList *cli.Option
}

func newLogDirsOptions() *logDirsOptions {
	o := &logDirsOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "The server(s) to use for bootstrapping", "REQUIRED: Brokers to ask first.")
	o.commandFile = p.Text("command-config", "Admin client property file", "File with settings for the client.")
	o.describe = p.Flag("describe", "REQUIRED: Show the log directories.")
	o.topics = p.Text("topic-list", "Topic list", "Topics to show, separated by commas; all when left out.")
	o.brokerList = p.Text("broker-list", "Broker list", "Ids of brokers, separated by commas; all when left out.")
	return o
}

func runLogDirs(ctx context.Context, env *cli.Env, args []string) int {
	o := newLogDirsOptions()
	return o.parser.Finish(env, logDirs(ctx, env, o, args), func(f *cli.Failure) {
		fmt.Fprintln(env.Stderr, f.Message)
		if f.Class != classTerse {
			fmt.Fprintln(env.Stderr, f.Trace())
		}
	})
}

func logDirs(ctx context.Context, env *cli.Env, o *logDirsOptions, args []string) error {
	if err := o.parser.Parse(args); err != nil {
		return err
	}
	if err := o.parser.HelpOrVersion(env, logDirsIntro); err != nil {
		return err
	}
	if err := cli.Require(o.bootstrap, o.describe); err != nil {
		return err
	}
	admin, err := newAdmin(env, o.bootstrap, o.commandFile, "log-dirs-tool")
	if err != nil {
		return err
	}
	defer admin.Close()
	topics, err := listed(o.topics)
	if err != nil {
		return err
	}
	brokers, err := o.brokers(ctx, admin)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, "Querying brokers for log directories information")
	var found []brokerDirs
	for _, id := range brokers {
		request := kmsg.NewPtrDescribeLogDirsRequest()
		response, err := cli.AskBroker[*kmsg.DescribeLogDirsResponse](ctx, admin, id, "describeLogDirs", request)
		if err != nil {
			return cli.Execution(err)
		}
		if f := cli.APIFailure(response.ErrorCode, nil); f != nil {
			return cli.Execution(f)
		}
		found = append(found, brokerDirs{id, response.Dirs})
	}
	fmt.Fprintf(env.Stdout, "Received log directory information from brokers %s\n", joinInts(brokers))
	_, err = fmt.Fprintln(env.Stdout, logDirsJSON(found, topics))
	return err
}

// listed are the elements of a list, the empty ones left out.
func listed(o *cli.Option) ([]string, error) {
	text, err := o.Value()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(text, ","), func(s string) bool { return s == "" }), nil
}

// brokers are the ids asked for, or all, in the order of a Java set.
func (o *logDirsOptions) brokers(ctx context.Context, admin *cli.Admin) ([]int32, error) {
	cluster, err := admin.Nodes(ctx)
	if err != nil {
		return nil, cli.Execution(err)
	}
	inOrder := func(ids []int32) { cli.HashOrderBy(ids, 0, func(id int32) uint32 { return uint32(id) }) }
	inOrder(cluster)
	names, err := listed(o.brokerList)
	if err != nil || len(names) == 0 {
		return cluster, err
	}
	var existing, unknown []int32
	for _, name := range names {
		id, err := strconv.ParseInt(name, 10, 32)
		switch n := int32(id); {
		case err != nil:
			return nil, cli.Fail("java.lang.NumberFormatException", "For input string: \"%s\"", name)
		case slices.Contains(existing, n) || slices.Contains(unknown, n):
		case slices.Contains(cluster, n):
			existing = append(existing, n)
		default:
			unknown = append(unknown, n)
		}
	}
	inOrder(existing)
	inOrder(unknown)
	if unknown != nil {
		return nil, cli.Fail(classTerse, "ERROR: The given brokers do not exist from --broker-list: %s. Current existent "+
			"brokers: %s", joinInts(unknown), joinInts(cluster))
	}
	return existing, nil
}

func joinInts(ids []int32) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ",")
}

type brokerDirs struct {
	broker int32
	dirs   []kmsg.DescribeLogDirsResponseDir
}

// logDirsJSON is the answer as Kafka's tool prints it, in the order of its hash tables.
func logDirsJSON(brokers []brokerDirs, topics []string) string {
	texts := make([]string, len(brokers))
	for i, b := range brokers {
		dirs := slices.Clone(b.dirs)
		cli.HashOrder(dirs, len(dirs), func(d kmsg.DescribeLogDirsResponseDir) string { return d.Dir })
		list := make([]string, len(dirs))
		for k, d := range dirs {
			list[k] = logDirJSON(d, topics)
		}
		texts[i] = fmt.Sprintf(`{"broker":%d,"logDirs":[%s]}`, b.broker, strings.Join(list, ","))
	}
	return fmt.Sprintf(`{"brokers":[%s],"version":1}`, strings.Join(texts, ","))
}

type dirPartition struct {
	topic string
	kmsg.DescribeLogDirsResponseDirTopicPartition
}

func logDirJSON(d kmsg.DescribeLogDirsResponseDir, topics []string) string {
	var all []dirPartition
	for _, t := range d.Topics {
		if len(topics) > 0 && !slices.Contains(topics, t.Topic) {
			continue
		}
		for _, p := range t.Partitions {
			all = append(all, dirPartition{t.Topic, p})
		}
	}
	cli.HashOrderBy(all, 0, func(p dirPartition) uint32 { return cli.PartitionHash(p.topic, p.Partition) })
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = fmt.Sprintf(`{"partition":%s,"size":%d,"offsetLag":%d,"isFuture":%v}`,
			quoted(fmt.Sprintf("%s-%d", p.topic, p.Partition)), p.Size, p.OffsetLag, p.IsFuture)
	}
	failure := "null"
	if f := cli.APIFailure(d.ErrorCode, nil); f != nil {
		failure = quoted(f.Class)
	}
	return fmt.Sprintf(`{"partitions":[%s],"error":%s,"logDir":%s}`, strings.Join(list, ","), failure, quoted(d.Dir))
}

// quoted is a string in JSON, its letters as they are.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
