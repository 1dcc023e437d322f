// Package metrics exports Prometheus metrics of the service: the health of encoders, viewers' requests, jobs and
// storage. It wraps what it counts, so that nothing else knows about it, and reads everything else when scraped. It
// must never expose a stream key, an address or any other text that a peer chose: labels are the IDs of live streams
// that are connected now, and words of its own. It starts no goroutine. Tracing wraps the same things for traces.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
)

// Encoders are those that are connected to this node; broadcast.Service fits.
type Encoders interface {
	Encoders() []live.Health
	Broadcasts() int
	Panics() int64
	Adoptions() broadcast.Adoptions
}

// Metrics are all of one node.
type Metrics struct {
	registry *prometheus.Registry
	delivery delivery
	jobs     *prometheus.CounterVec
	working  *prometheus.GaugeVec
	storage  *prometheus.HistogramVec
	links    *prometheus.CounterVec
	rungs    *prometheus.CounterVec
	retired  [2]prometheus.Counter // assets, bytes
}

// New makes them.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		delivery: newDelivery(),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_jobs_total",
			Help: "Ended attempts of jobs, by kind and outcome; refused: the input is at fault, failed: the service.",
		}, []string{"kind", "outcome"}),
		working: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "millrace_jobs_running", Help: "Jobs that this node works on.",
		}, []string{"kind"}),
		storage: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millrace_storage_seconds",
			Help:    "How long the media storage took, by operation and outcome; reading: to the first byte.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"operation", "outcome"}),
		links: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_simulcast_links_total",
			Help: "Changes of links to simulcast targets, by the state that they led to.",
		}, []string{"state"}),
		rungs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_rung_segments_total",
			Help: "Segments of smaller renditions encoded on request, kept or in vain since another node had stored " +
				"the same.",
		}, []string{"outcome"}),
	}
	m.retired = [2]prometheus.Counter{
		prometheus.NewCounter(prometheus.CounterOpts{
			Name: "millrace_retention_deleted_assets_total", Help: "Assets that retention policies have deleted.",
		}),
		prometheus.NewCounter(prometheus.CounterOpts{
			Name: "millrace_retention_deleted_bytes_total",
			Help: "Bytes of the media of these assets, as they were last measured.",
		}),
	}
	for _, outcome := range []string{kept, vain} {
		m.rungs.WithLabelValues(outcome)
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "millrace_build_info",
		Help: "1, with the version.",
	}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), build,
		m.delivery.requests, m.delivery.bytes, m.delivery.firstByte, m.jobs, m.working, m.storage, m.links, m.rungs,
		m.retired[0], m.retired[1],
	)
	return m
}

// What became of a segment that was encoded.
const kept, vain = "kept", "in_vain"

// Encoded counts a segment of a smaller rendition that was encoded on request.
func (m *Metrics) Encoded(stays bool) {
	outcome := vain
	if stays {
		outcome = kept
	}
	m.rungs.WithLabelValues(outcome).Inc()
}

// Retired counts an asset that a retention policy has deleted.
func (m *Metrics) Retired(bytes int64) {
	m.retired[0].Inc()
	m.retired[1].Add(float64(bytes))
}

// Watch adds the health of encoders.
func (m *Metrics) Watch(e Encoders) { m.registry.MustRegister(newEncoderCollector(e)) }

// Unsent adds how many bytes responses keep in memory until their clients take them.
func (m *Metrics) Unsent(bytes func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_unsent_bytes",
		Help: "Memory of responses that wait for their clients, as it is counted against the limits.",
	}, func() float64 { return float64(bytes()) }))
}

// NodeUp adds whether this node tells the others that it is there.
func (m *Metrics) NodeUp(renewed func() bool) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_node_up",
		Help: "1 when this node's row in the database was renewed the last time; 0: others take it for gone.",
	}, func() float64 {
		if renewed() {
			return 1
		}
		return 0
	}))
}

// DatabaseLog adds the size of the log beside an SQLite database.
func (m *Metrics) DatabaseLog(bytes func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_database_log_bytes",
		Help: "Size of the log beside the SQLite database: what is not yet in its file, and room that is used again.",
	}, func() float64 { return float64(bytes()) }))
}

// Handler serves /metrics; every other path is unknown.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
