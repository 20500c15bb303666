package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tidemark/cmd/internal/cli"
)

// transactionsTool is Kafka's TransactionsCommand: producers and transactions of a cluster.
var transactionsTool = tool{
	name:    "kafka-transactions",
	short:   "Transactions: list, describe, find hanging ones, abort",
	run:     runTransactions,
	options: transactionsOptions,
}

// transactionsCommands are the commands of the tool in the order of its help.
var transactionsCommands = []argCommand{
	{
		name: "list", help: "List the transactions of every coordinator.",
		args: []argOption{
			{name: "--duration-filter", kind: argLong,
				help: "Only transactions that have been open for longer than this many milliseconds; all when negative."},
			{name: "--transactional-id-pattern", help: "Only ids that this regular expression matches as a whole."},
		},
		run: listTransactions,
	},
	{
		name: "describe", help: "Show the state of one transactional id.", about: "Shows the state of one transactional id.",
		args: []argOption{{name: "--transactional-id", required: true, help: "The transactional id."}},
		run:  describeTransaction,
	},
	{
		name: "describe-producers", help: "Show the producers that a partition knows.",
		args: []argOption{
			{name: "--broker-id", kind: argInteger, help: "Ask this broker instead of the leader."},
			{name: "--topic", required: true, help: "The topic."},
			{name: "--partition", kind: argInteger, required: true, help: "The partition's number."},
		},
		run: describeProducers,
	},
	{
		name: "abort", help: "Abort a hanging transaction of one partition; needs the right to alter the cluster.",
		args: []argOption{
			{name: "--topic", required: true, help: "The topic."},
			{name: "--partition", kind: argInteger, required: true, help: "The partition's number."},
			{name: "--start-offset", kind: argLong, group: "Brokers on versions 3.0 and above",
				help: "Offset of the transaction's first record; the rest is asked of the broker."},
			{name: "--producer-id", kind: argLong, group: "Brokers on versions older than 3.0", help: "The producer id."},
			{name: "--producer-epoch", kind: argShort, group: "Brokers on versions older than 3.0",
				help: "The producer's epoch."},
			{name: "--coordinator-epoch", kind: argInteger, group: "Brokers on versions older than 3.0",
				help: "The coordinator's epoch; negative ones count as 0."},
		},
		run: abortTransaction,
	},
	{
		name: "find-hanging", help: "Find transactions that no coordinator will end.",
		args: []argOption{
			{name: "--broker-id", kind: argInteger, help: "Look at the partitions of this broker."},
			{name: "--max-transaction-timeout", kind: argInteger, def: "15",
				help: "Pass over transactions whose last record is at most this many minutes old; 15 when left out."},
			{name: "--topic", help: "Look at this topic only; --partition needs it."},
			{name: "--partition", kind: argInteger, help: "Look at this partition only."},
		},
		run: findHanging,
	},
	{
		name: "forceTerminateTransaction", about: "Aborts the open transaction of a transactional id.",
		help: "Abort the open transaction of a transactional id; needs the right to alter the cluster.",
		args: []argOption{{name: "--transactionalId", required: true, help: "The transactional id."}},
		run:  forceTerminate,
	},
}

var transactionsParser = argParser{
	program: "kafka-transactions.sh",
	about: "Shows transactions and the producers that write them, and ends transactions that nobody else will " +
		"end, so that readers of committed records can go on.",
	args: []argOption{
		{name: "--command-config", metavar: "FILE", help: "File with settings for the client."},
		{name: "--bootstrap-server", metavar: "host:port", required: true,
			help: "Brokers to ask first, as host:port, several with commas between them."},
	},
	commands: transactionsCommands,
}

// transactionsOptions are the options of all commands, for completion.
func transactionsOptions() *cli.Parser {
	p, known := &cli.Parser{}, map[string]bool{}
	add := func(list []argOption) {
		for _, o := range list {
			if !known[o.name] {
				known[o.name] = true
				p.Text(strings.TrimPrefix(o.name, "--"), o.placeholder(), o.help)
			}
		}
	}
	add(transactionsParser.args)
	for _, c := range transactionsCommands {
		add(c.args)
	}
	return p
}

// transactionsCall is one run of the tool.
type transactionsCall struct {
	env   *cli.Env
	admin *cli.Admin
	args  argValues
}

func runTransactions(ctx context.Context, env *cli.Env, args []string) int {
	command, values, status := transactionsParser.parse(env, args)
	if command == nil {
		return status
	}
	settings := cli.Properties{}
	if file, ok := values.text("--command-config"); ok {
		var err error
		if settings, err = cli.LoadProperties(file); err != nil {
			return transactionsFailed(env, explained("Failed to load admin client properties", err))
		}
	}
	settings["bootstrap.servers"], _ = values.text("--bootstrap-server")
	admin, err := cli.NewAdmin(env, settings)
	if err != nil {
		return transactionsFailed(env, err)
	}
	defer admin.Close()
	if err := command.run(ctx, &transactionsCall{env: env, admin: admin, args: values}); err != nil {
		return transactionsFailed(env, err)
	}
	return 0
}

// refusal is an error that is printed as it is.
type refusal string

func (r refusal) Error() string { return string(r) }

// explained is the text that the tool prints of an error.
func explained(text string, err error) error {
	return refusal(text + ": " + cli.AsFailure(err).Message + ". Enable debug logging for additional detail.")
}

func transactionsFailed(env *cli.Env, err error) int {
	if text := refusal(""); errors.As(err, &text) {
		fmt.Fprintln(env.Stderr, text)
	} else {
		fmt.Fprint(env.Stderr, "Exception in thread \"main\" ", cli.AsFailure(err).Trace())
	}
	return 1
}

// printTable prints rows under a header, each column as wide as its widest cell.
func printTable(env *cli.Env, header []string, rows [][]string) {
	rows = append([][]string{header}, rows...)
	widths := make([]int, len(header))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&text, "%-*s\t", widths[i], cell)
		}
		text.WriteByte('\n')
	}
	fmt.Fprint(env.Stdout, text.String())
}
