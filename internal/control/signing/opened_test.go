package signing

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/id"
)

// TestOpened: what is kept of a path is found by the whole of it alone.
func TestOpened(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const playback id.Playback = "playback"
	text := PathPrefix + "v.1.1800000000.key..x." + strings.Repeat("Ab_-9", 4) + "zz"
	var o opened
	o.keep(playback, text, period(now), Path{Until: now.Add(time.Hour)})
	if p, ok := o.find(playback, strings.Clone(text), now); !ok || p.Use != "v" || p.Key != "key" {
		t.Fatalf("%+v, %t", p, ok)
	}
	kept := o.slot(text).Load()
	for i := range len(text) {
		changed := text[:i] + string(text[i]^1) + text[i+1:]
		o.slot(changed).Store(kept) // as a forger chooses it
		if _, ok := o.find(playback, changed, now); ok {
			t.Errorf("found with the byte %d changed", i)
		}
	}
	for _, other := range []string{"", "A", text[1:], text[:len(text)-1], text + "A", strings.ToUpper(text)} {
		o.slot(other).Store(kept)
		if _, ok := o.find(playback, other, now); ok {
			t.Errorf("found by %q", other)
		}
	}
	if _, ok := o.find("other", text, now); ok {
		t.Error("found for another playback ID")
	}
	if _, ok := o.find(playback, text, now.Add(time.Hour)); ok {
		t.Error("found behind its end")
	}
}
