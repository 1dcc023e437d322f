package hls_test

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/media/hls"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 120e6, time.FixedZone("", 3600))

// edge is a low-latency playlist with everything in it.
func edge() hls.Media {
	return hls.Media{
		TargetDuration: 2, PartTarget: 335 * time.Millisecond, CanBlock: true, SkipUntil: 12 * time.Second,
		MediaSequence: 7, DiscontinuitySequence: 3,
		Segments: []hls.Segment{
			{URI: "v/7.m4s", Duration: 2 * time.Second, Map: "v/init-0.mp4", Gap: true},
			{URI: "v/8.m4s", Duration: 2002 * time.Millisecond, ProgramDateTime: noon},
			{
				URI: "v/9.m4s", Duration: 666667 * time.Microsecond, ProgramDateTime: noon.Add(2002 * time.Millisecond),
				Discontinuity: true, Map: "v/init-1.mp4",
				Parts: []hls.Part{
					{URI: "v/9.0.m4s", Duration: 333333333 * time.Nanosecond, Independent: true},
					{URI: "v/9.1.m4s", Duration: 333333334 * time.Nanosecond},
				},
			},
		},
		Open: &hls.Segment{
			ProgramDateTime: noon.Add(2669 * time.Millisecond),
			Parts:           []hls.Part{{URI: "v/9.2.m4s", Duration: 300 * time.Millisecond, Independent: true}},
		},
		Hint:    "v/10.1.m4s",
		Reports: []hls.Report{{URI: "a.m3u8", LastMSN: 10, LastPart: 0}, {URI: "b.m3u8", LastMSN: 9, LastPart: -1}},
	}
}

const edgeText = `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12.000000,PART-HOLD-BACK=1.038500,HOLD-BACK=6.000000
#EXT-X-PART-INF:PART-TARGET=0.335000
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:3
#EXT-X-MAP:URI="v/init-0.mp4"
#EXT-X-GAP
#EXTINF:2.000000,
v/7.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-03-04T11:00:00.120Z
#EXTINF:2.002000,
v/8.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="v/init-1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-03-04T11:00:02.122Z
#EXT-X-PART:DURATION=0.333333,URI="v/9.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.333333,URI="v/9.1.m4s"
#EXTINF:0.666667,
v/9.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-03-04T11:00:02.789Z
#EXT-X-PART:DURATION=0.300000,URI="v/9.2.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="v/10.1.m4s"
#EXT-X-RENDITION-REPORT:URI="a.m3u8",LAST-MSN=10,LAST-PART=0
#EXT-X-RENDITION-REPORT:URI="b.m3u8",LAST-MSN=9
`

func TestMediaText(t *testing.T) {
	t.Parallel()
	one := []hls.Segment{{URI: "v/0.m4s", Duration: 4 * time.Second, Map: "v/init-0.mp4"}}
	low := edge()
	delta := edge()
	delta.Skipped, delta.Segments = 2, delta.Segments[2:]
	for _, tt := range []struct {
		name string
		m    hls.Media
		want string
	}{
		{"low latency", low, edgeText},
		{
			"delta update", delta,
			edgeText[:strings.Index(edgeText, "#EXT-X-MAP")] + "#EXT-X-SKIP:SKIPPED-SEGMENTS=2\n" +
				edgeText[strings.Index(edgeText, "#EXT-X-DISCONTINUITY\n"):],
		},
		{
			"recorded",
			hls.Media{
				Type: hls.VOD, TargetDuration: 4, Independent: true, Segments: one, Ended: true,
				Hint: "never after the end",
			},
			"#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-INDEPENDENT-SEGMENTS\n#EXT-X-MEDIA-SEQUENCE:0\n" +
				"#EXT-X-DISCONTINUITY-SEQUENCE:0\n#EXT-X-MAP:URI=\"v/init-0.mp4\"\n#EXTINF:4.000000,\nv/0.m4s\n#EXT-X-ENDLIST\n",
		},
		{
			"growing, a part of it rendered before",
			hls.Media{
				Type: hls.Event, TargetDuration: 4, MediaSequence: 5, Rendered: []byte("#EXTINF:4.000000,\nv/5.m4s\n"),
				Segments: one,
			},
			"#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-MEDIA-SEQUENCE:5\n#EXT-X-DISCONTINUITY-SEQUENCE:0\n" +
				"#EXTINF:4.000000,\nv/5.m4s\n#EXT-X-MAP:URI=\"v/init-0.mp4\"\n#EXTINF:4.000000,\nv/0.m4s\n",
		},
		{
			"other renditions have longer parts",
			hls.Media{TargetDuration: 2, PartTarget: time.Second / 4, PartHoldBack: hls.HoldBack(time.Second)},
			"#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=3.100000,HOLD-BACK=6.000000\n" +
				"#EXT-X-PART-INF:PART-TARGET=0.250000\n#EXT-X-MEDIA-SEQUENCE:0\n#EXT-X-DISCONTINUITY-SEQUENCE:0\n",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := string(tt.m.Append([]byte("before "))); got != "before "+tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestSegmentTextFitsThePlaylist(t *testing.T) {
	t.Parallel()
	m := edge()
	whole := string(m.Append(nil))
	for i := range m.Segments {
		m.Rendered = hls.AppendSegment(m.Rendered, &m.Segments[i])
	}
	m.Segments = nil
	if got := string(m.Append(nil)); got != whole {
		t.Errorf("got\n%s\nwant\n%s", got, whole)
	}
}

func TestSecondsAreDecimal(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                  "0.000000",
		-time.Second:                       "0.000000",
		499:                                "0.000000",
		500:                                "0.000001",
		time.Microsecond:                   "0.000001",
		999999500 * time.Nanosecond:        "1.000000",
		33366667 * time.Nanosecond:         "0.033367",
		12*time.Hour + time.Millisecond:    "43200.001000",
		2*time.Second + 50*time.Nanosecond: "2.000000",
	} {
		s := hls.Segment{URI: "u", Duration: d}
		if got := string(hls.AppendSegment(nil, &s)); got != "#EXTINF:"+want+",\nu\n" {
			t.Errorf("%d ns: %q, want %s", d, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    hls.Media
		want int
	}{{hls.Media{}, 7}, {hls.Media{SkipUntil: time.Second}, 9}, {hls.Media{Skipped: 1}, 9}} {
		if got := tt.m.Version(); got != tt.want {
			t.Errorf("version %d of %+v, want %d", got, tt.m, tt.want)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	m := edge()
	b := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { b = m.Append(b[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMultivariantText(t *testing.T) {
	t.Parallel()
	m := hls.Multivariant{
		Independent: true,
		Renditions: []hls.Rendition{
			{Type: "AUDIO", GroupID: "audio", Name: "Default", Default: true, Channels: 2, URI: "x/a.m3u8"},
			{
				Type: "SUBTITLES", GroupID: "subtitles", Name: "\"Ünï\"\n\x00\u0085,\xff", Language: "pt-BR",
				Autoselect: true, Forced: true, URI: "x/t.m3u8",
				Characteristics: "public.accessibility.transcribes-spoken-dialog",
			},
		},
		Variants: []hls.Variant{
			{
				Bandwidth: 2628123, AverageBandwidth: 2500000, Codecs: []string{"avc1.64001f", "mp4a.40.2"},
				Width: 1280, Height: 720, FrameRate: 30000.0 / 1001,
				Audio: "audio", Subtitles: "subtitles", URI: "x/v.m3u8",
			},
			{NoCaptions: true, URI: "x/w.m3u8"},
		},
	}
	want := `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="Default",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="x/a.m3u8"
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="'Ünï'   ,` + "\ufffd" +
		`",LANGUAGE="pt-BR",DEFAULT=NO,AUTOSELECT=YES,FORCED=YES,CHARACTERISTICS="public.accessibility.transcribes-spoken-dialog",URI="x/t.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=2628123,AVERAGE-BANDWIDTH=2500000,CODECS="avc1.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=29.970,AUDIO="audio",SUBTITLES="subtitles"
x/v.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=1,CLOSED-CAPTIONS=NONE
x/w.m3u8
`
	if got := string(m.Append(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
