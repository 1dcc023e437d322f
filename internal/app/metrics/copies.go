package metrics

import "github.com/prometheus/client_golang/prometheus"

// Copied is how much nodes copy of each other's live streams.
type Copied struct {
	Feeds, Current, Kept       int
	Bytes                      int64
	Sent, Taken, Dropped, Late int64
	Refused                    int64
	Lags                       map[float64]uint64 // how many took at most so many seconds
	LagCount                   uint64
	LagSum                     float64 // seconds
}

// Copies adds it.
func (m *Metrics) Copies(read func() Copied) { m.registry.MustRegister(newCopyCollector(read)) }

type copyCollector struct {
	read                                     func() Copied
	feeds, current, kept, bytes              *prometheus.Desc
	sent, taken, dropped, late, refused, lag *prometheus.Desc
}

func newCopyCollector(read func() Copied) *copyCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_live_copy_"+name, help, nil, nil)
	}
	return &copyCollector{
		read:    read,
		feeds:   desc("streams", "Broadcasts of this node that others are to copy."),
		current: desc("streams_current", "Of these, those of which another node has all that was published."),
		kept:    desc("streams_kept", "Broadcasts of other nodes that are copied here."),
		bytes:   desc("bytes", "Memory of copies, of this node's broadcasts and of others'."),
		sent:    desc("sent_bytes_total", "What was sent to nodes that copy."),
		taken:   desc("received_bytes_total", "What was copied of other nodes."),
		dropped: desc("dropped_bytes_total", "What was left out of copies, since their memory is bounded."),
		late:    desc("late_total", "Parts and segments for which the other node was waited for in vain."),
		refused: desc("refused_total", "Times that a node had no place for a broadcast of this node."),
		lag:     desc("seconds", "How long the other node took to have what was published."),
	}
}

// Describe implements prometheus.Collector.
func (c *copyCollector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

// Collect implements prometheus.Collector.
func (c *copyCollector) Collect(to chan<- prometheus.Metric) {
	s := c.read()
	for _, v := range []struct {
		of    *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{c.feeds, prometheus.GaugeValue, float64(s.Feeds)},
		{c.current, prometheus.GaugeValue, float64(s.Current)},
		{c.kept, prometheus.GaugeValue, float64(s.Kept)},
		{c.bytes, prometheus.GaugeValue, float64(s.Bytes)},
		{c.sent, prometheus.CounterValue, float64(s.Sent)},
		{c.taken, prometheus.CounterValue, float64(s.Taken)},
		{c.dropped, prometheus.CounterValue, float64(s.Dropped)},
		{c.late, prometheus.CounterValue, float64(s.Late)},
		{c.refused, prometheus.CounterValue, float64(s.Refused)},
	} {
		to <- prometheus.MustNewConstMetric(v.of, v.kind, v.value)
	}
	to <- prometheus.MustNewConstHistogram(c.lag, s.LagCount, s.LagSum, s.Lags)
}
