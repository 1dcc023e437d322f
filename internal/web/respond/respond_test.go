package respond_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/web/respond"
)

// TestStatus is the table of kinds and statuses, by surface.
func TestStatus(t *testing.T) {
	t.Parallel()
	kinds := []fault.Kind{
		fault.Internal, fault.Invalid, fault.NotFound, fault.Conflict, fault.Unauthorized, fault.Denied,
		fault.TooLarge, fault.NotReady, fault.Unavailable, fault.TooMany,
	}
	for surface, want := range map[respond.Surface][]int{
		respond.API:      {500, 400, 404, 400, 401, 403, 413, 400, 503, 429},
		respond.Playback: {500, 400, 404, 400, 403, 403, 400, 412, 503, 429},
		respond.Licence:  {500, 400, 404, 400, 403, 403, 413, 400, 503, 503},
		respond.Counts:   {500, 400, 404, 400, 403, 403, 400, 400, 503, 429},
		respond.Upload:   {500, 400, 404, 410, 403, 403, 413, 410, 503, 503},
		respond.Page:     {500, 409, 404, 409, 409, 409, 409, 409, 503, 409},
		respond.Form:     {500, 400, 404, 409, 401, 403, 413, 400, 503, 429},
		respond.Node:     {500, 400, 404, 409, 401, 403, 413, 412, 503, 429},
	} {
		for i, kind := range kinds {
			if got := surface.Of(fault.New(kind, "x")); got.Code != want[i] {
				t.Errorf("surface %d tells kind %d as %d, want %d", surface, kind, got.Code, want[i])
			}
		}
	}
	if got := respond.API.Of(errors.New("x")); got != (respond.Status{Code: 500, Type: "internal_error"}) {
		t.Errorf("an unmarked error is told as %v", got)
	}
}

// TestKind: a node reads back the kind that another one told; of what a surface tells for several there is none.
func TestKind(t *testing.T) {
	t.Parallel()
	for kind := fault.Internal; kind <= fault.TooMany; kind++ {
		got, ok := respond.Node.Kind(respond.Node.Of(fault.New(kind, "x")))
		if got != kind || !ok {
			t.Errorf("kind %d is read as %d, %t", kind, got, ok)
		}
	}
	for name, status := range map[string]respond.Status{
		"another status": {Code: 409, Type: "denied"}, "another type": {Code: 403, Type: "forbidden"}, "none": {},
	} {
		if got, ok := respond.Node.Kind(status); ok {
			t.Errorf("%s is read as kind %d", name, got)
		}
	}
	if got, ok := respond.API.Kind(respond.API.Of(fault.New(fault.Conflict, "x"))); ok {
		t.Errorf("what several kinds are told as is read as kind %d", got)
	}
}

// TestFail: what a caller did is told, what is ours to mend is not.
func TestFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err        error
		want, head string
	}{
		"input": {fault.At(fault.Invalid, "kids", "must be <few>"), "kids must be <few>", ""},
		"ours":  {errors.New("secret"), "The service could not respond because of an error of its own", ""},
		"away": {
			fault.New(fault.Unavailable, "secret"),
			"The service is not available at the moment; try again", "1",
		},
	} {
		w := httptest.NewRecorder()
		logged := false
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		respond.Licence.Fail(w, r, tt.err, func(context.Context, error) { logged = true })
		if logged != (w.Code == http.StatusInternalServerError) {
			t.Errorf("%s: logged: %t", name, logged)
		}
		var body struct {
			Error respond.Error `json:"error"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %v, %q", name, err, w.Body)
		}
		if len(body.Error.Messages) != 1 || body.Error.Messages[0] != tt.want ||
			w.Header().Get("Retry-After") != tt.head {
			t.Errorf("%s: told %q, %v", name, body.Error.Messages, w.Header())
		}
	}
	w := httptest.NewRecorder()
	respond.Refuse(w, 400, respond.Error{Type: "t"})
	if got := strings.TrimSpace(w.Body.String()); got != `{"error":{"type":"t","messages":[]}}` {
		t.Errorf("without messages %s", got)
	}
}

// FuzzPaths: a path is clean where path.Clean leaves it alone.
func FuzzPaths(f *testing.F) {
	for _, p := range []string{"", "/", "//", "/a", "/a/", "/a//", "/a/../b", "/.a", "a", "/a/.", "/./"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		clean := path.Clean(p)
		if got := respond.CleanPath(p); got != (clean == p) {
			t.Errorf("%q is clean: %t", p, got)
		}
		if got := respond.PlainPath(p); got != (p == clean || p == clean+"/" && clean != "/") {
			t.Errorf("%q is plain: %t", p, got)
		}
	})
}
