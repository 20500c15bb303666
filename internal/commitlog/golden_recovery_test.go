package commitlog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"tidemark/test/golden"
)

// TestGoldenRecovery opens folders of killed and of spoiled brokers. After a crash the logs must be what Kafka made of
// them, and end where Kafka's do, unless Kafka dropped good batches behind damage: they must be there. After a clean
// stop Kafka looks at nothing, and this log may find more.
func TestGoldenRecovery(t *testing.T) {
	for _, c := range golden.Cases(t, "10-crash-", "10-clean-") {
		t.Run(c.Name, func(t *testing.T) {
			o := goldenOptions(t, c, golden.Before)
			o.Clean = *c.Info.CleanShutdown
			if c.Info.RecoveryPoint != nil {
				o.RecoveryPoint = *c.Info.RecoveryPoint
			}
			o.Metrics = new(Metrics)
			o.After = func(time.Duration, func()) {} // keeps .deleted files
			before := files(t, o.FS, o.Dir)
			l := openGolden(t, o)
			checkLost(t, before, files(t, o.FS, o.Dir))
			if c.Refused() {
				return // Kafka's broker does not start over this folder
			}
			more := o.Clean || o.Metrics.Segment.Damages.Load() > 0
			checkEnds(t, c, l, more, before)
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if !more {
				checkLogs(t, c, files(t, o.FS, o.Dir))
			}
		})
	}
}

func checkEnds(t *testing.T, c golden.Case, l *Log, more bool, before map[string]string) {
	t.Helper()
	after := c.AfterStart(t)
	end, stable := l.EndOffset(), l.LastStableOffset(l.EndOffset())
	if end < after.LogEndOffset || end > after.LogEndOffset && !more {
		t.Errorf("log end: kafka %d, tidemark %d", after.LogEndOffset, end)
	}
	if forgot := more && !hasSnapshots(before); forgot { // Kafka knows of no open transaction then
		return
	}
	if stable < after.LastStableOffset || stable != after.LastStableOffset && !more {
		t.Errorf("last stable offset: kafka %d, tidemark %d", after.LastStableOffset, stable)
	}
}

func hasSnapshots(files map[string]string) bool {
	for name := range files {
		if strings.HasSuffix(name, ".snapshot") {
			return true
		}
	}
	return false
}

// checkLogs compares the logs, but for those that Kafka removed.
func checkLogs(t *testing.T, c golden.Case, got map[string]string) {
	t.Helper()
	want := make(map[string]bool)
	for _, f := range c.AfterStart(t).FilesClosed {
		if !strings.HasSuffix(f.Name, ".log") {
			continue
		}
		want[f.Name] = true
		sum := sha256.Sum256([]byte(got[f.Name]))
		if hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("%s: %d bytes, kafka %d", f.Name, len(got[f.Name]), f.SizeBytes)
		}
	}
	for name := range got {
		if strings.HasSuffix(name, ".log") && !want[name] {
			t.Errorf("%s is not in Kafka's folder", name)
		}
	}
}

// checkLost makes sure that every byte of a log is still in the folder, under some name, but for zeros at the end and
// for segments that a completed replacement covers.
func checkLost(t *testing.T, before, after map[string]string) {
	t.Helper()
	var all strings.Builder
	for _, content := range after {
		all.WriteString(content)
		all.WriteByte('|')
	}
	for name := range before {
		if strings.HasSuffix(name, ".swap") {
			return
		}
	}
	for name, content := range before {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		kept := after[name]
		rest := strings.TrimRight(strings.TrimPrefix(content, kept), "\x00")
		if !strings.HasPrefix(content, kept) || !strings.Contains(all.String(), rest) {
			t.Errorf("bytes of %s are lost", name)
		}
	}
}
