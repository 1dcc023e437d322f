// Package dashboard is what people use in place of the API: pages under /dashboard, HTML that the server renders, with
// forms and links that work without script. It calls the same services as the REST API and decides nothing by itself;
// a person may do what the access token permits that was signed in with, and the owner, who has the password,
// everything. It must never know media, storage or SQL. It starts no goroutines.
package dashboard

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/web/follow"
	"millrace/internal/web/pace"
	"millrace/internal/web/player"
	"millrace/internal/web/static"
	"millrace/internal/web/style"
)

//go:embed assets templates
var files embed.FS

// Path is where the dashboard is.
const Path = "/dashboard"

// policy lets pages load and ask what is of this origin, and nothing else. hls.js runs its worker and feeds the video
// element from blobs, and gives its tracks a data: address: one that is refused shows no captions any more once it was
// turned off.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"media-src 'self' blob: data:; connect-src 'self'; worker-src blob:; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// Options is what the dashboard needs. Every field without a default named here must be set.
type Options struct {
	Services

	Sessions  *access.Sessions
	Health    Health
	Events    EventLog
	Clients   clientaddr.Finder
	Ingest    *Ingest // read when a page is shown, so that it may be filled in until then
	PublicURL string  // where people reach the service, without a slash at the end
	Now       func() time.Time
	Beat      time.Duration // how often open pages are told how the encoder does; 0: every 10 seconds
	Logger    *slog.Logger

	Configured Configured
	Examine    Examine
	EventTypes []string // of all events that can happen
	// ShowEvent is an event as JSON, as the API shows it: without secrets.
	ShowEvent func(ctx context.Context, e event.Event) ([]byte, error)
}

// Services are those that the API has, one for each noun.
type Services struct {
	Access       access.API
	Live         live.API
	Assets       asset.API
	Uploads      upload.API
	Webhooks     webhook.API
	Signing      signing.API
	Restrictions restriction.API
	Nodes        Nodes
}

// Health measures encoders, as for the API.
type Health interface {
	// Health tells how the encoders of live streams do, in their order; brief: without samples. It waits for other
	// nodes no longer than ctx lasts.
	Health(ctx context.Context, all []live.Stream, brief bool) []live.Health
}

// Ingest is where encoders connect; what is empty is not offered.
type Ingest struct {
	RTMP, RTMPS string // URL up to the stream key, without a slash at the end
	SRT         string // host:port
	WHIP        string // URL
}

type server struct {
	Options

	assets static.Assets
	views  views
	mux    *http.ServeMux
	secure string // host over TLS, where a proxy ends it: that of PublicURL

	followers *follow.Places[string, *session]
	tail      *tail
	rows      *rowCache[id.LiveStream, live.Stream]

	videoRows *rowCache[id.Asset, asset.Asset]
	eventRows *rowCache[eventKey, happened]
	counter   *counter
	presses   presses
	looking   chan struct{} // has an element while somebody has everything looked at
}

// Handler serves Path and all below. Requests that change something are refused when another site sends them.
func Handler(o Options) http.Handler {
	s := &server{Options: o, assets: static.Read(files,
		"assets/dashboard.css", "assets/dashboard.js", "assets/follow.js", "assets/list.js",
		"assets/asset.js", "assets/player.js", "assets/uploads.js", "assets/code.js", "assets/pem.js")}
	maps.Copy(s.assets, static.Read(style.Files, "style.css"))
	s.assets.Link(append(slices.Clone(player.Into(s.assets)), "player.js")...)
	if s.Beat == 0 {
		s.Beat = heartbeat
	}
	s.followers = newFollowers()
	s.tail, s.counter = newTail(o.Events), newCounter()
	s.looking = make(chan struct{}, 1)
	s.views = newViews(s.assets)
	s.rows, s.videoRows, s.eventRows = s.streamRows(), s.assetRows(), s.happenedRows()
	foreign := http.NewCrossOriginProtection()
	if u, err := url.Parse(o.PublicURL); err == nil && u.Host != "" {
		if u.Scheme == "https" {
			s.secure = u.Host
		}
		if err := foreign.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			o.Logger.Warn("the dashboard can't read public-url", slog.Any("error", err)) // config has read it
		}
	}
	foreign.SetDenyHandler(http.HandlerFunc(s.foreign))
	s.mux = s.routes()
	return s.headers(foreign.Handler(s.whole(s.mux)))
}

func (s *server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"/static/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.assets.Serve(w, r, r.PathValue("name"))
	})
	mux.Handle("GET "+Path+"/{$}", http.RedirectHandler(livePath, http.StatusFound))
	mux.Handle("GET "+Path, http.RedirectHandler(livePath, http.StatusFound))
	mux.HandleFunc("POST "+Path+"/theme", s.setTheme)
	s.routeSignIn(mux)
	s.routeLive(mux)
	s.routeAssets(mux)
	s.routeUploads(mux)
	s.routeEvents(mux)
	s.routeWebhooks(mux)
	s.routeSettings(mux)
	s.routeLinks(mux)
	s.routeCode(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p, _ := s.who(r) // the page is the same for nobody, without the menu of who is signed in
		s.notFound(w, r, p)
	})
	return mux
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// headers are on every page; none is kept by a cache.
func (s *server) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // over plain HTTP browsers name the origin of a form by it
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// whole refuses a form that can't be read as a whole: what is missing of it would count as left empty.
func (s *server) whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			status, why := http.StatusBadRequest, "The form is invalid; nothing was changed."
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				status, why = http.StatusRequestEntityTooLarge, "The form is larger than 64 KiB; nothing was changed."
			}
			if pace.TooSlow(err) {
				status, why = pace.Status, "The form arrived too slowly; nothing was changed."
			}
			s.refuse(w, r, status, "That did not work", why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// overTLS reports whether the browser came over TLS, here or to a proxy.
func (s *server) overTLS(r *http.Request) bool {
	return r.TLS != nil || s.secure != "" && r.Host == s.secure
}

const themeCookie = "millrace-theme"

// theme is the one that the person has chosen; empty: the system's.
func theme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// setTheme keeps light or dark, and goes back to the page.
func (s *server) setTheme(w http.ResponseWriter, r *http.Request) {
	v := r.PostFormValue("theme")
	if v != "light" && v != "dark" {
		s.refuse(w, r, http.StatusBadRequest, "There is no such theme", "It is light or dark.")
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // no secret; over plain HTTP there is no Secure cookie
		Name: themeCookie, Value: v, Path: Path, MaxAge: 400 * 24 * 3600, Secure: s.overTLS(r),
		SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther) //nolint:gosec // local sees to it
}

// local is an address within the dashboard: another one becomes its first page.
func local(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.Contains(to, "\\") || strings.Contains(u.Path, "//") ||
		!strings.HasPrefix(u.Path, Path+"/") {
		return livePath
	}
	return u.RequestURI()
}

// foreign refuses a form that another site has sent.
func (s *server) foreign(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, http.StatusForbidden, "Sent by another site",
		"This request came from a page that is not part of this dashboard, so nothing was done. "+
			"Where a proxy is in front of Millrace, it has to pass the Host header on, or public-url has to "+
			"name the address in the browser.")
}
