package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"millrace/internal/clientaddr"
	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// What a token needs for an operation.
const (
	videoRead   = access.VideoRead
	videoWrite  = access.VideoWrite
	systemRead  = access.SystemRead
	systemWrite = access.SystemWrite
	anyToken    = ""
)

const permissionMeta = "permission" // the key of an operation's metadata

const (
	maxID     = 255  // characters of any ID
	maxQuery  = 1024 // bytes of one query parameter
	maxSecret = 1024 // bytes
)

// authenticate responds with 401, 403 and 429, or puts the caller's identity into the context, and what the audit log
// is to say of a change.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	now, from := s.now(), s.clients.Of(r)
	user, who, err := s.identify(r, now)
	if err == nil {
		err = tooOften(s.limits.Token.Take(user, now), "this access token")
	}
	op := ctx.Operation()
	if err == nil {
		err = permits(who, op)
	}
	if err != nil {
		refuseUnread(w, r, s.fail(r.Context(), err))
		return
	}
	ctx = huma.WithValue(ctx, identityKey, who)
	if op.Method != http.MethodGet {
		ctx = huma.WithContext(ctx, audit.With(ctx.Context(), auditEntry(ctx, who, now, from)))
	}
	if s.tracing == nil || EndlessPath(r.URL.Path) {
		next(ctx)
		return
	}
	inner, end := s.tracing.Request(ctx.Context(), r.Header, op.Method, op.Path, requestID(ctx.Context()))
	defer func() { end(statusOf(w)) }()
	next(huma.WithContext(ctx, inner))
}

// identify reads who asks, and the user name that was given.
func (s *server) identify(r *http.Request, now time.Time) (user string, who access.Identity, err error) {
	user, secret, ok := r.BasicAuth()
	if !ok || !credential(user, maxID) || !credential(secret, maxSecret) {
		return user, who, fault.New(fault.Unauthorized, textUnauth)
	}
	c := access.Credentials{Token: id.Token(user), Secret: secret, From: clientaddr.Network(s.clients.Of(r))}
	who, err = s.access.Authenticate(r.Context(), c, now)
	return user, who, err
}

// permits is nil when a caller may use an operation.
func permits(who access.Identity, op *huma.Operation) error {
	if need, _ := op.Metadata[permissionMeta].(string); need != anyToken && !who.Token.Permits(need) {
		return fault.New(fault.Denied, "%s: %s", textForbidden, need)
	}
	return nil
}

// tooOften is nil unless somebody has to wait.
func tooOften(wait time.Duration, who string) error {
	if wait <= 0 {
		return nil
	}
	return fault.Later(wait, "%s asks too often; try again later", who)
}

// limited refuses addresses that ask too often, whatever they ask.
func (s *server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := tooOften(s.limits.Address.Take(clientaddr.Network(s.clients.Of(r)), s.now()),
			"this address"); err != nil {
			refuseUnread(w, r, s.fail(r.Context(), err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// credential reports whether s can be one at all; what it may be made of is the service's business.
func credential(s string, limit int) bool {
	return s != "" && len(s) <= limit && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// caller is who authenticate let in.
func caller(ctx context.Context) access.Identity {
	who, _ := ctx.Value(identityKey).(access.Identity)
	return who
}

// environment is the tenant of the caller.
func environment(ctx context.Context) id.Environment { return caller(ctx).Environment.ID }

// checkParams refuses IDs and query parameters that can not be any.
func checkParams(s *server) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		query, err := url.ParseQuery(rawQuery(ctx))
		if err != nil {
			s.refuse(ctx, invalid("the query must be of the form name=value&name=value, percent-encoded"))
			return
		}
		for _, p := range ctx.Operation().Parameters {
			if p.In == "path" && !validID(ctx.Param(p.Name)) {
				s.refuse(ctx, invalid("Failed to parse ID"))
				return
			}
			for _, v := range query[p.Name] {
				if p.In == "query" && (len(v) > maxQuery || !utf8.ValidString(v) || strings.ContainsRune(v, 0)) {
					s.refuse(ctx, invalid(p.Name+" must be at most 1024 bytes of UTF-8 without U+0000"))
					return
				}
			}
		}
		if unknown := unknownParameters(query, ctx.Operation()); len(unknown) > 0 {
			ctx = ignoredReporter{ctx, unknown}
		}
		next(ctx)
	}
}

func rawQuery(ctx huma.Context) string {
	u := ctx.URL()
	return u.RawQuery
}

func validID(s string) bool {
	if s == "" || len(s) > maxID {
		return false
	}
	return isPlain(s)
}
