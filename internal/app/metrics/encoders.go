package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/internal/control/live"
)

// encoderCollector shows the connected encoders' last samples and counts.
type encoderCollector struct {
	from Encoders

	broadcasts, panics, recovered, connected, silent, warning *prometheus.Desc
	rows                                                      []row
}

// row is one figure of an encoder.
type row struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	label string // of the track; "" where there is none
	value func(h live.Health, s live.Sample) float64
}

const streamLabel = "live_stream_id"

func newEncoderCollector(from Encoders) *encoderCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("millrace_"+name, help, labels, nil)
	}
	c := &encoderCollector{
		from:       from,
		broadcasts: desc("broadcasts", "Broadcasts that this node leads, those that wait for their encoder included."),
		panics:     desc("broadcast_panics_total", "Panics that have ended a broadcast, or something beside one."),
		recovered: desc("broadcasts_recovered_total", "Broadcasts that this node took up without their encoders: "+
			"its own after a restart, those of a node that had just ended, and those of one that was lost for longer.",
			"from"),
		connected: desc("encoders", "Connected encoders, by protocol.", "protocol"),
		warning: desc("ingest_warning", "1 while something is wrong with what an encoder sends.", streamLabel,
			"type"),
		silent: desc("ingest_silent", "1 while a connected encoder sends nothing.", streamLabel),
	}
	perTrack := func(name, help string, value func(f live.Flow) float64) {
		d := desc("ingest_"+name, help, streamLabel, "track")
		c.rows = append(c.rows,
			row{
				d, prometheus.GaugeValue, "video", func(_ live.Health, s live.Sample) float64 { return value(s.Video) },
			},
			row{
				d, prometheus.GaugeValue, "audio", func(_ live.Health, s live.Sample) float64 { return value(s.Audio) },
			})
	}
	gauge := func(name, help string, value func(s live.Sample) float64) {
		c.rows = append(c.rows, row{
			desc("ingest_"+name, help, streamLabel), prometheus.GaugeValue, "",
			func(_ live.Health, s live.Sample) float64 { return value(s) },
		})
	}
	counter := func(name, help string, value func(e *live.Encoder) int64) {
		c.rows = append(c.rows, row{
			desc("ingest_"+name+"_total", help+" Since it connected.", streamLabel), prometheus.CounterValue, "",
			func(h live.Health, _ live.Sample) float64 {
				return float64(value(h.Encoder))
			},
		})
	}
	seconds := time.Duration.Seconds
	perTrack("bitrate", "Bit/s of media.", func(f live.Flow) float64 { return f.Bitrate })
	perTrack("frame_rate", "Frames a second.", func(f live.Flow) float64 { return f.Rate })
	perTrack("jitter_seconds", "How unevenly frames arrive.", func(f live.Flow) float64 { return seconds(f.Jitter) })
	perTrack("drift_seconds", "How far the encoder's clock has run ahead.", func(f live.Flow) float64 {
		return seconds(f.Drift)
	})
	gauge("keyframe_interval_seconds", "Largest distance of key frames.", func(s live.Sample) float64 {
		return seconds(s.GOP)
	})
	gauge("pace", "Seconds of media that come in a second.", func(s live.Sample) float64 { return s.Pace })
	gauge("round_trip_seconds", "Of the link, where the protocol knows it.", func(s live.Sample) float64 {
		return seconds(s.RTT)
	})
	counter("bytes", "Bytes of media.", func(e *live.Encoder) int64 { return e.Bytes })
	counter("frames_dropped", "Frames that were not recorded.", func(e *live.Encoder) int64 {
		return e.Counts.FramesDropped
	})
	counter("timestamps_repaired", "Timestamps that went backwards or made no sense.", func(e *live.Encoder) int64 {
		return e.Counts.TimestampsRepaired
	})
	counter("clock_jumps", "Jumps of the encoder's clock.", func(e *live.Encoder) int64 { return e.Counts.ClockJumps })
	counter("discontinuities", "Clock jumps and changes of parameters.", func(e *live.Encoder) int64 {
		return e.Counts.Discontinuities
	})
	counter("packets", "Packets of the link.", func(e *live.Encoder) int64 { return e.Counts.Packets })
	counter("packets_lost", "Packets found missing, whether they came later or not.", func(e *live.Encoder) int64 {
		return e.Counts.PacketsLost
	})
	counter("packets_retransmitted", "Packets sent again.", func(e *live.Encoder) int64 {
		return e.Counts.PacketsRetransmitted
	})
	counter("packets_dropped", "Packets that never came, or too late.", func(e *live.Encoder) int64 {
		return e.Counts.PacketsDropped
	})
	return c
}

// Describe implements prometheus.Collector.
func (e *encoderCollector) Describe(out chan<- *prometheus.Desc) {
	out <- e.broadcasts
	out <- e.panics
	out <- e.recovered
	out <- e.connected
	out <- e.warning
	out <- e.silent
	for i, r := range e.rows {
		if i == 0 || e.rows[i-1].desc != r.desc {
			out <- r.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (e *encoderCollector) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	send(e.broadcasts, prometheus.GaugeValue, float64(e.from.Broadcasts()))
	send(e.panics, prometheus.CounterValue, float64(e.from.Panics()))
	adopted := e.from.Adoptions()
	for from, n := range map[string]int64{"own": adopted.Own, "ended": adopted.Ended, "lost": adopted.Expired} {
		send(e.recovered, prometheus.CounterValue, float64(n), from)
	}
	protocols := map[string]int{}
	for _, h := range e.from.Encoders() {
		stream := string(h.Stream)
		protocols[h.Encoder.Protocol]++
		quiet := 0.0
		if h.Status == live.HealthSilent {
			quiet = 1
		}
		send(e.silent, prometheus.GaugeValue, quiet, stream)
		for _, t := range h.Trouble {
			send(e.warning, prometheus.GaugeValue, 1, stream, t.Type)
		}
		if len(h.Samples) == 0 {
			continue
		}
		for _, r := range e.rows {
			labels := []string{stream}
			if r.label != "" {
				labels = append(labels, r.label)
			}
			send(r.desc, r.kind, r.value(h, h.Samples[len(h.Samples)-1]), labels...)
		}
	}
	for protocol, n := range protocols {
		send(e.connected, prometheus.GaugeValue, float64(n), protocol)
	}
}
