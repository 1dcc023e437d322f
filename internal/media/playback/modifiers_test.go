package playback

import (
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/hls"
)

func sized(shorts ...int) *hls.Multivariant {
	m := &hls.Multivariant{}
	for _, s := range shorts {
		m.Variants = append(m.Variants, hls.Variant{Width: s * 16 / 9, Height: s})
	}
	for _, l := range []string{"de", "en-US", "en", ""} {
		m.Renditions = append(m.Renditions, hls.Rendition{Type: "SUBTITLES", Language: l})
	}
	m.Renditions = append(m.Renditions, hls.Rendition{Type: "AUDIO", Language: "fr"}, hls.Rendition{
		Type: "SUBTITLES", Language: "fr", Forced: true,
	})
	return m
}

func TestModifiersOfTheMultivariant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query    string
		have     []int
		want     []int
		shown    int // index of the subtitles that are the default; -1: none
		passedOn string
	}{
		{"", []int{1080, 720, 270}, []int{1080, 720, 270}, -1, ""},
		{"max_resolution=720p", []int{1080, 720, 270}, []int{720, 270}, -1, ""},
		{"max_resolution=540p", []int{1080, 720, 270}, []int{270}, -1, ""},
		{"max_resolution=270p", []int{1080, 720}, []int{720}, -1, ""},
		{"min_resolution=480p", []int{1080, 720, 270}, []int{1080, 720}, -1, ""},
		{"min_resolution=2160p", []int{1080, 720}, []int{1080}, -1, ""},
		{"min_resolution=480p&max_resolution=720p", []int{1080, 720, 270}, []int{720}, -1, ""},
		{"rendition_order=desc", []int{270, 1080, 720}, []int{1080, 720, 270}, -1, ""},
		{"default_subtitles_lang=en", []int{720}, []int{720}, 2, ""},
		{"default_subtitles_lang=EN-us", []int{720}, []int{720}, 1, ""},
		{"default_subtitles_lang=en-GB", []int{720}, []int{720}, 2, ""},
		{"default_subtitles_lang=de-AT", []int{720}, []int{720}, 0, ""},
		{"default_subtitles_lang=fr", []int{720}, []int{720}, -1, ""},
		{
			"exclude_pdt=true&low_latency=false&x=y&token=secret",
			[]int{720},
			[]int{720},
			-1,
			"?exclude_pdt=true&low_latency=false",
		},
		{"text_hold_back=true", []int{720}, []int{720}, -1, "?text_hold_back=true"},
		{"asset_start_time=1.5&asset_end_time=9", []int{720}, []int{720}, -1, "?asset_end_time=9&asset_start_time=1.5"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			m, err := modifiersOf(tt.query)
			if err != nil {
				t.Fatal(err)
			}
			p := sized(tt.have...)
			m.apply(p, nil)
			var got []int
			for _, v := range p.Variants {
				got = append(got, v.Height)
			}
			shown := slices.IndexFunc(p.Renditions, func(r hls.Rendition) bool { return r.Default })
			if !slices.Equal(got, tt.want) || shown != tt.shown || m.passed != tt.passedOn {
				t.Errorf("%v, subtitles %d, %q", got, shown, m.passed)
			}
		})
	}
}

func TestModifiersAreChecked(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"max_resolution=100p":                                      "max_resolution must be one of",
		"min_resolution=720p&max_resolution=480p":                  "min_resolution must not be above max_resolution",
		"rendition_order=asc":                                      "rendition_order must be: desc",
		"exclude_pdt=yes":                                          "exclude_pdt must be true or false",
		"asset_start_time=-1":                                      "asset_start_time must be",
		"asset_start_time=NaN":                                     "asset_start_time must be",
		"asset_start_time=5&asset_end_time=5":                      "asset_end_time must be after",
		"program_start_time=x":                                     "program_start_time must be",
		"program_start_time=20&program_end_time=10":                "program_end_time must be after",
		"max_resolution=720p;rendition_order=desc":                 "can't be read",
		"asset_end_time=1e300":                                     "asset_end_time must be",
		"program_end_time=99999999999999999999":                    "program_end_time must be",
		"asset_start_time=1&asset_start_time=-5&low_latency=maybe": "low_latency must be true or false",
	} {
		_, err := modifiersOf(query)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(strings.Join(fault.Messages(err), " "), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	m, err := modifiersOf("program_start_time=100&program_end_time=200&asset_start_time=2")
	if want := (Clip{From: 2, Begin: time.Unix(100, 0), End: time.Unix(200, 0)}); err != nil || m.clip != want {
		t.Errorf("%+v, %v", m.clip, err)
	}
}
