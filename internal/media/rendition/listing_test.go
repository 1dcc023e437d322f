package rendition_test

import (
	"reflect"
	"slices"
	"testing"

	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/rendition"
	"millrace/internal/media/timeline"
)

// half is a set with one rendition that takes 100 bits per second.
type half struct{ rendition.None }

func (half) Variants(shared hls.Variant) rendition.Offer {
	shared.URI, shared.Bandwidth = "half.m3u8", shared.Bandwidth+100
	return rendition.Offer{Source: true, Below: []hls.Variant{shared}}
}

// TestListing: a variant takes what its picture takes and the sound that takes most, and names every codec that a
// player may meet; sound that is alone is a variant, and more than one is a group.
func TestListing(t *testing.T) {
	t.Parallel()
	aac := []string{"mp4a.40.2"}
	inits := func(codec string) []timeline.Init { return []timeline.Init{{Codec: codec}} }
	picture := func(l *rendition.Listing) {
		all := []timeline.Init{{Codec: "avc1.64001f"}, {Codec: "hvc1.2", Range: frame.PQ}, {Codec: "avc1.64001f"}}
		size := hls.Variant{Width: 640, Height: 360, NoCaptions: true}
		l.Picture(rendition.Track{ID: "v", Inits: all, Peak: 10.5, Average: 5.5}, size)
	}
	sound := func(l *rendition.Listing, id, codec string, peak float64) {
		l.Sound(rendition.Track{ID: id, Inits: inits(codec), Peak: peak, Average: peak / 2}, hls.Rendition{Name: id})
	}
	audio := func(id string) hls.Rendition {
		return hls.Rendition{Type: "AUDIO", GroupID: "audio", Name: id, Autoselect: true, URI: id + ".m3u8"}
	}
	words := hls.Rendition{Type: "SUBTITLES", GroupID: "subtitles", Name: "words", Autoselect: true, URI: "t.m3u8"}
	for name, tt := range map[string]struct {
		of         func(l *rendition.Listing)
		below      rendition.Set
		variants   []hls.Variant
		renditions []hls.Rendition
	}{
		"a picture with two sounds and text": {
			func(l *rendition.Listing) {
				sound(l, "a", "mp4a.40.2", 2)
				l.Text("t", hls.Rendition{Name: "words"})
				sound(l, "b", "opus", 4)
				picture(l)
			}, half{}, []hls.Variant{
				{
					Bandwidth: 15, AverageBandwidth: 8, Codecs: []string{"avc1.64001f", "hvc1.2", "mp4a.40.2", "opus"},
					Width: 640, Height: 360, Range: "PQ", Audio: "audio", Subtitles: "subtitles", NoCaptions: true,
					URI: "v.m3u8",
				},
				{
					Bandwidth: 104, AverageBandwidth: 2, Codecs: []string{"mp4a.40.2", "opus"},
					Audio: "audio", Subtitles: "subtitles", NoCaptions: true, URI: "half.m3u8",
				},
			}, []hls.Rendition{audio("a"), words, audio("b")},
		},
		"a picture alone": {
			picture, rendition.None{}, []hls.Variant{{
				Bandwidth: 11, AverageBandwidth: 6, Codecs: []string{"avc1.64001f", "hvc1.2"},
				Width: 640, Height: 360, Range: "PQ", NoCaptions: true, URI: "v.m3u8",
			}}, nil,
		},
		"sound alone": {
			func(l *rendition.Listing) {
				sound(l, "a", "mp4a.40.2", 2)
				l.Text("t", hls.Rendition{Name: "words"})
			}, rendition.None{}, []hls.Variant{
				{Bandwidth: 2, AverageBandwidth: 1, Codecs: aac, Subtitles: "subtitles", URI: "a.m3u8"},
			}, []hls.Rendition{words},
		},
		"two sounds alone": {
			func(l *rendition.Listing) { sound(l, "a", "mp4a.40.2", 2); sound(l, "b", "mp4a.40.2", 2) },
			rendition.None{},
			[]hls.Variant{{Bandwidth: 2, AverageBandwidth: 1, Codecs: aac, Audio: "audio", URI: "a.m3u8"}},
			[]hls.Rendition{audio("a"), audio("b")},
		},
	} {
		var l rendition.Listing
		tt.of(&l)
		m := l.Multivariant(tt.below, true)
		if !reflect.DeepEqual(m.Variants, tt.variants) {
			t.Errorf("%s: variants %+v\nwant %+v", name, m.Variants, tt.variants)
		}
		if !slices.Equal(m.Renditions, tt.renditions) || !m.Independent {
			t.Errorf("%s: renditions %+v\nwant %+v", name, m.Renditions, tt.renditions)
		}
	}
}
