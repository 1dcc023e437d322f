package packager_test

import (
	"testing"
	"time"
)

// TestUnlisted tells how much of what was written is in open parts and segments, of the rendition that is furthest
// behind.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		s             script
		part, segment time.Duration
	}{
		"pictures":            {script{fps: 10, gop: 20, seconds: 5.4, noAudio: true}, 200 * ms, 1400 * ms},
		"a part is whole":     {script{fps: 10, gop: 20, seconds: 4.9, noAudio: true}, 0, 900 * ms},
		"sound, that is late": {script{fps: 10, gop: 20, seconds: 4.9}, 0, 900 * ms},
		"sound alone":         {script{seconds: 4.992, noVideo: true}, 0, 0},
		"nothing":             {script{fps: 10, gop: 20}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, low)
			p := b.publication(2*time.Second, 290*ms)
			b.play(p, tt.s)
			part, segment := p.Unlisted()
			t.Logf("%v and %v", part, segment)
			near := func(got, want time.Duration) bool { return got >= want && got < want+290*ms }
			if exact := tt.s.noAudio; exact && (part != tt.part || segment != tt.segment) ||
				!exact && (!near(part, tt.part) || tt.segment > 0 && !near(segment, tt.segment)) {
				t.Errorf("%v and %v, want %v and %v", part, segment, tt.part, tt.segment)
			}
		})
	}
}
