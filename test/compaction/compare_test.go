//go:build oracle

package compaction

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tidemark/internal/segment"
	"tidemark/record"
)

// compareFolders compares the sealed segments that Kafka left with Tidemark's.
func compareFolders(t *testing.T, kafka, tidemark string) {
	t.Helper()
	active := activeBase(t, kafka)
	want, got := sealedFiles(t, kafka, active), sealedFiles(t, tidemark, active)
	if !slices.Equal(got, want) {
		t.Fatalf("files:\nkafka    %v\ntidemark %v", want, got)
	}
	for _, name := range want {
		if strings.HasSuffix(name, segment.LogSuffix) {
			base := strings.TrimSuffix(name, segment.LogSuffix)
			compareSegment(t, filepath.Join(kafka, base), filepath.Join(tidemark, base))
		}
	}
}

// sealedFiles lists the files of segments below an offset, and of producer snapshots up to it.
func sealedFiles(t *testing.T, folder string, active int64) []string {
	t.Helper()
	var out []string
	for _, name := range filesOf(t, folder) {
		var base int64
		if n, _ := fmt.Sscanf(name, "%020d.", &base); n != 1 || strings.HasSuffix(name, segment.DeletedSuffix) {
			continue
		}
		if base < active || base == active && strings.HasSuffix(name, ".snapshot") {
			out = append(out, name)
		}
	}
	return out
}

// compareSegment compares the files of one segment, given by their paths without suffix.
func compareSegment(t *testing.T, kafka, tidemark string) {
	t.Helper()
	same := compareLogs(t, kafka+segment.LogSuffix, tidemark+segment.LogSuffix)
	for _, suffix := range []string{segment.IndexSuffix, segment.TimeSuffix, segment.TxnSuffix} {
		want, werr := os.ReadFile(kafka + suffix)
		got, gerr := os.ReadFile(tidemark + suffix)
		if (werr == nil) != (gerr == nil) {
			t.Errorf("%s%s: kafka %v, tidemark %v", filepath.Base(kafka), suffix, werr, gerr)
		} else if (same || suffix == segment.TxnSuffix) && !bytes.Equal(got, want) {
			t.Errorf("%s%s differs:\nkafka    %x\ntidemark %x", filepath.Base(kafka), suffix, want, got)
		}
	}
	for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeSuffix} {
		want, werr := os.Stat(kafka + suffix)
		got, gerr := os.Stat(tidemark + suffix)
		if werr != nil || gerr != nil || want.ModTime().UnixMilli() != got.ModTime().UnixMilli() {
			t.Errorf("%s%s: times of last change %v %v", filepath.Base(kafka), suffix, want.ModTime(), got.ModTime())
		}
	}
}

// compareLogs compares two logs batch by batch: byte for byte, or by their headers and records where a compressor was
// at work. It reports whether all bytes are the same.
func compareLogs(t *testing.T, kafka, tidemark string) bool {
	t.Helper()
	want, got := batchesOf(t, kafka), batchesOf(t, tidemark)
	same := len(want) == len(got)
	for i := range min(len(want), len(got)) {
		if bytes.Equal(want[i], got[i]) {
			continue
		}
		same = false
		if want[i].Codec() == record.None || show(t, want[i]) != show(t, got[i]) {
			t.Errorf("%s: batch %d differs:\nkafka    %s\ntidemark %s", filepath.Base(kafka), i, show(t, want[i]),
				show(t, got[i]))
			return false
		}
	}
	if len(want) != len(got) {
		t.Errorf("%s: kafka has %d batches, tidemark %d", filepath.Base(kafka), len(want), len(got))
	}
	return same
}

// show prints a batch, without what depends on a compressor.
func show(t *testing.T, b record.Batch) string {
	t.Helper()
	h := b.Header()
	h.CRC, h.SizeBytes = 0, 0
	out := fmt.Sprintf("%+v", h)
	it, err := record.NewIterator(b, record.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		r := it.Record()
		out += fmt.Sprintf(" %d@%d %q=%q(%v) %q", r.Offset, r.Timestamp, r.Key, r.Value, r.Value == nil, r.Headers)
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}
