package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tidemark/cmd/internal/cli"
)

// perfMetrics counts what a client does, under the names that Kafka's clients have for it. It implements hooks of the
// client.
type perfMetrics struct {
	kind, clientID string // kind: "producer" or "consumer"
	start          time.Time

	mu                                    sync.Mutex
	connected, created, closed            int64
	requests, responses                   int64
	sentBytes, receivedBytes              int64
	records, failures, batches, batchSize int64
	largestBatch, largestRequest          int64
	latency                               averaged
	perRequest                            averaged
}

// averaged is an average and a maximum; without values both are NaN.
type averaged struct{ sum, n, largest float64 }

func (a *averaged) add(v float64) {
	a.sum += v
	a.n++
	a.largest = max(a.largest, v)
}

func (a *averaged) average() float64 { return a.sum / a.n }

func (a *averaged) max() float64 {
	if a.n == 0 {
		return math.NaN()
	}
	return a.largest
}

func newPerfMetrics(kind, clientID string, now time.Time) *perfMetrics {
	return &perfMetrics{kind: kind, clientID: clientID, start: now}
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (m *perfMetrics) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		m.change(func() { m.connected++; m.created++ })
	}
}

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (m *perfMetrics) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) {
	m.change(func() { m.connected--; m.closed++ })
}

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (m *perfMetrics) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e kgo.BrokerE2E) {
	m.change(func() {
		m.requests++
		m.sentBytes += int64(e.BytesWritten)
		m.largestRequest = max(m.largestRequest, int64(e.BytesWritten))
		if e.Err() != nil {
			return
		}
		m.responses++
		m.receivedBytes += int64(e.BytesRead)
		m.latency.add(float64(e.DurationE2E().Microseconds()) / 1000)
	})
}

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (m *perfMetrics) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, b kgo.ProduceBatchMetrics) {
	m.change(func() {
		m.batches++
		m.records += int64(b.NumRecords)
		m.batchSize += int64(b.CompressedBytes)
		m.largestBatch = max(m.largestBatch, int64(b.CompressedBytes))
		m.perRequest.add(float64(b.NumRecords))
	})
}

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (m *perfMetrics) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, b kgo.FetchBatchMetrics) {
	m.change(func() {
		m.records += int64(b.NumRecords)
		m.batchSize += int64(b.CompressedBytes)
	})
}

// failed counts a record that could not be produced.
func (m *perfMetrics) failed() { m.change(func() { m.failures++ }) }

func (m *perfMetrics) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// values are the metrics by name.
func (m *perfMetrics) values() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	group := m.kind + "-metrics"
	all := map[string]string{
		"app-info:start-time-ms": strconv.FormatInt(m.start.UnixMilli(), 10), "app-info:version": cli.Version,
	}
	set := func(group, name string, v float64) { all[group+":"+name] = decimals(v, 3) }
	set(group, "connection-count", float64(m.connected))
	set(group, "connection-creation-total", float64(m.created))
	set(group, "connection-close-total", float64(m.closed))
	set(group, "request-total", float64(m.requests))
	set(group, "response-total", float64(m.responses))
	set(group, "outgoing-byte-total", float64(m.sentBytes))
	set(group, "incoming-byte-total", float64(m.receivedBytes))
	set(group, "request-size-avg", float64(m.sentBytes)/float64(m.requests))
	set(group, "request-size-max", float64(m.largestRequest))
	if m.kind == "consumer" {
		set("consumer-fetch-manager-metrics", "records-consumed-total", float64(m.records))
		set("consumer-fetch-manager-metrics", "bytes-consumed-total", float64(m.batchSize))
		return all
	}
	set(group, "request-latency-avg", m.latency.average())
	set(group, "request-latency-max", m.latency.max())
	set(group, "batch-size-avg", float64(m.batchSize)/float64(m.batches))
	set(group, "batch-size-max", float64(m.largestBatch))
	set(group, "records-per-request-avg", m.perRequest.average())
	set(group, "record-send-total", float64(m.records))
	set(group, "record-error-total", float64(m.failures))
	return all
}

// print prints the metrics as Kafka's tools do.
func (m *perfMetrics) print(out io.Writer) {
	values := m.values()
	lines := map[string]string{}
	width := 0
	for name, value := range values {
		name += ":{client-id=" + m.clientID + "}"
		lines[name], width = value, max(width, len(name))
	}
	fmt.Fprintf(out, "\n%-*s   %s\n", width, "Metric Name", "Value")
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(out, "%-*s : %s\n", width, name, lines[name])
	}
}
