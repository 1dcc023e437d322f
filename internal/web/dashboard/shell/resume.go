package shell

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// maxResumed bounds what was typed into a form that the sign-in page hands on, in bytes: in its own form all of it is
// escaped once more, which has maxForm.
const maxResumed = 20 << 10

// codeEnd is what the address of a form has at its end where the form is shown as it is filled in, and nothing is done.
const codeEnd = "/code"

// resumed marks the request that shows a form again.
type resumed struct{}

// isResumed reports whether a page is shown for somebody whose session had ended when the form was sent.
func isResumed(r *http.Request) bool { return r.Context().Value(resumed{}) != nil }

// pageBefore is the page of the dashboard from which a form was sent; empty: none that is known.
func pageBefore(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || Local(from.RequestURI()) != from.RequestURI() {
		return ""
	}
	return from.RequestURI()
}

// keepForm has the sign-in page keep what was typed into a form that was sent by nobody. It reports false where there
// is nothing to keep.
func (e *entrance) keepForm(r *http.Request, d *door) bool {
	at := strings.TrimSuffix(r.URL.Path, codeEnd)
	if len(r.PostForm) == 0 || !e.showsForm(&http.Request{Method: http.MethodPost, Host: r.Host, URL: codeURL(at)}) {
		return false
	}
	if d.Typed = r.PostForm.Encode(); len(d.Typed) > maxResumed {
		d.Typed = ""
		d.Problem = "Your session has ended, and what you have typed is too long to be kept: " +
			"copy it from the page before."
		return true
	}
	d.Form = at
	d.Problem = "Your session has ended. Sign in again; the form will still have what you typed."
	return true
}

func codeURL(form string) *url.URL { return &url.URL{Path: form + codeEnd} }

// showsForm reports whether a request is for a form as it is filled in.
func (e *entrance) showsForm(r *http.Request) bool {
	_, pattern := e.mux.Handler(r)
	return strings.HasPrefix(pattern, http.MethodPost+" ") && strings.HasSuffix(pattern, codeEnd)
}

// resume shows a form with what was typed into it before the session had ended; nothing is done until it is sent again.
func (e *entrance) resume(w http.ResponseWriter, r *http.Request, d door, session string) bool {
	typed, err := url.ParseQuery(d.Typed)
	if err != nil || d.Form == "" || Local(d.Form) != d.Form {
		return false
	}
	again := r.Clone(context.WithValue(r.Context(), resumed{}, true))
	again.URL = codeURL(d.Form)
	again.RequestURI = again.URL.RequestURI()
	again.Form, again.PostForm = typed, typed
	again.Header.Del("Cookie")
	for _, c := range r.Cookies() {
		if c.Name != e.cookieName(r) {
			again.AddCookie(c)
		}
	}
	again.AddCookie(&http.Cookie{Name: e.cookieName(r), Value: session}) //nolint:gosec // of a request
	if !e.showsForm(again) {
		return false
	}
	e.mux.ServeHTTP(w, again)
	return true
}
