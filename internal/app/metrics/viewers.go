package metrics

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
)

// left is the class of a request that was given up before its response: the viewer went away, as players do in the
// middle of a blocked playlist request when they are closed, or the service stopped. Nothing is wrong then.
const left = "left"

// The modes of playback. What was refused before it was known has none.
const modeLive, modeOnDemand, modeNone = "live", "on_demand", "none"

// delivery is what viewers were sent, by what they asked for.
type delivery struct {
	requests  *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	firstByte *prometheus.HistogramVec
}

func newDelivery() delivery {
	return delivery{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_playback_requests_total",
			Help: "Requests of viewers, by what was asked for and the class of the response; left: given up before it.",
		}, []string{"kind", "mode", "code"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_playback_sent_bytes_total",
			Help: "Bytes of bodies that viewers were sent, by what was asked for.",
		}, []string{"kind", "mode"}),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "millrace_playback_first_byte_seconds",
			Help: "Time from a request to the head of its successful response. Reloads, and parts that a preload hint " +
				"has announced, wait for media.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}, []string{"kind", "mode"}),
	}
}

// Viewers counts the requests that h serves.
func (m *Metrics) Viewers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &response{ResponseWriter: w, began: time.Now(), mode: modeNone}
		defer func() { m.delivery.count(rec, r) }()
		h.ServeHTTP(rec, r)
	})
}

// count adds a response that has ended.
func (d *delivery) count(w *response, r *http.Request) {
	if w.status == 0 {
		w.head(http.StatusOK)
	}
	code := strconv.Itoa(w.status/100) + "xx"
	if w.status == http.StatusServiceUnavailable && r.Context().Err() != nil {
		code = left
	}
	kind := kindOf(r.URL.Path, r.URL.RawQuery)
	d.requests.WithLabelValues(kind, w.mode, code).Inc()
	d.bytes.WithLabelValues(kind, w.mode).Add(float64(w.sent))
	if w.status < http.StatusMultipleChoices {
		d.firstByte.WithLabelValues(kind, w.mode).Observe(w.waited.Seconds())
	}
}

// kindOf says what a viewer asks for. A reload is the request for a media playlist that waits until it is longer.
func kindOf(path, query string) string {
	_, rest, deep := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name := rest[strings.LastIndexByte(rest, '/')+1:]
	stem, _, _ := strings.Cut(rest, ".")
	switch {
	case !deep:
		return "multivariant"
	case strings.HasSuffix(name, ".m3u8") && strings.Contains(query, "_HLS_msn="):
		return "reload"
	case strings.HasSuffix(name, ".m3u8"):
		return "playlist"
	case strings.HasPrefix(rest, "text/"):
		return "text"
	case stem == "thumbnail" || stem == "animated" || stem == "storyboard":
		return "image"
	}
	r, ok := hls.ParseResource(name)
	switch {
	case !ok:
		return "other"
	case r.Init >= 0:
		return "init"
	case r.Part >= 0:
		return "part"
	}
	return "segment"
}

// response remembers what was sent. It implements playback.Observer.
type response struct {
	http.ResponseWriter

	began  time.Time
	waited time.Duration // until the head
	mode   string
	status int
	sent   int64
}

// head notes the head of the response.
func (r *response) head(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status, r.waited = status, time.Since(r.began)
	}
}

// Playing implements playback.Observer.
func (r *response) Playing(live bool) {
	r.mode = modeOnDemand
	if live {
		r.mode = modeLive
	}
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	r.head(status)
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *response) Write(b []byte) (int, error) {
	r.head(http.StatusOK)
	n, err := r.ResponseWriter.Write(b)
	r.sent += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom: a file still goes to the socket inside the kernel.
func (r *response) ReadFrom(src io.Reader) (int64, error) {
	r.head(http.StatusOK)
	n, err := io.Copy(r.ResponseWriter, src)
	r.sent += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Watching adds how many viewers there are now.
func (m *Metrics) Watching(viewers func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_viewers",
		Help: "Viewers that this node has sent media a short while ago; one who watches two things counts twice.",
	}, func() float64 { return float64(viewers()) }))
}

// Cache adds the lookups of a cache of media.
func (m *Metrics) Cache(name string, l *metering.Lookups) {
	for result, count := range map[string]func() int64{"hit": l.Hits, "miss": l.Misses} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "millrace_cache_lookups_total", Help: "Lookups in caches of media, by result.",
			ConstLabels: prometheus.Labels{"cache": name, "result": result},
		}, func() float64 { return float64(count()) }))
	}
}
