//go:build oracle

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/test/oracle"
	"tidemark/test/pair"
	"tidemark/test/proc"
)

// digits are what differs from one measurement to the next.
var digits = regexp.MustCompile(`\d+|NaN|Infinity`)

// perfLines are command lines of both tools; ADDR is a server, FILE a file with payloads.
var perfLines = []string{
	"kafka-producer-perf-test --topic t",
	"kafka-producer-perf-test --num-records 1",
	"kafka-producer-perf-test --throughput 1",
	"kafka-producer-perf-test --topic",
	"kafka-producer-perf-test --topic t --num-records x --throughput -1 --record-size 1",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput abc --record-size 1",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput 1e2 --record-size 99999999999",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --payload-monotonic ADDR",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --payload-file a --record-size 1 ADDR",
	"kafka-producer-perf-test --topic t --num-records 0 --throughput -1 --record-size 1 ADDR",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 0 ADDR",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --bogus",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 extra",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --command-property",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --command-property a",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --command-property a=b=c",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --command-property a=b " +
		"--producer-props c=d",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --command-config a " +
		"--producer.config b",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --command-config /nope",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --p a=b",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --payload-file /nope ADDR",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --print-metrics=3 ADDR",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --transaction-duration-ms 0 ADDR",
	"kafka-producer-perf-test --topic t --num-records 1 --throughput -1 --record-size 1 --reporting-interval 0 ADDR",
	"kafka-producer-perf-test --topic t --num-records 5 --throughput -1 --record-size 1 --warmup-records 5 ADDR",
	"kafka-producer-perf-test --topic t --num-records 5 --throughput -1 --record-size 1 --command-property acks=9 ADDR",
	"kafka-producer-perf-test --topic t --num-records 5 --throughput -1 --record-size 1 --bootstrap-server nope",
	"kafka-producer-perf-test --topic t --num-records 100 --throughput -1 --record-size 10 ADDR",
	"kafka-producer-perf-test --topic t --num-records 20 --throughput 1000 --payload-monotonic --command-property " +
		"linger.ms=1 batch.size=32 acks=1 ADDR",
	"kafka-producer-perf-test --topic t --num-records 20 --throughput 1e4 --payload-file FILE --producer-props " +
		"acks=0 ADDR",
	"kafka-producer-perf-test --topic t --num-records 20 --throughput -1 --payload-file FILE --payload-delimiter , ADDR",
	"kafka-producer-perf-test --topic t --num-records 20 --throughput -1 --record-size 10 --warmup-records 10 ADDR",
	"kafka-producer-perf-test --topic t --num-records 20 --throughput -1 --record-size 10 --transactional-id perf ADDR",
	"kafka-producer-perf-test --topic t --num-records 20 --throughput 200 --record-size 10 " +
		"--transaction-duration-ms 10 ADDR",
	"kafka-producer-perf-test --topic t --num-records 2 --throughput -1 --record-size 2000000 ADDR",
	"kafka-producer-perf-test --topic t --num-records 2 --throughput -1 --record-size 20000 ADDR",
	"kafka-producer-perf-test --topic a/b --num-records 2 --throughput -1 --record-size 2 ADDR",

	"kafka-consumer-perf-test",
	"kafka-consumer-perf-test ADDR",
	"kafka-consumer-perf-test ADDR --topic a --include b",
	"kafka-consumer-perf-test ADDR --topic t",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --messages 3",
	"kafka-consumer-perf-test ADDR --topic t --num-records x",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --reporting-interval x",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --reporting-interval 0",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --fetch-size x",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --consumer.config /x --command-config /y",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --command-config /nope",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --bogus",
	"kafka-consumer-perf-test ADDR --topic t --num-records 2 --date-format QQ",
	"kafka-consumer-perf-test --bootstrap-server nope --topic t --num-records 2",
	"kafka-consumer-perf-test ADDR --topic t --messages 2",
	"kafka-consumer-perf-test ADDR --topic t --num-records 100",
	"kafka-consumer-perf-test ADDR --include [t] --num-records 100 --hide-header --date-format HH:mm:ss",
	"kafka-consumer-perf-test ADDR --topic t --num-records 100 --command-property isolation.level=read_committed",
	"kafka-consumer-perf-test ADDR --topic t --num-records 3 --from-latest --timeout 500",
}

// TestPerfTools runs Kafka's perf tools and their copies against both servers. The numbers are left out.
func TestPerfTools(t *testing.T) {
	kafka := oracle.Get(t, oracle.Version)
	theirs, ours := pair.Start(t, nil)
	file := filepath.Join(t.TempDir(), "payloads")
	if err := os.WriteFile(file, []byte("\none, two\n\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*pair.Server{theirs, ours} {
		kafka.MustTool(t, "kafka-topics", "--bootstrap-server", s.Addr, "--create", "--topic", "t")
		for _, line := range perfLines {
			if s == ours && !strings.Contains(line, "ADDR") {
				continue // it asks no server
			}
			text := strings.ReplaceAll(strings.ReplaceAll(line, "ADDR", "--bootstrap-server "+s.Addr), "FILE", file)
			args := strings.Fields(text)
			want := blurredPerf(kafka.Tool(t, args[0], args[1:]...))
			out, errs, status := call(t, "", args...)
			if d := cmp.Diff(want, blurredPerf(proc.Result{Stdout: out, Stderr: errs, Exit: status})); d != "" {
				t.Errorf("%s\nboth tools on %s (-Kafka's +Tidemark's):\n%s", line, s.Name, d)
			}
		}
	}
	samePayloads(t, kafka, ours.Addr)
	sameMetrics(t, kafka, ours.Addr)
}

func blurredPerf(r proc.Result) shown {
	lines := func(text string) (all []string) {
		for _, line := range normal(text) {
			if strings.Contains(line, "Got error produce response") { // a transaction that waits for the one before
				continue
			}
			all = append(all, strings.Join(strings.Fields(digits.ReplaceAllString(line, "N")), " "))
		}
		return all
	}
	return shown{lines(r.Stdout), lines(r.Stderr), r.Exit}
}

// samePayloads holds the records of both tools against each other: payloads are drawn alike.
func samePayloads(t *testing.T, kafka *oracle.Kafka, addr string) {
	t.Helper()
	for i, how := range []string{"--record-size 33", "--payload-monotonic"} {
		var read [2]string
		for j, topic := range []string{"theirs", "ours"} {
			topic += string(rune('0' + i))
			kafka.MustTool(t, "kafka-topics", "--bootstrap-server", addr, "--create", "--topic", topic)
			args := append([]string{"--bootstrap-server", addr, "--topic", topic, "--num-records", "50", "--throughput", "-1"},
				strings.Fields(how)...)
			if j == 0 {
				kafka.MustTool(t, "kafka-producer-perf-test", args...)
			} else if _, errs, status := call(t, "", append([]string{"kafka-producer-perf-test"}, args...)...); status != 0 {
				t.Fatal(errs)
			}
			read[j], _, _ = call(t, "", "kafka-console-consumer", "--bootstrap-server", addr, "--topic", topic,
				"--from-beginning", "--max-messages", "50")
		}
		if d := cmp.Diff(read[0], read[1]); d != "" || read[0] == "" {
			t.Errorf("%s: records (-Kafka's +Tidemark's):\n%s", how, d)
		}
	}
}

// sameMetrics checks that every metric that is printed is one of Kafka's, in Kafka's form.
func sameMetrics(t *testing.T, kafka *oracle.Kafka, addr string) {
	t.Helper()
	for _, line := range []string{
		"kafka-producer-perf-test --topic t --num-records 20 --throughput -1 --record-size 10 --print-metrics",
		"kafka-consumer-perf-test --topic t --num-records 20 --print-metrics",
	} {
		args := append(strings.Fields(line), "--bootstrap-server", addr)
		theirs := blurredPerf(kafka.Tool(t, args[0], args[1:]...)).Out
		out, _, _ := call(t, "", args...)
		ours := blurredPerf(proc.Result{Stdout: out}).Out
		if len(ours) < 10 {
			t.Errorf("%s: only %q", line, ours)
		}
		for _, one := range ours {
			if !slices.Contains(theirs, one) {
				t.Errorf("%s: Kafka's tool does not print %q", line, one)
			}
		}
	}
}
