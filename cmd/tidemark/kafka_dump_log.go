package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

// dumpLogTool is Kafka's DumpLogSegments: the files of a partition as text.
var dumpLogTool = tool{
	name:    "kafka-dump-log",
	short:   "Show log, index and snapshot files",
	run:     runDumpLog,
	options: func() *cli.Parser { return &newDumpOptions().parser },
}

const (
	dumpIntro = "This tool helps to parse a log file and dump its contents to the console, useful for debugging a " +
		"seemingly corrupt log segment."
	decoderPackage = "org.apache.kafka.tools.api."
	defaultDecoder = decoderPackage + "StringDecoder"
	maxInt32       = "2147483647"
	classNoElement = "java.util.NoSuchElementException"
	classNumber    = "java.lang.NumberFormatException"
	classNoFile    = "java.nio.file.NoSuchFileException"
)

type dumpOptions struct {
	parser                                        cli.Parser
	print, verifyOnly, sanityOnly, files          *cli.Option
	maxMessageSize, maxBytes, deep, skipMetadata  *cli.Option
	valueDecoder, keyDecoder                      *cli.Option
	offsets, transactions, cluster, remote, share *cli.Option
}

func newDumpOptions() *dumpOptions {
	o := &dumpOptions{}
	p := &o.parser
	p.AddHelp()
	o.print = p.Flag("print-data-log", "Show keys and values of records. Any option of a decoder implies it.")
	o.verifyOnly = p.Flag("verify-index-only", "Compare indexes with the log, without showing their entries.")
	o.sanityOnly = p.Flag("index-sanity-check", "Only check indexes as a broker does when it starts.")
	o.files = p.Text("files", "file1, file2, ...", "REQUIRED: The files to show, separated by commas.")
	o.maxMessageSize = p.Number("Integer", "max-message-size", "size", "Bytes to read for one batch.", "5242880")
	o.maxBytes = p.Number("Integer", "max-bytes", "size", "How much of a log to read.", maxInt32)
	o.deep = p.Flag("deep-iteration", "Show records, not only batches. --print-data-log implies it.")
	o.valueDecoder = p.Add(cli.Option{Name: "value-decoder-class", Arity: cli.OptionalArg, Default: defaultDecoder,
		Help: "Class that reads the values; Kafka's own are known."})
	o.keyDecoder = p.Add(cli.Option{Name: "key-decoder-class", Arity: cli.OptionalArg, Default: defaultDecoder,
		Help: "Class that reads the keys; Kafka's own are known."})
	o.offsets = p.Flag("offsets-decoder", "Read records as those of __consumer_offsets.")
	o.transactions = p.Flag("transaction-log-decoder", "Read records as those of __transaction_state.")
	o.cluster = p.Flag("cluster-metadata-decoder", "Read records as those of the cluster's metadata.")
	o.remote = p.Flag("remote-log-metadata-decoder", "Read records as metadata of tiered storage.")
	o.share = p.Flag("share-group-state-decoder", "Read records as those of __share_group_state.")
	o.skipMetadata = p.Flag("skip-record-metadata", "Show only keys and values of records, and no control records.")
	return o
}

func runDumpLog(_ context.Context, env *cli.Env, args []string) int {
	out := bufio.NewWriterSize(env.Stdout, 64<<10)
	d := &dumper{env: env, out: out, options: newDumpOptions()}
	err := d.run(args)
	if flushErr := out.Flush(); err == nil && flushErr != nil {
		err = flushErr
	}
	return d.options.parser.Finish(env, err, func(f *cli.Failure) {
		trace := f.Trace()
		if f.Class == classNoElement && f.Message == "" {
			trace = f.Class + "\n"
		}
		fmt.Fprint(env.Stderr, "Exception in thread \"main\" "+trace)
	})
}

// dumper is one run of the tool.
type dumper struct {
	env     *cli.Env
	out     *bufio.Writer
	options *dumpOptions

	deep, printContents, skipMetadata bool
	maxBytes                          int64
	decode                            recordDecoder

	it   record.Iterator
	line []byte

	mismatches     []fileFindings // index entries that do not fit the log
	time           timeFindings
	nonConsecutive []fileFindings
}

func (d *dumper) run(args []string) error {
	o := d.options
	if err := o.parser.Parse(args); err != nil {
		return err
	}
	if err := o.parser.HelpOrVersion(d.env, dumpIntro); err != nil {
		return err
	}
	if err := cli.Require(o.files); err != nil {
		return err
	}
	list, err := o.files.Value()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(list, ","), ",") {
		if err := d.dump(name); err != nil {
			return err
		}
	}
	d.report()
	return nil
}

// logSettings reads the options that a log needs. Kafka's tool finds out late, too, that
// one of them makes no sense.
func (d *dumper) logSettings() (err error) {
	o := d.options
	d.printContents = o.print.Has() || o.offsets.Has() || o.transactions.Has() || o.cluster.Has() || o.remote.Has() ||
		o.valueDecoder.Has() || o.keyDecoder.Has() || o.share.Has()
	d.deep = o.deep.Has() || d.printContents
	d.skipMetadata = o.skipMetadata.Has()
	if d.decode, err = o.decoder(); err != nil {
		return err
	}
	d.maxBytes, err = o.maxBytes.Int()
	return err
}

// dump shows one file, by the kind that its name tells.
func (d *dumper) dump(name string) error {
	fmt.Fprintf(d.out, "Dumping %s\n", name)
	switch filepath.Ext(name) {
	case ".log", ".checkpoint":
		if err := d.logSettings(); err != nil {
			return err
		}
		return d.dumpLog(name)
	case ".index":
		return d.dumpIndex(name)
	case ".timeindex":
		return d.dumpTimeIndex(name)
	case ".snapshot":
		return d.dumpSnapshot(name)
	case ".txnindex":
		return d.dumpTxnIndex(name)
	}
	d.complain("Ignoring unknown file %s\n", name)
	return nil
}

// complain writes to the error output, after what was shown before.
func (d *dumper) complain(format string, args ...any) {
	if err := d.out.Flush(); err != nil {
		return // found again at the end
	}
	fmt.Fprintf(d.env.Stderr, format, args...)
}

// fileFindings are pairs of numbers that do not go together, in one file.
type fileFindings struct {
	file  string // absolute
	pairs [][2]int64
}

// find adds a pair to the findings of a file.
func find(all []fileFindings, name string, pair [2]int64) []fileFindings {
	path := absolute(name)
	for i := range all {
		if all[i].file == path {
			all[i].pairs = append(all[i].pairs, pair)
			return all
		}
	}
	return append(all, fileFindings{path, [][2]int64{pair}})
}

// report tells what was found wrong in all files.
func (d *dumper) report() {
	d.reportOn(d.mismatches, "Mismatches in :%s\n", "  Index offset: %d, log offset: %d\n")
	d.reportOn(d.time.mismatches, "Found timestamp mismatch in :%s\n", "  Index timestamp: %d, log timestamp: %d\n")
	d.reportOn(d.time.disorder, "Found out of order timestamp in :%s\n",
		"  Index timestamp: %d, Previously indexed timestamp: %d\n")
	d.reportOn(d.time.notFound, "The following indexed offsets are not found in :%s\n",
		"Indexed offset: %d, found log offset: %d\n")
	d.reportOn(d.nonConsecutive, "Non-consecutive offsets in %s\n", "  %d is followed by %d\n")
}

func (d *dumper) reportOn(all []fileFindings, head, line string) {
	cli.HashOrder(all, 0, func(f fileFindings) string { return f.file })
	for _, f := range all {
		d.complain(head, f.file)
		for _, pair := range f.pairs {
			d.complain(line, pair[0], pair[1])
		}
	}
}

// absolute is the path with the working directory before it, not cleaned otherwise.
func absolute(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	return dir + string(filepath.Separator) + name
}

// sibling is a file of the same segment, with another suffix.
func sibling(name, suffix string) string {
	base, _, _ := strings.Cut(filepath.Base(name), ".")
	return filepath.Dir(absolute(name)) + string(filepath.Separator) + base + suffix
}

// baseOffset is the number that a file's name starts with.
func baseOffset(name string) (int64, error) {
	text, _, _ := strings.Cut(filepath.Base(name), ".")
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, cli.Fail(classNumber, "For input string: \"%s\"", text)
	}
	return offset, nil
}

// readAll reads a whole file; a missing one is the Failure that Kafka's tool ends with.
func readAll(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	return data, fileFailure(name, err)
}

func fileFailure(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Fail(classNoFile, "%s", name)
	}
	if err != nil {
		return cli.Fail("java.io.IOException", "%s", err)
	}
	return nil
}

// optionalLong is the text of Java's OptionalLong; −1 stands for none.
func optionalLong(n int64) string {
	if n == -1 {
		return "OptionalLong.empty"
	}
	return "OptionalLong[" + strconv.FormatInt(n, 10) + "]"
}
