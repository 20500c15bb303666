package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// quorumTool is Kafka's MetadataQuorumCommand, as far as it describes: adding and removing controllers is not built.
var quorumTool = tool{
	name:    "kafka-metadata-quorum",
	short:   "State of the metadata quorum",
	run:     runQuorum,
	options: quorumCompletion,
}

const (
	quorumUsage = "usage: kafka-metadata-quorum [-h] [--command-config COMMAND_CONFIG]\n" +
		"                             (--bootstrap-server BOOTSTRAP_SERVER |\n" +
		"                             --bootstrap-controller BOOTSTRAP_CONTROLLER)\n" +
		"                             {describe,add-controller,remove-controller}\n" +
		"                             ...\n"
	quorumDescribeUsage = "usage: kafka-metadata-quorum (--bootstrap-server BOOTSTRAP_SERVER |\n" +
		"                             --bootstrap-controller BOOTSTRAP_CONTROLLER)\n" +
		"                             describe [-h] [--status] [--replication]\n" +
		"                             [--human-readable]\n"
	quorumHelp = "\nThis tool describes kraft metadata quorum status.\n\npositional arguments:\n" +
		"  {describe,add-controller,remove-controller}\n    describe             Show the quorum.\n\n" +
		"optional arguments:\n  -h, --help             Show this text.\n" +
		"  --bootstrap-server BOOTSTRAP_SERVER\n                         Brokers to ask first.\n" +
		"  --bootstrap-controller BOOTSTRAP_CONTROLLER\n                         Controllers to ask first.\n" +
		"  --command-config COMMAND_CONFIG\n                         File with settings for the client.\n"
	quorumDescribeHelp = "\noptional arguments:\n  -h, --help             Show this text.\n" +
		"  --status               The state of the quorum in short.\n" +
		"  --replication          How far each voter and observer is.\n" +
		"  --human-readable       With --replication: times as they are from now.\n"
)

func quorumCompletion() *cli.Parser {
	p := &cli.Parser{}
	p.Text("bootstrap-server", "BOOTSTRAP_SERVER", "Brokers to ask first.")
	p.Text("bootstrap-controller", "BOOTSTRAP_CONTROLLER", "Controllers to ask first.")
	p.Text("command-config", "COMMAND_CONFIG", "File with settings for the client.")
	for _, name := range []string{"status", "replication", "human-readable", "help"} {
		p.Flag(name, "See the command describe.")
	}
	return p
}

// quorumLine is what a command line asks for.
type quorumLine struct {
	serversKey, servers        string // the setting and its value
	commandFile                string
	status, replication, human bool
}

// quorumStop ends the reading of a command line.
type quorumStop struct {
	usage, text string // usage, and then the error, or with help all of it
	help        bool
}

func (s *quorumStop) Error() string { return s.text }

func runQuorum(ctx context.Context, env *cli.Env, args []string) int {
	line, err := readQuorumLine(args)
	if err == nil {
		err = line.run(ctx, env)
	}
	var stop *quorumStop
	switch {
	case err == nil:
		return 0
	case errors.As(err, &stop) && stop.help:
		fmt.Fprint(env.Stdout, stop.usage+stop.text)
		return 0
	case errors.As(err, &stop):
		fmt.Fprint(env.Stderr, stop.usage+justify("kafka-metadata-quorum: error: "+stop.text, 0, "")+"\n")
		return 1
	}
	f := cli.AsFailure(err)
	fmt.Fprintln(env.Stderr, f.Message)
	if f.Class != classTerse {
		fmt.Fprintln(env.Stderr, f.Trace())
	}
	return 1
}

// readQuorumLine reads options, the command, and the command's options.
func readQuorumLine(args []string) (line quorumLine, err error) {
	mainStop := func(format string, a ...any) error {
		return &quorumStop{usage: quorumUsage, text: fmt.Sprintf(format, a...)}
	}
	var given []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name, value, hasValue := strings.Cut(args[0], "=")
		args = args[1:]
		if name == "-h" || name == "--help" {
			return line, &quorumStop{usage: quorumUsage, text: quorumHelp, help: true}
		}
		if name != "--bootstrap-server" && name != "--bootstrap-controller" && name != "--command-config" {
			return line, mainStop("unrecognized arguments: '%s'", name)
		}
		if !hasValue {
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				return line, mainStop("argument %s: expected one argument", name)
			}
			value, args = args[0], args[1:]
		}
		if name == "--command-config" {
			line.commandFile = value
			continue
		}
		if len(given) > 0 && given[0] != name {
			return line, mainStop("argument %s: not allowed with argument %s", name, given[0])
		}
		given, line.servers = append(given, name), value
		line.serversKey = strings.Replace(strings.TrimPrefix(name, "--")+"s", "-", ".", 1)
	}
	switch {
	case len(args) == 0:
		return line, mainStop("too few arguments")
	case !slices.Contains([]string{"describe", "add-controller", "remove-controller"}, args[0]):
		return line, mainStop("invalid choice: '%s' (choose from 'describe', 'add-controller', 'remove-controller')", args[0])
	case args[0] != "describe":
		return line, cli.Fail(classTerse, "%s is not built: the quorum has one voter", args[0])
	}
	if err := line.readDescribe(args[1:]); err != nil {
		return line, err
	}
	if given == nil {
		return line, mainStop("one of the arguments --bootstrap-server --bootstrap-controller is required")
	}
	return line, nil
}

func (l *quorumLine) readDescribe(args []string) error {
	for _, a := range args {
		switch a {
		case "-h", "--help":
			return &quorumStop{usage: quorumDescribeUsage, text: quorumDescribeHelp, help: true}
		case "--status":
			l.status = true
		case "--replication":
			l.replication = true
		case "--human-readable":
			l.human = true
		default:
			return &quorumStop{usage: quorumDescribeUsage, text: fmt.Sprintf("unrecognized arguments: '%s'", a)}
		}
	}
	return nil
}

func (l *quorumLine) run(ctx context.Context, env *cli.Env) error {
	settings := cli.Properties{}
	if l.commandFile != "" {
		var err error
		if settings, err = cli.LoadProperties(l.commandFile); err != nil {
			return err
		}
	}
	settings[l.serversKey] = l.servers
	admin, err := cli.NewAdmin(env, settings)
	if err != nil {
		return err
	}
	defer admin.Close()
	switch {
	case l.status && l.replication:
		return cli.Fail(classTerse, "Only one of --status or --replication should be specified with describe sub-command")
	case l.replication:
		return printReplication(ctx, env, admin, l.human)
	case l.status && l.human:
		return cli.Fail(classTerse, "The option --human-readable is only supported along with --replication")
	case l.status:
		return printQuorumStatus(ctx, env, admin)
	}
	return cli.Fail(classTerse, "One of --status or --replication must be specified with describe sub-command")
}

type (
	quorumPartition = kmsg.DescribeQuorumResponseTopicPartition
	quorumReplica   = kmsg.DescribeQuorumResponseTopicPartitionReplicaState
	quorumNode      = kmsg.DescribeQuorumResponseNode
)

// askQuorum asks for the state of the metadata log; leader is the voter that leads.
func askQuorum(ctx context.Context, admin *cli.Admin) (p quorumPartition, leader quorumReplica, nodes []quorumNode,
	err error,
) {
	request := kmsg.NewPtrDescribeQuorumRequest()
	request.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: "__cluster_metadata",
		Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: 0}}}}
	response, err := cli.Ask[*kmsg.DescribeQuorumResponse](ctx, admin, "describeMetadataQuorum", request)
	if err != nil {
		return p, leader, nil, cli.Execution(err)
	}
	if f := cli.APIFailure(response.ErrorCode, response.ErrorMessage); f != nil {
		return p, leader, nil, cli.Execution(f)
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return p, leader, nil, cli.Execution(cli.APIFailure(-1, nil))
	}
	p = response.Topics[0].Partitions[0]
	if f := cli.APIFailure(p.ErrorCode, p.ErrorMessage); f != nil {
		return p, leader, nil, cli.Execution(f)
	}
	i := slices.IndexFunc(p.CurrentVoters, func(r quorumReplica) bool { return r.ReplicaID == p.LeaderID })
	if i < 0 {
		return p, leader, nil, cli.Fail("java.util.NoSuchElementException", "No value present")
	}
	return p, p.CurrentVoters[i], response.Nodes, nil
}

func printQuorumStatus(ctx context.Context, env *cli.Env, admin *cli.Admin) error {
	cluster, err := cli.Ask[*kmsg.DescribeClusterResponse](ctx, admin, "listNodes", kmsg.NewPtrDescribeClusterRequest())
	if err != nil {
		return cli.Execution(err)
	}
	p, leader, nodes, err := askQuorum(ctx, admin)
	if err != nil {
		return err
	}
	last := slices.MinFunc(p.CurrentVoters, func(a, b quorumReplica) int { return int(a.LogEndOffset - b.LogEndOffset) })
	lagMs := int64(-1)
	switch {
	case last.ReplicaID == leader.ReplicaID:
		lagMs = 0
	case leader.LastCaughtUpTimestamp >= 0 && last.LastCaughtUpTimestamp >= 0:
		lagMs = leader.LastCaughtUpTimestamp - last.LastCaughtUpTimestamp
	}
	for _, row := range []struct {
		name  string
		value any
	}{
		{"ClusterId", cluster.ClusterID}, {"LeaderId", p.LeaderID}, {"LeaderEpoch", p.LeaderEpoch},
		{"HighWatermark", p.HighWatermark}, {"MaxFollowerLag", leader.LogEndOffset - last.LogEndOffset},
		{"MaxFollowerLagTimeMs", lagMs}, {"CurrentVoters", replicaTexts(p.CurrentVoters, nodes)},
		{"CurrentObservers", replicaTexts(p.Observers, nodes)},
	} {
		if _, err := fmt.Fprintf(env.Stdout, "%-24s%v\n", row.name+":", row.value); err != nil {
			return err
		}
	}
	return nil
}

func directoryText(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// replicaTexts lists replicas with their directories and endpoints, as far as they are known.
func replicaTexts(replicas []quorumReplica, nodes []quorumNode) string {
	texts := make([]string, len(replicas))
	for i, r := range replicas {
		parts := []string{fmt.Sprintf(`"id": %d`, r.ReplicaID)}
		if r.ReplicaDirectoryID != [16]byte{} {
			parts = append(parts, fmt.Sprintf(`"directoryId": "%s"`, directoryText(r.ReplicaDirectoryID)))
		}
		var endpoints []string
		for _, n := range nodes {
			for _, l := range n.Listeners {
				if n.NodeID == r.ReplicaID {
					endpoints = append(endpoints, fmt.Sprintf(`"%s://%s:%d"`, l.Name, bracketed(l.Host), l.Port))
				}
			}
		}
		if endpoints != nil {
			parts = append(parts, `"endpoints": [`+strings.Join(endpoints, ", ")+"]")
		}
		texts[i] = "{" + strings.Join(parts, ", ") + "}"
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func printReplication(ctx context.Context, env *cli.Env, admin *cli.Admin, human bool) error {
	p, leader, _, err := askQuorum(ctx, admin)
	if err != nil {
		return err
	}
	var rows [][]string
	when := func(ms int64) string {
		if human && ms >= 0 {
			return fmt.Sprintf("%d ms ago", env.Now().Sub(time.UnixMilli(ms)).Milliseconds())
		}
		return strconv.FormatInt(ms, 10)
	}
	add := func(r quorumReplica, status string) {
		rows = append(rows, []string{strconv.Itoa(int(r.ReplicaID)), directoryText(r.ReplicaDirectoryID),
			strconv.FormatInt(r.LogEndOffset, 10), strconv.FormatInt(leader.LogEndOffset-r.LogEndOffset, 10),
			when(r.LastFetchTimestamp), when(r.LastCaughtUpTimestamp), status})
	}
	add(leader, "Leader")
	for _, r := range p.CurrentVoters {
		if r.ReplicaID != leader.ReplicaID {
			add(r, "Follower")
		}
	}
	for _, r := range p.Observers {
		add(r, "Observer")
	}
	printTable(env, []string{"NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp",
		"Status"}, rows)
	return nil
}
