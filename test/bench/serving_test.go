package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/test/bench/load"
)

// TestMirror: what is compared is the same on both sides, also when what was there before has had the same name; a
// server that sends something else is noticed.
func TestMirror(t *testing.T) {
	t.Parallel()
	sent := "the first part"
	ours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(sent)) // the client may have left
	}))
	defer ours.Close()
	root := t.TempDir()
	opened := map[string][]byte{} // as nginx does, this one keeps what it has opened
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := opened[r.URL.Path]; !is {
			opened[r.URL.Path], _ = os.ReadFile(filepath.Join(root, filepath.Base(r.URL.Path)))
		}
		_, _ = w.Write(opened[r.URL.Path])
	}))
	defer theirs.Close()
	s := &millrace{http: strings.TrimPrefix(ours.URL, "http://")}
	peer := &nginx{http: strings.TrimPrefix(theirs.URL, "http://"), root: root}
	for _, now := range []string{sent, "the second one, which is longer"} {
		sent = now
		copied, length, err := mirror(s, peer, "/part.m4s", offer{file: "part.m4s"})
		if err != nil || string(opened[copied]) != sent || length != int64(len(sent)) {
			t.Errorf("%q is served at %s: %d bytes, %q, %v", sent, copied, length, opened[copied], err)
		}
	}
	opened["/3-part.m4s"] = []byte("another part")
	if _, _, err := mirror(s, peer, "/part.m4s", offer{file: "part.m4s"}); err == nil {
		t.Error("other bytes than ours were taken for the same")
	}
}

// TestEven: both sides of a comparison send as many bytes.
func TestEven(t *testing.T) {
	t.Parallel()
	result := func(shortest, longest int64) load.Result {
		return load.Result{Requests: 2, Bytes: shortest + longest, Shortest: shortest, Longest: longest}
	}
	for _, tt := range []struct {
		name string
		r    load.Result
		move bool
		want bool
	}{
		{"the same", result(1000, 1000), false, true},
		{"shorter once", result(999, 1000), false, false},
		{"longer once", result(1000, 1001), false, false},
		{"none", load.Result{}, false, false},
		{"a playlist that has gone on", result(1000, 1080), true, true},
		{"a playlist that has become another", result(1080, 1080), true, false},
	} {
		err := even(tt.r, 1000, tt.move)
		if (err == nil) != tt.want || tt.move && err != nil && !errors.Is(err, errMoved) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
