package api

import (
	"embed"
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/web/docsite"
	"millrace/internal/web/static"
)

//go:embed docs
var docsFiles embed.FS

// docsPolicy lets the page load itself and the document, nothing else.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ReferencePath is where the page stands that shows the document; its script and style sheet stand beside it.
const ReferencePath = "/docs/reference"

// about introduces the document, in paragraphs.
const about = "Live and on-demand video. Requests and responses have the wire format of Mux Video, so its client " +
	"libraries work with another base URL.\n\n" +
	"Every request needs an access token with HTTP Basic authentication: the token's ID is the user name, its " +
	"secret the password. Create one with \"millrace token create\". Each operation names the permission that it " +
	"requires. A token created without --permission may do everything in its environment; permissions that start " +
	"with installation: belong to tokens created with \"millrace token create --installation\". Without a valid " +
	"token the response is 401; without the permission it is 403 and names the permission.\n\n" +
	"Unset fields are left out of responses. Unknown fields of a request are ignored: the response's header " +
	"X-Ignored-Fields lists them, and a Warning header for each says why, with the name that was probably meant. " +
	"Values of the wrong JSON type are refused."

func documentConfig(o Options, name string) huma.Config {
	version, url := or(o.Version, "dev"), or(strings.TrimSuffix(o.PublicURL, "/"), "/")
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: name + " API", Version: version,
				Description: about,
			},
			Servers:  []*huma.Server{{URL: url}},
			Security: []map[string][]string{{"accessToken": {}}},
			Tags: []*huma.Tag{
				{Name: liveTag, Description: "What encoders push to, and viewers watch live."},
				{Name: assetTag, Description: "Recordings and files that are played on demand."},
				{Name: uploadTag, Description: "Files that browsers and programs send themselves."},
				{Name: "Playback IDs"},
				{Name: restrictionTag, Description: "Where and by which players something may be watched."},
				{Name: signingTag, Description: "Keys that sign the tokens of viewers."},
				{Name: drmTag, Description: "How media of the policy drm is encrypted."},
				{Name: vocabularyTag, Description: "Words that speech recognition is told to expect."},
				{Name: usageTag, Description: "How many seconds of each asset were delivered."},
				{Name: eventTag, Description: "What happened to resources, in order."},
				{Name: webhookTag, Description: "Endpoints that events are sent to."},
				{Name: tokenTag, Description: "Credentials of API requests."},
				{Name: environmentTag, Description: "The tenants of an installation."},
				{Name: auditTag, Description: "The audit log: who changed which resource."},
				{Name: retentionTag, Description: "Which assets are deleted by themselves, and when."},
				{Name: nodeTag, Description: "The processes of the service, and how busy they are."},
				{Name: "System"},
				{Name: absentTag, Description: "What client libraries can call and this service does not have. " +
					"The response is 400 and says why."},
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"accessToken": {
						Type: "http", Scheme: "basic",
						Description: "The access token's ID as user name, its secret as password.",
					},
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

// routeDocument serves the document and the page that shows it, to everyone. The document is written when it is first
// asked for: that takes longer than all else that is made here.
func (s *server) routeDocument() {
	doc := s.huma.OpenAPI()
	tolerate(doc.Components.Schemas)
	s.serve("/openapi.json", "application/json", func() ([]byte, error) { return json.MarshalIndent(doc, "", "  ") })
	s.serve("/openapi.yaml", "application/yaml", doc.YAML)
	for at, file := range map[string]struct{ name, media string }{
		ReferencePath:          {"docs/page.html", "text/html; charset=utf-8"},
		ReferencePath + ".js":  {"docs/page.js", "text/javascript; charset=utf-8"},
		ReferencePath + ".css": {"docs/page.css", "text/css; charset=utf-8"},
	} {
		s.serve(at, file.media, func() ([]byte, error) { return docsFiles.ReadFile(file.name) })
	}
}

// routeSite serves the documentation.
func (s *server) routeSite(o Options) {
	site := docsite.Embedded(docsite.Options{Version: o.Version, Reference: path.Base(ReferencePath)})
	s.mux.Handle(docsite.Path, site)
	s.mux.Handle(docsite.Path+"/", site)
}

// tolerate says in the document what is so: objects may have more fields than it names.
func tolerate(schemas huma.Registry) {
	for _, schema := range schemas.Map() {
		if schema.Type == huma.TypeObject {
			schema.AdditionalProperties = nil
		}
	}
}

// serve responds to GET and HEAD of a path with what content gives, which is asked once: it never changes while the
// process runs.
func (s *server) serve(at, media string, content func() ([]byte, error)) {
	made := sync.OnceValue(func() static.Asset {
		c, err := content()
		if err != nil {
			panic("write " + at + ": " + err.Error()) // it is made of our own types and files
		}
		return static.New(c, media)
	})
	s.mux.HandleFunc(http.MethodGet+" "+at, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", docsPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // ask again: an upgrade changes it
		made().Serve(w, r)
	})
}
