package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tidemark/internal/api"
	"tidemark/internal/server"
)

// metrics are what the admin port shows. It implements server.Metrics; what is counted per request is kept in
// children that are looked up once.
type metrics struct {
	registry *prometheus.Registry

	connections     *prometheus.GaugeVec
	connectionsDone *prometheus.CounterVec
	refused         *prometheus.CounterVec
	panics          prometheus.Counter
	errors          *prometheus.CounterVec
	requests        [maxKey]prometheus.Counter
	requestBytes    prometheus.Counter
	responseBytes   prometheus.Counter
	latency         [maxKey]prometheus.Observer
	lookupSegments  prometheus.Histogram
	lookupBytes     prometheus.Histogram
	lookupSeconds   prometheus.Histogram
}

// maxKey is above the largest API key that is counted on its own.
const maxKey = 128

func newMetrics(b *Broker) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.connections = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tidemark_connections",
		Help: "Open client connections."}, []string{"listener"})
	m.connectionsDone = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_connections_closed_total",
		Help: "Closed client connections, by why."}, []string{"listener", "reason"})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_connections_refused_total",
		Help: "Connections above the limit of their address."}, []string{"listener"})
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_handler_panics_total",
		Help: "Broken invariants met while answering; each closed one connection."})
	m.errors = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_errors_total",
		Help: "Error codes in answers."}, []string{"api", "error"})
	m.requestBytes = prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_request_bytes_total",
		Help: "Bytes of request frames."})
	m.responseBytes = prometheus.NewCounter(prometheus.CounterOpts{Name: "tidemark_response_bytes_total",
		Help: "Bytes of response frames."})
	m.newLookups()
	m.registry.MustRegister(m.connections, m.connectionsDone, m.refused, m.panics, m.errors, m.requestBytes,
		m.responseBytes, m.lookupSegments, m.lookupBytes, m.lookupSeconds,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.newRequests()
	m.watch(b)
	return m
}

func (m *metrics) newLookups() {
	m.lookupSegments = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tidemark_lookup_segments",
		Help: "Segments considered by a look-up by time.", Buckets: prometheus.ExponentialBuckets(1, 2, 12)})
	m.lookupBytes = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tidemark_lookup_scanned_bytes",
		Help: "Bytes of log scanned by a look-up by time.", Buckets: prometheus.ExponentialBuckets(64, 4, 12)})
	m.lookupSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tidemark_lookup_seconds",
		Help: "Time of a look-up by time.", Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10)})
}

func (m *metrics) newRequests() {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tidemark_requests_total",
		Help: "Requests, by API."}, []string{"api"})
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tidemark_request_seconds",
		Help:    "From a request's arrival until its response was written, by API.",
		Buckets: prometheus.ExponentialBuckets(1e-4, 4, 10)}, []string{"api"})
	for key := range m.requests {
		if kmsg.RequestForKey(int16(key)) != nil {
			name := kmsg.NameForKey(int16(key))
			m.requests[key] = requests.WithLabelValues(name)
			m.latency[key] = latency.WithLabelValues(name)
		}
	}
	m.registry.MustRegister(requests, latency)
}

// watch registers what is read from the parts of the broker when the metrics are asked for.
func (m *metrics) watch(b *Broker) {
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	counter := func(name, help string, f func() int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
			func() float64 { return float64(f()) }))
	}
	counter("tidemark_index_cache_hits_total", "Index pages found in memory.",
		func() int64 { return b.pages.Stats().Hits })
	counter("tidemark_index_cache_misses_total", "Index pages read from their file.",
		func() int64 { return b.pages.Stats().Misses })
	gauge("tidemark_index_cache_bytes", "Memory of cached index pages.",
		func() float64 { return float64(b.pages.Stats().SizeBytes) })
	gauge("tidemark_open_files", "Open log and index files.",
		func() float64 { return float64(b.files.Stats().Open) })
	counter("tidemark_file_opens_total", "Log and index files opened.", func() int64 { return b.files.Stats().Opens })
	counter("tidemark_segments_rolled_total", "Segments rolled.", b.logs.Rolls.Load)
	counter("tidemark_segments_deleted_total", "Segments deleted by retention.", b.logs.SegmentsDeleted.Load)
	counter("tidemark_segments_recovered_total", "Segments scanned after an unclean stop.",
		b.logs.SegmentsRecovered.Load)
	counter("tidemark_recovery_cut_bytes_total", "Bytes cut by recovery and kept aside.", b.logs.CutBytes.Load)
	counter("tidemark_flushes_total", "Flushes of logs.", b.logs.Flushes.Load)
	gauge("tidemark_start_seconds", "Time from start until ready.", b.startSeconds)
	gauge("tidemark_partitions", "Partitions held.", func() float64 { return float64(b.partitionCount()) })
	gauge("tidemark_partitions_loaded", "Partitions loaded at start so far.", b.loadedPartitions)
	counter("tidemark_parked_wakeups_total", "How often a waiting fetch or produce was looked at again.", b.wakeUps)
}

// api is what the handlers count.
func (m *metrics) api() api.Metrics {
	return api.Metrics{
		Error: func(key, code int16) {
			name := "UNKNOWN_SERVER_ERROR"
			if e := kerr.TypedErrorForCode(code); e != nil {
				name = e.Message
			}
			m.errors.WithLabelValues(kmsg.NameForKey(key), name).Inc()
		},
		Lookup: func(segments int, bytes int64, took time.Duration) {
			m.lookupSegments.Observe(float64(segments))
			m.lookupBytes.Observe(float64(bytes))
			m.lookupSeconds.Observe(took.Seconds())
		},
	}
}

func (m *metrics) ConnectionOpened(listener string) { m.connections.WithLabelValues(listener).Inc() }

func (m *metrics) ConnectionClosed(listener string, why server.CloseReason) {
	m.connections.WithLabelValues(listener).Dec()
	m.connectionsDone.WithLabelValues(listener, why.String()).Inc()
}

func (m *metrics) ConnectionRefused(listener string) { m.refused.WithLabelValues(listener).Inc() }

func (m *metrics) RequestReceived(key, _ int16, frameBytes int) {
	m.requestBytes.Add(float64(frameBytes))
	if c := m.requests[key&(maxKey-1)]; c != nil {
		c.Inc()
	}
}

func (m *metrics) ResponseSent(key, _ int16, frameBytes int64, took time.Duration) {
	m.responseBytes.Add(float64(frameBytes))
	if h := m.latency[key&(maxKey-1)]; h != nil {
		h.Observe(took.Seconds())
	}
}

func (m *metrics) HandlerPanic(int16) { m.panics.Inc() }

func (b *Broker) startSeconds() float64 { return time.Duration(b.startTook.Load()).Seconds() }

func (b *Broker) partitionCount() int {
	if b.replicas == nil {
		return 0
	}
	return len(b.replicas.Partitions())
}

// loadProgress is how many partitions have been loaded, of how many found.
func (b *Broker) loadProgress() (done, total int64) {
	if b.dirs == nil {
		return 0, 0
	}
	return b.dirs.Progress()
}

func (b *Broker) loadedPartitions() float64 {
	done, _ := b.loadProgress()
	return float64(done)
}

func (b *Broker) wakeUps() int64 {
	if b.replicas == nil {
		return 0
	}
	return b.replicas.WakeUps()
}
