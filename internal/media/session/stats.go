package session

import "time"

// Stats counts what a session repaired. All numbers are since its start.
type Stats struct {
	VideoFrames, AudioFrames int64 // written
	// frames that were not written: before the start, behind what is written, for want of a key frame, sent twice
	Dropped         int64
	Broken          int64 // pictures left out: no decoder takes them, or one before them up to a key frame
	Lost            int64 // places on the video's grid that no frame came for
	Clamped         int64 // frames whose time was changed because it went backwards or made no sense
	Holes           int64 // places where sound is missing
	Discontinuities int64
	Jumps           int64 // of the encoder's clock; discontinuities that are no change of parameters
	// VideoDrift and AudioDrift are how far the written clock is behind the encoder's (smoothed; negative: ahead).
	VideoDrift, AudioDrift time.Duration
	// AudioSkew is by how much more samples of sound come than their timestamps have time for, as a part of it: 0.01 is
	// 1 %; 0: as many. AudioByCount: they come as fast as they are to be played, so the timestamps are not followed.
	AudioSkew    float64
	AudioByCount bool
	FPS          float64 // as last told to the output
	Constant     bool
	// Duration is how much has been written, to the end of the later track.
	Duration time.Duration
}

// Stats may be called from any goroutine.
func (s *Session) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.published
}

func (s *Session) publishStats() {
	s.stats.VideoDrift, s.stats.AudioDrift = s.video.drift, s.audio.drift
	s.stats.Duration = max(s.video.end, s.audio.end)
	s.mu.Lock()
	s.published = s.stats
	s.mu.Unlock()
}
