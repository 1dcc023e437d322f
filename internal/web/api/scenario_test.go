package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// scenario is one request to an API whose services note what they were asked for.
type scenario struct {
	name   string
	method string
	path   string
	body   string
	auth   func(*http.Request) // nil: the token that may do everything
	header map[string]string
	status int
}

// shown are the headers that are part of the wire format.
var shown = []string{"WWW-Authenticate", "Allow", "Retry-After", ignoredHeader, warningHeader}

// runScenarios compares all responses, and what the services were asked for, with one golden file, and every response
// with the document.
func runScenarios(t *testing.T, file string, list []scenario) {
	t.Helper()
	var out bytes.Buffer
	notes := &notebook{}
	s := newServer(notes.options())
	h := s.observe(s.mux)
	for _, sc := range list {
		notes.calls = nil
		r := httptest.NewRequestWithContext(t.Context(), sc.method, sc.path, strings.NewReader(sc.body))
		if sc.auth == nil {
			sc.auth = func(r *http.Request) { r.SetBasicAuth(tokenID, tokenValue) }
		}
		sc.auth(r)
		for k, v := range sc.header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != sc.status {
			t.Errorf("%s: status %d, want %d: %s", sc.name, w.Code, sc.status, w.Body)
		}
		if w.Header().Get(requestIDHeader) == "" || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", sc.name, w.Header())
		}
		validate(t, s, sc, w)
		fmt.Fprintf(&out, "### %s\n%s %s\n", sc.name, sc.method, sc.path)
		if sc.body != "" {
			fmt.Fprintf(&out, "%s\n", brief(sc.body))
		}
		for _, call := range notes.calls {
			fmt.Fprintf(&out, "called %s\n", call)
		}
		fmt.Fprintf(&out, "response %d\n", w.Code)
		for _, name := range shown {
			for _, v := range w.Header().Values(name) {
				fmt.Fprintf(&out, "%s: %s\n", name, v)
			}
		}
		body := strings.ReplaceAll(w.Body.String(), w.Header().Get(requestIDHeader), "{request}")
		var indented bytes.Buffer
		if json.Indent(&indented, []byte(body), "", "  ") == nil {
			body = indented.String()
		}
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(body, "\n"))
	}
	golden(t, file, out.Bytes())
}

func brief(s string) string {
	if len(s) > 4096 {
		return fmt.Sprintf("%q… (%d bytes)", s[:40], len(s))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0xfffd }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// validate checks a response against the document: a status that it names, and a body of the schema it names.
func validate(t *testing.T, s *server, sc scenario, w *httptest.ResponseRecorder) {
	t.Helper()
	op := operationFor(t, s, sc.method, sc.path)
	if op == nil || sc.method == http.MethodHead {
		return
	}
	response := op.Responses[strconv.Itoa(w.Code)]
	if response == nil {
		t.Errorf("%s: the document does not name status %d of %s", sc.name, w.Code, op.OperationID)
		return
	}
	if len(response.Content) == 0 {
		if w.Body.Len() > 0 {
			t.Errorf("%s: a body that the document does not name: %s", sc.name, w.Body)
		}
		return
	}
	if got := w.Header().Get("Content-Type"); got != jsonType {
		t.Errorf("%s: Content-Type %q", sc.name, got)
	}
	checkSchema(t, s, sc.name, response.Content[jsonType].Schema, w.Body.Bytes())
}

// eventData are fields of the data of events, which are any object, and headers that have any names.
var eventData = regexp.MustCompile(`^data(\[\d+\])?\.data\.|\.response_headers\.`)

// checkSchema fails for a body that does not fit, and for a field that the schema does not name.
func checkSchema(t *testing.T, s *server, name string, schema *huma.Schema, body []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	pb, res := huma.NewPathBuffer([]byte{}, 0), &huma.ValidateResult{}
	huma.Validate(s.schemas, schema, pb, huma.ModeReadFromServer, value, res)
	for _, err := range res.Errors {
		t.Errorf("%s: %v", name, err)
	}
	root, err := parseJSON(body)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	shaped, err := shape(root, schema, s.schemas, http.MethodPatch)
	unknown := slices.DeleteFunc(shaped.ignored, func(f ignored) bool {
		return !strings.Contains(f.why, "not known") || eventData.MatchString(f.path)
	})
	if err != nil || len(unknown) > 0 {
		t.Errorf("%s: fields the document does not name: %v %v", name, unknown, err)
	}
}

func operationFor(tb testing.TB, s *server, method, target string) *huma.Operation {
	tb.Helper()
	if method == http.MethodHead {
		method = http.MethodGet
	}
	_, pattern := s.mux.Handler(httptest.NewRequestWithContext(tb.Context(), method, target, nil))
	_, path, _ := strings.Cut(pattern, " ")
	item := s.huma.OpenAPI().Paths[path]
	if item == nil {
		return nil
	}
	return map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch,
		http.MethodDelete: item.Delete,
	}[method]
}

// quietLogger keeps expected failures out of the test's output.
func quietLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
