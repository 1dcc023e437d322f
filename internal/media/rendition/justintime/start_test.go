package justintime

import (
	"slices"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
)

// TestStartOfOtherPictures: the first picture of a segment behind a discontinuity is decoded when it is presented,
// whatever the source has and however the encoder reorders; presentation times and the segment's end stay.
func TestStartOfOtherPictures(t *testing.T) {
	t.Parallel()
	const n, step = 60, 3000
	for name, tt := range map[string]struct {
		discontinuity, noReorder bool
		later                    int64 // the source: from decoding to presentation
		moved                    bool
	}{
		"goes on":                       {false, false, 2 * step, false},
		"discontinuity":                 {true, false, 2 * step, true},
		"of a source that is reordered": {true, false, 0, true},
		"without reordering":            {true, true, 0, true},
		"of what is stored from before": {true, true, 2 * step, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := Work{
				Timeline: &timeline.Timeline{First: 7, Marks: []timeline.Mark{{}, {Discontinuity: tt.discontinuity}}},
				Video:    &timeline.Rendition{RenditionInfo: timeline.RenditionInfo{Timescale: 90000}},
				Rung:     ladder.Rung{FrameRate: 30, NoReorder: tt.noReorder},
			}
			f := &feed{msn: 8, end: 900000 + n*step}
			var out []picture
			for i := range int64(n) {
				f.dts, f.pts = append(f.dts, 900000+i*step), append(f.pts, 900000+i*step+tt.later)
				shown := i // presented in the order of decoding, or as I P B b b
				if k := i % 4; !tt.noReorder && i > 0 && i < n-3 {
					shown = i - k + [...]int64{2, 4, 2, 1}[k] - [...]int64{3, 0, 0, 0}[k]
				}
				out = append(out, picture{pts: 900000 + shown*step + tt.later, sync: i == 0, data: []byte{byte(i)}})
			}
			want := make([]int64, 0, n)
			for _, p := range out {
				want = append(want, p.pts)
			}
			data, err := w.segment(f, out)
			if err != nil {
				t.Fatal(err)
			}
			fragments, err := cmaf.ParseFragments(data)
			if err != nil || len(fragments) != 1 {
				t.Fatal(fragments, err)
			}
			at, got := int64(fragments[0].BaseMediaDecodeTime), []int64(nil)
			if is := at == out[0].pts; is != tt.moved {
				t.Errorf("decoded at %d, presented at %d", at, out[0].pts)
			}
			for _, s := range fragments[0].Samples {
				if got = append(got, at+int64(s.CompositionOffset)); s.CompositionOffset < 0 || s.Duration == 0 {
					t.Errorf("decoded at %d for %d ticks, presented %d later", at, s.Duration, s.CompositionOffset)
				}
				at += int64(s.Duration)
			}
			if !slices.Equal(got, want) || at != f.end-w.reorder() {
				t.Errorf("presented at %v, want %v; decoding ends at %d", got, want, at)
			}
		})
	}
}
