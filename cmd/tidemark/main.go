// Command tidemark is the broker and its command lines in one binary: one file per
// subcommand. The kafka-* subcommands are copies of Kafka's own tools, with the same
// options, output and exit status; a link to the binary with the name of such a tool,
// with or without ".sh", behaves as that tool.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tidemark/cmd/internal/cli"
)

// A tool is one of Kafka's command lines.
type tool struct {
	name  string // without ".sh"
	short string
	run   func(ctx context.Context, env *cli.Env, args []string) int
	// options declares the options, for completion.
	options func() *cli.Parser
}

// tools are all of Kafka's command lines that the binary knows.
var tools = []tool{
	topicsTool, configsTool, consumerGroupsTool, getOffsetsTool, consoleProducerTool, consoleConsumerTool, dumpLogTool,
	transactionsTool, deleteRecordsTool, logDirsTool, leaderElectionTool, quorumTool,
	producerPerfTool, consumerPerfTool,
}

func main() {
	env := &cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now}
	os.Exit(run(context.Background(), env, os.Args))
}

// run is the program without the process around it; args[0] is the name it was called by.
func run(ctx context.Context, env *cli.Env, args []string) int {
	if t := toolNamed(strings.TrimSuffix(filepath.Base(args[0]), ".sh")); t != nil {
		return t.run(ctx, env, args[1:])
	}
	if len(args) > 1 {
		if t := toolNamed(args[1]); t != nil {
			return t.run(ctx, env, args[2:])
		}
	}
	root := rootCommand(env)
	root.SetArgs(args[1:])
	return exitStatus(env, root.ExecuteContext(ctx))
}

func toolNamed(name string) *tool {
	for i := range tools {
		if tools[i].name == name {
			return &tools[i]
		}
	}
	return nil
}

// rootCommand lists every subcommand. The broker's own (serve, log) are added here.
func rootCommand(env *cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "tidemark",
		Short:         "A Kafka log broker that works in Kafka's own log directories",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.AddCommand(serveCommand(env), versionCommand(env), installToolsCommand(env), manCommand(env), logCommand(env))
	for _, t := range tools {
		root.AddCommand(toolCommand(t))
	}
	return root
}
