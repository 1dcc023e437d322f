package transform

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
)

// TestMatch: what comes out of the encoder belongs to the picture nearest in time, and a picture too many is dropped
// alone.
func TestMatch(t *testing.T) {
	t.Parallel()
	const ms, none = time.Millisecond, time.Duration(-1)
	for name, c := range map[string]struct{ in, out, want []time.Duration }{
		"exact": {
			in: []time.Duration{0, 33 * ms, 67 * ms}, out: []time.Duration{0, 33 * ms, 67 * ms},
			want: []time.Duration{0, 33 * ms, 67 * ms},
		},
		"rounded": {
			in: []time.Duration{0, ms / 2, ms}, out: []time.Duration{0, ms, ms}, want: []time.Duration{0, ms / 2, ms},
		},
		"far from all": {
			in: []time.Duration{0, 33 * ms, 67 * ms}, out: []time.Duration{0, 45 * ms, 67 * ms},
			want: []time.Duration{0, 33 * ms, 67 * ms},
		},
		"the first is lost": {
			in: []time.Duration{0, 33 * ms, 67 * ms}, out: []time.Duration{33 * ms, 67 * ms},
			want: []time.Duration{33 * ms, 67 * ms},
		},
		"one too many": {
			in: []time.Duration{0, 33 * ms}, out: []time.Duration{0, 33 * ms, 40 * ms},
			want: []time.Duration{0, 33 * ms, none},
		},
		"a hole, and all far away": {
			in: []time.Duration{0, 5000 * ms}, out: []time.Duration{300 * ms, 6000 * ms},
			want: []time.Duration{0, 5000 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run{base: 7 * time.Second}
			for _, at := range c.in {
				r.expect(&frame.Frame{PTS: r.base + at})
			}
			var got []time.Duration
			for _, at := range c.out {
				if s, ok := r.match(flv.Tag{PTS: at + begin}); ok {
					got = append(got, s.pts-r.base)
				} else {
					got = append(got, none)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
