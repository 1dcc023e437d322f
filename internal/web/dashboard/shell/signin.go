package shell

import (
	"net/http"
	"net/url"
	"strings"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/respond"
)

const (
	signInPath  = Path + "/sign-in"
	signOutPath = Path + "/sign-out"
	linkPath    = Path + "/link/"
)

// LinkURL is the address of a link that sets the password.
func LinkURL(public, secret string) string { return public + linkPath + secret }

// entrance is the pages for those who are not signed in.
type entrance struct{ *Shell }

func (e *entrance) route() {
	mux := e.mux
	mux.HandleFunc("GET "+signInPath, e.showSignIn)
	mux.HandleFunc("POST "+signInPath, e.signIn)
	mux.HandleFunc("GET "+linkPath+"{secret}", e.showLink)
	mux.HandleFunc("POST "+linkPath+"{secret}", e.setPassword)
	e.Handle("POST "+signOutPath, "sign-out", Anything, e.signOut)
}

// askToSignIn leads to the sign-in, and from there back to the page that was asked for.
func (e *entrance) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if WantsJSON(r) || wantsStream(r) {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	back := pageBefore(r)
	if r.Method == http.MethodGet {
		back = r.URL.RequestURI()
	}
	if d := (door{Host: r.Host, To: back, Action: signInPath}); r.Method == http.MethodPost && e.keepForm(r, &d) {
		e.renderSignIn(w, r, http.StatusUnauthorized, d)
		return
	}
	to := signInPath
	if back != "" && r.URL.Path != LivePath && r.URL.Path != signOutPath {
		to += "?to=" + url.QueryEscape(back)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// door is the page for those who are not signed in.
type door struct {
	First     bool   // the password is set by a link
	ByToken   bool   // the token's form is open
	NoToken   bool   // it is not offered
	To        string // where to go afterwards
	Form      string // where a form leads that was sent when the session had ended; empty: none was
	Typed     string // what was typed into it
	Host      string
	Action    string
	Problem   string // what is wrong, above the form
	Bad       string // what is wrong with the new password
	TokenID   string
	NoOwner   bool // no password is set yet
	MinLength int
}

func (e *entrance) door(r *http.Request) door {
	return door{
		Host: r.Host, To: r.FormValue("to"), Form: r.PostFormValue("form"), Typed: r.PostFormValue("typed"),
		Action: signInPath, MinLength: access.MinPassword,
	}
}

func (e *entrance) showSignIn(w http.ResponseWriter, r *http.Request) {
	p, err := e.who(r)
	if err == nil {
		http.Redirect(w, r, Local(r.FormValue("to")), http.StatusSeeOther) //nolint:gosec // local sees to it
		return
	}
	d := e.door(r)
	if fault.Is(err, fault.Unauthorized) && p.Session.Token != "" {
		d.Problem = "You were signed out: the access token you signed in with was revoked or has expired."
		e.setCookie(w, r, "")
	}
	e.renderSignIn(w, r, http.StatusOK, d)
}

func (e *entrance) renderSignIn(w http.ResponseWriter, r *http.Request, status int, d door) {
	has, err := e.Sessions.HasPassword(r.Context())
	if err != nil {
		e.fail(w, r, access.Person{}, err)
		return
	}
	d.NoOwner = !has
	e.render(w, r, access.Person{}, status, "door", d)
}

// signIn begins a session by the password or an access token.
func (e *entrance) signIn(w http.ResponseWriter, r *http.Request) {
	d := e.door(r)
	from := e.Clients.Of(r)
	d.TokenID, d.ByToken = cut(r.PostFormValue("token_id")), r.PostFormValue("by") == "token"
	var cookie string
	var err error
	if d.ByToken {
		actor := audit.Actor{Type: audit.AccessToken, ID: d.TokenID}
		cookie, err = e.Sessions.SignInByToken(e.Audited(r, "sign-in", actor, ""), access.Credentials{
			Token: id.Token(d.TokenID), Secret: cut(r.PostFormValue("secret")), From: clientaddr.Network(from),
		}, e.address(r), e.Now())
	} else {
		ctx := e.Audited(r, "sign-in", owner, "")
		cookie, err = e.Sessions.SignIn(ctx, cut(r.PostFormValue("password")), clientaddr.Network(from), e.address(r),
			e.Now())
	}
	if err == nil {
		e.begin(w, r, cookie)
		if !e.resume(w, r, d, cookie) {
			http.Redirect(w, r, Local(d.To), http.StatusSeeOther)
		}
		return
	}
	status, known := doorStatus(err)
	if !known {
		e.fail(w, r, access.Person{}, err)
		return
	}
	if d.Problem = Sentence(err); d.ByToken && fault.Is(err, fault.Unauthorized) {
		d.Problem = "Wrong token ID or secret, or the token was revoked or has expired."
	}
	if status == http.StatusTooManyRequests {
		respond.RetryAfter(w, fault.RetryAfter(err))
	}
	e.renderSignIn(w, r, status, d)
}

// begin gives the browser the cookie of a new session. The session that it had until then is over.
func (e *entrance) begin(w http.ResponseWriter, r *http.Request, cookie string) {
	before, err := r.Cookie(e.cookieName(r))
	if err == nil && len(before.Value) <= maxSecret {
		if err = e.Sessions.Replaced(r.Context(), before.Value); err != nil && !gone(r, err) {
			e.Logger.WarnContext(r.Context(), "the earlier session of a browser could not be ended", "error", err)
		}
	}
	e.setCookie(w, r, cookie)
}

// doorStatus is the status of a sign-in that is refused. known is false where nothing that was typed is at fault.
func doorStatus(err error) (status int, known bool) {
	status = respond.API.Of(err).Code
	return status, status < http.StatusInternalServerError && status != http.StatusRequestEntityTooLarge
}

func (e *entrance) showLink(w http.ResponseWriter, r *http.Request) {
	d := e.linkDoor(r)
	if err := e.Sessions.CheckLink(r.Context(), r.PathValue("secret"), e.Now()); err != nil {
		e.refuseLink(w, r, err)
		return
	}
	e.render(w, r, access.Person{}, http.StatusOK, "door", d)
}

func (e *entrance) linkDoor(r *http.Request) door {
	d := e.door(r)
	d.First, d.Action = true, linkPath+r.PathValue("secret")
	return d
}

func (e *entrance) refuseLink(w http.ResponseWriter, r *http.Request, err error) {
	if !fault.Is(err, fault.NotFound) {
		e.fail(w, r, access.Person{}, err)
		return
	}
	e.render(w, r, access.Person{}, http.StatusNotFound, "refused", refusal{
		"This link does not work any more", "It was used already, or it is older than an hour. " +
			"Who runs the machine makes a new one with: millrace dashboard link",
	})
}

// setPassword uses a link up and signs in.
func (e *entrance) setPassword(w http.ResponseWriter, r *http.Request) {
	ctx := e.Audited(r, "set-dashboard-password", owner, "")
	password := r.PostFormValue("password")
	cookie, err := e.Sessions.SetPassword(ctx, r.PathValue("secret"), password, e.address(r), e.Now())
	switch {
	case err == nil:
		e.begin(w, r, cookie)
		http.Redirect(w, r, LivePath, http.StatusSeeOther)
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.TooMany):
		d := e.linkDoor(r)
		d.Bad = Sentence(err)
		status, _ := doorStatus(err)
		e.render(w, r, access.Person{}, status, "door", d)
	default:
		e.refuseLink(w, r, err)
	}
}

// signOut ends this session, or all of the person.
func (e *entrance) signOut(r *Request) (View, error) {
	v := Redirect(signInPath)
	v.signedOut = true
	return v, e.Sessions.SignOut(r.Context(), r.Person.Session, r.Ticked("everywhere"))
}

// cut bounds what is typed; nothing that long is right.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return text[:min(len(text), maxSecret)]
}
