package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/cmd/internal/cli"
)

func decimal[T int16 | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// longHash is Java's hashCode of a long.
func longHash(n int64) uint32 { return uint32(n) ^ uint32(uint64(n)>>32) }

// partition is the partition that --topic and --partition name.
func (c *transactionsCall) partition() cli.Partition {
	id, _ := c.args.number("--partition")
	topic, _ := c.args.text("--topic")
	return cli.Partition{Topic: topic, ID: int32(id)}
}

func listTransactions(ctx context.Context, c *transactionsCall) error {
	all, err := c.list(ctx, func(r *kmsg.ListTransactionsRequest) {
		if ms, ok := c.args.number("--duration-filter"); ok {
			r.DurationFilterMillis = ms
		}
		if pattern, ok := c.args.text("--transactional-id-pattern"); ok {
			r.TransactionalIDPattern = &pattern
		}
	})
	if err != nil {
		return explained("Failed to list transactions", err)
	}
	var rows [][]string
	for _, of := range all {
		for _, t := range of.list {
			rows = append(rows, []string{t.TransactionalID, decimal(of.node), decimal(t.ProducerID),
				transactionState(t.TransactionState)})
		}
	}
	printTable(c.env, []string{"TransactionalId", "Coordinator", "ProducerId", "TransactionState"}, rows)
	return nil
}

// transactionState is a state as the tools know it; the others are unknown to them.
func transactionState(state string) string {
	switch state {
	case "Ongoing", "PrepareAbort", "PrepareCommit", "CompleteAbort", "CompleteCommit", "Empty", "PrepareEpochFence":
		return state
	}
	return "Unknown"
}

func describeTransaction(ctx context.Context, c *transactionsCall) error {
	id, _ := c.args.text("--transactional-id")
	node, t, err := c.describe(ctx, id)
	if err != nil {
		return explained("Failed to describe transaction state of transactional-id `"+id+"`", err)
	}
	start, duration := "None", "None"
	if t.StartTimestamp >= 0 {
		start = decimal(t.StartTimestamp)
		duration = decimal(c.env.Now().UnixMilli() - t.StartTimestamp)
	}
	var names []string
	for _, p := range partitionsOf(t) {
		names = append(names, partitionName(p))
	}
	printTable(c.env, []string{
		"CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs",
		"CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions",
	}, [][]string{{
		decimal(node), id, decimal(t.ProducerID), decimal(t.ProducerEpoch), transactionState(t.State),
		decimal(t.TimeoutMillis), start, duration, strings.Join(names, ","),
	}})
	return nil
}

// partitionsOf are the partitions of a transaction, in the order in which Java lists the set of them.
func partitionsOf(t kmsg.DescribeTransactionsResponseTransactionState) (all []cli.Partition) {
	for _, topic := range t.Topics {
		for _, id := range topic.Partitions {
			all = append(all, cli.Partition{Topic: topic.Topic, ID: id})
		}
	}
	cli.HashOrderBy(all, 0, partitionHash)
	return all
}

func describeProducers(ctx context.Context, c *transactionsCall) error {
	p, broker, on := c.partition(), int32(-1), "leader"
	if id, ok := c.args.number("--broker-id"); ok {
		broker, on = int32(id), fmt.Sprintf("broker %d", id)
	}
	found, err := c.producers(ctx, broker, []cli.Partition{p})
	if err != nil {
		return explained(fmt.Sprintf("Failed to describe producers for partition %s on %s", partitionName(p), on), err)
	}
	var rows [][]string
	for _, state := range found[p] {
		start := "None"
		if state.CurrentTxnStartOffset >= 0 {
			start = decimal(state.CurrentTxnStartOffset)
		}
		rows = append(rows, []string{decimal(state.ProducerID), decimal(state.ProducerEpoch),
			decimal(max(state.CoordinatorEpoch, -1)), decimal(state.LastSequence), decimal(state.LastTimestamp), start})
	}
	printTable(c.env, []string{"ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp",
		"CurrentTransactionStartOffset"}, rows)
	return nil
}

// abortSpec says which transaction of a partition is to be aborted.
type abortSpec struct {
	partition        cli.Partition
	producerID       int64
	producerEpoch    int16
	coordinatorEpoch int32
}

func (s abortSpec) String() string {
	return fmt.Sprintf("AbortTransactionSpec(topicPartition=%s, producerId=%d, producerEpoch=%d, coordinatorEpoch=%d)",
		partitionName(s.partition), s.producerID, s.producerEpoch, s.coordinatorEpoch)
}

func abortTransaction(ctx context.Context, c *transactionsCall) error {
	spec, err := c.abortSpec(ctx)
	if err != nil {
		return err
	}
	err = c.again(ctx, "abortTransaction(api=WRITE_TXN_MARKERS)", func() (bool, error) { return c.abort(ctx, spec) })
	if err != nil {
		return explained("Failed to abort transaction "+spec.String(), err)
	}
	return nil
}

// abortSpec reads the options of abort.
func (c *transactionsCall) abortSpec(ctx context.Context) (abortSpec, error) {
	start, byOffset := c.args.number("--start-offset")
	producer, byProducer := c.args.number("--producer-id")
	if byOffset {
		return c.transactionFrom(ctx, start)
	}
	if !byProducer {
		return abortSpec{}, refusal("The transaction to abort must be identified either with --start-offset " +
			"(for brokers on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch " +
			"(for older brokers)")
	}
	epoch, ok := c.args.number("--producer-epoch")
	if !ok {
		return abortSpec{}, refusal("Missing required argument --producer-epoch")
	}
	coordinator, ok := c.args.number("--coordinator-epoch")
	if !ok {
		return abortSpec{}, refusal("Missing required argument --coordinator-epoch")
	}
	return abortSpec{c.partition(), producer, int16(epoch), int32(max(coordinator, 0))}, nil
}

// transactionFrom finds the open transaction that begins at an offset.
func (c *transactionsCall) transactionFrom(ctx context.Context, start int64) (abortSpec, error) {
	p := c.partition()
	found, err := c.producers(ctx, -1, []cli.Partition{p})
	if err != nil {
		return abortSpec{}, explained("Failed to validate producer state for partition "+partitionName(p), err)
	}
	for _, state := range found[p] {
		if state.CurrentTxnStartOffset >= 0 && state.CurrentTxnStartOffset == start {
			return abortSpec{p, state.ProducerID, int16(state.ProducerEpoch), max(state.CoordinatorEpoch, 0)}, nil
		}
	}
	return abortSpec{}, refusal(fmt.Sprintf("Could not find any open transactions starting at offset %d on partition %s",
		start, partitionName(p)))
}

// abort has the partition's leader write the marker.
func (c *transactionsCall) abort(ctx context.Context, spec abortSpec) (final bool, err error) {
	node, err := c.leader(ctx, "abortTransaction", spec.partition)
	if err != nil {
		return false, err
	}
	request := kmsg.NewPtrWriteTxnMarkersRequest()
	topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	topic.Topic, topic.Partitions = spec.partition.Topic, []int32{spec.partition.ID}
	marker := kmsg.NewWriteTxnMarkersRequestMarker()
	marker.ProducerID, marker.ProducerEpoch, marker.CoordinatorEpoch = spec.producerID, spec.producerEpoch,
		spec.coordinatorEpoch
	marker.Topics = append(marker.Topics, topic)
	request.Markers = append(request.Markers, marker)
	answer, err := cli.AskBroker[*kmsg.WriteTxnMarkersResponse](ctx, c.admin, node,
		"abortTransaction(api=WRITE_TXN_MARKERS)", request)
	if err != nil {
		return false, err
	}
	if len(answer.Markers) != 1 || len(answer.Markers[0].Topics) != 1 || len(answer.Markers[0].Topics[0].Partitions) != 1 {
		return false, cli.Fail("org.apache.kafka.common.KafkaException",
			"WriteTxnMarkers response included unexpected marker entries")
	}
	return c.abortOutcome(spec, answer.Markers[0].Topics[0].Partitions[0].ErrorCode)
}

func (c *transactionsCall) abortOutcome(spec abortSpec, code int16) (final bool, err error) {
	const (
		notAuthorized = 31
		oldEpoch      = 47
		fenced        = 52
	)
	failure := cli.APIFailure(code, nil)
	var logged, told string
	switch code {
	case 0:
		return true, nil
	case codeNotLeader, codeReplicaMissing, codeBrokerNotAvailable, codeUnknownTopic:
		return false, nil
	case notAuthorized:
		logged, told = "failed cluster authorization", "failed due to cluster authorization error"
	case oldEpoch:
		logged, told = "failed due to an invalid producer epoch", "failed due an invalid producer epoch"
	case fenced:
		logged = "failed because the coordinator epoch is fenced"
		told = fmt.Sprintf("failed since the provided coordinator epoch %d has been fenced by the active coordinator",
			spec.coordinatorEpoch)
	default:
		logged = "failed due to an unexpected error " + cli.CodeName(code)
		told = "failed due to unexpected error: " + failure.Message
	}
	c.handlerLog("AbortTransactionHandler", "WriteTxnMarkers request for abort spec %s %s", spec, logged)
	failure.Message = fmt.Sprintf("WriteTxnMarkers request with %s %s", spec, told)
	return false, failure
}

func forceTerminate(ctx context.Context, c *transactionsCall) error {
	id, _ := c.args.text("--transactionalId")
	err := c.again(ctx, "fenceProducer(api=INIT_PRODUCER_ID)", func() (bool, error) {
		node, err := c.coordinator(ctx, "fenceProducer", id)
		if err != nil {
			return false, err
		}
		request := kmsg.NewPtrInitProducerIDRequest()
		request.TransactionalID, request.TransactionTimeoutMillis = &id, fenceTimeoutMs
		request.ProducerID, request.ProducerEpoch = -1, -1
		answer, err := cli.AskBroker[*kmsg.InitProducerIDResponse](ctx, c.admin, node,
			"fenceProducer(api=INIT_PRODUCER_ID)", request)
		if err != nil {
			return false, err
		}
		return fenceOutcome(id, answer.ErrorCode)
	})
	if err != nil {
		return explained("Failed to force terminate transactionalId `"+id+"`", err)
	}
	return nil
}

// fenceTimeoutMs is the transaction timeout that ending a transaction by force gives to the id: the client's
// request.timeout.ms.
const fenceTimeoutMs = 30_000

func fenceOutcome(id string, code int16) (final bool, err error) {
	reason := "due to unexpected error"
	switch code {
	case 0:
		return true, nil
	case codeLoading, codeConcurrent, codeNotCoordinator, codeNotAvailable:
		return false, nil
	case 31:
		reason = "due to cluster authorization failure"
	case 53:
		reason = "due to transactional ID authorization failure"
	}
	failure := cli.APIFailure(code, nil)
	failure.Message = fmt.Sprintf("InitProducerId request for transactionalId `%s` failed %s", id, reason)
	return false, failure
}
