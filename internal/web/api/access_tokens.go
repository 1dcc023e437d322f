package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	tokenTag  = "Access tokens"
	tokenPath = "/system/v1/access-tokens" //nolint:gosec // a path
	tokenItem = tokenPath + "/{access_token_id}"
)

// AccessTokenRef names an access token in a path; exported for huma, which reads embedded fields of exported types
// only.
type AccessTokenRef struct {
	ID string `path:"access_token_id" maxLength:"255"`
}

// AccessToken is an access token as it is shown.
type AccessToken struct {
	ID          string   `json:"id" doc:"The user name for HTTP Basic authentication." example:"8d1f0c1e-0000-4000-8000-000000000001"`
	Name        string   `json:"name" example:"upload page"`
	Permissions []string `json:"permissions" example:"[\"video:read\",\"video:write\"]"`
	CreatedAt   string   `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	ExpiresAt   string   `json:"expires_at,omitempty" doc:"Seconds since the Unix epoch; absent when it does not expire." example:"1641405152"`
	LastUsedAt  string   `json:"last_used_at,omitempty" doc:"Seconds since the Unix epoch, accurate to about a minute; absent if it was never used." example:"1609955552"`
	Secret      string   `json:"secret,omitempty" doc:"The password for HTTP Basic authentication. Only in the response that creates the token."`
}

// AccessTokenCreate asks for an access token.
type AccessTokenCreate struct {
	Name        string   `json:"name,omitempty" doc:"What the token is for; at most 255 characters." example:"upload page"`
	Permissions []string `json:"permissions,omitempty" doc:"Any of video:read, video:write, data:read, data:write, system:read and system:write. Default: those of the calling token." example:"[\"video:read\",\"video:write\"]"`
	ExpiresAt   string   `json:"expires_at,omitempty" doc:"When it expires: RFC 3339, or seconds since the Unix epoch. Default: never." example:"2027-01-01T00:00:00Z"`
}

type accessTokens struct {
	access access.API
	now    func() time.Time
}

func (a accessTokens) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       tokenPath,
		id:         "create-access-token",
		tag:        tokenTag,
		status:     http.StatusCreated,
		permission: systemWrite,
		summary:    "Create an access token",
		text: "Created in the environment of the calling token, with at most that token's permissions. The " +
			"secret is shown only in this response.",
	}, a.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       tokenPath,
		id:         "list-access-tokens",
		tag:        tokenTag,
		permission: systemRead,
		summary:    "List access tokens",
		text:       "Newest first. Revoked tokens are left out.",
	}, a.list)
	handle(on, route{
		method:     http.MethodGet,
		path:       tokenItem,
		id:         "get-access-token",
		tag:        tokenTag,
		permission: systemRead,
		summary:    "Retrieve an access token",
	}, a.get)
	handle(on, route{
		method:     http.MethodDelete,
		path:       tokenItem,
		id:         "delete-access-token",
		tag:        tokenTag,
		status:     http.StatusNoContent,
		permission: systemWrite,
		summary:    "Revoke an access token",
		text:       "Requests with it are refused from now on; every node follows within five seconds.",
	}, a.delete)
}

type createTokenInput struct{ Body AccessTokenCreate }

func (a accessTokens) create(ctx context.Context, in *createTokenInput) (*one[AccessToken], error) {
	own := caller(ctx).Token.Permissions
	if len(in.Body.Permissions) == 0 {
		in.Body.Permissions = own
	}
	for _, p := range in.Body.Permissions {
		if !slices.Contains(own, p) && slices.Contains(access.Permissions(), p) {
			return nil, fault.New(fault.Denied, "%s: %s", textForbidden, p)
		}
	}
	return a.make(ctx, environment(ctx), in.Body)
}

// make makes a token of an environment.
func (a accessTokens) make(ctx context.Context, env id.Environment, body AccessTokenCreate) (*one[AccessToken], error) {
	var problems fault.List
	expires := moment(&problems, "expires_at", body.ExpiresAt)
	for i, p := range body.Permissions {
		if !slices.Contains(access.Permissions(), p) {
			problems.At(index("permissions", i),
				"must be one of: video:read, video:write, data:read, data:write, system:read, system:write")
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	t, secret, err := a.access.CreateToken(ctx, access.TokenInput{
		Environment: env, Name: body.Name, Permissions: body.Permissions, ExpiresAt: expires,
	}, a.now())
	out := wireToken(t)
	out.Secret = secret
	return just(out), err
}

func (a accessTokens) list(ctx context.Context, in *struct{ Page }) (*many[AccessToken], error) {
	return listed(ctx, in.Page, a.access.TokensOf, wireToken)
}

func (a accessTokens) get(ctx context.Context, in *AccessTokenRef) (*one[AccessToken], error) {
	t, err := a.access.TokenOf(ctx, environment(ctx), id.Token(in.ID))
	return just(wireToken(t)), err
}

func (a accessTokens) delete(ctx context.Context, in *AccessTokenRef) (*none, error) {
	return &none{}, a.access.RevokeTokenOf(ctx, environment(ctx), id.Token(in.ID), a.now())
}

func wireToken(t access.Token) AccessToken {
	return AccessToken{
		ID:          string(t.ID),
		Name:        t.Name,
		Permissions: append([]string{}, t.Permissions...),
		CreatedAt:   epoch(t.CreatedAt),
		ExpiresAt:   epochIfAny(t.ExpiresAt),
		LastUsedAt:  epochIfAny(t.LastUsedAt),
	}
}

func epochIfAny(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return epoch(t)
}
