package hls_test

import (
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

func TestWithin(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.UTC) }
	for name, tt := range map[string]struct {
		s               hls.Stretch
		media, breaks   string
		has, has2, lost string
		ended           bool
	}{
		"from a time on":         {hls.Stretch{Begin: at(13)}, "9", "2", `MAP:URI="v/init-1.mp4"`, "v/10.1.m4s", "v/8.m4s", false},
		"from behind a break":    {hls.Stretch{Begin: at(11)}, "8", "2", "v/8.m4s", "v/10.1.m4s", "#EXT-X-DISCONTINUITY\n", false},
		"up to a time":           {hls.Stretch{End: at(11)}, "7", "1", "v/7.m4s", "v/8.m4s", "v/9.m4s", true},
		"up to a time to come":   {hls.Stretch{Begin: at(1), End: at(60)}, "7", "1", "v/7.m4s", "v/10.1.m4s", "ENDLIST", false},
		"seconds":                {hls.Stretch{From: 2.5, To: 5}, "8", "2", "v/8.m4s", "v/9.m4s", "v/10", true},
		"a second time, in time": {hls.Stretch{From: 1, Begin: at(12)}, "9", "2", "v/9.m4s", "v/10.0.m4s", "v/8.m4s", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, ok := hls.Within([]byte(running), tt.s)
			got := string(text)
			for _, want := range []string{"MEDIA-SEQUENCE:" + tt.media + "\n", "DISCONTINUITY-SEQUENCE:" + tt.breaks + "\n", tt.has, tt.has2} {
				if !ok || !strings.Contains(got, want) {
					t.Errorf("%q is not in\n%s", want, got)
				}
			}
			if strings.Contains(got, tt.lost) || strings.HasSuffix(got, "#EXT-X-ENDLIST\n") != tt.ended || strings.Count(got, "#EXT-X-MAP") < 1 {
				t.Errorf("got\n%s", got)
			}
		})
	}
	for _, s := range []hls.Stretch{{Begin: at(40)}, {End: at(0)}, {From: 100}} {
		if got, ok := hls.Within([]byte(running), s); ok {
			t.Errorf("%+v:\n%s", s, got)
		}
	}
	if got, ok := hls.Within([]byte(running), hls.Stretch{}); !ok || string(got) != running {
		t.Errorf("all of it:\n%s", got)
	}
	skips := strings.Replace(running, "HOLD-BACK", "CAN-SKIP-UNTIL=12.000000,HOLD-BACK", 1)
	if got, ok := hls.Within([]byte(skips), hls.Stretch{}); !ok || string(got) != running {
		t.Errorf("delta updates are offered:\n%s", got)
	}
}
