package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"millrace/internal/control/access"
	"millrace/internal/id"
)

// What a token needs for an operation.
const (
	videoRead  = "video:read"
	videoWrite = "video:write"
	anyToken   = ""
)

const permissionMeta = "permission" // the key of an operation's metadata

const (
	maxID     = 255  // characters of any ID
	maxQuery  = 1024 // bytes of one query parameter
	maxSecret = 1024 // bytes
)

// authenticate answers 401 and 403, or puts the caller's identity into the context.
func (s *server) authenticate(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	user, secret, ok := r.BasicAuth()
	if !ok || !credential(user, maxID) || !credential(secret, maxSecret) {
		refuseUnread(w, r, newError(http.StatusUnauthorized, typeUnauth, textUnauth))
		return
	}
	who, err := s.access.Authenticate(r.Context(), id.Token(user), secret, s.now())
	if err != nil {
		refuseUnread(w, r, s.fail(r.Context(), err))
		return
	}
	if need, _ := ctx.Operation().Metadata[permissionMeta].(string); need != anyToken && !slices.Contains(who.Token.Permissions, need) {
		refuseUnread(w, r, newError(http.StatusForbidden, typeForbidden, textForbidden+": "+need))
		return
	}
	next(huma.WithValue(ctx, identityKey, who))
}

// credential says whether s can be one at all; what it may be made of is the service's business.
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
