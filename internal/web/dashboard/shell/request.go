package shell

import (
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/web/respond"
)

// Request is one of somebody who is signed in.
type Request struct {
	*http.Request

	Person access.Person
	undo   *undo // of what it has done, for the page that follows; nil: nothing is said
}

// Handler does what is asked for, and says what is to be seen. What it fails with is told in place of that.
type Handler = func(r *Request) (View, error)

// With loads what a request names before it is handled.
func With[T any](load func(*Request) (T, error), handle func(*Request, T) (View, error)) Handler {
	return func(r *Request) (View, error) {
		v, err := load(r)
		if err != nil {
			return View{}, err
		}
		return handle(r, v)
	}
}

// View is what there is to see: a page, the way to another one, or something for a script.
type View struct {
	Status int
	name   string // of the page
	data   any    // for its template, or of the JSON
	To     string // the address of another page; empty: it is this one
	open   Followed

	signedOut bool // the session is over
}

// Show is a page.
func Show(name string, data any) View { return ShowAs(http.StatusOK, name, data) }

// ShowAs is a page with another status than OK, as a form that was refused has.
func ShowAs(status int, name string, data any) View {
	return View{Status: status, name: name, data: data}
}

// Redirect leads to another page.
func Redirect(to string) View { return View{Status: http.StatusSeeOther, To: to} }

// Reply is JSON for a script.
func Reply(status int, data any) View { return View{Status: status, data: data} }

// KeepOpen is the parts of a page that change, for as long as it is open.
func KeepOpen(page Followed) View { return View{open: page} }

// ErrNothing is there in place of what a request names.
var ErrNothing = fault.New(fault.NotFound, "there is nothing here")

// Resumed reports whether a form is shown for somebody whose session had ended when it was sent.
func (r *Request) Resumed() bool { return isResumed(r.Request) }

// serve lets a handler respond.
func (s *Shell) serve(w http.ResponseWriter, hr *http.Request, p access.Person, h Handler) {
	r := &Request{Request: hr, Person: p}
	v, err := h(r)
	if err != nil {
		s.fail(w, hr, p, err)
		return
	}
	if r.undo != nil {
		s.sayUndo(w, hr, *r.undo)
	}
	if v.signedOut {
		s.setCookie(w, hr, "")
	}
	switch {
	case v.open != nil:
		s.keepUpToDate(w, hr, p, v.open)
	case v.To != "":
		http.Redirect(w, hr, v.To, v.Status)
	case v.name != "":
		s.render(w, hr, p, v.Status, v.name, v.data)
	default:
		respond.JSON(w, v.Status, v.data)
	}
}
