package api

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/protocol"
)

func partitionRange(n int32) []int32 {
	var out []int32
	for p := range n {
		out = append(out, p)
	}
	return out
}

// prepared is an encoded request; run hands it in, and discards the answer.
type prepared struct {
	w      *world
	header protocol.RequestHeader
	frame  []byte
	body   []byte
}

func (w *world) prepare(req kmsg.Request) *prepared {
	frame := req.AppendTo(nil)
	return &prepared{w: w, header: protocol.RequestHeader{Key: req.Key(), Version: req.GetVersion()}, frame: frame,
		body: make([]byte, len(frame))}
}

func (p *prepared) run() {
	copy(p.body, p.frame) // a handler writes into it
	answered := false
	p.w.Handle(context.Background(), &protocol.Request{Header: p.header, Body: p.body, Conn: p.w.conn},
		func(r protocol.Response) {
			answered = true
			if r.Release != nil {
				r.Release()
			}
		})
	if !answered {
		p.w.t.Fatal("no answer")
	}
}

// perPartition is how many allocations more a request makes for each partition more.
func perPartition(t *testing.T, ask func(w *world, partitions []int32) *prepared) float64 {
	t.Helper()
	w := newWorld(t)
	w.topic("a", 100, self)
	ask(w, partitionRange(100)).run()
	few := testing.AllocsPerRun(20, ask(w, partitionRange(10)).run)
	many := testing.AllocsPerRun(20, ask(w, partitionRange(100)).run)
	t.Logf("%.0f allocations for 10 partitions, %.0f for 100", few, many)
	return (many - few) / 90
}

func TestAllocationsPerPartition(t *testing.T) {
	for _, c := range []struct {
		name string
		most float64
		ask  func(w *world, partitions []int32) *prepared
	}{
		{"fetch of nothing new", 0.5, func(w *world, partitions []int32) *prepared {
			return w.prepare(fetchRequest("a", -1, 1, partitions...))
		}},
		{"produce", 4, func(w *world, partitions []int32) *prepared {
			return w.prepare(produceRequest(t, "a", acksAll, partitions...))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seed := func(w *world) *prepared {
				return w.prepare(produceRequest(t, "a", acksAll, partitionRange(100)...))
			}
			first := true
			got := perPartition(t, func(w *world, partitions []int32) *prepared {
				if first {
					seed(w).run() // the end of the logs is 1
					first = false
				}
				return c.ask(w, partitions)
			})
			if got > c.most {
				t.Errorf("%.2f allocations for each partition, at most %.2f", got, c.most)
			}
		})
	}
}

func BenchmarkProduce(b *testing.B) {
	w := newWorld(b)
	w.topic("a", 1, self)
	p := w.prepare(produceRequest(b, "a", acksAll, 0))
	b.ReportAllocs()
	for b.Loop() {
		p.run()
	}
}

func BenchmarkFetch(b *testing.B) {
	w := newWorld(b)
	w.topic("a", 1, self)
	w.prepare(produceRequest(b, "a", acksAll, 0)).run()
	p := w.prepare(fetchRequest("a", -1, 0, 0))
	b.ReportAllocs()
	for b.Loop() {
		p.run()
	}
}

func BenchmarkFetchNothingNew100(b *testing.B) {
	w := newWorld(b)
	w.topic("a", 100, self)
	w.prepare(produceRequest(b, "a", acksAll, partitionRange(100)...)).run()
	p := w.prepare(fetchRequest("a", -1, 1, partitionRange(100)...))
	b.ReportAllocs()
	for b.Loop() {
		p.run()
	}
}
