package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"tidemark/cmd/internal/cli"
)

// deleteRecordsTool is Kafka's DeleteRecordsCommand: moves the first offsets of partitions.
var deleteRecordsTool = tool{
	name:    "kafka-delete-records",
	short:   "Delete records below given offsets",
	run:     runDeleteRecords,
	options: func() *cli.Parser { return &newDeleteRecordsOptions().parser },
}

const (
	deleteRecordsIntro  = "This tool helps to delete records of the given partitions down to the specified offset."
	classAdminOperation = "org.apache.kafka.tools.AdminOperationException"
	classAdminFailed    = "org.apache.kafka.tools.AdminCommandFailedException"
)

type deleteRecordsOptions struct {
	parser                             cli.Parser
	bootstrap, offsetFile, commandFile *cli.Option
}

func newDeleteRecordsOptions() *deleteRecordsOptions {
	o := &deleteRecordsOptions{}
	p := &o.parser
	p.AddHelp()
	o.bootstrap = p.Text("bootstrap-server", "server(s) to use for bootstrapping", "REQUIRED: Brokers to ask first.")
	o.offsetFile = p.Text("offset-json-file", "Offset json file path",
		"REQUIRED: JSON file with an offset for each partition, below which the records go; -1 for all of them:\n"+
			"{\"partitions\":\n  [{\"topic\": \"foo\", \"partition\": 1, \"offset\": 1}],\n \"version\":1\n}")
	o.commandFile = p.Text("command-config", "command config property file path", "File with settings for the client.")
	return o
}

func runDeleteRecords(ctx context.Context, env *cli.Env, args []string) int {
	o := newDeleteRecordsOptions()
	return o.parser.Finish(env, deleteRecords(ctx, env, o, args), printTraced(env))
}

// printTraced prints a failure, and then its trace, as several of Kafka's tools do.
func printTraced(env *cli.Env) func(*cli.Failure) {
	return func(f *cli.Failure) {
		fmt.Fprintln(env.Stderr, f.Message)
		fmt.Fprintln(env.Stderr, f.Trace())
	}
}

func deleteRecords(ctx context.Context, env *cli.Env, o *deleteRecordsOptions, args []string) error {
	if err := o.parser.Parse(args); err != nil {
		return err
	}
	if err := o.parser.HelpOrVersion(env, deleteRecordsIntro); err != nil {
		return err
	}
	if err := cli.Require(o.bootstrap, o.offsetFile); err != nil {
		return err
	}
	admin, err := newAdmin(env, o.bootstrap, o.commandFile, "")
	if err != nil {
		return err
	}
	defer admin.Close()
	text, err := readJSONFile(o.offsetFile)
	if err != nil {
		return err
	}
	partitions, before, err := parseOffsets(text)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, "Executing records delete operation")
	done := admin.DeleteRecords(ctx, env, partitions, before)
	fmt.Fprintln(env.Stdout, "Records delete operation completed:")
	for _, d := range done {
		if d.Err != nil {
			fmt.Fprintf(env.Stdout, "partition: %s-%d\terror: %s\n", d.Topic, d.ID, d.Err.String())
		} else {
			fmt.Fprintf(env.Stdout, "partition: %s-%d\tlow_watermark: %d\n", d.Topic, d.ID, d.LowWatermark)
		}
	}
	return nil
}

// newAdmin connects to the brokers of an option with the settings of another one's file.
func newAdmin(env *cli.Env, bootstrap, commandFile *cli.Option, clientID string) (*cli.Admin, error) {
	settings := cli.Properties{}
	if commandFile.Has() {
		file, err := commandFile.Value()
		if err != nil {
			return nil, err
		}
		if settings, err = cli.LoadProperties(file); err != nil {
			return nil, err
		}
	}
	servers, err := bootstrap.Value()
	if err != nil {
		return nil, err
	}
	settings["bootstrap.servers"] = servers
	if clientID != "" && settings["client.id"] == "" {
		settings["client.id"] = clientID
	}
	return cli.NewAdmin(env, settings)
}

// readJSONFile reads the file that an option names.
func readJSONFile(option *cli.Option) (string, error) {
	name, err := option.Value()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		f := cli.Fail("java.io.IOException", "Unable to read file %s", name)
		f.Cause = cli.Fail("java.nio.file.FileSystemException", "%s", name)
		if errors.Is(err, fs.ErrNotExist) {
			f.Cause.Class = "java.nio.file.NoSuchFileException"
		}
		return "", f
	}
	return string(text), nil
}

// parseOffsets reads the partitions and offsets of a file, in the order in which Kafka's tool works on them.
func parseOffsets(text string) (partitions []cli.Partition, before []int64, err error) {
	root, ok := cli.ParseJSON(text)
	if !ok {
		return nil, nil, cli.Fail(classAdminOperation, "The input string is not a valid JSON")
	}
	fields, err := root.Object()
	if err != nil {
		return nil, nil, err
	}
	if v, ok := fields["version"]; ok {
		version, err := v.Int()
		if err != nil {
			return nil, nil, err
		}
		if version != 1 {
			return nil, nil, cli.Fail(classAdminOperation, "Not supported version field value %d", version)
		}
	}
	list, ok := fields["partitions"]
	if !ok {
		return nil, nil, cli.Fail(classAdminOperation, "Missing partitions field")
	}
	elements, err := list.Array()
	if err != nil {
		return nil, nil, err
	}
	offsets := map[cli.Partition][]int64{}
	for _, e := range elements {
		p, offset, err := parseOffset(e)
		if err != nil {
			return nil, nil, err
		}
		if offsets[p] == nil {
			partitions = append(partitions, p)
		}
		offsets[p] = append(offsets[p], offset)
	}
	cli.HashOrderBy(partitions, 0, func(p cli.Partition) uint32 { return cli.PartitionHash(p.Topic, p.ID) })
	if err := refuseDuplicates(partitions, offsets); err != nil {
		return nil, nil, err
	}
	for _, p := range partitions {
		before = append(before, offsets[p][0])
	}
	return partitions, before, nil
}

func refuseDuplicates(partitions []cli.Partition, offsets map[cli.Partition][]int64) error {
	var twice []string
	for _, p := range partitions {
		if len(offsets[p]) > 1 {
			twice = append(twice, fmt.Sprintf("%s-%d", p.Topic, p.ID))
		}
	}
	if twice == nil {
		return nil
	}
	return cli.Fail(classAdminFailed, "Offset json file contains duplicate topic partitions: %s",
		strings.Join(slices.Clip(twice), ","))
}

func parseOffset(e cli.JSON) (p cli.Partition, offset int64, err error) {
	fields, err := e.Object()
	if err != nil {
		return p, 0, err
	}
	topic, err := cli.Field(fields, "topic")
	if err == nil {
		p.Topic, err = topic.Text()
	}
	if err != nil {
		return p, 0, err
	}
	partition, err := cli.Field(fields, "partition")
	if err == nil {
		p.ID, err = partition.Int()
	}
	if err != nil {
		return p, 0, err
	}
	at, err := cli.Field(fields, "offset")
	if err == nil {
		offset, err = at.Long()
	}
	return p, offset, err
}
