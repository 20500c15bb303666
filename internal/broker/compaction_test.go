package broker

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/internal/checkpoint"
	"tidemark/vfs"
)

// TestCompactionByConfigs compacts topics of a running broker when configs say so: of a topic, and of the broker.
func TestCompactionByConfigs(t *testing.T) {
	dir := t.TempDir()
	b := startBroker(t, dir, map[string]string{"log.cleaner.backoff.ms": "3600000", "log.cleaner.threads": "1"})
	cl := client(t, b)
	admin := kadm.NewClient(cl)
	value := func(s string) *string { return &s }
	if _, err := admin.CreateTopic(t.Context(), 1, 1, map[string]*string{"cleanup.policy": value("compact"),
		"internal.segment.bytes": value("500"), "min.cleanable.dirty.ratio": value("0")}, "live"); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		r := &kgo.Record{Topic: "live", Key: []byte("key"), Value: fmt.Appendf(nil, "%050d", i)}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	// The thread rests for an hour, unless it is told of other configs.
	alter, err := admin.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "log.cleaner.backoff.ms",
		Value: value("20")}}, 1)
	if err != nil || alter[0].Err != nil {
		t.Fatal(err, alter)
	}
	name := checkpoint.TopicPartition{Topic: "live"}
	wait(t, "the topic is compacted", func() bool {
		all, err := checkpoint.ReadOffsets(vfs.OS(), filepath.Join(dir, checkpoint.CleanerOffsetFile))
		return err == nil && all[name] > 30
	})
	wait(t, "the round is counted", func() bool { return b.dirs.Cleaner().Metrics().Rounds.Load() > 0 })
	answer, err := http.Get("http://" + b.AdminAddress() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tidemark_cleaner_uncleanable_partitions 0\n", "tidemark_cleaner_rounds_total ",
		"tidemark_cleaner_max_dirty_ratio ", "tidemark_segments_compacted_total "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not among the metrics", want)
		}
	}
	if strings.Contains(string(text), "tidemark_cleaner_rounds_total 0\n") {
		t.Error("no round was counted")
	}
}

// wait waits until something is the case.
func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not after a minute: %s", what)
}
