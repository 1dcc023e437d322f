package shell

import (
	"context"
	"net/http"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const maxSecret = 1024 // bytes of what is typed

// cookieName is that of the session. Browsers take __Host- only with Secure, for the whole host, from the host itself
// (RFC 6265bis).
func (s *Shell) cookieName(r *http.Request) string {
	if s.overTLS(r) {
		return "__Host-millrace"
	}
	return "millrace"
}

func (s *Shell) setCookie(w http.ResponseWriter, r *http.Request, value string) {
	c := &http.Cookie{ //nolint:gosec // over plain HTTP browsers take no Secure cookie
		Name: s.cookieName(r), Value: value, Path: "/", MaxAge: int(access.SessionLife.Seconds()),
		HttpOnly: true, Secure: s.overTLS(r), SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// What a page needs. The owner has it always.
const (
	Anything = ""
	Reads    = access.VideoRead
	Writes   = access.VideoWrite
	Owns     = "owner" // no token permits it
)

// who is whose request it is.
func (s *Shell) who(r *http.Request) (access.Person, error) {
	c, err := r.Cookie(s.cookieName(r))
	if err != nil || len(c.Value) > maxSecret {
		return access.Person{}, fault.New(fault.Unauthorized, "nobody is signed in")
	}
	return s.Sessions.Person(r.Context(), c.Value, s.Now())
}

// person lets somebody who is signed in and has a permission have a page. Changes are made in the name of an
// operation, which the audit log has; empty: nothing is changed.
func (s *Shell) person(
	operation, permission string, h Handler,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.who(r)
		if fault.Is(err, fault.Unauthorized) {
			s.entrance.askToSignIn(w, r)
			return
		}
		if err != nil {
			s.fail(w, r, p, err)
			return
		}
		if permission != Anything && !p.Permits(permission) {
			why := "The access token that you signed in with lacks the permission " + permission + "."
			if permission == Owns {
				why = "This is for the owner, who signs in with the password."
			}
			s.render(w, r, p, http.StatusForbidden, "refused", refusal{"You may not do this", why})
			return
		}
		if operation != "" {
			r = r.WithContext(s.Audited(r, operation, ActorOf(p), p.Environment.ID))
		}
		s.once(w, r, p, h)
	})
}

// ActorOf is who the audit log has for a person.
func ActorOf(p access.Person) audit.Actor {
	if p.Session.Token == "" {
		return owner
	}
	return audit.Actor{Type: audit.AccessToken, ID: string(p.Token.ID), Name: p.Token.Name}
}

var owner = audit.Actor{Type: audit.Dashboard, Name: "owner"} //nolint:gochecknoglobals // constant

// Audited has changes say in the audit log and in their events where they come from.
func (s *Shell) Audited(r *http.Request, operation string, a audit.Actor, env id.Environment) context.Context {
	request := id.NewUUID()
	e := audit.Entry{
		At: s.Now(), Environment: env, Operation: operation, Actor: a, Address: s.address(r),
		RequestID: request,
	}
	for _, n := range nouns {
		if named := r.PathValue(n.param); named != "" {
			e.Resource = audit.Resource{Type: n.noun, ID: named}
		}
	}
	return event.WithRequest(audit.With(r.Context(), e), request)
}

// nouns are what the parts of a path name; the last one is what a change is about.
var nouns = []struct{ param, noun string }{ //nolint:gochecknoglobals // a table
	{"id", "live_stream"},
	{"target", "simulcast_target"},
	{"asset", "asset"},
	{"track", "track"},
	{"playback", "playback_id"},
	{"upload", "upload"},
	{"token", "access_token"},
	{"key", "signing_key"},
	{"restriction", "playback_restriction"},
	{"webhook", webhook.EventObject},
}

func (s *Shell) address(r *http.Request) string {
	if a := s.Clients.Of(r); a.IsValid() {
		return a.String()
	}
	return ""
}

// WantsJSON reports whether a script asks.
func WantsJSON(r *http.Request) bool { return r.Header.Get("Accept") == "application/json" }
