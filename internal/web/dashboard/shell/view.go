package shell

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/web/player"
	"millrace/internal/web/respond"
	"millrace/internal/web/static"
)

// views are the pages by name; each has the layout and the parts.
type views map[string]*template.Template

// pages are the templates that are pages of their own.
var pages = []string{ //nolint:gochecknoglobals // constants
	"door", "refused", "live", "new", "edit", "stream", "target", "ask", "assets", "asset", "addasset", "track",
	"tokens", "newtoken", "defaults", "nodes", "doctor", "keys", "once",
	"restrictions", "restriction", "retention", "signedlink", "madelink",
	"webhooks", "webhook", "webhookform", "events", "event",
}

func newViews(files fs.FS, assets static.Assets, more template.FuncMap) views {
	funcs := template.FuncMap{
		"icon": icon, "clock": clock, "short": func(v any) string { return Short(fmt.Sprint(v)) },
		"iso":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"utc":   UTC,
		"asset": func(name string) string { return Path + "/static/" + assets.Address(name) },
	}
	maps.Copy(funcs, more)
	parts := template.Must(template.New("").Funcs(funcs).ParseFS(files, "templates/layout.html",
		"templates/parts.html", "templates/fields.html", "templates/simulcast.html", "templates/health.html",
		"templates/settings.html", "templates/code.html", "templates/delivery.html",
		"templates/undo.html"))
	template.Must(parts.ParseFS(player.Files, player.Template))
	out := views{}
	for _, name := range pages {
		out[name] = template.Must(template.Must(parts.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return out
}

// page is what every template is given.
type page struct {
	Theme  string
	Back   string // the address of the page
	Place  string // where it belongs to: assets, events, settings; empty: live streams
	Person access.Person
	In     bool   // somebody is signed in
	Write  bool   // and may change videos
	WHIP   bool   // there is a page to publish from the browser
	Set    string // the first page of the settings that the person may see; empty: nobody is signed in
	Log    bool   // the person may see the event log and webhooks
	Now    time.Time
	Undo   *undo  // of what was done before this page; nil: nothing
	Again  bool   // its form was sent when the session had ended, and waits to be sent again
	Press  string // for forms that make something, see presses
	V      any    // the page's own
}

func (s *Shell) page(r *http.Request, p access.Person, v any) page {
	in, place := p.Session.Hash != "", ""
	if strings.HasPrefix(r.URL.Path, AssetsPath) {
		place = "assets"
	}
	if strings.HasPrefix(r.URL.Path, SettingsPath) {
		place = "settings"
	}
	if strings.HasPrefix(r.URL.Path, WebhooksPath) || strings.HasPrefix(r.URL.Path, EventsPath) {
		place = "events"
	}
	return page{
		Theme: theme(r), Back: r.URL.RequestURI(), Place: place, Person: p, In: in, Write: in &&
			p.Permits(Writes), WHIP: s.Publish(), Set: SettingsOf(p),
		Log: in && p.Permits(access.SystemRead), Now: s.Now(), Again: isResumed(r), Press: rand.Text(), V: v,
	}
}

// SettingsOf is the first page of the settings that a person may see. Who is signed in may read videos.
func SettingsOf(p access.Person) string {
	switch {
	case p.Session.Hash == "":
		return ""
	case p.Permits(access.SystemRead):
		return TokensPath
	}
	return RestrictionsPath
}

// Part renders a part of a page by its own template.
func (s *Shell) Part(r *Request, p access.Person, name, part string, v any) (string, error) {
	var b strings.Builder
	err := s.views[name].ExecuteTemplate(&b, part, s.page(r.Request, p, v))
	return b.String(), err
}

// render writes a page: whole, or an error of its own.
func (s *Shell) render(w http.ResponseWriter, r *http.Request, p access.Person, status int, name string, v any) {
	var b bytes.Buffer
	page := s.page(r, p, v)
	page.Undo = s.takeUndo(w, r, p)
	if err := s.views[name].ExecuteTemplate(&b, "layout", page); err != nil {
		s.Logger.ErrorContext(r.Context(), "render page of the dashboard", slog.String("page", name),
			slog.Any("error", err))
		http.Error(w, "The page can't be shown; see the service's log for the reason.", http.StatusInternalServerError)
		return
	}
	body, head := b.Bytes(), w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Vary", "Accept-Encoding")
	// The response to a form may show a secret beside what was typed, of which a length would tell.
	if r.Method == http.MethodGet && static.AcceptsGzip(r.Header.Get("Accept-Encoding")) {
		body = static.Zip(body)
		head.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has gone needs no page
}

// refusal is a page that says why there is no other.
type refusal struct{ Title, Text string }

func (s *Shell) refuse(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	s.render(w, r, access.Person{}, status, "refused", refusal{title, text})
}

func (s *Shell) notFound(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.render(w, r, p, http.StatusNotFound, "refused", refusal{
		"There is nothing here",
		"It may have been deleted, may belong to another environment, or the address may be incomplete.",
	})
}

// fail says what went wrong. What is ours to mend is logged, and not shown.
func (s *Shell) fail(w http.ResponseWriter, r *http.Request, p access.Person, err error) {
	status, why := respond.Page.Of(err).Code, refusal{"That did not work", Sentence(err)}
	switch status {
	case http.StatusNotFound:
		s.notFound(w, r, p)
		return
	case http.StatusServiceUnavailable:
		s.Logger.WarnContext(r.Context(), "dependency unavailable", slog.Any("error", err))
		respond.RetryAfter(w, 0)
		why = refusal{
			"Not available at the moment", "The service is waiting for its database. Reload this page in a moment.",
		}
	case http.StatusInternalServerError:
		if gone(r, err) {
			return
		}
		s.Logger.ErrorContext(r.Context(), "dashboard request failed", slog.String("path", r.URL.Path),
			slog.Any("error", err))
		why = refusal{
			"Something went wrong here", "It is not your fault. The log of the service says what happened, at " +
				s.Now().UTC().Format(time.TimeOnly) + " UTC.",
		}
	}
	s.render(w, r, p, status, "refused", why)
}

// icons are drawn on 16 × 16.
var icons = map[string]string{ //nolint:gochecknoglobals // a table
	"live": `<circle cx="8" cy="8" r="1.6"/><path d="M5 11.2a4.5 4.5 0 0 1 0-6.4M11 4.8a4.5 4.5 0 0 1 0 6.4` +
		`M2.9 13.2a7.3 7.3 0 0 1 0-10.4M13.1 2.8a7.3 7.3 0 0 1 0 10.4"/>`,
	"plus":   `<path d="M8 3v10M3 8h10"/>`,
	"search": `<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.5 3.5"/>`,
	"copy": `<rect x="5.5" y="5.5" width="8" height="8" rx="1.2"/><path d="M10.5 5.5v-2a1 1 0 0 0-1-1` +
		`h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2"/>`,
	"camera": `<rect x="1.5" y="4" width="9" height="8" rx="1.2"/><path d="m10.5 7 4-2.2v6.4l-4-2.2"/>`,
	"book": `<path d="M8 4.2C6.6 3.2 4.6 2.9 2.5 3v9.2c2.1-.1 4.1.2 5.5 1.2 1.4-1 3.4-1.3 5.5-1.2V3` +
		`c-2.1-.1-4.1.2-5.5 1.2Zm0 0v9.2"/>`,
	"code":  `<path d="M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5"/>`,
	"theme": `<circle cx="8" cy="8" r="6"/><path d="M8 2v12A6 6 0 0 0 8 2z" fill="currentColor"/>`,
	"me":    `<circle cx="8" cy="5.5" r="2.8"/><path d="M2.8 14a5.4 5.4 0 0 1 10.4 0"/>`,
	"out":   `<path d="M9 2.5h4.5V7M13.5 2.5 7.5 8.5M11.5 9.5v4h-9v-9h4"/>`,
	"stop":  `<rect x="3.5" y="3.5" width="9" height="9" rx="1"/>`,
	"key":   `<circle cx="5.2" cy="10.8" r="3"/><path d="m7.4 8.6 6-6M11 5l2 2"/>`,
	"lock":  `<rect x="3" y="7" width="10" height="7" rx="1.2"/><path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2"/>`,
	"bin":   `<path d="M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9"/>`,
	"eye":   `<path d="M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z"/><circle cx="8" cy="8" r="1.8"/>`,
	"more":  `<path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2.4"/>`,
	"warn":  `<path d="M8 2 14.5 13.5h-13z"/><path d="M8 6.5v3M8 11.6v.1"/>`,
	"fault": `<path d="M8 1.6 14.4 8 8 14.4 1.6 8z"/><path d="M8 5v3.5M8 10.6v.1"/>`,
	"check": `<circle cx="8" cy="8" r="6.2"/><path d="m5.2 8.2 2 2 3.6-4.2"/>`,
	"film": `<rect x="1.75" y="2.75" width="12.5" height="10.5" rx="1"/>` +
		`<path d="M4.75 2.75v10.5M11.25 2.75v10.5M1.75 8h3M11.25 8h3"/>`,
	"bolt":  `<path d="M9.2 1.5 3 9.2h4.4l-.8 5.3L13 6.8H8.4z"/>`,
	"again": `<path d="M13.2 6.5A5.5 5.5 0 1 0 13.5 9M13.5 2.5v4h-4"/>`,
	"skip":  `<path d="M3.5 3v10l6.5-5zM12.5 3v10"/>`,
	"gear": `<circle cx="8" cy="8" r="2.2"/><path d="M8 1.5v2.3M8 12.2v2.3M1.5 8h2.3M12.2 8h2.3` +
		`M3.4 3.4 5 5M11 11l1.6 1.6M3.4 12.6 5 11M11 5l1.6-1.6"/>`,
	"play": `<path d="M4.5 2.6v10.8c0 .5.5.8.9.5l8-5.4a.6.6 0 0 0 0-1l-8-5.4c-.4-.3-.9 0-.9.5z"/>`,
}

// icon draws one; a name that is not there is a mistake of a template.
func icon(name string) (template.HTML, error) {
	inner, ok := icons[name]
	if !ok {
		return "", fmt.Errorf("there is no icon %q", name)
	}
	const before, after = `<svg class="i" viewBox="0 0 16 16" aria-hidden="true">`, `</svg>`
	return template.HTML(before + inner + after), nil //nolint:gosec // the table's
}
