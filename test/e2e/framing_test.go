package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// TestFraming: Chromium shows the watch and embed pages in frames of the sites that the environment names and of no
// others, says in every frame that there is no video, and shows every other page of the service in none.
func TestFraming(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	id := s.CreateLive(t, "standard", nil).Text("playback_ids.0.id")
	watch, embed, unknown := s.WatchURL(id), s.HTTP+"/embed/"+id, s.HTTP+"/embed/unknown"
	pages := []string{
		watch, embed, unknown,
		s.HTTP + "/docs/", s.HTTP + "/docs/reference",
		s.HTTP + "/openapi.json", s.HTTP + "/publish/", s.HTTP + "/watch/unknown",
	}
	// Each site frames all pages, in the order of the list.
	site := func() string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "<!doctype html><title>site</title><script>let loaded = 0</script>")
			for _, p := range pages {
				_, _ = fmt.Fprintf(w, "<iframe src=%q onload=\"loaded++\"></iframe>", p)
			}
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	named, other := site(), site()
	s.Command(t, "environment", "frame-ancestors", named)
	b := browser.Start(t)
	for address, want := range map[string][]string{named: {watch, embed, unknown}, other: {unknown}} {
		p := b.Open(t, address)
		for loaded, end := 0, time.Now().Add(time.Minute); loaded < len(pages); { // an error page is loaded too
			if p.Eval(t, "loaded", &loaded); time.Now().After(end) {
				t.Fatalf("%d of %q are loaded", loaded, pages)
			}
		}
		frames := p.Frames(t)
		if len(frames) != len(pages) {
			t.Fatalf("frames %q, want %d", frames, len(pages))
		}
		shown := slices.DeleteFunc(frames, func(f string) bool { return f == "chrome-error://chromewebdata/" })
		if !slices.Equal(shown, want) {
			t.Errorf("%s shows %q, want %q; the console says %q", address, shown, want, p.Log(t).Console)
		}
		p.Close(t)
	}
}
