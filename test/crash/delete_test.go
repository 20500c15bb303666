package crash

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"tidemark/test/ledger"
	"tidemark/test/proc"
	"tidemark/vfs"
)

// Topics are deleted while they are written to, roll, and are flushed in the background: the directory stays online.
func TestDeleteUnderLoad(t *testing.T) {
	n := startNode(t, vfs.OS(), filepath.Join(t.TempDir(), "data"))
	n.CreateTopic(t, "keeper", 1)
	book := ledger.New()
	keeper := book.Partition("keeper", 0)
	lead(t, n, book)
	for i := range proc.Number(t, "TIDEMARK_DELETE_ROUNDS", 40) {
		topic := fmt.Sprintf("doomed-%d", i)
		n.CreateTopic(t, topic, 3, "internal.segment.bytes", "1500", "index.interval.bytes", "0")
		var writers sync.WaitGroup
		for p := range int32(3) {
			writers.Go(func() { writeUntilGone(n, topic, p) })
		}
		n.DeleteTopic(t, topic)
		writers.Wait()
		if got := add(t, n, keeper, topic); got.Err() != nil {
			t.Fatalf("after %s was deleted: %v", topic, got.Err())
		}
	}
	book.Check(t, n.Client)
	stopWell(t, n)
}

// writeUntilGone writes until the partition refuses.
func writeUntilGone(n node, topic string, partition int32) {
	for sequence := range int32(1000) {
		encoded, err := ledger.Batch{ProducerID: 77, Sequence: sequence, Records: []ledger.Record{
			{Timestamp: 1, Value: make([]byte, 400)}}}.Encode()
		if err != nil {
			return
		}
		if got, err := n.Produce(topic, partition, encoded); err != nil || got.Err() != nil {
			return
		}
	}
}
