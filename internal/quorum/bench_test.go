package quorum

import (
	"fmt"
	"testing"

	"tidemark/internal/controller"
	"tidemark/vfs"
)

// BenchmarkFirstStart formats a directory of the disk, registers the broker and
// unfences it.
func BenchmarkFirstStart(b *testing.B) {
	for b.Loop() {
		o := testOptions(vfs.OS(), newClock())
		o.LogDir = b.TempDir()
		q := mustOpen(b, o)
		start(b, q, -1)
		mustClose(b, q)
	}
}

// BenchmarkReplay opens a log with 1000 topics of 5 partitions, in memory.
func BenchmarkReplay(b *testing.B) {
	fsys := vfs.NewMem()
	q := mustOpen(b, testOptions(fsys, newClock()))
	start(b, q, -1)
	for i := range 10 {
		cmd := controller.CreateTopics{}
		for k := range 100 {
			cmd.Topics = append(cmd.Topics, controller.NewTopic{
				Name: fmt.Sprintf("topic-%d-%d", i, k), Partitions: 5, ReplicationFactor: 1})
		}
		ask[controller.CreateTopicsResult](b, q, cmd)
	}
	mustClose(b, q)
	for b.Loop() {
		o := testOptions(fsys, newClock())
		o.Clean = true
		q := mustOpen(b, o)
		if q.Image().NumPartitions() != 5000 {
			b.Fatal(q.Image().NumPartitions())
		}
		if err := q.Log().Abandon(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSubmit creates a topic in a cluster of many, on the disk.
func BenchmarkSubmit(b *testing.B) {
	o := testOptions(vfs.OS(), newClock())
	o.LogDir = b.TempDir()
	q := mustOpen(b, o)
	start(b, q, -1)
	for i := 0; b.Loop(); i++ {
		create(b, q, fmt.Sprint("t", i), 1)
	}
	b.ReportMetric(float64(q.Image().NumTopics()), "topics")
	mustClose(b, q)
}
