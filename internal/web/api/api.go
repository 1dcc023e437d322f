// Package api is the REST API: the wire format of Mux Video in front of the control plane's services, and its OpenAPI
// document.
//
// A handler decodes, calls one method of one service and encodes; rules, states and defaults are the services'. The
// package must never know media, storage or SQL. It starts no goroutines.
//
// It decides the following itself. Bodies are at most 256 KiB of strict JSON. Wrong JSON types are refused, all of them
// in one response. Unknown fields are ignored and named in the headers X-Ignored-Fields and Warning, because clients of
// newer versions of the wire format send more than we know. null means absent, except in PATCH, where it clears. page
// starts at 1 and limit is 1 to 100; values outside are refused, never clamped.
package api

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/drm"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
	"millrace/internal/control/retention"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/vocabulary"
	"millrace/internal/control/webhook"
	"millrace/internal/web/respond"
)

// Options is what the API needs. Every field without a default named here must be set.
type Options struct {
	Live         live.API
	Assets       asset.API
	Uploads      upload.API
	Received     Received
	Callers      Callers
	Health       Health
	Usage        usage.API
	Webhooks     webhook.API
	Vocabularies vocabulary.API
	Installation Installation
	Viewers      Viewers
	Events       EventLog
	EventForm    EventForm
	Now          func() time.Time // default time.Now
	Logger       *slog.Logger     // default: nowhere
	ServiceName  string           // shown as the organization and the document's title; default Millrace
	Version      string           // of the service, for the document; default dev
	// where clients reach it, without a slash at the end; default: relative to the document
	PublicURL string
}

// Installation is what keeps the service going.
type Installation struct {
	Nodes     Nodes
	Retention retention.API
}

// Viewers is who may watch what is not public.
type Viewers struct {
	Signing      signing.API
	Restrictions restriction.API
	DRM          drm.API
}

// Callers is who may call, how often, and where it is kept who did.
type Callers struct {
	Access  access.API
	Audit   audit.Log
	Limits  Limits
	Clients clientaddr.Finder
	Tracing Tracing // nil: what they ask is in no trace
}

// Tracing makes traces of requests that were let in: strangers would fill them. end is told the status of the response.
type Tracing interface {
	Request(ctx context.Context, header http.Header, method, route, request string) (_ context.Context,
		end func(status int))
}

// Limits are how often somebody may ask; nil: without bounds.
type Limits struct{ Token, Address Limiter }

// Limiter gives how long somebody has to wait before they may ask again; 0: not at all. web/limit's fits.
type Limiter interface {
	Take(key string, now time.Time) time.Duration
}

// unlimited has nobody wait.
type unlimited struct{}

func (unlimited) Take(string, time.Time) time.Duration { return 0 }

// server is the shell around the operations: who calls and how often, bodies, errors and the document. The operations
// are of types of their own, one for each kind of resource.
type server struct {
	access    access.API
	limits    Limits
	clients   clientaddr.Finder
	now       func() time.Time
	log       *slog.Logger
	tracing   Tracing
	public    string // how the outside reaches the service, without a slash at the end
	mux       *http.ServeMux
	huma      huma.API
	schemas   huma.Registry
	templates map[int][][]string // see templatesOf
}

// resource is a kind of resource.
type resource interface {
	// register adds its operations to a server.
	register(on *server)
}

// New returns a handler for /video/v1/…, /system/v1/…, /openapi.json, /openapi.yaml and /docs, the documentation with
// the reference below ReferencePath. It responds to every other path with 404 in the envelope of the API, so it may be
// mounted at the root or under any of these.
func New(o Options) http.Handler {
	s := newServer(o)
	return s.observe(s.limited(s.sameOrigin(s.plainPath(s.mux))))
}

func newServer(o Options) *server {
	setHumaHooks()
	s := &server{
		access: o.Callers.Access, limits: o.Callers.Limits, clients: o.Callers.Clients,
		now: o.Now, log: o.Logger, tracing: o.Callers.Tracing,
		public: o.PublicURL, mux: http.NewServeMux(),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, l := range []*Limiter{&s.limits.Token, &s.limits.Address} {
		if *l == nil {
			*l = unlimited{}
		}
	}
	if o.ServiceName == "" {
		o.ServiceName = "Millrace"
	}
	s.huma = humago.New(s.mux, documentConfig(o, o.ServiceName))
	s.schemas = s.huma.OpenAPI().Components.Schemas
	s.huma.UseMiddleware(s.authenticate, checkParams(s), s.readBody)
	for _, r := range s.resources(o) {
		r.register(s)
	}
	s.routeAbsent()
	s.routeDocument()
	s.routeSite(o)
	s.templates = templatesOf(s.huma.OpenAPI())
	s.mux.HandleFunc("/", s.unrouted)
	return s
}

// resources are all that there are operations of.
func (s *server) resources(o Options) []resource {
	form := assetForm{public: o.PublicURL, now: s.now}
	streams := liveStreams{live: o.Live, assets: o.Assets, now: s.now}
	tokens := accessTokens{access: o.Callers.Access, now: s.now}
	return []resource{
		streams,
		livePlaybackIDs{live: o.Live, now: s.now},
		simulcastTargets{live: o.Live, now: s.now},
		encoderHealth{live: o.Live, health: o.Health},
		assets{assets: o.Assets, form: form, now: s.now},
		assetPlaybackIDs{assets: o.Assets, now: s.now},
		tracks{assets: o.Assets, form: form, now: s.now},
		staticRenditions{assets: o.Assets, form: form, streams: streams, now: s.now},
		embeddedSubtitles{streams: streams},
		generatedSubtitles{assets: o.Assets, form: form, streams: streams, now: s.now},
		uploads{uploads: o.Uploads, received: o.Received, public: o.PublicURL, now: s.now},
		deliveryUsage{usage: o.Usage, now: s.now},
		system{access: o.Callers.Access, name: o.ServiceName},
		tokens,
		environments{access: o.Callers.Access, tokens: tokens, now: s.now},
		auditLog{audit: o.Callers.Audit},
		nodeList{nodes: o.Installation.Nodes},
		retentions{retention: o.Installation.Retention, assets: o.Assets, now: s.now},
		signingKeys{signing: o.Viewers.Signing, now: s.now},
		restrictions{restrictions: o.Viewers.Restrictions, now: s.now},
		drmConfigurations{drm: o.Viewers.DRM},
		vocabularies{vocabularies: o.Vocabularies, now: s.now},
		events{shell: s, log: o.Events, form: o.EventForm, followers: newFollowers()},
		webhooks{webhooks: o.Webhooks, form: o.EventForm, now: s.now},
	}
}

// PlainPath reports whether a path is one that http.ServeMux takes as it is: all operations have such.
func PlainPath(p string) bool { return respond.PlainPath(p) }

// plainPath returns 404 for paths that http.ServeMux would clean (., .., //) and redirect to what is left: a client
// that follows with its method asks something else of something else. DELETE …/playback-ids/.. would delete the live
// stream.
func (s *server) plainPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !PlainPath(r.URL.Path) {
			writeError(w, newError(http.StatusNotFound, typeNotFound, textNoPath))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unrouted responds to what no operation matches: OPTIONS, the wrong method, an unknown path.
func (s *server) unrouted(w http.ResponseWriter, r *http.Request) {
	allowed := s.methods(r)
	switch {
	case len(allowed) == 0:
		writeError(w, s.noPath(r.URL.Path))
	case r.Method == http.MethodOptions:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeError(w,
			newError(http.StatusMethodNotAllowed, typeMethod, "The method must be one of "+strings.Join(allowed, ", ")))
	}
}

// methods lists what r's path can be asked for; nothing for an unknown path.
func (s *server) methods(r *http.Request) []string {
	var allowed []string
	for _, method := range []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		probe := *r
		probe.Method = method
		if _, pattern := s.mux.Handler(&probe); pattern != "" && pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		allowed = append(allowed, http.MethodOptions)
	}
	return allowed
}

// refuseUnread responds to a request whose body nobody reads.
func refuseUnread(w http.ResponseWriter, r *http.Request, e *Error) {
	respond.Unread(w, r)
	writeError(w, e)
}

// writeError writes an error outside of huma.
func writeError(w http.ResponseWriter, e *Error) {
	maps.Copy(w.Header(), e.GetHeaders())
	respond.JSON(w, e.status, e)
}
