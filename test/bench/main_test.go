//go:build oracle

// Package bench measures Kafka and Tidemark side by side, in turn, in one run. "make bench-kafka" writes doc/bench.md;
// the other benchmarks are each for one thing:
//
//	go test -tags oracle -run '^$' -bench Rebalance -benchtime 5x ./test/bench
package bench

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"tidemark/test/proc"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *bareFlag != "" {
		fmt.Fprintln(os.Stderr, serveBare(*bareFlag))
		os.Exit(1)
	}
	code := m.Run()
	proc.RemoveTidemark()
	os.Exit(code)
}
