package hlscheck

import (
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"

	"millrace/test/origin"
)

// TestOracle reads the same playlists with another project's parser and compares what both found.
func TestOracle(t *testing.T) {
	t.Parallel()
	c, err := clips()
	if err != nil {
		t.Skip(err)
	}
	for name, o := range map[string]origin.Options{
		"low latency": {LowLatency: true},
		"break":       {LowLatency: true, BreakAt: 3},
		"event":       {Mode: origin.Event},
		"finished":    {Mode: origin.VOD},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o.Clip, o.Commentary = c[0], &c[1]
				o.Begin = time.Now().Add(-9500 * time.Millisecond)
				g, err := origin.New(o)
				if err != nil {
					t.Fatal(err)
				}
				get := func(path string) []byte {
					w := httptest.NewRecorder()
					g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
					return w.Body.Bytes()
				}
				quiet := func(rule string, ok bool, format string, args ...any) {
					if !ok {
						t.Errorf("%s: "+format, append([]any{rule}, args...)...)
					}
				}
				compareMaster(t, get(g.Path()), quiet)
				for _, track := range []string{"video", "audio"} {
					compareMedia(t, get("/"+origin.ID+"/"+track+".m3u8"), quiet)
				}
			})
		})
	}
}

func compareMaster(t *testing.T, text []byte, say report) {
	t.Helper()
	p, err := playlist.Unmarshal(text)
	if err != nil {
		t.Fatalf("oracle: %v", err)
	}
	theirs, ok := p.(*playlist.Multivariant)
	if !ok {
		t.Fatalf("oracle reads a %T", p)
	}
	ours := parseMultivariant(string(text), say)
	if len(ours.variants) != len(theirs.Variants) || len(ours.media) != len(theirs.Renditions) ||
		ours.version != theirs.Version || ours.independent != theirs.IndependentSegments {
		t.Fatalf("we read %+v, the oracle %+v", ours, theirs)
	}
	for i, v := range theirs.Variants {
		o := ours.variants[i]
		if o.bandwidth != v.Bandwidth || o.average != *v.AverageBandwidth || o.uri != v.URI ||
			o.resolution != v.Resolution || math.Abs(o.frameRate-*v.FrameRate) > 1e-6 || o.audio != v.Audio {
			t.Errorf("we read %+v, the oracle %+v", o, v)
		}
	}
}

func compareMedia(t *testing.T, text []byte, say report) {
	t.Helper()
	p, err := playlist.Unmarshal(text)
	if err != nil {
		t.Fatalf("oracle: %v\n%s", err, text)
	}
	theirs, ok := p.(*playlist.Media)
	if !ok {
		t.Fatalf("oracle reads a %T", p)
	}
	ours := parseMedia(string(text), say)
	if ours.version != theirs.Version || ours.target != theirs.TargetDuration ||
		ours.sequence != theirs.MediaSequence || ours.ended != theirs.Endlist ||
		len(ours.entries) != len(theirs.Segments) ||
		len(ours.open.parts) != len(theirs.Parts) {
		t.Fatalf("we read %+v, the oracle %+v", ours, theirs)
	}
	for i, s := range theirs.Segments {
		o := ours.entries[i]
		if o.uri != s.URI || math.Abs(o.duration-s.Duration.Seconds()) > 1e-6 || len(o.parts) != len(s.Parts) ||
			o.discontinuity != s.Discontinuity || !o.pdt.Equal(*s.DateTime) {
			t.Errorf("segment %d: we read %+v, the oracle %+v", o.msn, o, s)
			continue
		}
		for n, part := range s.Parts {
			if o.parts[n].uri != part.URI || o.parts[n].independent != part.Independent ||
				math.Abs(o.parts[n].duration-part.Duration.Seconds()) > 1e-6 {
				t.Errorf("part %d.%d: we read %+v, the oracle %+v", o.msn, n, o.parts[n], part)
			}
		}
	}
}
