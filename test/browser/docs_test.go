package browser_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"millrace/internal/web/api"
	"millrace/test/browser"
	"millrace/test/rig"
)

// TestDocs: the page of the API says how to authenticate, and in front of each operation what its access token must be
// permitted, as the document has it; and finds operations by that.
func TestDocs(t *testing.T) {
	rig.Parallel(t)
	h := api.New(api.Options{})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Security    []struct {
				AccessToken []string `json:"accessToken"`
			} `json:"security"`
		} `json:"paths"`
	}
	made(t, json.Unmarshal(w.Body.Bytes(), &doc))
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	p := browser.Start(t).Open(t, server.URL+api.ReferencePath)
	var shown struct {
		Intro  string            `json:"intro"`
		Needs  map[string]string `json:"needs"`  // by operation: what stands behind its method and path
		Events []string          `json:"events"` // what a search for system:read and event finds
	}
	p.Eval(t, `new Promise((done) => {
		const look = () => {
			const all = [...document.querySelectorAll('section.op')];
			if (!all.length) return setTimeout(look, 50);
			const needs = Object.fromEntries(all.map((s) => [s.id, s.querySelector('.route + p').textContent]));
			const search = document.getElementById('search');
			search.value = 'system:read event';
			search.dispatchEvent(new Event('input'));
			const events = all.filter((s) => !s.hidden).map((s) => s.id);
			done({ intro: document.querySelector('main').textContent, needs, events });
		};
		look();
	})`, &shown)
	if log := p.Log(t); len(log.Errors)+len(log.Console) > 0 {
		t.Errorf("%v %v", log.Errors, log.Console)
	}
	operations := 0
	for _, item := range doc.Paths {
		for _, op := range item {
			operations++
			want := "Needs any access token."
			if roles := op.Security[0].AccessToken; len(roles) > 0 {
				want = "Needs an access token with the permission " + strings.Join(roles, ", ") + "."
			}
			if got := shown.Needs[op.OperationID]; got != want {
				t.Errorf("%s: %q, want %q", op.OperationID, got, want)
			}
		}
	}
	if operations < 50 || operations != len(shown.Needs) {
		t.Errorf("%d operations, %d shown", operations, len(shown.Needs))
	}
	for _, want := range []string{"HTTP Basic", "millrace token create", "401", "403"} {
		if !strings.Contains(shown.Intro, want) {
			t.Errorf("the page does not mention %s", want)
		}
	}
	if found := shown.Events; !slices.Contains(found, "list-events") || slices.Contains(found, "create-webhook") {
		t.Errorf("found %s", found)
	}
}
