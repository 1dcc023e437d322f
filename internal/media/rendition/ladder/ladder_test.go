package ladder

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"testing/quick"

	"millrace/internal/media/frame"
)

func names(rungs []Rung) string {
	var out []string
	for _, r := range rungs {
		out = append(out, fmt.Sprintf("%s=%dx%d", r.Name, r.Width, r.Height))
	}
	return strings.Join(out, " ")
}

func TestRungs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		source  Source
		quality Quality
		tier    string
		below   string
		instead string
	}{
		{
			"1080p30",
			Source{1920, 1080, 30, frame.SDR, false},
			Plus, "",
			"720p=1280x720 480p=854x480 270p=480x270",
			"1080p=1920x1080 720p=1280x720 480p=854x480 270p=480x270",
		},
		{
			"upright",
			Source{1080, 1920, 30, frame.SDR, false},
			Plus, "",
			"720p=720x1280 480p=480x854 270p=270x480",
			"1080p=1080x1920 720p=720x1280 480p=480x854 270p=270x480",
		},
		{
			"4K in the default tier is made smaller",
			Source{3840, 2160, 25, frame.SDR, false},
			Plus, "",
			"1080p=1920x1080 720p=1280x720 480p=854x480 270p=480x270",
			"1080p=1920x1080 720p=1280x720 480p=854x480 270p=480x270",
		},
		{
			"4K",
			Source{3840, 2160, 25, frame.SDR, false},
			Plus, "2160p",
			"1440p=2560x1440 1080p=1920x1080 720p=1280x720 480p=854x480 270p=480x270",
			"2160p=3840x2160 1440p=2560x1440 1080p=1920x1080 720p=1280x720 480p=854x480 270p=480x270",
		},
		{
			"premium has every step",
			Source{1280, 720, 60, frame.SDR, false},
			Premium, "",
			"540p=960x540 480p=854x480 360p=640x360 270p=480x270",
			"720p=1280x720 540p=960x540 480p=854x480 360p=640x360 270p=480x270",
		},
		{
			"cinema",
			Source{1920, 800, 24, frame.SDR, false},
			Basic, "", "480p=1152x480 270p=648x270",
			"800p=1920x800 480p=1152x480 270p=648x270",
		},
		{
			"a size of its own",
			Source{500, 500, 30, frame.SDR, false},
			Plus, "", "270p=270x270",
			"500p=500x500 270p=270x270",
		},
		{
			"rows of whole macroblocks",
			Source{1920, 1088, 30, frame.SDR, false},
			Basic, "",
			"720p=1270x720 480p=848x480 270p=476x270", "1088p=1920x1088 720p=1270x720 480p=848x480 270p=476x270",
		},
		{"smaller than any", Source{320, 180, 30, frame.SDR, false}, Plus, "", "", "180p=320x180"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := names(Below(tt.source, tt.quality, Tier(tt.tier))); got != tt.below {
				t.Errorf("below: %s\nwant   %s", got, tt.below)
			}
			if got := names(Instead(tt.source, tt.quality, Tier(tt.tier))); got != tt.instead {
				t.Errorf("instead: %s\nwant     %s", got, tt.instead)
			}
		})
	}
}

// Whatever the source is, its rungs get smaller and cheaper, keep its shape, never exceed it, and fit their level.
func TestRungsOfAnySource(t *testing.T) {
	t.Parallel()
	holds := func(w, h uint16, fps uint8, q, tier uint8) bool {
		s := Source{int(w%7680) + 2, int(h%7680) + 2, float64(fps % 121), frame.SDR, false}
		quality := []Quality{Basic, Plus, Premium}[q%3]
		most := []int{1080, 1440, 2160}[tier%3]
		rungs := Instead(s, quality, most)
		for i, r := range rungs {
			shape := float64(r.Width) / float64(r.Height) / (float64(s.Width) / float64(s.Height))
			switch {
			case r.Width%2 != 0 || r.Height%2 != 0 || r.Bitrate <= 0 || r.Level == 0 ||
				len(r.Codec()) != len("avc1.640028"):
			case min(r.Width, r.Height) > most+1 && min(r.Width, r.Height) > int(float64(most)*tolerance)+1:
			case r.Width > s.Width+1 || r.Height > s.Height+1:
			case min(r.Width, r.Height) > 100 && math.Abs(shape-1) > 0.02:
			case i > 0 && (r.Width*r.Height >= rungs[i-1].Width*rungs[i-1].Height || r.Bitrate >= rungs[i-1].Bitrate):
			default:
				continue
			}
			t.Logf("%+v of %+v in %s up to %d: %+v", r, s, quality, most, rungs)
			return false
		}
		return true
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 20000, Rand: rand.New(rand.NewSource(1))}); err != nil {
		t.Error(err)
	}
}

// A publisher who makes up sizes in a codec that few players know gets no rung for each of them.
func TestLiveRungsAreBounded(t *testing.T) {
	t.Parallel()
	var sources []Source
	for side := 100; side < 1000; side += 2 {
		sources = append(sources, Source{side * 2, side, 30, frame.SDR, true})
		if n := len(Live(sources, Premium, 1080)); n > mostLive {
			t.Fatalf("%d rungs of %d sources", n, len(sources))
		}
	}
	first, all := Live(sources[:1], Premium, 1080), Live(sources, Premium, 1080)
	if !strings.Contains(names(all), names(first)) {
		t.Errorf("%s has not %s, which was offered first", names(all), names(first))
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		source Source
		want   string
	}{
		{Source{1920, 1080, 30, frame.SDR, false}, "avc1.640028"},
		{Source{1920, 1080, 60, frame.SDR, false}, "avc1.64002a"},
		{Source{1280, 720, 30, frame.SDR, false}, "avc1.64001f"},
		{Source{3840, 2160, 60, frame.SDR, false}, "avc1.640034"},
	} {
		if got := Instead(tt.source, Plus, 2160)[0].Codec(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.source, got, tt.want)
		}
	}
}

// A rung takes less than its source and than the one above it, and one that spares nobody anything is of no use.
func TestBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		source Source
		peak   float64 // of the source, bits per second
		useful string
	}{
		{"plenty", Source{1920, 1080, 30, frame.SDR, false}, 6_000_000, "720p=1280x720 480p=854x480 270p=480x270"},
		{"little", Source{1920, 1080, 30, frame.SDR, false}, 700_000, "720p=1280x720 480p=854x480 270p=480x270"},
		{"very little", Source{640, 360, 30, frame.SDR, false}, 128_000, ""},
		{"a screen that hardly changes", Source{1920, 1080, 30, frame.SDR, false}, 192_000, ""},
		{"not known", Source{640, 360, 30, frame.SDR, false}, 0, "270p=480x270"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table := Below(tt.source, Plus, 1080)
			var useful []Rung
			above := tt.peak
			for i, r := range Bound(table, tt.source, tt.peak, 2) {
				if tt.peak > 0 && r.Peak(2) >= above || r.Bitrate != table[i].Bitrate || r.Level != table[i].Level {
					t.Errorf("%s takes %.0f, the one above it %.0f", r.Name, r.Peak(2), above)
				}
				above = r.Peak(2)
				if r.Useful() {
					useful = append(useful, r)
				}
			}
			if got := names(useful); got != tt.useful {
				t.Errorf("useful are %s, want %s", got, tt.useful)
			}
		})
	}
}
