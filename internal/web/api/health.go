package api

import (
	"context"
	"math"
	"net/http"
	"time"

	"millrace/internal/control/live"
)

// Health measures encoders.
type Health interface {
	// Health tells how the encoder of a live stream does; s is the stream as it is stored.
	Health(ctx context.Context, s live.Stream) live.Health
}

// StreamHealth is how the encoder of a live stream does.
type StreamHealth struct {
	Status   string          `json:"status" enum:"live,silent,away,idle,elsewhere" doc:"live: an encoder sends. silent: one is connected and sends nothing. away: the broadcast waits for one. idle: there is no broadcast. elsewhere: one is connected to another node, which alone knows more."`
	Encoder  *HealthEncoder  `json:"encoder,omitempty" doc:"The connected encoder, or the last one if it has a disconnected_at. Absent if there was none since the service started."`
	Warnings []HealthWarning `json:"warnings" doc:"Current problems."`
	Samples  []HealthSample  `json:"samples" doc:"One sample every 5 seconds of the last 10 minutes of the connected encoder, oldest first. Empty while none is connected."`
}

// HealthEncoder is one connection of an encoder.
type HealthEncoder struct {
	Protocol         string       `json:"protocol" doc:"rtmp, rtmps, srt or whip."`
	RemoteAddress    string       `json:"remote_address" example:"192.0.2.1:52013"`
	Name             string       `json:"name,omitempty" doc:"The name the encoder reports."`
	ConnectedAt      string       `json:"connected_at" doc:"Seconds since the Unix epoch, as a string."`
	DisconnectedAt   string       `json:"disconnected_at,omitempty" doc:"Absent while it is connected."`
	DisconnectReason string       `json:"disconnect_reason,omitempty"`
	VideoFrames      int64        `json:"video_frames"`
	AudioFrames      int64        `json:"audio_frames"`
	Bytes            int64        `json:"bytes" doc:"Bytes of media."`
	Counts           HealthCounts `json:"counts" doc:"Since the encoder connected."`
}

// HealthCounts is what went wrong.
type HealthCounts struct {
	FramesDropped        int64 `json:"frames_dropped" doc:"Frames not recorded: damaged, without a key frame to start from, or with unusable timestamps."`
	TimestampsRepaired   int64 `json:"timestamps_repaired" doc:"Timestamps that went backwards or made no sense."`
	ClockJumps           int64 `json:"clock_jumps"`
	Discontinuities      int64 `json:"discontinuities" doc:"Clock jumps, and changes of codec or resolution."`
	AudioHoles           int64 `json:"audio_holes" doc:"Gaps in the sound."`
	FramesMissing        int64 `json:"frames_missing" doc:"Frames expected from the frame rate that never arrived."`
	Packets              int64 `json:"packets" doc:"Packets on the link. This and the next three are 0 if the protocol does not count them."`
	PacketsLost          int64 `json:"packets_lost" doc:"Found missing, whether or not they arrived later."`
	PacketsRetransmitted int64 `json:"packets_retransmitted"`
	PacketsDropped       int64 `json:"packets_dropped" doc:"Never arrived, or too late."`
}

// HealthSample is a few seconds.
type HealthSample struct {
	At                string       `json:"at" doc:"The end of the sample, in seconds since the Unix epoch, as a string."`
	Duration          float64      `json:"duration" doc:"Seconds."`
	Video             HealthFlow   `json:"video"`
	Audio             HealthFlow   `json:"audio"`
	KeyframeInterval  float64      `json:"keyframe_interval" doc:"The longest interval between key frames, in seconds; 0 without video."`
	Pace              float64      `json:"pace" doc:"Seconds of media received per second: 1 when the encoder keeps up."`
	VariableFrameRate bool         `json:"variable_frame_rate"`
	RoundTrip         float64      `json:"round_trip" doc:"The round-trip time of the link in seconds; 0 if the protocol does not measure it."`
	Counts            HealthCounts `json:"counts"`
}

// HealthFlow is what came of one kind.
type HealthFlow struct {
	Bitrate   float64 `json:"bitrate" doc:"Bit/s of media."`
	FrameRate float64 `json:"frame_rate" doc:"Frames per second."`
	Jitter    float64 `json:"jitter" doc:"How unevenly frames arrive, in seconds (RFC 3550)."`
	Drift     float64 `json:"drift" doc:"How far the encoder's clock has run ahead of the service's since it connected, in seconds; negative: behind."`
}

// HealthWarning is something that is wrong.
type HealthWarning struct {
	Type    string `json:"type" example:"audio_missing"`
	Message string `json:"message"`
	Since   string `json:"since" doc:"Seconds since the Unix epoch, as a string."`
}

type encoderHealth struct {
	live   live.API
	health Health
}

func (e encoderHealth) register(on *server) {
	handle(on, route{
		method:     http.MethodGet,
		path:       liveItem + "/health",
		id:         "get-live-stream-health",
		tag:        liveTag,
		permission: videoRead,
		summary:    "Retrieve the health of a live stream",
		text: "What its encoder sends: measured bitrates, frame rate, key frames, clock and losses, with " +
			"warnings in plain language.",
	}, e.get)
}

func (e encoderHealth) get(ctx context.Context, in *LiveRef) (*one[StreamHealth], error) {
	stream, err := e.live.Get(ctx, environment(ctx), in.id())
	if err != nil {
		return nil, err
	}
	return just(wireHealth(e.health.Health(ctx, stream))), nil
}

func wireHealth(h live.Health) StreamHealth {
	out := StreamHealth{
		Status: string(h.Status), Samples: convert(h.Samples, wireSample),
		Warnings: convert(h.Trouble, func(t live.Trouble) HealthWarning {
			return HealthWarning{Type: t.Type, Message: t.Message, Since: epoch(t.Since)}
		}),
	}
	if e := h.Encoder; e != nil {
		out.Encoder = &HealthEncoder{
			Protocol:         e.Protocol,
			RemoteAddress:    e.Remote,
			Name:             e.Name,
			ConnectedAt:      epoch(e.Since),
			DisconnectReason: e.Cause,
			VideoFrames:      e.VideoFrames,
			AudioFrames:      e.AudioFrames,
			Bytes:            e.Bytes,
			Counts:           HealthCounts(e.Counts),
		}
		if !e.Until.IsZero() {
			out.Encoder.DisconnectedAt = epoch(e.Until)
		}
	}
	return out
}

func wireSample(s live.Sample) HealthSample {
	flow := func(f live.Flow) HealthFlow {
		return HealthFlow{
			Bitrate:   math.Round(f.Bitrate),
			FrameRate: thousandths(f.Rate),
			Jitter:    seconds(f.Jitter),
			Drift:     seconds(f.Drift),
		}
	}
	return HealthSample{
		At:                epoch(s.At),
		Duration:          seconds(s.Span),
		Video:             flow(s.Video),
		Audio:             flow(s.Audio),
		KeyframeInterval:  seconds(s.GOP),
		Pace:              thousandths(s.Pace),
		VariableFrameRate: s.VariableFrameRate,
		RoundTrip:         seconds(s.RTT),
		Counts:            HealthCounts(s.Counts),
	}
}

func seconds(d time.Duration) float64 { return thousandths(d.Seconds()) }

func thousandths(v float64) float64 { return math.Round(v*1000) / 1000 }
