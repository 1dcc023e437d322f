package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/internal/control/job"
)

// Ordered counts what this node has others make, by outcome; nil: nobody wants to know.
func (m *Metrics) Ordered() func(outcome string) {
	if m == nil {
		return nil
	}
	orders := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millrace_orders_total",
		Help: "Segments of smaller renditions, and images, that nodes with the role worker were asked for, by outcome.",
	}, []string{"outcome"})
	m.registry.MustRegister(orders)
	return func(outcome string) { orders.WithLabelValues(outcome).Inc() }
}

// Node adds what an autoscaler needs: the roles of this node, and how busy its machine is.
func (m *Metrics) Node(roles []string, load func() float64) {
	has := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "millrace_node_role", Help: "1 for each role that this node has.",
	}, []string{"role"})
	for _, role := range roles {
		has.WithLabelValues(role).Set(1)
	}
	m.registry.MustRegister(has, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_node_load", Help: "Load of the machine over the last minute, by processor: 1 is all of it.",
	}, load))
}

// Workers adds how many nodes this one can ask that has not the role worker.
func (m *Metrics) Workers(alive func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_workers", Help: "Nodes with the role worker that this node, which has not, can ask.",
	}, func() float64 { return float64(alive()) }))
}

// Encoding adds how much of what may be encoded at once is: of what viewers wait for, and of live streams.
func (m *Metrics) Encoding(busy func() map[string]float64) {
	m.registry.MustRegister(&encodingCollector{busy, prometheus.NewDesc("millrace_encoding_busy",
		"Share of the places for encoders that is taken, from 0 to 1, by what is encoded.", []string{"what"}, nil)})
}

type encodingCollector struct {
	busy func() map[string]float64
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (e *encodingCollector) Describe(out chan<- *prometheus.Desc) { out <- e.desc }

// Collect implements prometheus.Collector.
func (e *encodingCollector) Collect(out chan<- prometheus.Metric) {
	for what, share := range e.busy() {
		out <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, share, what)
	}
}

// Queues adds the queues of jobs: what waits on all nodes together, which is asked of the database, and the slots that
// this node has.
func (m *Metrics) Queues(ask func(ctx context.Context) ([]job.Waiting, error), slots map[job.Queue]int) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_"+name, help, []string{"queue"}, nil)
	}
	m.registry.MustRegister(&queueCollector{
		ask: ask, slots: slots, waiting: desc("queue_waiting", "Jobs of all nodes that could run now, by queue."),
		age: desc("queue_oldest_seconds", "How long the first of them has waited."),
		own: desc("queue_slots", "How many jobs of a queue this node works on at a time."),
	})
}

// queueCollector asks the database no more often than once in queuesFresh.
type queueCollector struct {
	ask               func(ctx context.Context) ([]job.Waiting, error)
	slots             map[job.Queue]int
	waiting, age, own *prometheus.Desc

	mu    sync.Mutex
	at    time.Time
	known []job.Waiting // nil: the database does not respond
}

const queuesFresh, queuesTime = 5 * time.Second, 2 * time.Second

// Describe implements prometheus.Collector.
func (q *queueCollector) Describe(out chan<- *prometheus.Desc) {
	out <- q.waiting
	out <- q.age
	out <- q.own
}

// Collect implements prometheus.Collector.
func (q *queueCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, queue job.Queue) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, string(queue))
	}
	for queue, n := range q.slots {
		gauge(q.own, float64(n), queue)
	}
	found := map[job.Queue]job.Waiting{}
	all, ok := q.look()
	if !ok {
		return // what is not known is not 0
	}
	for _, w := range all {
		found[w.Queue] = w
	}
	for _, c := range job.AllClasses() {
		gauge(q.waiting, float64(found[c.Queue].Jobs), c.Queue)
		gauge(q.age, found[c.Queue].Oldest.Seconds(), c.Queue)
	}
}

func (q *queueCollector) look() ([]job.Waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.at) < queuesFresh {
		return q.known, q.known != nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), queuesTime) // a scrape has no context
	defer cancel()
	all, err := q.ask(ctx)
	if q.at, q.known = time.Now(), nil; err == nil {
		q.known = append([]job.Waiting{}, all...)
	}
	return q.known, err == nil
}
