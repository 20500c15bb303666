package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

// errTimeout ends a run that saw no record for too long.
var errTimeout = errors.New("no record in time")

// consumer is one run of the tool.
type consumer struct {
	consumption
	env    *cli.Env
	client *kgo.Client
	out    *bufio.Writer
	count  int64 // of records taken
	seen   int   // metadata troubles logged so far
}

// consume runs to the end and is the exit status.
func consume(ctx context.Context, env *cli.Env, what consumption) int {
	c := &consumer{consumption: what, env: env, out: bufio.NewWriterSize(env.Stdout, 64<<10)}
	options, err := c.clientOptions()
	if err == nil {
		c.client, err = cli.NewClient(env, cli.Consumer, c.settings, options...)
	}
	if err != nil {
		return c.unknownError(err)
	}
	if c.partition < 0 && !strings.EqualFold(c.settings.Get("group.protocol", "classic"), "consumer") {
		fmt.Fprintln(env.Stderr, "The consumer rebalance protocol (KIP-848) is production-ready! Set "+
			"group.protocol=consumer to try it out. See "+
			"https://kafka.apache.org/documentation/#consumer_rebalance_protocol")
	}
	c.checkTopic(ctx)
	err = c.process(ctx)
	c.stop()
	fmt.Fprintf(env.Stderr, "Processed a total of %d messages\n", c.count)
	status := 0
	if err != nil {
		status = c.unknownError(err)
	}
	if c.systest {
		fmt.Fprintln(env.Stdout, "shutdown_complete")
	}
	return status
}

func (c *consumer) unknownError(err error) int {
	c.env.Log("ERROR", consumerLogger, "Unknown error when running consumer: ")
	fmt.Fprint(c.env.Stderr, cli.AsFailure(err).Trace())
	return 1
}

// stop commits what was taken, when there is a group, and leaves.
func (c *consumer) stop() {
	if c.group != "" && c.autoCommit() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := c.client.CommitMarkedOffsets(ctx); err != nil {
			c.env.Log("WARN", "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
				fmt.Sprintf("[Consumer clientId=%s, groupId=%s] Auto-commit of offsets failed: %s",
					c.settings["client.id"], c.group, err))
		}
	}
	c.client.Close()
}

const closeTimeout = 30 * time.Second

func (c *consumer) autoCommit() bool {
	return !strings.EqualFold(c.settings.Get("enable.auto.commit", "true"), "false")
}

// process shows records until there are enough, none came for too long, the output is
// closed or the context ends. An error is one that ends Kafka's tool with status 1.
func (c *consumer) process(ctx context.Context) error {
	for c.maxMessages == -1 || c.count < c.maxMessages {
		fetches, err := c.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errTimeout):
			c.endedBy("org.apache.kafka.common.errors.TimeoutException\n")
			return nil
		case err != nil:
			c.endedBy(cli.AsFailure(err).Trace())
			return nil
		}
		if err := c.show(fetches); err != nil {
			c.flush()
			return err
		}
		if !c.flush() {
			return nil
		}
	}
	return nil
}

func (c *consumer) endedBy(trace string) {
	c.env.Log("ERROR", consumerLogger, "Error processing message, terminating consumer process: ")
	fmt.Fprint(c.env.Stderr, trace)
}

// flush reports whether the output still takes what is written.
func (c *consumer) flush() bool {
	if c.out.Flush() == nil {
		return true
	}
	fmt.Fprintln(c.env.Stderr, "Unable to write to standard out, closing consumer.")
	c.out.Reset(io.Discard)
	return false
}

// poll waits for records; at most as many as are still wanted come.
func (c *consumer) poll(ctx context.Context) (kgo.Fetches, error) {
	if c.timeoutMs < math.MaxInt64/int64(time.Millisecond) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.timeoutMs)*time.Millisecond)
		defer cancel()
	}
	wanted := math.MaxInt32
	if c.maxMessages >= 0 {
		wanted = int(c.maxMessages - c.count)
	}
	for {
		fetches := c.client.PollRecords(ctx, wanted)
		if fetches.NumRecords() > 0 {
			return fetches, nil
		}
		if ctx.Err() != nil {
			return nil, errTimeout
		}
		if err := c.trouble(fetches); err != nil {
			return nil, err
		}
	}
}

// checkTopic warns when there is no such topic (yet): the client itself waits in silence.
func (c *consumer) checkTopic(ctx context.Context) {
	if c.topic == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(min(c.timeoutMs, checkTimeoutMs))*time.Millisecond)
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &c.topic
	request.Topics = []kmsg.MetadataRequestTopic{topic}
	response, err := request.RequestWith(ctx, c.client)
	if err != nil || len(response.Topics) == 0 || response.Topics[0].ErrorCode == 0 {
		return
	}
	c.metadataTrouble(c.topic, cli.CodeName(response.Topics[0].ErrorCode))
}

const checkTimeoutMs = 5000

func (c *consumer) metadataTrouble(topic, code string) {
	c.seen++
	c.env.Log("WARN", "org.apache.kafka.clients.NetworkClient", fmt.Sprintf("[Consumer clientId=%s, groupId=%s] The "+
		"metadata response from the cluster reported a recoverable issue with correlation id %d : {%s=%s}",
		c.settings["client.id"], c.settings["group.id"], c.seen, topic, code))
}

// trouble logs what the broker refused and goes on, or is the error that ends the run.
func (c *consumer) trouble(fetches kgo.Fetches) (fatal error) {
	fetches.EachError(func(topic string, _ int32, err error) {
		var coded *kerr.Error
		switch {
		case !errors.As(err, &coded):
		case coded.Retriable || coded.Code == codeUnknownTopic || coded.Code == codeInvalidTopic:
			c.metadataTrouble(topic, coded.Message)
		default:
			fatal = cli.APIFailure(coded.Code, nil)
		}
	})
	return fatal
}

const codeUnknownTopic = 3

// show writes records out. With skip-message-on-error only the log tells of those that
// cannot be shown.
func (c *consumer) show(fetches kgo.Fetches) error {
	for iterator := fetches.RecordIter(); !iterator.Done(); {
		r := iterator.Next()
		c.count++
		err := c.format.write(c.out, r)
		var failure *cli.Failure
		switch {
		case err == nil || !errors.As(err, &failure): // a broken output shows when it is flushed
		case !c.skipOnError:
			return err
		default:
			c.env.Log("ERROR", consumerLogger, "Error processing message, skipping this message: ")
			fmt.Fprint(c.env.Stderr, failure.Trace())
		}
		c.client.MarkCommitRecords(r)
	}
	return nil
}

// clientOptions turns Kafka's settings into those of the client.
func (c *consumer) clientOptions() ([]kgo.Opt, error) {
	isolation := kgo.ReadUncommitted()
	switch level := c.settings["isolation.level"]; level {
	case "read_uncommitted":
	case "read_committed":
		isolation = kgo.ReadCommitted()
	default:
		return nil, cli.Fail(classConfigException, "Invalid value %s for configuration isolation.level: String must be one "+
			"of: read_committed, read_uncommitted", level)
	}
	reset := kgo.NewOffset().AtEnd()
	switch policy := c.settings["auto.offset.reset"]; policy {
	case "latest":
	case "earliest":
		reset = kgo.NewOffset().AtStart()
	case "none":
		reset = kgo.NoResetOffset()
	default:
		return nil, cli.Fail(classConfigException, "Invalid value %s for configuration auto.offset.reset: Invalid value "+
			"`%s` for configuration auto.offset.reset. The value must be either 'earliest', 'latest', 'none' or of the format "+
			"'by_duration:<PnDTnHnMn.nS.>'.", policy, policy)
	}
	options := []kgo.Opt{kgo.FetchIsolationLevel(isolation), kgo.ConsumeResetOffset(reset)}
	if !strings.EqualFold(c.settings.Get("allow.auto.create.topics", "true"), "false") {
		options = append(options, kgo.AllowAutoTopicCreation())
	}
	more, err := c.fetchOptions()
	if err != nil {
		return nil, err
	}
	source, err := c.sourceOptions()
	return append(append(options, more...), source...), err
}

// sourceOptions say which topics, partitions and offsets to read, and as which group.
// Without a group of its own the tool reads all partitions itself, so that it needs no
// group coordinator.
func (c *consumer) sourceOptions() ([]kgo.Opt, error) {
	if c.partition >= 0 {
		start := kgo.NewOffset().At(c.offset)
		switch c.offset {
		case fromEarliest:
			start = kgo.NewOffset().AtStart()
		case fromLatest:
			start = kgo.NewOffset().AtEnd()
		}
		return []kgo.Opt{
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: {c.partition: start}}),
		}, nil
	}
	options := []kgo.Opt{kgo.ConsumeTopics(c.topic)}
	if c.topic == "" {
		if _, err := regexp.Compile(c.include); err != nil {
			return nil, cli.Fail("java.util.regex.PatternSyntaxException", "%s", err)
		}
		options = []kgo.Opt{kgo.ConsumeRegex(), kgo.ConsumeTopics(`\A(?:` + c.include + `)\z`)}
	}
	if c.group == "" {
		return options, nil
	}
	options = append(options, kgo.ConsumerGroup(c.group), kgo.AutoCommitMarks(),
		kgo.Balancers(kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()))
	if !c.autoCommit() {
		options = append(options, kgo.DisableAutoCommit())
	}
	return options, nil
}

// fetchOptions are the settings of single requests.
func (c *consumer) fetchOptions() ([]kgo.Opt, error) {
	var options []kgo.Opt
	settings := []struct {
		key, def string
		option   func(int64) kgo.Opt
	}{
		{"fetch.min.bytes", "1", func(n int64) kgo.Opt { return kgo.FetchMinBytes(bounded(n)) }},
		{"fetch.max.bytes", "52428800", func(n int64) kgo.Opt { return kgo.FetchMaxBytes(bounded(n)) }},
		{"max.partition.fetch.bytes", "1048576", func(n int64) kgo.Opt { return kgo.FetchMaxPartitionBytes(bounded(n)) }},
		{"fetch.max.wait.ms", "500", func(n int64) kgo.Opt {
			return kgo.FetchMaxWait(time.Duration(n) * time.Millisecond)
		}},
	}
	for _, s := range settings {
		n, err := number(c.settings, s.key, s.def, 0)
		if err != nil {
			return nil, err
		}
		options = append(options, s.option(n))
	}
	if rack := c.settings["client.rack"]; rack != "" {
		options = append(options, kgo.Rack(rack))
	}
	return options, nil
}

func bounded(n int64) int32 { return int32(min(n, math.MaxInt32)) }
