package api

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed docs
var docsFiles embed.FS

// docsPolicy lets the page load itself and the document, nothing else.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func documentConfig(o Options, name string) huma.Config {
	version, url := or(o.Version, "dev"), or(strings.TrimSuffix(o.PublicURL, "/"), "/")
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: name + " API", Version: version,
				Description: "Live and on-demand video. Requests and answers have the wire format of Mux Video, so its client libraries work with " +
					"another base URL.\n\nUnset fields are left out of answers. Fields of a request that the service does not know are ignored. They are " +
					"named in the answer's header X-Ignored-Fields, as are known ones whose feature is not there yet, and a header Warning for each " +
					"says why, with the name that was probably meant; values of the wrong JSON type are refused.",
			},
			Servers:  []*huma.Server{{URL: url}},
			Security: []map[string][]string{{"accessToken": {}}},
			Tags: []*huma.Tag{
				{Name: liveTag, Description: "What an encoder pushes to."},
				{Name: assetTag, Description: "What is played on demand."},
				{Name: "Playback IDs"},
				{Name: "System"},
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"accessToken": {Type: "http", Scheme: "basic", Description: "The access token's ID as user name, its secret as password."},
				},
			},
		},
		Formats:       map[string]huma.Format{jsonType: huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: jsonType,
	}
}

// schemaName names the envelopes after what is in them.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if inner, ok := strings.CutPrefix(name, "Data"); ok {
		return inner + "Response"
	}
	if inner, ok := strings.CutPrefix(name, "List"); ok && inner != "" && t.Kind() == reflect.Struct {
		return inner + "ListResponse"
	}
	return name
}

func (s *server) errorSchema() *huma.Schema {
	return s.schemas.Schema(reflect.TypeFor[Error](), true, "Error")
}

// routeDocument serves the document and the page that shows it, to everyone.
func (s *server) routeDocument() {
	doc := s.huma.OpenAPI()
	tolerate(doc.Components.Schemas)
	markWithoutEffect(doc.Components.Schemas)
	asJSON, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic("the OpenAPI document can not be written: " + err.Error()) // it is made of our own types
	}
	asYAML, err := doc.YAML()
	if err != nil {
		panic("the OpenAPI document can not be written: " + err.Error())
	}
	s.serve("/openapi.json", "application/json", asJSON)
	s.serve("/openapi.yaml", "application/yaml", asYAML)
	for path, file := range map[string]struct{ name, media string }{
		"/docs":         {"docs/page.html", "text/html; charset=utf-8"},
		"/docs/page.js": {"docs/page.js", "text/javascript; charset=utf-8"}, "/docs/page.css": {"docs/page.css", "text/css; charset=utf-8"},
	} {
		content, err := docsFiles.ReadFile(file.name)
		if err != nil {
			panic("embedded file: " + err.Error()) // the compiler put it there
		}
		s.serve(path, file.media, content)
	}
}

// tolerate says in the document what is so: objects may have more fields than it names.
func tolerate(schemas huma.Registry) {
	for _, schema := range schemas.Map() {
		if schema.Type == huma.TypeObject {
			schema.AdditionalProperties = nil
		}
	}
}

// serve answers GET and HEAD of path with content that never changes while the process runs.
func (s *server) serve(path, media string, content []byte) {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	s.mux.HandleFunc(http.MethodGet+" "+path, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", media)
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // ask again: an upgrade changes it
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}
