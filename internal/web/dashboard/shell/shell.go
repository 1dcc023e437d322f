// Package shell contains what the dashboard's pages have in common: sessions and the sign-in, the layout, forms, the
// way a handler responds, and what keeps open pages up to date. The other packages of the dashboard add their pages to
// it. It must never know what a page is about. It starts no goroutines.
package shell

import (
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/web/follow"
	"millrace/internal/web/pace"
	"millrace/internal/web/player"
	"millrace/internal/web/static"
	"millrace/internal/web/style"
)

// policy lets pages load and ask what is of this origin, and nothing else. hls.js runs its worker and feeds the video
// element from blobs, and gives its tracks a data: address: one that is refused shows no captions any more once it was
// turned off.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"media-src 'self' blob: data:; connect-src 'self'; worker-src blob:; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// Options is what a shell needs.
type Options struct {
	Files     fs.FS            // with the folders static and templates
	Funcs     template.FuncMap // of templates, beside those of the shell
	Sessions  *access.Sessions
	Events    EventLog
	Clients   clientaddr.Finder
	Publish   func() bool // there is a page to publish from the browser
	PublicURL string
	Now       func() time.Time
	Logger    *slog.Logger
}

// Shell is what all pages have in common: sessions, the layout, forms, and what keeps open pages up to date.
type Shell struct {
	Options

	assets static.Assets
	views  views
	mux    *http.ServeMux
	secure string // host over TLS, where a proxy ends it: that of PublicURL

	followers *follow.Places[string, *session]
	tail      *tail
	presses   presses
	entrance  *entrance
}

// New makes a shell with the pages of those who are not signed in, to which rooms add theirs.
func New(o Options) *Shell {
	s := &Shell{
		Options: o, mux: http.NewServeMux(), followers: newFollowers(), tail: newTail(o.Events),
		assets: static.Read(o.Files,
			"static/dashboard.css", "static/dashboard.js", "static/follow.js", "static/list.js",
			"static/asset.js", "static/player.js", "static/uploads.js", "static/code.js", "static/pem.js"),
	}
	maps.Copy(s.assets, static.Read(style.Files, "style.css"))
	s.assets.Link(append(slices.Clone(player.Into(s.assets)), "player.js")...)
	s.views = newViews(o.Files, s.assets, o.Funcs)
	s.mux.HandleFunc("GET "+Path+"/static/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.assets.Serve(w, r, r.PathValue("name"))
	})
	s.mux.Handle("GET "+Path+"/{$}", http.RedirectHandler(LivePath, http.StatusFound))
	s.mux.Handle("GET "+Path, http.RedirectHandler(LivePath, http.StatusFound))
	s.mux.HandleFunc("POST "+Path+"/theme", s.setTheme)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p, _ := s.who(r) // the page is the same for nobody, without the menu of who is signed in
		s.notFound(w, r, p)
	})
	s.entrance = &entrance{s}
	s.entrance.route()
	return s
}

// Handle has a handler respond to somebody who is signed in and has a permission; see person.
func (s *Shell) Handle(pattern, operation, permission string, h Handler) {
	s.mux.Handle(pattern, s.person(operation, permission, h))
}

// Handler serves all pages. Requests that change something are refused when another site sends them.
func (s *Shell) Handler() http.Handler {
	foreign := http.NewCrossOriginProtection()
	if u, err := url.Parse(s.PublicURL); err == nil && u.Host != "" {
		if u.Scheme == "https" {
			s.secure = u.Host
		}
		if err := foreign.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			s.Logger.Warn("the dashboard can't read public-url", slog.Any("error", err)) // config has read it
		}
	}
	foreign.SetDenyHandler(http.HandlerFunc(s.foreign))
	return s.headers(foreign.Handler(s.refuseTruncated(s.mux)))
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// headers are on every page; none is kept by a cache.
func (s *Shell) headers(next http.Handler) http.Handler {
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

// refuseTruncated refuses a form that can't be read as a whole: what is missing of it would count as left empty.
func (s *Shell) refuseTruncated(next http.Handler) http.Handler {
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
func (s *Shell) overTLS(r *http.Request) bool {
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
func (s *Shell) setTheme(w http.ResponseWriter, r *http.Request) {
	v := r.PostFormValue("theme")
	if v != "light" && v != "dark" {
		s.refuse(w, r, http.StatusBadRequest, "There is no such theme", "It is light or dark.")
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // no secret; over plain HTTP there is no Secure cookie
		Name: themeCookie, Value: v, Path: Path, MaxAge: 400 * 24 * 3600, Secure: s.overTLS(r),
		SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, Local(r.PostFormValue("back")), http.StatusSeeOther) //nolint:gosec // local sees to it
}

// Local is an address within the dashboard: another one becomes its first page.
func Local(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.Contains(to, "\\") || strings.Contains(u.Path, "//") ||
		!strings.HasPrefix(u.Path, Path+"/") {
		return LivePath
	}
	return u.RequestURI()
}

// foreign refuses a form that another site has sent.
func (s *Shell) foreign(w http.ResponseWriter, r *http.Request) {
	s.refuse(w, r, http.StatusForbidden, "Sent by another site",
		"This request came from a page that is not part of this dashboard, so nothing was done. "+
			"Where a proxy is in front of Millrace, it has to pass the Host header on, or public-url has to "+
			"name the address in the browser.")
}
