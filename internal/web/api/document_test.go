package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"gopkg.in/yaml.v3"
)

var update = flag.Bool("update", false, "write the golden files again")

// golden compares got with testdata/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (run with -update and look at the difference):\ngot:\n%s\nwant:\n%s", name, got, want)
	}
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestDocument(t *testing.T) {
	t.Parallel()
	h := New(Options{PublicURL: "https://video.example.com/", Version: "1.2.3"})
	w := get(t, h, "/openapi.json")
	golden(t, "openapi.json", w.Body.Bytes())
	var fromJSON, fromYAML any
	if err := json.Unmarshal(w.Body.Bytes(), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(get(t, h, "/openapi.yaml").Body.Bytes(), &fromYAML); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(fromJSON)
	b, _ := json.Marshal(fromYAML)
	if !bytes.Equal(a, b) {
		t.Error("the YAML document says something else than the JSON one")
	}
	again := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil)
	again.Header.Set("If-None-Match", w.Header().Get("ETag"))
	w = httptest.NewRecorder()
	h.ServeHTTP(w, again)
	if w.Code != http.StatusNotModified {
		t.Errorf("asked again: %d", w.Code)
	}
}

// TestDocumentRefs follows every reference of the document.
// TestDocumentTags: the tag of each operation is declared, once, as the page and generators of clients sort by it.
func TestDocumentTags(t *testing.T) {
	t.Parallel()
	doc := newServer(Options{}).huma.OpenAPI()
	declared := map[string]int{}
	for _, tag := range doc.Tags {
		declared[tag.Name]++
	}
	used := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
		} {
			if op == nil {
				continue
			}
			if len(op.Tags) != 1 || declared[op.Tags[0]] != 1 {
				t.Errorf("%s %s has the tags %q, of which the document must declare one, once", method, path, op.Tags)
			}
			for _, tag := range op.Tags {
				used[tag] = true
			}
		}
	}
	for tag := range declared {
		if !used[tag] {
			t.Errorf("the tag %q is declared and no operation has it", tag)
		}
	}
}

func TestDocumentRefs(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal(get(t, New(Options{}), "/openapi.json").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	components, _ := doc["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	ids := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
				t.Errorf("%s leads nowhere", ref)
			}
			if name, ok := v["operationId"].(string); ok {
				if ids[name] {
					t.Errorf("operationId %s is used twice", name)
				}
				ids[name] = true
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(doc)
	if len(ids) < 39 {
		t.Errorf("%d operations", len(ids))
	}
}

// TestDocsPage checks that the page loads itself and the document and nothing else.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	h := New(Options{})
	page := get(t, h, ReferencePath)
	if page.Code != http.StatusOK || page.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", page.Code, page.Header())
	}
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") ||
		strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
		t.Errorf("policy %q", policy)
	}
	outside := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}|\burl\(|@import`)
	links := regexp.MustCompile(`(?:href|src)="(/[^"]*)"`)
	loads := paths(links.FindAllStringSubmatch(page.Body.String(), -1))
	for _, path := range append([]string{ReferencePath}, loads...) {
		w := get(t, h, path)
		if w.Code != http.StatusOK || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if strings.HasPrefix(path, ReferencePath) {
			for _, found := range outside.FindAllString(strings.ReplaceAll(w.Body.String(), "https://example.com", ""),
				-1) {
				t.Errorf("%s mentions %s", path, found)
			}
		}
	}
}

func paths(matches [][]string) []string {
	var out []string
	for _, m := range matches {
		out = append(out, m[1])
	}
	return out
}
