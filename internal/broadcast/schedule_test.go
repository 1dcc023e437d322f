package broadcast

import (
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	zero := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }
	now := in(100)
	for name, tt := range map[string]struct {
		schedule schedule
		want     deadline
	}{
		"sending": {
			schedule{began: zero, heard: in(99), open: true, window: time.Minute, longest: time.Hour},
			deadline{at: in(104), hush: true},
		},
		"sending, the longest time is near": {
			schedule{began: zero, heard: in(99), longest: 101 * time.Second},
			deadline{at: in(101), end: live.EndMaxDuration},
		},
		"silent, and nobody knows": {
			schedule{began: zero, heard: in(90), open: true, longest: time.Hour}, deadline{at: in(95), hush: true},
		},
		"silent": {
			schedule{began: zero, heard: in(90), quiet: true, window: time.Minute, longest: time.Hour},
			deadline{at: in(390), hangUp: true},
		},
		"silent, the longest time comes first": {
			schedule{began: zero, heard: in(90), quiet: true, window: time.Minute, longest: 2 * time.Minute},
			deadline{at: in(120), end: live.EndMaxDuration},
		},
		"away": {
			schedule{began: zero, away: in(95), window: time.Minute, longest: time.Hour},
			deadline{at: in(155), end: live.EndWindow},
		},
		"away without a window": {
			schedule{began: zero, away: in(100), longest: time.Hour}, deadline{at: in(100), end: live.EndWindow},
		},
		"away, the longest time comes first": {
			schedule{began: zero, away: in(95), window: time.Hour, longest: 2 * time.Minute},
			deadline{at: in(120), end: live.EndMaxDuration},
		},
		"away since a crash": {
			schedule{began: zero, away: in(50), adopted: true, window: time.Minute, longest: time.Hour},
			deadline{at: in(110), end: live.EndCrash},
		},
		"a test": {
			schedule{began: zero, heard: in(99), quiet: true, active: in(10), test: true, longest: time.Hour},
			deadline{at: in(310), end: live.EndTest},
		},
		"a test that is away": {
			schedule{began: zero, away: in(99), active: in(10), test: true, window: time.Hour, longest: time.Hour},
			deadline{at: in(310), end: live.EndTest},
		},
		"a test that nobody could watch yet": {
			schedule{began: zero, heard: in(99), quiet: true, test: true, longest: time.Hour},
			deadline{at: in(399), hangUp: true},
		},
		"active, and no test": {
			schedule{began: zero, heard: in(99), quiet: true, active: in(10), longest: time.Hour},
			deadline{at: in(399), hangUp: true},
		},
		"the owner wants the end": {
			schedule{began: zero, wanted: live.EndDisable, longest: time.Hour}, deadline{at: now, end: live.EndDisable},
		},
		"so it is while the encoder is away": {
			schedule{began: zero, away: in(95), wanted: live.EndComplete, window: time.Hour, longest: time.Hour},
			deadline{at: now, end: live.EndComplete},
		},
		"the end has begun": {schedule{began: zero, away: in(1), wanted: live.EndComplete, ending: true}, deadline{}},
		"too long already": {
			schedule{began: zero, heard: in(99), longest: time.Minute}, deadline{at: in(60), end: live.EndMaxDuration},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.schedule.next(now); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	var c schedule
	s := live.Stream{EndWanted: live.EndDelete}
	s.Settings.ReconnectWindow, s.Settings.MaxContinuous, s.Settings.Test = 1.5, 60, true
	now := time.Now()
	s.ActiveAt = now.UTC().Add(-time.Second)
	c.follow(s, now)
	s.ActiveAt = now
	c.follow(s, now) // it is known once and for all
	if !c.test || now.Sub(c.active).Round(time.Millisecond) != time.Second {
		t.Errorf("active since %v", c.active)
	}
	if c.wanted != live.EndDelete || c.window != 1500*time.Millisecond || c.longest != time.Minute {
		t.Errorf("got %+v", c)
	}
}

func TestKeepsLink(t *testing.T) {
	t.Parallel()
	for why, want := range map[live.EndReason]bool{
		live.EndComplete: true, live.EndMaxDuration: false, live.EndDisable: false, live.EndTest: false,
		live.EndDelete: false,
		live.EndWindow: false, live.EndCrash: false,
	} {
		if why.KeepsLink() != want {
			t.Errorf("%s: %v", why, !want)
		}
	}
}

// segment is an entry with so many milliseconds of video and sound.
func segment(msn, at, long int64) timeline.Entry {
	return timeline.Entry{Segment: &timeline.Segment{MSN: msn, Chunks: []timeline.Chunk{
		{Rendition: "a", Time: (at - 20) * 48, Duration: (long + 20) * 48},
		{Rendition: "v", Time: at * 90, Duration: long * 90},
	}}}
}

func TestRecordingTimes(t *testing.T) {
	t.Parallel()
	video := timeline.Entry{Rendition: &timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 90000}}
	audio := timeline.Entry{Rendition: &timeline.RenditionInfo{ID: "a", Kind: frame.Audio, Timescale: 48000}}
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := resumeRecordingTimes(nil, nil, 0)
	s.begin(content, first, 0)
	failed := s.count([]timeline.Entry{video, audio, segment(0, 10000, 4000)})
	s = s.count([]timeline.Entry{video, audio, segment(0, 10000, 4000)}) // the first attempt to store it failed
	// while the last segments of the first wait for storage
	s.begin(content, first.Add(time.Minute), 18.0)
	s = s.count([]timeline.Entry{segment(1, 14000, 4000)})
	s = s.count([]timeline.Entry{segment(2, 18000, 1000)})
	s.begin(content, first.Add(2*time.Minute), 19) // nothing comes of it
	s.begin(content, first.Add(3*time.Minute), 19)
	s = s.count([]timeline.Entry{segment(3, 18999, 2000)}) // it joins to the tick, not to the float
	want := []asset.Recording{
		{StartedAt: first, Duration: 8, Type: content},
		{StartedAt: first.Add(time.Minute), Duration: 1, Type: content},
		{StartedAt: first.Add(3 * time.Minute), Duration: 2, Type: content},
	}
	got := s.recordings()
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: got %+v, want %+v", i, got[i], want[i])
		}
	}
	if len(failed.list) != 1 || s.total != 11 {
		t.Errorf("total %v", s.total)
	}
}

// TestRecordingTimesAfterACrash gives the last one what the timeline has more than the others.
func TestRecordingTimesAfterACrash(t *testing.T) {
	t.Parallel()
	var line timeline.Timeline
	for _, e := range []timeline.Entry{
		{Rendition: &timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 90000}},
		{Init: &timeline.Init{Rendition: "v"}},
		{Segment: &timeline.Segment{Chunks: []timeline.Chunk{{Rendition: "v", Time: 900000, Duration: 360000}}}},
		{
			Segment: &timeline.Segment{
				MSN: 1, Chunks: []timeline.Chunk{{Rendition: "v", Time: 1260000, Duration: 360000}},
			},
		},
	} {
		if err := line.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		have []asset.Recording
		want []float64
	}{
		"as it was stored": {
			[]asset.Recording{{Duration: 5, Type: content}, {Duration: 3, Type: content}}, []float64{5, 3},
		},
		"the last one was open":   {[]asset.Recording{{Duration: 5, Type: content}, {Type: content}}, []float64{5, 3}},
		"nothing more was stored": {[]asset.Recording{{Duration: 8, Type: content}, {Type: content}}, []float64{8}},
		"nothing was noted":       {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := resumeRecordingTimes(tt.have, &line, 0).recordings()
			if len(got) != len(tt.want) {
				t.Fatalf("got %+v", got)
			}
			for i, r := range got {
				if r.Duration != tt.want[i] {
					t.Errorf("%d: %v", i, r.Duration)
				}
			}
		})
	}
}

// TestRecordingTimeOfADeadProcess begins one for media that nobody has noted the beginning of.
func TestRecordingTimeOfADeadProcess(t *testing.T) {
	t.Parallel()
	e := segment(0, 10000, 4000)
	e.Segment.Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli()
	s := resumeRecordingTimes(nil, nil, 0).count([]timeline.Entry{
		{Rendition: &timeline.RenditionInfo{ID: "v", Timescale: 90000}}, e,
	})
	if got := s.recordings(); len(got) != 1 || got[0].Duration != 4 || got[0].StartedAt.UnixMilli() != e.Segment.Start {
		t.Errorf("got %+v", got)
	}
}
