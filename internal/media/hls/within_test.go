package hls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/hls"
)

const running = `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,HOLD-BACK=6.000000
#EXT-X-PART-INF:PART-TARGET=1.000000
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:1
#EXT-X-MAP:URI="v/init-0.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-03-01T12:00:00.000Z
#EXTINF:2.000000,
v/7.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="v/init-1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-03-01T12:00:10.000Z
#EXTINF:2.000000,
v/8.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-03-01T12:00:12.000Z
#EXT-X-PART:DURATION=1.000000,URI="v/9.0.m4s"
#EXTINF:2.000000,
v/9.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-03-01T12:00:14.000Z
#EXT-X-PART:DURATION=1.000000,URI="v/10.0.m4s"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="v/10.1.m4s"
`

// within cuts a playlist by itself.
func within(list string, s hls.Clip) ([]byte, bool) {
	e, ok := hls.Find([]byte(list), s)
	if !ok {
		return nil, false
	}
	return hls.Within([]byte(list), e)
}

// Sound is cut where the picture is, though its segments are a little longer or shorter, and whatever is whole of it.
func TestWithinIsTheSameOfAll(t *testing.T) {
	t.Parallel()
	list := func(long string, whole, open int) []byte {
		b := []byte("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-DISCONTINUITY-SEQUENCE:0\n#EXT-X-MAP:URI=\"init\"\n")
		for i := range whole {
			b = fmt.Appendf(b, "#EXT-X-PROGRAM-DATE-TIME:2026-03-01T12:00:%02d.000Z\n#EXTINF:%s,\n%d.m4s\n", 2*i, long,
				7+i)
		}
		if open > 0 {
			b = fmt.Appendf(b, "#EXT-X-PART:DURATION=0.3,URI=\"%d.0.m4s\"\n", 7+whole)
		}
		return b
	}
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC) }
	video := list("2.000000", 5, 1)
	for _, s := range []hls.Clip{
		{From: 4, To: 8},
		{From: 4},
		{To: 6},
		{Begin: at(4), End: at(8)},
		{Begin: at(4)},
		{To: 11},
	} {
		e, ok := hls.Find(video, s)
		if !ok {
			t.Fatal(s)
		}
		want, _ := hls.Within(video, e)
		for _, long := range []string{"2.020000", "1.980000"} {
			if got, ok := hls.Within(list(long, 5, 1), e); !ok ||
				strings.ReplaceAll(string(got), long, "2.000000") != string(want) {
				t.Errorf("%+v:\n%s\nis not\n%s", s, got, want)
			}
		}
		ahead, _ := hls.Within(list("2.000000", 6, 1), e)
		if strings.Contains(string(ahead), "13.0.m4s") ||
			strings.Contains(string(want), "ENDLIST") != strings.Contains(string(ahead), "ENDLIST") {
			t.Errorf("%+v, ahead:\n%s", s, ahead)
		}
		if behind, ok := hls.Within(list("2.000000", 3, 1), e); !ok ||
			strings.Contains(string(behind), "ENDLIST") != (s.To == 6) {
			t.Errorf("%+v, behind:\n%s", s, behind)
		}
	}
	e, ok := hls.Find(video, hls.Clip{From: 8})
	if got, has := hls.Within(list("2.000000", 4, 1), e); !ok || has {
		t.Errorf("nothing of it is whole:\n%s", got)
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC) }
	for name, tt := range map[string]struct {
		s               hls.Clip
		media, breaks   string
		has, has2, lost string
		ended           bool
	}{
		"from a time on": {hls.Clip{Begin: at(13)}, "9", "2", `MAP:URI="v/init-1.mp4"`, "v/10.1.m4s", "v/8.m4s", false},
		"from behind a break": {
			hls.Clip{Begin: at(11)},
			"8", "2", "v/8.m4s", "v/10.1.m4s", "#EXT-X-DISCONTINUITY\n",
			false,
		},
		"up to a time": {hls.Clip{End: at(11)}, "7", "1", "v/7.m4s", "v/8.m4s", "v/9.m4s", true},
		"up to a time to come": {
			hls.Clip{Begin: at(1), End: at(60)},
			"7", "1", "v/7.m4s", "v/10.1.m4s", "ENDLIST",
			false,
		},
		"seconds": {hls.Clip{From: 2.5, To: 5}, "8", "2", "v/8.m4s", "v/9.m4s", "v/10", true},
		"a second time, in time": {
			hls.Clip{From: 1, Begin: at(12)},
			"9", "2", "v/9.m4s", "v/10.0.m4s", "v/8.m4s",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, ok := within(running, tt.s)
			got := string(text)
			for _, want := range []string{
				"MEDIA-SEQUENCE:" + tt.media + "\n",
				"DISCONTINUITY-SEQUENCE:" + tt.breaks + "\n", tt.has, tt.has2,
			} {
				if !ok || !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
			if strings.Contains(got, tt.lost) || strings.HasSuffix(got, "#EXT-X-ENDLIST\n") != tt.ended ||
				strings.Count(got, "#EXT-X-MAP") < 1 {
				t.Errorf("got\n%s", got)
			}
		})
	}
	for _, s := range []hls.Clip{{Begin: at(40)}, {End: at(0)}, {From: 100}} {
		if got, ok := within(running, s); ok {
			t.Errorf("%+v:\n%s", s, got)
		}
	}
	if got, ok := within(running, hls.Clip{}); !ok || string(got) != running {
		t.Errorf("all of it:\n%s", got)
	}
	skips := strings.Replace(running, "HOLD-BACK", "CAN-SKIP-UNTIL=12.000000,HOLD-BACK", 1)
	if got, ok := within(skips, hls.Clip{}); !ok || string(got) != running {
		t.Errorf("delta updates are offered:\n%s", got)
	}
}
