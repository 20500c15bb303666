package broker

import (
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/api"
	"tidemark/internal/logdir"
	"tidemark/internal/server"
)

// brokerMetrics are what the admin port shows, in the text format of Prometheus. It implements server.Metrics; what
// is counted per request is looked up once.
type brokerMetrics struct {
	set *metrics.Set

	requests       [maxKey]*metrics.Counter
	latency        [maxKey]*metrics.PrometheusHistogram
	requestBytes   *metrics.Counter
	responseBytes  *metrics.Counter
	panics         *metrics.Counter
	lookupSegments *metrics.PrometheusHistogram
	lookupBytes    *metrics.PrometheusHistogram
	lookupSeconds  *metrics.PrometheusHistogram
	uncleanable    func(io.Writer) // prints the partitions that are not compacted any more
}

// maxKey is above the largest API key that is counted on its own.
const maxKey = 128

func newMetrics(b *Broker) *brokerMetrics {
	set := metrics.NewSet()
	histogram := func(name string, start, factor float64, buckets int) *metrics.PrometheusHistogram {
		return set.NewPrometheusHistogramExt(name, metrics.ExponentialBuckets(start, factor, buckets))
	}
	m := &brokerMetrics{set: set,
		requestBytes:  set.NewCounter("tidemark_request_bytes_total"),
		responseBytes: set.NewCounter("tidemark_response_bytes_total"),
		panics:        set.NewCounter("tidemark_handler_panics_total"),
		// Of look-ups by time: segments considered, bytes of log scanned, and how long they took.
		lookupSegments: histogram("tidemark_lookup_segments", 1, 2, 12),
		lookupBytes:    histogram("tidemark_lookup_scanned_bytes", 64, 4, 12),
		lookupSeconds:  histogram("tidemark_lookup_seconds", 1e-5, 4, 10),
	}
	for key := range m.requests {
		if kmsg.RequestForKey(int16(key)) == nil {
			continue
		}
		label := fmt.Sprintf("{api=%q}", kmsg.NameForKey(int16(key)))
		m.requests[key] = set.NewCounter("tidemark_requests_total" + label)
		m.latency[key] = histogram("tidemark_request_seconds"+label, 1e-4, 4, 10)
	}
	m.watch(b)
	return m
}

// watch registers what is read from the parts of the broker when the metrics are asked for.
func (m *brokerMetrics) watch(b *Broker) {
	for name, read := range map[string]func() int64{
		"tidemark_index_cache_hits_total":   func() int64 { return b.pages.Stats().Hits },
		"tidemark_index_cache_misses_total": func() int64 { return b.pages.Stats().Misses },
		"tidemark_index_cache_bytes":        func() int64 { return b.pages.Stats().SizeBytes },
		"tidemark_lookup_marked_total":      b.logs.Segment.Marked.Load,
		"tidemark_open_files":               func() int64 { return int64(b.files.Stats().Open) },
		"tidemark_file_opens_total":         func() int64 { return b.files.Stats().Opens },
		"tidemark_segments_rolled_total":    b.logs.Rolls.Load,
		"tidemark_segments_deleted_total":   b.logs.SegmentsDeleted.Load,
		"tidemark_segments_compacted_total": b.logs.SegmentsCompacted.Load,
		"tidemark_segments_recovered_total": b.logs.SegmentsRecovered.Load,
		"tidemark_recovery_cut_bytes_total": b.logs.CutBytes.Load,
		"tidemark_recovery_bytes":           b.logs.RecoveryBytes.Load,
		"tidemark_recovery_bytes_read":      b.logs.RecoveryBytesRead.Load,
		"tidemark_flushes_total":            b.logs.Flushes.Load,
		"tidemark_partitions":               b.partitionCount,
		"tidemark_partitions_found":         func() int64 { _, total := b.loadProgress(); return total },
		"tidemark_partitions_loaded":        func() int64 { done, _ := b.loadProgress(); return done },
		"tidemark_parked_wakeups_total":     b.wakeUps,
		"tidemark_start_milliseconds":       func() int64 { return time.Duration(b.startTook.Load()).Milliseconds() },
	} {
		m.set.NewGauge(name, func() float64 { return float64(read()) })
	}
	m.watchProof(b)
	m.watchCleaner(b)
}

// watchProof registers what is known of the soundness of what is stored.
func (m *brokerMetrics) watchProof(b *Broker) {
	for name, read := range map[string]func() int64{
		"tidemark_segments_proven":           func() int64 { n, _ := b.provenSegments(); return n },
		"tidemark_segments_unproven":         func() int64 { _, n := b.provenSegments(); return n },
		"tidemark_scrub_running":             func() int64 { return b.scrubState().running() },
		"tidemark_scrub_bytes_total":         func() int64 { return b.scrubState().BytesRead },
		"tidemark_seals_total":               b.logs.Seals.Load,
		"tidemark_seals_void_total":          b.logs.Segment.SealsVoid.Load,
		"tidemark_indexes_rebuilt_total":     b.logs.Segment.IndexesRebuilt.Load,
		"tidemark_txn_indexes_rebuilt_total": b.logs.Segment.TxnIndexesRebuilt.Load,
		"tidemark_damages":                   b.logs.Segment.Damages.Load,
		"tidemark_damaged_bytes":             b.logs.Segment.DamagedBytes.Load,
		"tidemark_disk_full_refusals_total":  b.logs.DiskFull.Load,
	} {
		m.set.NewGauge(name, func() float64 { return float64(read()) })
	}
}

func (b *Broker) provenSegments() (proven, unproven int64) {
	if b.dirs == nil {
		return 0, 0
	}
	return b.dirs.Proven()
}

// scrubbed is a logdir.ScrubState with its flag as a number.
type scrubbed struct{ logdir.ScrubState }

func (s scrubbed) running() int64 {
	if s.Running {
		return 1
	}
	return 0
}

func (b *Broker) scrubState() scrubbed {
	if b.dirs == nil {
		return scrubbed{}
	}
	return scrubbed{b.dirs.Scrubbed()}
}

// write prints all metrics, those of the process included.
func (m *brokerMetrics) write(w io.Writer) {
	m.set.WritePrometheus(w)
	m.uncleanable(w)
	metrics.WriteProcessMetrics(w)
}

// api is what the handlers count.
func (m *brokerMetrics) api() api.Metrics {
	return api.Metrics{
		Error: func(key, code int16) {
			name := kerr.UnknownServerError.Message
			if e := kerr.TypedErrorForCode(code); e != nil {
				name = e.Message
			}
			m.count("tidemark_errors_total{api=%q,error=%q}", kmsg.NameForKey(key), name)
		},
		Lookup: func(segments int, bytes int64, took time.Duration) {
			m.lookupSegments.Update(float64(segments))
			m.lookupBytes.Update(float64(bytes))
			m.lookupSeconds.Update(took.Seconds())
		},
	}
}

// count adds to a counter whose labels are few; it is not for what happens with every request.
func (m *brokerMetrics) count(name string, labels ...any) {
	m.set.GetOrCreateCounter(fmt.Sprintf(name, labels...)).Inc()
}

func (m *brokerMetrics) ConnectionOpened(listener string) {
	m.set.GetOrCreateGauge(fmt.Sprintf("tidemark_connections{listener=%q}", listener), nil).Inc()
}

func (m *brokerMetrics) ConnectionClosed(listener string, why server.CloseReason) {
	m.set.GetOrCreateGauge(fmt.Sprintf("tidemark_connections{listener=%q}", listener), nil).Dec()
	m.count("tidemark_connections_closed_total{listener=%q,reason=%q}", listener, why.String())
}

func (m *brokerMetrics) ConnectionRefused(listener string) {
	m.count("tidemark_connections_refused_total{listener=%q}", listener)
}

// ConnectionDelayed counts the time for which connections were held up.
func (m *brokerMetrics) ConnectionDelayed(listener string, wait time.Duration) {
	name := fmt.Sprintf("tidemark_connection_delay_seconds_total{listener=%q}", listener)
	m.set.GetOrCreateFloatCounter(name).Add(wait.Seconds())
}

func (m *brokerMetrics) RequestReceived(key, _ int16, frameBytes int) {
	m.requestBytes.Add(frameBytes)
	if c := m.requests[key&(maxKey-1)]; c != nil {
		c.Inc()
	}
}

func (m *brokerMetrics) ResponseSent(key, _ int16, frameBytes int64, took time.Duration) {
	m.responseBytes.Add(int(frameBytes))
	if h := m.latency[key&(maxKey-1)]; h != nil {
		h.Update(took.Seconds())
	}
}

func (m *brokerMetrics) HandlerPanic(int16) { m.panics.Inc() }

func (b *Broker) partitionCount() int64 {
	if b.replicas == nil {
		return 0
	}
	return int64(len(b.replicas.Partitions()))
}

// loadProgress is how many partitions have been loaded, of how many found.
func (b *Broker) loadProgress() (done, total int64) {
	if b.dirs == nil {
		return 0, 0
	}
	return b.dirs.Progress()
}

func (b *Broker) wakeUps() int64 {
	if b.replicas == nil {
		return 0
	}
	return b.replicas.WakeUps()
}
