package hls

import (
	"strings"
	"testing"
	"time"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := Media{
		TargetDuration: 2, CanBlock: true, PartTarget: time.Second, SkipUntil: 12 * time.Second, MediaSequence: 7,
		Hint:    "v/9.1.m4s",
		Reports: []Report{{URI: "a.m3u8", LastMSN: 9}},
		Segments: []Segment{
			{URI: "v/7.m4s", Map: "v/init-0.mp4", Duration: 2 * time.Second, ProgramDateTime: at},
			{
				URI: "v/8.m4s", Duration: 2 * time.Second, ProgramDateTime: at.Add(2 * time.Second),
				Parts: []Part{{URI: "v/8.0.m4s", Duration: time.Second}},
			},
		},
		Open: &Segment{
			Discontinuity: true, Map: "v/init-1.mp4", ProgramDateTime: at.Add(4 * time.Second),
			Parts: []Part{{URI: "v/9.0.m4s", Duration: time.Second}},
		},
	}
	plain := Media{
		TargetDuration: 2, MediaSequence: 7,
		Segments: []Segment{
			m.Segments[0], {URI: "v/8.m4s", Duration: 2 * time.Second, ProgramDateTime: at.Add(2 * time.Second)},
		},
	}
	version := func(b []byte) string { // low latency needs a newer one, which does no harm
		head, rest, _ := strings.Cut(string(b), "#EXT-X-TARGETDURATION")
		return head[:7] + rest
	}
	if got, want := version(Plain(m.Append(nil))), version(plain.Append(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	m.Ended, m.Open, m.Hint, m.Reports = true, nil, "", nil
	if got := string(Plain(m.Append(nil))); !strings.HasSuffix(got, "v/8.m4s\n#EXT-X-ENDLIST\n") ||
		strings.Contains(got, "PART") {
		t.Errorf("got\n%s", got)
	}
	m.Segments = nil
	m.Ended = false
	if got := string(Plain(m.Append(nil))); !strings.HasSuffix(got, "#EXT-X-DISCONTINUITY-SEQUENCE:0\n") {
		t.Errorf("got\n%s", got)
	}
	m.Continuous = true
	if got := string(Plain(m.Append(nil))); !strings.HasSuffix(got, "\n#EXT-X-MEDIA-SEQUENCE:7\n") {
		t.Errorf("got\n%s", got)
	}
	if got := string(WithoutDates(plain.Append(nil))); strings.Contains(got, "DATE") ||
		strings.Count(got, "EXTINF") != 2 {
		t.Errorf("got\n%s", got)
	}
}

// Players know a rendition by the address that the multivariant playlist gave them, its query included.
func TestAsked(t *testing.T) {
	t.Parallel()
	m := Media{
		TargetDuration: 2, Segments: []Segment{{URI: "v/7.m4s", Map: "v/init-0.mp4"}}, Hint: "v/8.0.m4s",
		Reports: []Report{{URI: "a.m3u8", LastMSN: 9, LastPart: 1}, {URI: "270p.m3u8", LastMSN: 8, LastPart: -1}},
	}
	plain := string(m.Append(nil))
	m.Reports[0].URI, m.Reports[1].URI = "a.m3u8?x=1&y=2", "270p.m3u8?x=1&y=2"
	if got, want := string(Asked([]byte(plain), "?x=1&y=2")), string(m.Append(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(Asked([]byte(plain), "")); got != plain {
		t.Errorf("got\n%s", got)
	}
}
