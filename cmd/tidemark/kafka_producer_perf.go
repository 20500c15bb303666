package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tidemark/cmd/internal/cli"
	"tidemark/internal/metadata"
)

// producerPerfTool is Kafka's ProducerPerformance: how fast a topic takes records.
var producerPerfTool = tool{
	name:    "kafka-producer-perf-test",
	short:   "Produce records and say how fast that went",
	run:     runProducerPerf,
	options: producerPerfOptions,
}

// producerPerfArgs are the options in the order in which Kafka's tool tells them; the last ones exclude each other.
var producerPerfArgs = []perfArg{
	{name: "--bootstrap-server", help: "Brokers to ask first; goes before bootstrap.servers among the settings."},
	{name: "--topic", required: true, help: "The topic to produce to."},
	{name: "--num-records", required: true, kind: argLong, help: "How many records to produce."},
	{name: "--payload-delimiter", def: `\n`,
		help: "What parts the payloads in a --payload-file: a regular expression; a new line when left out."},
	{name: "--throughput", required: true, kind: argDouble,
		help: "Produce about this many records a second; -1: as many as go."},
	{name: "--producer-props", metavar: "PROP-NAME=PROP-VALUE", many: true,
		help: "(DEPRECATED) The same as --command-property."},
	{name: "--command-property", metavar: "PROP-NAME=PROP-VALUE", many: true,
		help: "Settings of the producer, as linger.ms=10 batch.size=32768; they go before those of a file."},
	{name: "--producer.config", metavar: "CONFIG-FILE", help: "(DEPRECATED) The same as --command-config."},
	{name: "--command-config", metavar: "CONFIG-FILE", help: "File with settings of the producer."},
	{name: "--print-metrics", flag: true, def: "false",
		help: "At the end print the metrics that this producer has: those of versions, connections, requests, bytes, " +
			"batches and records of Kafka's producer, as totals, averages and maxima. Not printed: rates, ratios, and " +
			"all metrics of buffers, time in the network thread, authentication, throttling, the age of metadata, " +
			"transactions' times, and those of each node."},
	{name: "--transactional-id",
		help: "Produce in transactions of this id; it goes before transactional.id among the settings. A random one " +
			"when only --transaction-duration-ms is given."},
	{name: "--transaction-duration-ms", metavar: "TRANSACTION-DURATION", kind: argLong,
		help: "Commit when a transaction has lasted this long; 3000 when only an id is given."},
	{name: "--warmup-records", kind: argLong, def: "0",
		help: "How many records at the beginning are left out of a second summary, which is printed at the end."},
	{name: "--reporting-interval", metavar: "INTERVAL-MS", kind: argLong, def: "5000",
		help: "Tell of the progress every so many milliseconds."},
	{name: "--record-size", kind: argInteger, exclusive: true, help: "Size of each record's value in bytes."},
	{name: "--payload-file", exclusive: true, help: "File of UTF-8 text with values, of which one is drawn each time."},
	{name: "--payload-monotonic", flag: true, exclusive: true, def: "false", help: "The values are 0, 1, 2, …"},
}

var producerPerfParser = perfParser{
	program: "kafka-producer-perf-test",
	about: "Produces records and says how fast that went. Records are produced in transactions when there is a " +
		"transactional id (--transactional-id, or transactional.id among the settings) or --transaction-duration-ms.",
	args:     producerPerfArgs,
	required: []string{"--throughput", "--num-records", "--topic"},
}

// producerPerfOptions declares the options for completion.
func producerPerfOptions() *cli.Parser {
	p := &cli.Parser{}
	for _, o := range producerPerfArgs {
		p.Add(cli.Option{Name: strings.TrimPrefix(o.name, "--"), Help: o.help})
	}
	return p
}

// producerPerf is what a command line asks for.
type producerPerf struct {
	topic                  string
	records, warmup        int64
	recordSize             int // 0: payloads, or numbers
	payloads               [][]byte
	throughput             float64
	settings               cli.Properties
	printMetrics           bool
	transactional          bool
	transactionMs          int64
	reportingMs            int64
	bootstrap, payloadFile string
}

func runProducerPerf(ctx context.Context, env *cli.Env, args []string) int {
	ctx, interrupted := interruptible(ctx)
	values, status, ok := producerPerfParser.parse(env, args)
	if !ok {
		return status
	}
	p, refused, err := newProducerPerf(env, values)
	if refused != "" {
		return producerPerfParser.refuse(env, refused)
	}
	if err == nil {
		err = p.run(ctx, env)
	}
	if err != nil {
		fmt.Fprint(env.Stderr, "Exception in thread \"main\" "+cli.AsFailure(err).Trace())
		return interrupted(1)
	}
	return interrupted(0)
}

// newProducerPerf reads values into what to do. refused is why the command line makes no sense.
func newProducerPerf(env *cli.Env, v perfValues) (p *producerPerf, refused string, err error) {
	p = &producerPerf{topic: v.text("--topic"), records: v.number("--num-records"),
		warmup: max(0, v.number("--warmup-records")), recordSize: int(v.number("--record-size")),
		throughput: v.double("--throughput"), printMetrics: v.has("--print-metrics"),
		reportingMs: v.number("--reporting-interval"), transactionMs: v.number("--transaction-duration-ms"),
		bootstrap: v.text("--bootstrap-server"), payloadFile: v.text("--payload-file")}
	if refused = p.check(v); refused != "" {
		return nil, refused, nil
	}
	if p.payloads, err = readPayloads(env, p.payloadFile, v.text("--payload-delimiter")); err != nil {
		return nil, "", err
	}
	if err := p.readSettings(env, v); err != nil {
		return nil, "", err
	}
	return p, "", nil
}

func (p *producerPerf) check(v perfValues) string {
	switch {
	case p.records <= 0:
		return "--num-records should be greater than zero."
	case p.warmup >= p.records:
		return "The value for --warmup-records must be strictly fewer than the number of records in the test, --num-records."
	case v.has("--record-size") && p.recordSize <= 0:
		return "--record-size should be greater than zero."
	case !v.has("--bootstrap-server") && !v.has("--command-property") && !v.has("--producer-props") &&
		!v.has("--producer.config") && !v.has("--command-config"):
		return "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or " +
			"--command-config must be specified."
	case v.has("--command-property") && v.has("--producer-props"):
		return "--command-property and --producer-props cannot be specified together."
	case v.has("--command-config") && v.has("--producer.config"):
		return "--command-config and --producer.config cannot be specified together."
	case v.has("--transaction-duration-ms") && p.transactionMs <= 0:
		return "--transaction-duration-ms should be greater than zero."
	case p.reportingMs <= 0:
		return "--reporting-interval should be greater than zero."
	}
	return ""
}

// readSettings reads the settings of the producer: the file's, then those of the command line.
func (p *producerPerf) readSettings(env *cli.Env, v perfValues) error {
	properties, file := v["--command-property"], v.text("--command-config")
	if v.has("--producer-props") {
		fmt.Fprintln(env.Stdout, "Option --producer-props has been deprecated and will be removed in a future version. "+
			"Use --command-property instead.")
		properties = v["--producer-props"]
	}
	if v.has("--producer.config") {
		fmt.Fprintln(env.Stdout, "Option --producer.config has been deprecated and will be removed in a future version. "+
			"Use --command-config instead.")
		file = v.text("--producer.config")
	}
	p.settings = cli.Properties{}
	if file != "" {
		loaded, err := cli.LoadProperties(file)
		if err != nil {
			return err
		}
		p.settings = loaded
	}
	for _, one := range properties {
		pieces := strings.Split(strings.TrimRight(one, "="), "=")
		if len(pieces) != 2 {
			return cli.BadArgument("Invalid property: %s", one)
		}
		p.settings[pieces[0]] = pieces[1]
	}
	p.settings["client.id"] = p.settings.Get("client.id", "perf-producer-client")
	if p.bootstrap != "" {
		p.settings["bootstrap.servers"] = p.bootstrap
	}
	p.chooseTransaction(v)
	return nil
}

// chooseTransaction decides whether there are transactions, and of which id.
func (p *producerPerf) chooseTransaction(v perfValues) {
	id, configured := p.settings["transactional.id"]
	p.transactional = configured || v.has("--transactional-id") || v.has("--transaction-duration-ms")
	if !p.transactional {
		return
	}
	const prefix, defaultMs = "performance-producer-", 3000
	switch {
	case v.has("--transactional-id"):
		id = v.text("--transactional-id")
	case !configured:
		id = prefix + metadata.UUID(randomBytes()).String()
	}
	p.settings["transactional.id"] = id
	if !v.has("--transaction-duration-ms") {
		p.transactionMs = defaultMs
	}
}

// readPayloads reads the values in a file, parted by a regular expression. As Java's Scanner reads them: what parts
// values at the beginning and at the end of the file has no empty one beside it.
func readPayloads(env *cli.Env, name, delimiter string) ([][]byte, error) {
	if name == "" {
		return nil, nil
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(env.Stdout, "Reading payloads from: "+path)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return nil, cli.BadArgument("File does not exist or empty file provided.")
	}
	if err != nil {
		return nil, cli.Fail("java.nio.file.AccessDeniedException", "%s", path)
	}
	if delimiter == `\n` {
		delimiter = "\n"
	}
	between, err := regexp.Compile(delimiter)
	if err != nil {
		return nil, cli.Fail("java.util.regex.PatternSyntaxException", "%s", err)
	}
	pieces := between.Split(string(text), -1)
	if len(pieces) > 1 && pieces[0] == "" {
		pieces = pieces[1:]
	}
	if n := len(pieces); n > 0 && pieces[n-1] == "" {
		pieces = pieces[:n-1]
	}
	payloads := make([][]byte, len(pieces))
	for i, piece := range pieces {
		payloads[i] = []byte(piece)
	}
	fmt.Fprintf(env.Stdout, "Number of records read: %d\n", len(payloads))
	return payloads, nil
}
