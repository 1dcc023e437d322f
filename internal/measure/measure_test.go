package measure_test

import (
	"reflect"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/measure"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

func TestMeasure(t *testing.T) {
	t.Parallel()
	line := &timeline.Timeline{Renditions: []*timeline.Rendition{
		{
			RenditionInfo: timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 1000},
			Inits: []timeline.Init{
				{Width: 1280, Height: 720, FrameRate: 29.97002997}, {Width: 640, Height: 360, FrameRate: 60}, {},
			},
			Chunks: []timeline.Chunk{{Duration: 4000}, {Duration: 4000, Gap: true}, {Duration: 2000}},
		},
		{
			RenditionInfo: timeline.RenditionInfo{ID: "a", Kind: frame.Audio, Timescale: 48000},
			Inits:         []timeline.Init{{Channels: 1}, {Channels: 6}},
			Chunks: []timeline.Chunk{
				{Duration: 96000, Gap: true}, {Duration: 96000}, {Duration: 480000, Gap: true},
			},
		},
		{
			RenditionInfo: timeline.RenditionInfo{ID: "x", Kind: frame.Audio, Timescale: 1},
			Inits:         []timeline.Init{{Channels: 2}},
		},
		{RenditionInfo: timeline.RenditionInfo{ID: "t", Kind: frame.Text, Timescale: 1}},
	}}
	renditions := measure.Renditions(line)
	facts := measure.Facts(asset.Asset{}, renditions, 10.00000049)
	if want := (asset.Facts{
		Duration: 10, Width: 1280, Height: 720, FrameRate: 60, Channels: 6, HasVideo: true, HasAudio: true,
	}); facts != want {
		t.Errorf("facts %+v, want %+v", facts, want)
	}
	got := measure.Tracks(renditions, 10)
	want := []asset.Track{
		{
			Rendition: "v", Type: asset.VideoTrack, Status: asset.TrackReady, Duration: 10, MaxWidth: 1280,
			MaxHeight: 720, MaxFrameRate: 60,
		},
		{Rendition: "a", Type: asset.AudioTrack, Status: asset.TrackReady, Duration: 4, Primary: true, MaxChannels: 6},
		// nothing is known of its length
		{Rendition: "x", Type: asset.AudioTrack, Status: asset.TrackReady, Duration: 10, MaxChannels: 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tracks\n%+v, want\n%+v", got, want)
	}
	if unknown := measure.Facts(asset.Asset{}, []measure.Rendition{
		{ID: "v", Kind: frame.Video, Inits: []timeline.Init{{Width: 2, Height: 2}}},
	}, 0); unknown.FrameRate != -1 {
		t.Errorf("facts %+v", unknown)
	}
}

// TestOffered compares what an asset is said to be offered in with the ladder that it is offered in.
func TestOffered(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width, height int
		options       assetopt.Options
		want          asset.Size
	}{
		{1280, 720, assetopt.Options{}, asset.Size{}},
		{1920, 1088, assetopt.Options{}, asset.Size{}},
		{3840, 2160, assetopt.Options{}, asset.Size{Width: 1920, Height: 1080}},
		{
			2160, 3840,
			assetopt.Options{MaxResolution: "1440p", VideoQuality: "plus"},
			asset.Size{Width: 1440, Height: 2560},
		},
		{3840, 2160, assetopt.Options{MaxResolution: "2160p"}, asset.Size{}},
		{2048, 1152, assetopt.Options{}, asset.Size{Width: 1280, Height: 720}}, // 1080 is too near
		{3840, 1600, assetopt.Options{}, asset.Size{Width: 2592, Height: 1080}},
	} {
		row := asset.Asset{Options: tt.options}
		rendition := measure.Rendition{
			ID: "v", Kind: frame.Video, Inits: []timeline.Init{{Width: tt.width, Height: tt.height, FrameRate: 30}},
		}
		if got := measure.Facts(row, []measure.Rendition{rendition}, 1).Offered; got != tt.want {
			t.Errorf("%dx%d, %+v: %+v, want %+v", tt.width, tt.height, tt.options, got, tt.want)
		}
	}
}
