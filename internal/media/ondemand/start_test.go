package ondemand_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
)

// starts are where times of captured streams begin, in seconds: shortly after 0, an hour later, and in 1970.
var starts = []int64{10, 3600, 1767225600}

// edited has an edit list written, and unedited none.
const (
	edited   = "+frag_keyframe+delay_moov+default_base_moof"
	unedited = "+frag_keyframe+empty_moov+default_base_moof"
)

// moved copies a fragmented file with the times of its fragments so many seconds later, those of its second track by so
// many more.
func moved(t *testing.T, path string, seconds, second int64) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	scales := map[uint32]uint32{}
	fragments := 0
	err = bmff.Walk(data, func(b bmff.Box) error {
		switch {
		case b.Type.Is("moov"):
			return bmff.Walk(b.Body, func(b bmff.Box) error {
				if b.Type.Is("trak") {
					track, bad := bmff.ParseTrack(b.Body)
					if bad != nil {
						return bad
					}
					scales[track.ID] = track.Timescale
				}
				return nil
			})
		case b.Type.Is("moof"):
			return bmff.Walk(b.Body, func(b bmff.Box) error {
				if !b.Type.Is("traf") {
					return nil
				}
				fragments++
				id, at := binary.BigEndian.Uint32(bmff.Find(b.Body, "tfhd")[4:]), bmff.Find(b.Body, "tfdt")
				if at[0] != 1 {
					t.Fatal("a decoding time of 32 bits")
				}
				later := seconds
				if id == 2 {
					later += second
				}
				binary.BigEndian.PutUint64(at[4:], binary.BigEndian.Uint64(at[4:])+uint64(later*int64(scales[id])))
				return nil
			})
		}
		return nil
	})
	if err != nil || fragments == 0 {
		t.Fatalf("%d fragments: %v", fragments, err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err = os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStartIsTakenOff: a fragmented file whose times begin later is, byte by byte, what the same file is whose times
// begin at 0, as the asset's own tracks and as a track that is added to another.
func TestStartIsTakenOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args   []string
		second int64 // by how many seconds more the sound begins later
	}{
		"no edit list": {args: h264("60", "-movflags", unedited)},
		"edit list":    {args: h264("60", "-movflags", edited)},
		"90 kHz":       {args: h264("60", "-movflags", edited, "-video_track_timescale", "90000")},
		"10 MHz":       {args: h264("60", "-movflags", edited, "-video_track_timescale", "10000000")},
		"sound later":  {args: h264("60", "-movflags", unedited), second: 3},
		"sound alone":  {args: []string{"-vn", "-c:a", "aac", "-movflags", edited, "-frag_duration", "500000"}},
		"no sound":     {args: h264("60", "-an", "-movflags", "+frag_every_frame+delay_moov+default_base_moof")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ffmpeg(t, "a.mp4", args(picture("5", "30"), sound("6"), tt.args)...)
			want := plan(t, moved(t, path, 0, tt.second))
			for _, start := range starts {
				got := plan(t, moved(t, path, start, tt.second))
				compareMedia(t, start, want, got)
				if want.audio == nil {
					continue
				}
				spans := want.timeline.Spans()
				added := func(m media) media {
					l := ondemand.Follow(m.audio, m.name, "added", spans, timeline.Origin)
					m.timeline = &timeline.Timeline{Renditions: []*timeline.Rendition{l}}
					return m
				}
				compareMedia(t, start, added(want), added(got))
			}
		})
	}
}

// compareMedia wants two files to have the same renditions, with the same bytes in each segment. The times of got begin
// at start.
func compareMedia(t *testing.T, start int64, want, got media) {
	t.Helper()
	for k, l := range want.timeline.Renditions {
		other := got.timeline.Renditions[k]
		if at := start * int64(other.Timescale); other.Source.Start != at {
			t.Errorf("%s from %d s on starts at %d, want %d", l.ID, start, other.Source.Start, at)
		}
		same := *other
		same.Source = l.Source
		if !reflect.DeepEqual(l, &same) {
			t.Errorf("%s from %d s on is %+v, want %+v", l.ID, start, same, *l)
			continue
		}
		for i, c := range l.Chunks {
			if c.Gap {
				continue
			}
			a, err := want.library.Chunk(t.Context(), *l.Source, int64(i), c)
			if err != nil {
				t.Fatal(err)
			}
			b, err := got.library.Chunk(t.Context(), *other.Source, int64(i), other.Chunks[i])
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s %d from %d s on is another one: %v", l.ID, i, start, err)
			}
		}
	}
}

// TestStartsOfFFmpeg: what ffmpeg writes with times that begin later is shown as what it writes of the same pictures
// and sound from 0 on, but for the priming of the sound, which is part of the sound where nothing says what it is: then
// all begins that much later.
func TestStartsOfFFmpeg(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string]string{
		"pauses in edit lists": edited, // of HLS and DASH too
		"decoding times":       edited + "+frag_discont",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := func(start int64) media {
				more := []string{"-output_ts_offset", strconv.FormatInt(start, 10), "-movflags", flags}
				return plan(t, ffmpeg(t, "a.mp4", args(picture("5", "30"), sound("6"), h264("60", more...))...))
			}
			from := file(0)
			pictures := decode(t, from.join(t, timeline.MainVideo), "v")
			heard := packets(t, from.join(t, timeline.MainAudio), "a")
			for _, start := range starts {
				m := file(start)
				const priming = 1024.0 / 48000
				got := decode(t, m.join(t, timeline.MainVideo), "v")
				if len(got) != len(pictures) {
					t.Fatalf("from %d s on: %d pictures, want %d", start, len(got), len(pictures))
				}
				for i, f := range got[1:] { // the first stands from the beginning on
					if want := pictures[i+1]; f.hash != want.hash || math.Abs(f.at-want.at-priming) > 0.0015 {
						t.Fatalf("from %d s on: picture %d is %+v, want %+v and %.4f s", start, i+1, f, want, priming)
					}
				}
				sounds := packets(t, m.join(t, timeline.MainAudio), "a")
				if len(sounds) != len(heard)+1 {
					t.Fatalf("from %d s on: %d packets, want %d and the priming", start, len(sounds), len(heard))
				}
				for i, p := range sounds[1:] {
					if p.Hash != heard[i].Hash || math.Abs(p.at()-heard[i].at()-priming) > 0.0015 {
						t.Fatalf("from %d s on: packet %d: %+v, want %+v and %.4f s", start, i+1, p, heard[i], priming)
					}
				}
			}
		})
	}
}

// TestEarlierTimelines: what was planned when times counted from the file's 0 is played as it was planned.
func TestEarlierTimelines(t *testing.T) {
	t.Parallel()
	path := ffmpeg(t, "a.mp4", args(picture("5", "30"), sound("6"), h264("60", "-movflags", edited))...)
	m := plan(t, moved(t, path, 10, 0))
	m.video, m.audio = m.video.CountedFrom(0), m.audio.CountedFrom(0)
	var err error
	if m.timeline, err = ondemand.Plan(m.video, m.audio, m.idrs, m.name); err != nil {
		t.Fatal(err)
	}
	last := m.timeline.Spans()
	if end := last[len(last)-1]; math.Abs(end-15) > 0.1 {
		t.Fatalf("it lasts %.3f s", end)
	}
	got := decode(t, m.join(t, timeline.MainVideo), "v")
	if len(got) != 150 || math.Abs(got[149].at-timeline.Origin-14.966) > 0.01 {
		t.Errorf("%d pictures, the last at %.3f", len(got), got[len(got)-1].at)
	}
	for _, p := range packets(t, m.join(t, timeline.MainAudio), "a")[480:] {
		if p.at() < timeline.Origin+10 {
			t.Fatalf("sound at %.3f", p.at())
		}
	}
}
