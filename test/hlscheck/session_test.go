package hlscheck

import (
	"net/http"
	"strings"
	"testing"

	"millrace/test/origin"
)

// chaptered is an origin whose multivariant playlist names chapters, which are sent as given.
func chaptered(attributes string, status int, body string) origin.Options {
	o := text(in(master, func(s string) string {
		return s + `#EXT-X-SESSION-DATA:DATA-ID="com.apple.hls.chapters",` + attributes + "\n"
	}))
	o.Respond = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/metadata.json") {
			return false
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
	return o
}

func TestSessionData(t *testing.T) {
	t.Parallel()
	const there = `URI="metadata.json"`
	for name, tt := range map[string]struct {
		o    origin.Options
		rule string // that finds something; empty: none
	}{
		"chapters":        {chaptered(there, http.StatusOK, `[]`), ""},
		"a value":         {chaptered(`VALUE="x"`, http.StatusOK, ""), ""},
		"raw":             {chaptered(there+`,FORMAT=RAW`, http.StatusOK, `plain`), ""},
		"not JSON":        {chaptered(there, http.StatusOK, `[`), "session-data"},
		"refused":         {chaptered(there, http.StatusForbidden, `[]`), "status"},
		"value and URI":   {chaptered(there+`,VALUE="x"`, http.StatusOK, `[]`), "session-data"},
		"nothing is said": {chaptered(`LANGUAGE="en"`, http.StatusOK, `[]`), "session-data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watch(t, tt.o, Options{LowLatency: true})
			for _, rule := range []string{"session-data", "status"} {
				if found(r, rule) != (rule == tt.rule) {
					t.Errorf("%s\n%s", rule, r)
				}
			}
			if u := r.Unchecked("session-data"); len(u) > 0 {
				t.Errorf("rules never applied: %v", u)
			}
		})
	}
}
