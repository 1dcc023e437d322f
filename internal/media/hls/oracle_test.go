package hls_test

import (
	"math"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"

	"millrace/internal/media/hls"
)

// TestAnotherParserReadsTheSame holds the text of a media playlist against an independent parser.
func TestAnotherParserReadsTheSame(t *testing.T) {
	t.Parallel()
	m := edge()
	var got playlist.Media
	if err := got.Unmarshal(m.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if got.Version != 9 || got.TargetDuration != 2 || got.MediaSequence != 7 || got.DiscontinuitySequence == nil ||
		*got.DiscontinuitySequence != 3 {
		t.Errorf("head is %+v", got)
	}
	if c := got.ServerControl; c == nil || !c.CanBlockReload || *c.CanSkipUntil != 12*time.Second ||
		*c.PartHoldBack != 1038500*time.Microsecond {
		t.Errorf("server control is %+v", got.ServerControl)
	}
	if got.PartInf == nil || got.PartInf.PartTarget != 335*time.Millisecond {
		t.Errorf("part target is %+v", got.PartInf)
	}
	if len(got.Segments) != len(m.Segments) {
		t.Fatalf("%d segments", len(got.Segments))
	}
	for i, s := range got.Segments {
		w := m.Segments[i]
		if s.URI != w.URI || near(s.Duration, w.Duration) || s.Discontinuity != w.Discontinuity || s.Gap != w.Gap ||
			len(s.Parts) != len(w.Parts) {
			t.Errorf("segment %d is %+v", i, s)
		}
		if !w.ProgramDateTime.IsZero() && !s.DateTime.Equal(w.ProgramDateTime) {
			t.Errorf("segment %d is of %v, want %v", i, s.DateTime, w.ProgramDateTime)
		}
		for k, p := range s.Parts {
			if wp := w.Parts[k]; p.URI != wp.URI || near(p.Duration, wp.Duration) || p.Independent != wp.Independent {
				t.Errorf("part %d of segment %d is %+v", k, i, p)
			}
		}
	}
	if got.PreloadHint == nil || got.PreloadHint.URI != m.Hint || len(got.Parts) != 1 {
		t.Errorf("hint %+v, open parts %+v", got.PreloadHint, got.Parts)
	}
}

func near(a, b time.Duration) bool { return math.Abs(float64(a-b)) > float64(time.Microsecond) }

func TestAnotherParserReadsTheMultivariant(t *testing.T) {
	t.Parallel()
	m := hls.Multivariant{
		Renditions: []hls.Rendition{
			{Type: "AUDIO", GroupID: "audio", Name: `a "name"`, Default: true, Channels: 2, URI: "x/a.m3u8"},
		},
		Variants: []hls.Variant{{
			Bandwidth: 3, AverageBandwidth: 2, Codecs: []string{"avc1.64001f", "mp4a.40.2"}, Width: 1280, Height: 720,
			FrameRate: 25, Audio: "audio", URI: "x/v.m3u8",
		}},
	}
	var got playlist.Multivariant
	if err := got.Unmarshal(m.Append(nil)); err != nil {
		t.Fatal(err)
	}
	v := got.Variants[0]
	if v.Bandwidth != 3 || *v.AverageBandwidth != 2 || strings.Join(v.Codecs, " ") != "avc1.64001f mp4a.40.2" ||
		v.Resolution != "1280x720" || *v.FrameRate != 25 || v.Audio != "audio" || v.URI != "x/v.m3u8" {
		t.Errorf("variant %+v", v)
	}
	if r := got.Renditions[0]; r.Name != "a 'name'" || !r.Default || *r.URI != "x/a.m3u8" || r.GroupID != "audio" ||
		*r.Channels != "2" {
		t.Errorf("rendition %+v", r)
	}
}

// TestAnyNameIsReadBack: whatever a rendition is called, the playlist stays one that can be read.
func TestAnyNameIsReadBack(t *testing.T) {
	t.Parallel()
	if err := quick.Check(func(name, language string, bandwidth int64) bool {
		m := hls.Multivariant{
			Renditions: []hls.Rendition{
				{Type: "AUDIO", GroupID: "g", Name: "x" + name, Language: language, URI: "a.m3u8"},
			},
			Variants: []hls.Variant{
				{Bandwidth: bandwidth >> 34, Codecs: []string{"mp4a.40.2"}, Audio: "g", URI: "v.m3u8"},
			},
		}
		var got playlist.Multivariant
		err := got.Unmarshal(m.Append(nil))
		return err == nil && len(got.Renditions) == 1 && len(got.Variants) == 1 && got.Variants[0].URI == "v.m3u8"
	}, nil); err != nil {
		t.Error(err)
	}
}
