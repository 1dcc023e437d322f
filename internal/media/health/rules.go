package health

import (
	"fmt"
	"math"
	"time"
)

// The kinds of trouble. They are the types of warnings in the API, and label values of metrics: they do not change.
const (
	KeyFramesFarApart = "keyframes_far_apart"
	BitrateCollapsed  = "bitrate_collapsed"
	AudioMissing      = "audio_missing"
	VideoMissing      = "video_missing"
	ClockJumped       = "clock_jumped"
	FrameRateLow      = "frame_rate_low"
	FrameRateVariable = "frame_rate_variable"
	EncoderTooSlow    = "encoder_too_slow"
	PacketsLost       = "packets_lost"
	TimestampsBroken  = "timestamps_broken"
	AudioClockOff     = "audio_clock_off"
	PicturesDamaged   = "pictures_damaged"
	SubtitlesBehind   = "generated_subtitles_behind"
)

// Limits of the rules.
const (
	farApart      = 5 * time.Second // of key frames
	collapse      = 0.3             // of the usual bitrate
	leastBitrate  = 50e3            // bit/s below which nothing collapses
	leastRate     = 5               // frames a second, likewise
	lowRate       = 0.75            // of the usual frame rate, or the announced one
	missingLimit  = 0.25            // of the pictures that the frame rate asks for
	slowPace      = 0.9             // seconds of media a second
	lossLimit     = 0.005           // of the packets
	repairLimit   = 0.05            // of the frames
	usualAfter    = 4               // samples until something is usual
	usualFollows  = 0.1             // how fast the usual follows what comes,
	usualTroubled = 0.02            // and how fast when it is in trouble for longer than
	patience      = 12              // samples
)

// view is what a rule looks at.
type view struct {
	Sample

	video, audio bool    // there are such tracks
	audioOnly    bool    // no video is wanted
	bitrate      float64 // usual ones; 0 when nothing is usual yet
	rate         float64
}

func (v view) total() float64 { return v.Video.Bitrate + v.Audio.Bitrate }

// rule is one kind of trouble. It is raised after so many samples in a row that are bad, and over after so many that
// are not.
type rule struct {
	kind         string
	after, until int
	bad          func(v view) string // what is wrong, in a sentence or two; "" when nothing is
}

// rules is the whole table. A sample is five seconds.
func rules() []rule {
	return []rule{
		{KeyFramesFarApart, 2, 3, keyFrames},
		{BitrateCollapsed, 3, 3, bitrate},
		{AudioMissing, 3, 1, audio},
		{VideoMissing, 2, 1, video},
		{ClockJumped, 1, 12, clock},
		{FrameRateLow, 3, 3, lowFrameRate},
		{FrameRateVariable, 6, 6, variable},
		{EncoderTooSlow, 3, 3, pace},
		{PacketsLost, 2, 6, loss},
		{TimestampsBroken, 2, 6, timestamps},
		{AudioClockOff, 2, 3, audioClock},
		{PicturesDamaged, 1, 6, damaged},
		{SubtitlesBehind, 1, 6, subtitles},
	}
}

func keyFrames(v view) string {
	if v.GOP <= farApart {
		return ""
	}
	return fmt.Sprintf("Key frames are %.1f s apart or more. Set the encoder to one every 2 s: viewers can only "+
		"start at one, and segments get that long.", v.GOP.Seconds())
}

func bitrate(v view) string {
	if v.bitrate < leastBitrate || v.total() >= v.bitrate*collapse {
		return ""
	}
	fell := fmt.Sprintf("The bitrate fell to %s from %s", rateText(v.total()), rateText(v.bitrate))
	if v.Pace >= slowPace && lowFrameRate(v) == "" {
		return fell + ", and pictures come in time: they may be black or still, or the encoder was set to less."
	}
	return fell + ". The encoder's connection may be too slow."
}

func rateText(bits float64) string {
	if bits < 1e6 {
		return fmt.Sprintf("%.0f kbit/s", bits/1e3)
	}
	return fmt.Sprintf("%.1f Mbit/s", bits/1e6)
}

func audio(v view) string {
	switch {
	case v.Video.Frames == 0 || v.Audio.Frames > 0:
		return ""
	case v.audio:
		return "The encoder sends video, and its sound has stopped."
	}
	return "The encoder sends no sound."
}

func video(v view) string {
	if v.audioOnly || !v.video || v.Video.Frames > 0 || v.Audio.Frames == 0 {
		return ""
	}
	return "The encoder sends sound, and its video has stopped."
}

func clock(v view) string {
	if v.Counts.Jumps == 0 {
		return ""
	}
	return "The encoder's clock jumped. The recording goes on behind a discontinuity; if it happens again, look for " +
		"a restarting source or a clock that is being set."
}

func lowFrameRate(v view) string {
	wanted := float64(v.Video.Frames + v.Counts.Missing)
	switch {
	case v.Video.Frames == 0:
		return ""
	case v.rate >= leastRate && v.Video.Rate < v.rate*lowRate:
		return fmt.Sprintf("The frame rate fell to %.1f from %.1f frames a second. The encoder may be overloaded.",
			v.Video.Rate, v.rate)
	case v.Announced >= leastRate && v.Video.Rate < v.Announced*lowRate:
		return fmt.Sprintf("The stream says that it has %.1f frames a second, and %.1f come. The encoder may be "+
			"overloaded, or leaves frames out on the way.",
			v.Announced, v.Video.Rate)
	case wanted >= leastRate*v.Span.Seconds() && float64(v.Counts.Missing) > wanted*missingLimit:
		return fmt.Sprintf("%.0f %% of the frames are missing: %.1f a second come. The encoder may be overloaded, or "+
			"leaves frames out on the way.",
			100*float64(v.Counts.Missing)/wanted, v.Video.Rate)
	}
	return ""
}

func variable(v view) string {
	if v.Video.Frames == 0 || !v.Counts.Variable {
		return ""
	}
	return "The frame rate varies. Set the encoder to a constant one: segments and low latency need frames at equal " +
		"distances."
}

func pace(v view) string {
	if v.Video.Frames+v.Audio.Frames == 0 || v.Pace >= slowPace || v.Counts.Jumps > 0 {
		return ""
	}
	return fmt.Sprintf("The encoder sends %.2f seconds of media a second, so players run dry. It, or its connection, "+
		"does not keep up.", v.Pace)
}

func loss(v view) string {
	all := v.Counts.Packets + v.Counts.PacketsDropped
	if all == 0 || float64(v.Counts.PacketsDropped) <= float64(all)*lossLimit {
		return ""
	}
	return fmt.Sprintf("%.1f %% of the packets never came, or too late. A larger latency setting of the encoder "+
		"gives them more time to be sent again.",
		100*float64(v.Counts.PacketsDropped)/float64(all))
}

func timestamps(v view) string {
	n := v.Video.Frames + v.Audio.Frames
	bad := v.Counts.Repaired + v.Counts.Dropped
	if n == 0 || float64(bad) <= float64(n)*repairLimit {
		return ""
	}
	return fmt.Sprintf("%d of %d frames had timestamps that went backwards or made no sense; they were mended or "+
		"left out.", bad, n)
}

func damaged(v view) string {
	if v.Counts.Broken == 0 {
		return ""
	}
	return fmt.Sprintf("Pictures came damaged: %d were left out, each up to the next key frame. "+
		"What sends them reads them from a source that is damaged, or loses some of it.", v.Counts.Broken)
}

func audioClock(v view) string {
	if v.Audio.Frames == 0 || v.Counts.AudioSkew == 0 {
		return ""
	}
	than := "more"
	if v.Counts.AudioSkew < 0 {
		than = "less"
	}
	says := fmt.Sprintf("The sound has %.1f %% %s samples than its timestamps have time for. ",
		100*math.Abs(v.Counts.AudioSkew), than)
	switch {
	case v.Counts.AudioByCount:
		return says +
			"It comes as fast as it is to be played, so its timestamps are not followed: look for a newer version of " +
			"the encoder."
	case v.Counts.AudioSkew > 0:
		return says +
			"Frames are left out so that it stays with the picture: check the sample rate of the encoder and of its " +
			"audio device."
	}
	return says +
		"It has short holes so that it stays with the picture: check the sample rate of the encoder and of its audio " +
		"device."
}

func subtitles(v view) string {
	if v.Counts.Unheard == 0 {
		return ""
	}
	return fmt.Sprintf("Speech recognition does not keep up: the live stream has no subtitles for %.0f of the last "+
		"%.0f seconds. Give it more processor time, or another engine. The recording's subtitles are made from all "+
		"of the sound.",
		max(v.Counts.Unheard.Seconds(), 1), v.Span.Seconds())
}
