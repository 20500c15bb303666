//go:build oracle

package demo

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/record"
	"tidemark/test/oracle"
	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}

// scenario is one topic of the demo: what is produced, and what is asked afterwards.
type scenario struct {
	topic   string
	configs []string
	batches []batch
	codec   record.Codec
	// clock says that timestamps are the broker's: outputs are compared without them.
	clock bool
}

const first = "00000000000000000000"

func scenarios() []scenario {
	keep := "retention.ms=-1"
	list := []scenario{
		{topic: "time-index-demo", configs: []string{"index.interval.bytes=200", keep}, batches: single(300)},
		{topic: "default-interval", configs: []string{keep}, batches: single(300)},
		{topic: "append-time", batches: single(300), clock: true,
			configs: []string{"index.interval.bytes=200", keep, "message.timestamp.type=LogAppendTime"}},
		{topic: "disordered", configs: []string{"index.interval.bytes=200", keep}, batches: disordered(300)},
		{topic: "equal", configs: []string{"index.interval.bytes=200", keep}, batches: equal(300)},
		{topic: "many-segments", configs: []string{"index.interval.bytes=200", "internal.segment.bytes=1000", keep},
			batches: single(300)},
		{topic: "many-segments-disordered", batches: disordered(300),
			configs: []string{"index.interval.bytes=200", "internal.segment.bytes=1500", keep}},
	}
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		list = append(list, scenario{topic: "codec-" + codec.String(), configs: []string{"index.interval.bytes=200", keep},
			batches: largestInTheMiddle(60), codec: codec})
	}
	return list
}

// disordered goes back ten seconds with every third record.
func disordered(n int) []batch {
	out := single(n)
	for i := range out {
		if i%3 == 2 {
			out[i][0] -= 10_000
		}
	}
	return out
}

// equal gives each timestamp to seven records in a row.
func equal(n int) []batch {
	out := single(n)
	for i := range out {
		out[i][0] = base + int64(i/7)*1000
	}
	return out
}

// largestInTheMiddle makes batches of five records whose largest timestamp is the third's.
func largestInTheMiddle(n int) []batch {
	var out []batch
	for i := range n {
		b := base + int64(i)*5000
		out = append(out, batch{b, b + 1000, b + 4500, b + 500, b + 2500})
	}
	return out
}

// TestDemo is the published demo and what it left untried, on running servers, after a clean stop, after a restart,
// and after each server took over the other's directory.
func TestDemo(t *testing.T) {
	w := newWorld(t)
	for _, s := range scenarios() {
		t.Run(s.topic, func(t *testing.T) {
			w.create(t, s.topic, s.configs...)
			w.produce(t, s)
			w.ask(t, s, s.queries()...)
			w.dump(t, s, false)
		})
	}
	t.Run("the published numbers", w.published)
	t.Run("timestamps ahead", w.timestampsAhead)
	t.Run("topics and configs", w.topicsAndConfigs)
	w.stop(t)
	for _, s := range scenarios() {
		t.Run(s.topic+" after a clean stop", func(t *testing.T) {
			if !s.clock {
				w.sameFiles(t, s.topic)
			}
			w.dump(t, s, true)
		})
	}
	t.Run("the published sizes after a clean stop", w.publishedClosed)
	t.Run("after a restart", func(t *testing.T) { w.again(t, [2]int{0, 1}) })
	t.Run("in the other's directory", func(t *testing.T) { w.again(t, [2]int{1, 0}) })
}

// again restarts the servers over the directories of the servers given, asks everything again, and stops them.
// Kafka may log no error over any of them.
func (w *world) again(t *testing.T, dirs [2]int) {
	before := w.servers
	for i, s := range before {
		w.servers[i] = s.Restart(t, before[dirs[i]].Dir)
	}
	for _, s := range scenarios() {
		w.ask(t, s, "-1", "-3", strconv.FormatInt(base+150_500, 10))
	}
	w.stop(t)
	for _, line := range oracle.Errors(w.servers[0].Process.Log()) {
		t.Errorf("Kafka over %s's directory logged %s", before[dirs[0]].Name, line)
	}
	// The directories go back, so that a second round starts from the same.
	for i := range w.servers {
		w.servers[i].Dir = before[i].Dir
	}
}

// ask compares look-ups by time, what the consumer reads and the descriptions of a topic.
func (w *world) ask(t *testing.T, s scenario, queries ...string) {
	t.Helper()
	change := s.change()
	for _, query := range queries {
		w.sameBut(t, change, "kafka-get-offsets", bootstrap("--topic", s.topic, "--time", query)...)
	}
	n := 0
	for _, b := range s.batches {
		n += len(b)
	}
	format := []string{"--formatter-property", "print.timestamp=true", "--formatter-property", "print.offset=true",
		"--formatter-property", "print.key=true", "--formatter-property", "print.partition=true"}
	consume := bootstrap("--topic", s.topic, "--partition", "0", "--offset", "earliest", "--max-messages", strconv.Itoa(n),
		"--timeout-ms", "30000")
	w.sameBut(t, change, "kafka-console-consumer", append(consume, format...)...)
	w.same(t, "kafka-topics", bootstrap("--describe", "--topic", s.topic)...)
	w.same(t, "kafka-configs", bootstrap("--describe", "--entity-type", "topics", "--entity-name", s.topic, "--all")...)
}

func (s scenario) queries() []string {
	out := []string{"latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload",
		"-1", "-2", "-3", "0", "9999999999999"}
	if s.clock {
		return out
	}
	for _, d := range []int64{-1, 0, 1, 500, 4500, 9_999, 10_000, 150_000, 150_500, 290_001, 299_000, 299_001, 1_000_000} {
		out = append(out, strconv.FormatInt(base+d, 10))
	}
	return out
}

var (
	clockTime = regexp.MustCompile(`\b1[789]\d{11}\b`)
	crc       = regexp.MustCompile(`(crc|CRC): \d+`)
)

// change hides timestamps, and the checksums over them, where they come from the broker's clock.
func (s scenario) change() func([]string) []string {
	return func(lines []string) []string {
		if !s.clock {
			return lines
		}
		for i, line := range lines {
			lines[i] = crc.ReplaceAllString(clockTime.ReplaceAllString(line, "TIME"), "$1: SUM")
		}
		return lines
	}
}

// dump compares what the dump tool prints of the files of a topic's first segment, and of its last.
func (w *world) dump(t *testing.T, s scenario, closed bool) {
	t.Helper()
	change := s.change()
	for _, name := range w.segments(t, s.topic) {
		log := file(s.topic, name+".log")
		w.sameBut(t, change, "kafka-dump-log", "--files", log, "--print-data-log")
		w.sameBut(t, change, "kafka-dump-log", "--files", log, "--deep-iteration")
		index, timeIndex := file(s.topic, name+".index"), file(s.topic, name+".timeindex")
		if closed || name == first {
			w.sameBut(t, change, "kafka-dump-log", "--files", index+","+timeIndex)
			w.sameBut(t, change, "kafka-dump-log", "--files", index, "--index-sanity-check")
			w.sameBut(t, change, "kafka-dump-log", "--files", timeIndex, "--verify-index-only")
		}
	}
}

// segments returns the names of the first and the last segment.
func (w *world) segments(t *testing.T, topic string) []string {
	t.Helper()
	names := []string{first}
	last := first
	for name := range sizes(t, w.servers[0], topic) {
		if base, ok := strings.CutSuffix(name, ".log"); ok && base > last {
			last = base
		}
	}
	if last != first {
		names = append(names, last)
	}
	return names
}

var timeEntry = regexp.MustCompile(`(?m)^timestamp: (\d+) offset: (\d+)$`)

// timeIndexOf returns the entries that the dump tool prints of a time index, as "offset@timestamp".
func timeIndexOf(dump string) []string {
	var out []string
	for _, m := range timeEntry.FindAllStringSubmatch(dump, -1) {
		out = append(out, m[2]+"@"+m[1])
	}
	return out
}

func demoEntries(offsets ...int) []string {
	var out []string
	for i := 3; i <= 297; i += 3 {
		out = append(out, fmt.Sprintf("%d@%d", i, base+int64(i)*1000))
	}
	for _, o := range offsets {
		out = append(out, fmt.Sprintf("%d@%d", o, base+int64(o)*1000))
	}
	return out
}

// published checks points 1 to 4 of the demo against the numbers as published, not only against each other.
func (w *world) published(t *testing.T) {
	const topic = "time-index-demo"
	for _, s := range w.servers {
		if got := sizes(t, s, topic)[first+".log"]; got != 22580 {
			t.Errorf("%s: .log is %d bytes", s.Name, got)
		}
	}
	live := w.same(t, "kafka-dump-log", "--files", file(topic, first+".timeindex"))
	if d := cmp.Diff(demoEntries(), timeIndexOf(live.Stdout)); d != "" {
		t.Errorf("time index of the running broker (-want +got):\n%s", d)
	}
	for query, want := range map[int64]string{0: topic + ":0:0\n", 150_000: topic + ":0:150\n",
		150_500: topic + ":0:151\n", 299_001: ""} {
		r := w.same(t, "kafka-get-offsets", bootstrap("--topic", topic, "--time", strconv.FormatInt(base+query, 10))...)
		if r.Stdout != want || r.Exit != 0 {
			t.Errorf("base+%d: printed %q, exit status %d", query, r.Stdout, r.Exit)
		}
	}
	r := w.same(t, "kafka-console-consumer", bootstrap("--topic", topic, "--partition", "0", "--offset", "151",
		"--max-messages", "2", "--timeout-ms", "30000", "--formatter-property", "print.timestamp=true")...)
	if want := "CreateTime:1790214560427\tv151\nCreateTime:1790214561427\tv152\n"; r.Stdout != want {
		t.Errorf("consumer printed %q", r.Stdout)
	}
	w.same(t, "kafka-console-consumer", bootstrap("--topic", topic, "--partition", "0", "--offset", "151",
		"--max-messages", "2", "--timeout-ms", "30000", "--property", "print.timestamp=true")...)
	r = w.same(t, "kafka-configs", bootstrap("--describe", "--all", "--topic", topic)...)
	for _, want := range []string{"message.timestamp.type=CreateTime sensitive=false synonyms={DEFAULT_CONFIG:" +
		"log.message.timestamp.type=CreateTime}", "message.timestamp.after.max.ms=3600000 ",
		"message.timestamp.before.max.ms=9223372036854775807 "} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
	count := w.same(t, "kafka-dump-log", "--files", file("default-interval", first+".timeindex"))
	t.Logf("time index entries at the default interval of 4096 bytes: %q", timeIndexOf(count.Stdout))
	if n := len(timeIndexOf(count.Stdout)); n != 5 {
		t.Errorf("%d time index entries at the default interval", n)
	}
}

// publishedClosed checks what a clean stop did to the demo's files: one entry more in the time index, both trimmed.
func (w *world) publishedClosed(t *testing.T) {
	const topic = "time-index-demo"
	for _, s := range w.servers {
		got := sizes(t, s, topic)
		if got[first+".timeindex"] != 1200 || got[first+".index"] != 792 || got[first+".log"] != 22580 {
			t.Errorf("%s: sizes after a clean stop %v", s.Name, got)
		}
	}
	closed := w.same(t, "kafka-dump-log", "--files", file(topic, first+".timeindex"))
	if d := cmp.Diff(demoEntries(299), timeIndexOf(closed.Stdout)); d != "" {
		t.Errorf("time index after a clean stop (-want +got):\n%s", d)
	}
}

var outOfRange = regexp.MustCompile(`Timestamp (\d+) of message with offset 0 is out of range. ` +
	`The timestamp should be within \[(-?\d+), (\d+)\]`)

// timestampsAhead is point 5: Kafka's verifiable producer, which can set timestamps, sends one record to each server.
func (w *world) timestampsAhead(t *testing.T) {
	w.create(t, "ahead", "retention.ms=-1")
	for _, s := range w.servers {
		send := func(ahead time.Duration) (string, time.Time) {
			now := time.Now()
			ts := now.Add(ahead).UnixMilli()
			r := w.kafka.OwnProcess(t, "kafka-verifiable-producer", "--bootstrap-server", s.Addr, "--topic", "ahead",
				"--max-messages", "1", "--message-create-time", strconv.FormatInt(ts, 10))
			return r.Stdout, now
		}
		if out, _ := send(30 * time.Minute); !strings.Contains(out, `"name":"producer_send_success"`) {
			t.Errorf("%s: 30 minutes ahead: %s", s.Name, out)
		}
		out, now := send(120 * time.Minute)
		if !strings.Contains(out, "InvalidTimestampException") {
			t.Errorf("%s: 120 minutes ahead: %s", s.Name, out)
		}
		m := outOfRange.FindStringSubmatch(out)
		if m == nil {
			t.Errorf("%s: 120 minutes ahead: no such text in %s", s.Name, out)
			continue
		}
		checkBounds(t, s.Name, m, now)
	}
}

// checkBounds checks the three numbers of the text against the time just before sending.
func checkBounds(t *testing.T, name string, m []string, now time.Time) {
	t.Helper()
	var n [4]int64
	for i := 1; i < 4; i++ {
		v, err := strconv.ParseInt(m[i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		n[i] = v
	}
	if n[1] != now.Add(2*time.Hour).UnixMilli() {
		t.Errorf("%s: timestamp %d", name, n[1])
	}
	clock := n[3] - 3_600_000 // what the server's clock said
	if d := clock - now.UnixMilli(); d < 0 || d > 60_000 {
		t.Errorf("%s: upper bound %d is an hour after %d ms from sending", name, n[3], d)
	}
	if lower := clock - (1<<63 - 1); n[2] != lower {
		t.Errorf("%s: lower bound %d, want %d", name, n[2], lower)
	}
}

// topicsAndConfigs drives the tools that change something: each combination works on a topic of its own.
func (w *world) topicsAndConfigs(t *testing.T) {
	topics := func(args ...string) []string { return append([]string{"kafka-topics"}, bootstrap(args...)...) }
	configs := func(args ...string) []string {
		args = append(args, "--entity-type", "topics", "--entity-name", "TOPIC")
		return append([]string{"kafka-configs"}, bootstrap(args...)...)
	}
	steps := [][]string{
		topics("--create", "--topic", "TOPIC", "--partitions", "3", "--config", "retention.ms=-1"),
		topics("--create", "--topic", "TOPIC"),
		topics("--create", "--topic", "TOPIC", "--if-not-exists"),
		topics("--create", "--topic", "TOPIC.x", "--config", "nope=1"),
		topics("--create", "--topic", "TOPIC/x"),
		topics("--create", "--topic", "TOPIC.x", "--replication-factor", "3"),
		topics("--describe", "--topic", "TOPIC"),
		topics("--alter", "--topic", "TOPIC", "--partitions", "5"),
		topics("--alter", "--topic", "TOPIC", "--partitions", "2"),
		configs("--alter", "--add-config", "retention.ms=100000,cleanup.policy=[compact,delete]"),
		configs("--describe"),
		configs("--alter", "--add-config", "retention.ms=x"),
		configs("--alter", "--delete-config", "retention.ms"),
		configs("--alter", "--delete-config", "nope"),
		configs("--describe", "--all"),
		topics("--describe", "--topics-with-overrides", "--topic", "TOPIC"),
		{"kafka-get-offsets", "--bootstrap-server", "ADDR", "--topic", "TOPIC"},
		topics("--delete", "--topic", "TOPIC"),
		topics("--delete", "--topic", "TOPIC"),
		topics("--delete", "--topic", "TOPIC", "--if-exists"),
		{"kafka-get-offsets", "--bootstrap-server", "ADDR", "--topic", "TOPIC"},
	}
	for number, step := range steps {
		w.compareStep(t, fmt.Sprintf("step %d, %q", number, step), step)
	}
}

// compareStep runs one step for each combination on that combination's own topic. What a server answers right after a
// change may be older: a step that only reads is tried again for a while.
func (w *world) compareStep(t *testing.T, what string, step []string) {
	t.Helper()
	reads := step[0] == "kafka-get-offsets" || slices.Contains(step, "--describe")
	difference := w.stepDifference(t, step)
	for tries := 0; difference != "" && reads && tries < 20; tries++ {
		time.Sleep(200 * time.Millisecond)
		difference = w.stepDifference(t, step)
	}
	if difference != "" {
		t.Errorf("%s: %s", what, difference)
	}
}

// stepDifference runs one step and tells how the combinations differ.
func (w *world) stepDifference(t *testing.T, step []string) string {
	t.Helper()
	var want output
	difference := ""
	for i, s := range w.servers {
		for j, set := range w.tools {
			topic := fmt.Sprintf("made-by-%d", j)
			var args []string
			for _, a := range step[1:] {
				args = append(args, strings.NewReplacer("ADDR", s.Addr, "TOPIC", topic).Replace(a))
			}
			r := set.run(t, "", step[0], args...)
			hide := func(text string) []string {
				return normalise(s, strings.ReplaceAll(text, topic, "TOPIC"))
			}
			got := output{hide(r.Stdout), hide(r.Stderr), r.Exit}
			if i == 0 && j == 0 {
				want = got
			} else if d := cmp.Diff(want, got); d != "" {
				difference += fmt.Sprintf("%s against %s differ from Kafka's tools against Kafka (-want +got):\n%s", set.name,
					s.Name, d)
			}
		}
	}
	return difference
}
