package playback_test

import (
	"net/http"
	"testing"
	"time"

	"millrace/internal/media/playback"
)

// TestClipped: a token for a clip is one for its segments, which are two seconds long here, and for nothing that can
// only be sent whole.
func TestClipped(t *testing.T) {
	t.Parallel()
	path := playback.Permit{
		Signed: true, Path: "signed-x.1", Until: time.Now().Add(time.Hour),
		Query: "asset_end_time=8&asset_start_time=4",
	}
	all := path
	all.Query = "max_resolution=720p"
	for target, want := range map[string]int{
		"/m1/v/1.m4s": 403, "/m1/v/2.m4s": 200, "/m1/v/3.m4s": 200, "/m1/v/4.m4s": 403, "/m1/v/4.0.m4s": 403,
		"/m1/v/3.1.m4s": 200, "/m0/v/4.m4s": 403,
		"/m1/v/init-0.mp4": 200, "/m1/a/4.m4s": 403, "/m1/v/4.m4s?asset_start_time=0&asset_end_time=99": 403,
		"/m1/v/9.0.m4s": 403, "/text/t1.vtt": 403,
	} {
		if got := serve(t, &source{permit: path, waited: 8}, http.MethodGet, below+target,
			nil); got.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, got.StatusCode, want)
		}
		if got := serve(t, &source{permit: all, waited: 8}, http.MethodGet, below+target, nil); got.StatusCode != 200 &&
			target != "/m1/a/4.m4s" {
			t.Errorf("%s by a token for all of it: %d", target, got.StatusCode)
		}
		if got := serve(t, &source{waited: 8}, http.MethodGet, "/"+id+target, nil); got.StatusCode != 200 &&
			target != "/m1/a/4.m4s" {
			t.Errorf("%s of what is public: %d", target, got.StatusCode)
		}
	}
	closed := 0
	if got := serve(t, &source{permit: path, closed: &closed}, http.MethodGet, below+"/m1/object/4.m4s",
		nil); got.StatusCode != http.StatusForbidden || closed != 1 {
		t.Errorf("a segment that was waited for and is outside: %d, closed %d times", got.StatusCode, closed)
	}
}
