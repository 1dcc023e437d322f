package streams

import (
	"fmt"
	"strconv"
	"time"

	"millrace/internal/control/live"
)

// vitals is how an encoder does, as the page of its live stream shows it.
type vitals struct {
	Status live.HealthStatus
	// Unanswered: the node that the encoder is connected to was asked, and does not respond.
	Unanswered bool
	Last       *live.Encoder // the one that has gone; nil: one is connected, or there was none
	Figures    []figure
	Charts     []chart
	Minutes    []minute // newest first
}

// The states that the page tells apart.
func (v vitals) Silent() bool    { return v.Status == live.HealthSilent }
func (v vitals) Elsewhere() bool { return v.Status == live.HealthElsewhere }
func (v vitals) Begins() bool    { return v.Status == live.HealthLive && len(v.Figures) == 0 }

// figure is a value of the newest sample.
type figure struct{ Name, Value, More string }

// minute is what came in one, for those who read a table rather than a chart.
type minute struct {
	At                 time.Time // its beginning
	Bitrate, Rate, GOP string
}

// vitalsOf puts what was measured into what is shown.
func vitalsOf(m live.Health) vitals {
	h := vitals{Status: m.Status, Unanswered: m.Unanswered}
	if m.Encoder != nil && !m.Encoder.Until.IsZero() {
		h.Last = m.Encoder
	}
	if len(m.Samples) == 0 {
		return h
	}
	h.Figures = figures(m.Samples[len(m.Samples)-1], m.Encoder)
	for _, of := range []struct {
		name  string
		value func(live.Sample) float64
		text  func(float64) string
	}{
		{"Bitrate", bitrate, bits},
		{"Frame rate", func(s live.Sample) float64 { return s.Video.Rate }, frames},
		{"Between key frames", func(s live.Sample) float64 { return s.GOP.Seconds() }, sec},
	} {
		var points []point
		for _, s := range m.Samples {
			points = append(points, point{s.At, of.value(s)})
		}
		if _, high := span(points); high > 0 { // without a picture there are no frames to count
			h.Charts = append(h.Charts, draw(of.name, points, of.text))
		}
	}
	h.Minutes = minutes(m.Samples)
	return h
}

func bitrate(s live.Sample) float64 { return s.Video.Bitrate + s.Audio.Bitrate }

// figures are those of a sample, and what went wrong since the encoder connected.
func figures(s live.Sample, e *live.Encoder) []figure {
	rate := figure{Name: "Bitrate", Value: bits(bitrate(s))}
	if s.Video.Bitrate > 0 && s.Audio.Bitrate > 0 {
		rate.More = "picture " + bits(s.Video.Bitrate) + ", sound " + bits(s.Audio.Bitrate)
	}
	all := []figure{rate}
	if s.Video.Rate > 0 {
		f := figure{Name: "Frame rate", Value: frames(s.Video.Rate)}
		if s.VariableFrameRate {
			f.More = "it varies"
		}
		all = append(all, f)
	}
	if s.GOP > 0 {
		all = append(all, figure{Name: "Between key frames", Value: sec(s.GOP.Seconds()), More: "at most"})
	}
	all = append(all, figure{Name: "Pace", Value: fmt.Sprintf("%.2f", s.Pace), More: "seconds of media a second"})
	if s.RTT > 0 {
		all = append(all, figure{Name: "Round trip", Value: fmt.Sprintf("%d ms", s.RTT.Milliseconds())})
	}
	if e == nil {
		return all
	}
	if n := e.Counts.Packets; n > 0 {
		lost := e.Counts.PacketsDropped
		all = append(all, figure{
			Name: "Packets that never came", Value: strconv.FormatInt(lost, 10),
			More: "of " + strconv.FormatInt(n+lost, 10),
		})
	}
	if n := e.Counts.FramesDropped; n > 0 {
		all = append(all, figure{Name: "Frames left out", Value: strconv.FormatInt(n, 10), More: "since it connected"})
	}
	return all
}

// minutes gathers samples by the minute of the clock that they end in: means of the rates, the largest distance of key
// frames.
func minutes(samples []live.Sample) []minute {
	var all []minute
	for end := len(samples); end > 0; {
		at := samples[end-1].At.Truncate(time.Minute)
		var span, sent, shown float64
		var gop time.Duration
		for ; end > 0 && samples[end-1].At.Truncate(time.Minute).Equal(at); end-- {
			s := samples[end-1]
			span += s.Span.Seconds()
			sent += bitrate(s) * s.Span.Seconds()
			shown += s.Video.Rate * s.Span.Seconds()
			gop = max(gop, s.GOP)
		}
		if span > 0 {
			all = append(all, minute{at, bits(sent / span), some(shown/span, frames), some(gop.Seconds(), sec)})
		}
	}
	return all
}

// some writes a value that there need not be.
func some(v float64, text func(float64) string) string {
	if v == 0 {
		return "–"
	}
	return text(v)
}

// bits, frames and sec write a value with its unit.
func bits(v float64) string {
	if v < 1e6 {
		return fmt.Sprintf("%.0f kbit/s", v/1e3)
	}
	return fmt.Sprintf("%.1f Mbit/s", v/1e6)
}

func frames(v float64) string { return fmt.Sprintf("%.1f fps", v) }

func sec(v float64) string { return fmt.Sprintf("%.1f s", v) }

// Advice is what to do about a warning of a kind whose message does not say it; empty: the message does.
func Advice(kind string) string {
	switch kind {
	case "bitrate_collapsed":
		return "Set a lower bitrate in the encoder, or give it a better connection: a cable in place of Wi-Fi. " +
			"If the picture is meant to be black or still, ignore this."
	case "audio_missing":
		return "Look in the encoder whether a source of sound is chosen and not muted. " +
			"If the stream is meant to be silent, ignore this."
	case "video_missing":
		return "Check whether the encoder's camera or scene still works; if it does, restart its output."
	case "frame_rate_low":
		return "Close other programs on the encoder's machine, or set it to a faster preset, a smaller picture or a " +
			"lower frame rate."
	case "encoder_too_slow":
		return "Lower the bitrate or resolution in the encoder, and check how busy its machine is."
	case "timestamps_broken":
		return "Restart the encoder. If that doesn't help, update it or use another protocol."
	}
	return ""
}
