//go:build oracle

package apps

import (
	"context"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/test/oracle"
	"tidemark/test/proc"
)

// words are what the lines are made of: word i has the share of its number.
var words = []string{"the", "tide", "leaves", "a", "mark", "on", "every", "stone"}

// lines are n lines of two words.
func lines(from, n int) (all []string) {
	for i := from; i < from+n; i++ {
		all = append(all, words[i%len(words)]+" "+words[i/3%len(words)])
	}
	return all
}

// TestStreams counts words with exactly_once_v2 while the application and the broker are killed in turns: every word is
// counted one by one, without a gap and without a repetition.
func TestStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(2, "lines", "counts")
	k := oracle.Get(t, oracle.Version)
	source, err := filepath.Abs("WordCount.java")
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	start := func() *proc.Process { return k.App(t, "word-count", source, w.addr, state, "lines", "counts") }
	producer := w.client(kgo.DefaultProduceTopic("lines"))
	want, sent := map[string]int{}, 0
	send := func(n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for _, line := range lines(sent, n) {
			if err := producer.ProduceSync(ctx, kgo.StringRecord(line)).FirstErr(); err != nil {
				t.Fatal(err)
			}
			for _, word := range strings.Fields(line) {
				want[word]++
			}
		}
		sent += n
	}
	app := start()
	for round := range 3 {
		send(300)
		w.waitForCounts(app, 100+600*round) // it is at work
		if round%2 == 0 {
			app.Kill(t)
			app = start()
		} else {
			w.kill()
		}
		send(100)
		if round == 2 {
			w.kill()
		}
	}
	counts := map[string]int{}
	left := 0
	for _, n := range want {
		left += n
	}
	w.readUntil(app, "counts", func(r *kgo.Record) bool {
		word := string(r.Key)
		counts[word]++
		if n, err := strconv.Atoi(string(r.Value)); err != nil || n != counts[word] {
			t.Errorf("count %q of %q, want %d", r.Value, word, counts[word])
		}
		left--
		return left <= 0
	})
	if !maps.Equal(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
	seen(t, "Kafka Streams")
}

// waitForCounts waits until so many counts are there.
func (w *world) waitForCounts(app *proc.Process, n int) {
	w.t.Helper()
	w.readUntil(app, "counts", func(*kgo.Record) bool {
		n--
		return n <= 0
	})
}
