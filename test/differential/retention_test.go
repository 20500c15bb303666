//go:build oracle

package differential

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const minuteMs = 60_000

// retentionCase is a topic whose segments have these records, by timestamp from now; each is a segment of its own.
type retentionCase struct {
	name    string
	configs []string
	ts      []func(now int64) int64
	// deleteTo is where DeleteRecords moves the log start offset, first of all; 0: nowhere.
	deleteTo int64
	// start and end are what is there when both are idle.
	start, end int64
}

func ago(ms int64) func(int64) int64     { return func(now int64) int64 { return now - ms } }
func exactly(ts int64) func(int64) int64 { return func(int64) int64 { return ts } }

// retentionCases have segments of 600 kB in segments of 1 MiB, so that each record is alone in its own.
func retentionCases() []retentionCase {
	old, young := ago(120*minuteMs), ago(0) // the young ones are not old at the end of the test either
	const hour = "3600000"
	short := []string{"retention.ms", hour}
	ahead := []string{"retention.ms", hour, "message.timestamp.after.max.ms", "9223372036854775807"}
	micro := func(now int64) int64 { return now * 1000 }
	second := func(now int64) int64 { return now / 1000 }
	type times = []func(int64) int64
	return []retentionCase{
		{"future-first", short, times{ago(-50 * minuteMs), old, old, old}, 0, 0, 4},
		{"future-second", short, times{old, ago(-50 * minuteMs), old, old}, 0, 1, 4},
		{"all-old", short, times{old, old, old}, 0, 3, 3},
		{"one-old", short, times{old}, 0, 1, 1},
		{"microseconds", ahead, times{old, micro, old}, 0, 1, 3},
		{"seconds", short, times{second, second, young}, 0, 2, 3},
		{"no-timestamps", short, times{exactly(-1), exactly(-1)}, 0, 0, 2},
		{"zero-timestamps", short, times{exactly(0), exactly(0), young}, 0, 2, 3},
		{"append-time", []string{"retention.ms", hour, "message.timestamp.type", "LogAppendTime"},
			times{old, old}, 0, 0, 2},
		{"old-then-young", short, times{old, old, young, old}, 0, 2, 4},
		{"by-size", []string{"retention.ms", "-1", "retention.bytes", "700000"}, times{old, old, old, old}, 0, 2, 4},
		{"by-size-0", []string{"retention.ms", "-1", "retention.bytes", "0"}, times{old, old}, 0, 2, 2},
		{"start-then-time", short, times{ago(-50 * minuteMs), old, old}, 1, 3, 3},
		{"start-inside", []string{"retention.ms", "-1"}, times{old, old, old}, 2, 2, 3},
		{"start-at-end", []string{"retention.ms", "-1"}, times{old, old, old}, 3, 3, 3},
		{"compacted", []string{"retention.ms", hour, "cleanup.policy", "compact"}, times{old, old}, 0, 0, 2},
	}
}

// TestRetention has both look for old segments often, and compares what is left in the folders.
func TestRetention(t *testing.T) {
	w := newWorld(t, "log.retention.check.interval.ms", "300", "log.initial.task.delay.ms", "300",
		"log.segment.delete.delay.ms", "500", "log.cleaner.enable", "true")
	cases := retentionCases()
	now := time.Now().UnixMilli()
	value := make([]byte, 600_000)
	for _, c := range cases {
		configs := append([]string{"segment.bytes", "1048576"}, c.configs...)
		hold := append([]string{}, configs...)
		for i := range hold { // nothing goes before all is there
			if hold[i] == "retention.ms" || hold[i] == "retention.bytes" {
				hold[i+1] = "-1"
			}
		}
		w.create(t, c.name, 1, hold...)
		for i, ts := range c.ts {
			key := []byte(fmt.Sprint("k", i))
			b := batch{records: []rec{{ts: ts(now), key: key, value: value}}}.encode()
			w.same(t, c.name+" produce", produce(9, c.name, 0, 1, b), hide("LogAppendTime"))
		}
		if c.deleteTo > 0 {
			w.same(t, c.name+" delete", deleteRecords(2, c.name, 0, c.deleteTo))
		}
		change := alterCase{kind: kmsg.ConfigResourceTypeTopic, name: c.name}
		for i := 0; i+1 < len(configs); i += 2 {
			change.ops = append(change.ops, configOp{key: configs[i], value: configs[i+1]})
		}
		w.same(t, c.name+" retention set", change.incremental(1))
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { w.checkRetention(t, c) })
	}
	w.report.flush(t)
	t.Run("topic deletion", w.testTopicDeletion)
	w.checkExplained(t)
}

// checkRetention waits until both have what the case says and the files of what went are gone, and compares the rest.
func (w *world) checkRetention(t *testing.T, c retentionCase) {
	for _, s := range w.sides {
		s.waitFor(t, fmt.Sprintf("%s from %d to %d, alone in its folder", c.name, c.start, c.end), func() bool {
			files := s.listing(t, c.name+"-0")
			for name := range files {
				if strings.HasSuffix(name, ".deleted") {
					return false
				}
			}
			return s.offset(t, c.name, -2) == c.start && s.offset(t, c.name, -1) == c.end &&
				s.firstSegment(files) <= c.start
		})
	}
	difference := "not looked at"
	for deadline := time.Now().Add(patience); difference != "" && time.Now().Before(deadline); {
		var listings [2]map[string]int64
		for i, s := range w.sides { // a checkpoint that is being replaced has two files for a moment
			listings[i] = s.listing(t, c.name+"-0")
			comparable(listings[i])
		}
		if difference = cmp.Diff(listings[0], listings[1]); difference != "" {
			time.Sleep(50 * time.Millisecond)
		}
	}
	if difference != "" {
		t.Errorf("%s: folders differ (-Kafka +Tidemark):\n%s", c.name, difference)
	}
}

// comparable leaves out of a listing Tidemark's own file, and the indexes of an empty segment, which come with their
// first use.
func comparable(files map[string]int64) {
	delete(files, "tidemark.seals")
	for name, size := range files {
		if base, ok := strings.CutSuffix(name, ".log"); ok && size == 0 {
			delete(files, base+".index")
			delete(files, base+".timeindex")
		}
	}
}

// listing is the files of a partition's folder with their sizes; those of active indexes are not compared.
func (s *side) listing(t *testing.T, folder string) map[string]int64 {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.Dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	files := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = -1
		if strings.HasSuffix(e.Name(), ".log") || strings.HasSuffix(e.Name(), ".deleted") {
			files[e.Name()] = info.Size()
		}
	}
	return files
}

// firstSegment is the base of the first segment in a listing.
func (s *side) firstSegment(files map[string]int64) int64 {
	first := int64(1 << 62)
	for name := range files {
		var base int64
		if n, err := fmt.Sscanf(name, "%d.log", &base); n == 1 && err == nil {
			first = min(first, base)
		}
	}
	return first
}

// offset is the answer to a look-up of a special timestamp.
func (s *side) offset(t *testing.T, topic string, ts int64) int64 {
	t.Helper()
	answer, ok := s.ask(t, listOffsets(7, -1, 0, topic, offsetQuery{0, ts, -1})(s)).(*kmsg.ListOffsetsResponse)
	if !ok || len(answer.Topics) != 1 {
		t.Fatalf("%s: no answer about %s", s.Name, topic)
	}
	return answer.Topics[0].Partitions[0].Offset
}

// testTopicDeletion deletes a topic: its folder is renamed and goes after the delay.
func (w *world) testTopicDeletion(t *testing.T) {
	w.create(t, "dropped", 2)
	w.same(t, "produce", produce(9, "dropped", 1, 1, batch{records: some(3)}.encode()), hideTimes)
	w.same(t, "delete", deleteTopics(5, deletion{name: "dropped"}))
	for _, s := range w.sides {
		s.waitFor(t, "folders of the topic gone", func() bool {
			entries, err := os.ReadDir(s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), "dropped-") {
					return false
				}
			}
			return true
		})
	}
	w.create(t, "dropped", 1)
	w.same(t, "made again", listOffsets(7, -1, 0, "dropped", offsetQuery{0, -2, -1}, offsetQuery{0, -1, -1}))
	w.report.flush(t)
}

// checkExplained looks for Tidemark's warnings of what blocks or hastens deletion.
func (w *world) checkExplained(t *testing.T) {
	for _, want := range []string{
		"future holds back deletion\" topic=future-first partition=0 segment=00000000000000000000.log offset=0",
		"future holds back deletion\" topic=microseconds partition=0 segment=00000000000000000001.log offset=1",
		"likely_unit=microseconds", "likely_unit=seconds",
		"older than their arrival\" topic=seconds partition=0 segment=00000000000000000001.log offset=1",
		"last change decides on deletion\" topic=no-timestamps",
	} {
		s := w.sides[1]
		s.waitFor(t, fmt.Sprintf("its log says %q", want), func() bool { return strings.Contains(s.Process.Log(), want) })
	}
}
