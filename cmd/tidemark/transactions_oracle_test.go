//go:build oracle

package main

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/pair"
	"tidemark/test/proc"
)

var changing = regexp.MustCompile(`adminclient-\d+|\b\d{4,}\b`)

// duration follows a transaction's time-out and start in the line that describes it; it may be of any size.
var duration = regexp.MustCompile(`\bN N \d+\b`)

// TestTransactionsTool runs the tools and their copies against transactions that are open, committed, aborted and
// hanging, on Kafka and on Tidemark.
func TestTransactionsTool(t *testing.T) {
	kafka := oracle.Get(t, oracle.Version)
	theirs, ours := pair.Start(t, map[string]string{"transaction.partition.verification.enable": "false"})
	servers := []*pair.Server{theirs, ours}
	for _, s := range servers {
		makeTransactions(t, s.Addr)
	}
	for _, line := range []string{
		"list", "list --duration-filter 3600000", "list --transactional-id-pattern o.*n",
		"describe --transactional-id open", "describe --transactional-id done", "describe --transactional-id undone",
		"describe-producers --topic t --partition 0", "describe-producers --topic t --partition 1 --broker-id 1",
		"find-hanging --topic t --max-transaction-timeout -1", "find-hanging --broker-id 1",
		"find-hanging --topic t --partition 1 --max-transaction-timeout -1",
		"abort --topic t --partition 1 --start-offset 1",
		"abort --topic t --partition 1 --start-offset 0",
		"describe-producers --topic t --partition 1",
		"abort --topic t --partition 0 --producer-id 0 --producer-epoch 0 --coordinator-epoch -1",
		"forceTerminateTransaction --transactionalId open", "describe --transactional-id open",
	} {
		var want shown
		for i, s := range servers {
			args := append([]string{"kafka-transactions", "--bootstrap-server", s.Addr}, strings.Fields(line)...)
			changes := strings.HasPrefix(line, "abort") || strings.HasPrefix(line, "force")
			var r proc.Result
			if !changes || i == 0 {
				r = kafka.Tool(t, args[0], args[1:]...)
			}
			if !changes || i == 1 {
				out, errs, status := call(t, "", args...)
				mine := proc.Result{Stdout: out, Stderr: errs, Exit: status}
				if d := cmp.Diff(blurred(r), blurred(mine)); d != "" && !changes {
					t.Errorf("%s, both tools on %s (-Kafka's +Tidemark's):\n%s", line, s.Name, d)
				}
				r = mine
			}
			if i == 0 {
				want = blurred(r)
			} else if d := cmp.Diff(want, blurred(r)); d != "" {
				t.Errorf("%s (-Kafka +Tidemark):\n%s", line, d)
			}
		}
	}
}

// blurred is a result with what is not the same twice taken out: times, ids of clients, widths of columns, and the
// order of transactions.
func blurred(r proc.Result) shown {
	lines := func(text string) (all []string) {
		for _, line := range normal(text) {
			line = changing.ReplaceAllString(strings.Join(strings.Fields(line), " "), "N")
			all = append(all, duration.ReplaceAllString(line, "N N N"))
		}
		slices.Sort(all)
		return all
	}
	return shown{lines(r.Stdout), lines(r.Stderr), r.Exit}
}

// makeTransactions leaves a committed, an aborted and an open transaction in partition 0 of topic t, and one in
// partition 1 that no coordinator knows.
func makeTransactions(t *testing.T, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, errs, status := call(t, "", "kafka-topics", "--bootstrap-server", addr, "--create", "--topic", "t",
		"--partitions", "2"); status != 0 {
		t.Fatal(out, errs)
	}
	for _, id := range []string{"done", "undone", "open"} {
		client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(id), kgo.DefaultProduceTopic("t"),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Value: []byte(id)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if id != "open" {
			if err := client.EndTransaction(ctx, kgo.TransactionEndTry(id == "done")); err != nil {
				t.Fatal(err)
			}
			awaitCompletion(ctx, t, client, id)
		}
	}
	hang(ctx, t, addr)
}

// awaitCompletion waits until the markers of a transaction are written: its end is answered before.
func awaitCompletion(ctx context.Context, t *testing.T, client *kgo.Client, id string) {
	t.Helper()
	for {
		req := kmsg.NewPtrDescribeTransactionsRequest()
		req.TransactionalIDs = []string{id}
		answer, err := req.RequestWith(ctx, client)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(answer.TransactionStates[0].State, "Complete") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// hang writes a record of a transaction without telling the coordinator.
func hang(ctx context.Context, t *testing.T, addr string) {
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(0, 11) // later ones make the partition ask the coordinator
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := kmsg.NewPtrProduceRequest()
	r.Acks, r.TimeoutMillis, r.TransactionID = -1, 30_000, kmsg.StringPtr("hangs")
	topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	topic.Topic, part.Partition, part.Records = "t", 1, hangingBatch(t)
	topic.Partitions = append(topic.Partitions, part)
	r.Topics = append(r.Topics, topic)
	answer, err := client.Broker(1).Request(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	if code := answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("a hanging transaction: error %d", code)
	}
}

// hangingBatch is one record of a transaction that nobody began.
func hangingBatch(t *testing.T) []byte {
	o := record.DefaultBuilderOptions()
	o.ProducerID, o.ProducerEpoch, o.BaseSequence, o.Transactional = 4000, 0, 0, true
	b := record.NewBuilder(o)
	if err := b.Append(time.Now().UnixMilli(), nil, []byte("hanging"), nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
