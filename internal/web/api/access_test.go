package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	nodes "millrace/internal/control/node"
	"millrace/internal/id"
)

func plainToken() access.Token {
	return access.Token{
		ID: "token1", Environment: envID, Name: "upload page", Permissions: []string{videoRead, videoWrite},
		CreatedAt: noon,
		ExpiresAt: noon.AddDate(1, 0, 0), LastUsedAt: noon.Add(time.Hour),
	}
}

func (f fakeAccess) CreateToken(_ context.Context, in access.TokenInput, _ time.Time) (access.Token, string, error) {
	f.note("access.CreateToken", in)
	t := plainToken()
	t.Permissions, t.ExpiresAt, t.LastUsedAt = in.Permissions, in.ExpiresAt, time.Time{}
	return t, "s3cret", outcome(in.Name)
}

func (f fakeAccess) TokensOf(_ context.Context, e id.Environment, page, limit int) ([]access.Token, error) {
	f.note("access.TokensOf", e, page, limit)
	return []access.Token{plainToken()}, nil
}

func (f fakeAccess) TokenOf(_ context.Context, e id.Environment, t id.Token) (access.Token, error) {
	f.note("access.TokenOf", e, t)
	return plainToken(), outcome(string(t))
}

func (f fakeAccess) RevokeTokenOf(_ context.Context, e id.Environment, t id.Token, _ time.Time) error {
	f.note("access.RevokeTokenOf", e, t)
	return outcome(string(t))
}

func plainEnvironment() access.Environment {
	return access.Environment{ID: "env2", Name: "Shop", Kind: "production", CreatedAt: noon}
}

func (f fakeAccess) CreateEnvironment(_ context.Context, name, kind string, _ time.Time) (access.Environment, error) {
	f.note("access.CreateEnvironment", name, kind)
	return plainEnvironment(), outcome(name)
}

func (f fakeAccess) RenameEnvironment(
	_ context.Context, e id.Environment, name string, _ time.Time,
) (access.Environment, error) {
	f.note("access.RenameEnvironment", e, name)
	return plainEnvironment(), outcome(string(e))
}

func (f fakeAccess) Environments(_ context.Context, page, limit int) ([]access.Environment, error) {
	f.note("access.Environments", page, limit)
	return []access.Environment{plainEnvironment()}, nil
}

func (f fakeAccess) Environment(_ context.Context, e id.Environment) (access.Environment, error) {
	f.note("access.Environment", e)
	return plainEnvironment(), outcome(string(e))
}

// notedAudit has one entry.
type notedAudit struct{ *notebook }

func (n notedAudit) AuditLog(_ context.Context, q audit.Query) ([]audit.Entry, error) {
	n.note("audit.AuditLog", q)
	return []audit.Entry{{
		ID: "01942038-9600-7000-8000-000000000001", At: noon, Environment: envID,
		Actor:     audit.Actor{Type: audit.AccessToken, ID: tokenID, Name: "ci"},
		Operation: "delete-asset", Resource: audit.Resource{Type: "asset", ID: "asset1"}, Address: "192.0.2.1",
		RequestID: "request1",
	}}, nil
}

// notedNodes are two nodes: one that is there, and one of an earlier version that has gone.
type notedNodes struct{ *notebook }

func (n notedNodes) Drain(_ context.Context, name id.Node, on bool) error {
	n.note("nodes.Drain", name, on)
	return nil
}

func (n notedNodes) Nodes(context.Context) ([]nodes.Node, error) {
	n.note("nodes.Nodes")
	return []nodes.Node{
		{
			Name: "ingest-1", Run: "run1", Version: "1.2.3", Roles: []string{nodes.RoleAll}, State: nodes.Alive,
			AdvertiseURL: "http://10.0.0.1:8081", Load: nodes.Load{Streams: 2, Viewers: 31, CPU: 0.25},
			StartedAt: noon, SeenAt: noon.Add(time.Minute), ValidUntil: noon.Add(time.Minute),
		},
		{Name: "ingest-2", State: nodes.Gone},
	}, nil
}

func TestAccessTokens(t *testing.T) {
	t.Parallel()
	boss := func(r *http.Request) {
		r.SetBasicAuth(permitsOnly+"installation;read,installation;write", tokenValue)
	}
	writer := func(r *http.Request) { r.SetBasicAuth(permitsOnly+"system;write", tokenValue) }
	const tokens, environments, log = "/system/v1/access-tokens", "/system/v1/environments", "/system/v1/audit-log"
	runScenarios(t, "access.txt", []scenario{
		{
			name: "create a token", method: "POST", path: tokens,
			body:   `{"name":"upload page","permissions":["video:write"],"expires_at":"2027-01-01T00:00:00Z"}`,
			status: 201,
		},
		{name: "create one like one's own", method: "POST", path: tokens, status: 201},
		{
			name: "create one that may more", method: "POST", path: tokens, body: `{"permissions":["video:write"]}`,
			auth: writer, status: 403,
		},
		{
			name: "create one with a permission that there is not", method: "POST", path: tokens,
			body: `{"permissions":["video:delete"],"expires_at":"soon"}`, status: 400,
		},
		{
			name: "create an installation token", method: "POST", path: tokens,
			body: `{"permissions":["installation:write"]}`, status: 400,
		},
		{name: "an installation token creates one", method: "POST", path: tokens, auth: boss, status: 403},
		{name: "list tokens", method: "GET", path: tokens + "?limit=2&page=3", status: 200},
		{name: "get a token", method: "GET", path: tokens + "/token1", status: 200},
		{name: "get an absent one", method: "GET", path: tokens + "/absent", status: 404},
		{name: "revoke a token", method: "DELETE", path: tokens + "/token1", status: 204},
		{name: "revoke an absent one", method: "DELETE", path: tokens + "/absent", status: 404},
		{
			name: "create an environment", method: "POST", path: environments,
			body: `{"name":"Shop","type":"development"}`, auth: boss, status: 201,
		},
		{
			name: "create one with a token of an environment", method: "POST", path: environments,
			body: `{"name":"Shop"}`, status: 403,
		},
		{name: "list environments", method: "GET", path: environments, auth: boss, status: 200},
		{name: "get an environment", method: "GET", path: environments + "/env2", auth: boss, status: 200},
		{name: "get an absent one", method: "GET", path: environments + "/absent", auth: boss, status: 404},
		{
			name: "rename an environment", method: "PATCH", path: environments + "/env2", body: `{"name":"Shop"}`,
			auth: boss, status: 200,
		},
		{
			name: "create a token of an environment", method: "POST", path: environments + "/env2/access-tokens",
			body: `{"name":"first"}`, auth: boss, status: 201,
		},
		{name: "list nodes", method: "GET", path: "/system/v1/nodes", auth: boss, status: 200},
		{name: "drain a node", method: "PUT", path: "/system/v1/nodes/ingest-1/drain", auth: boss, status: 204},
		{name: "resume a node", method: "PUT", path: "/system/v1/nodes/ingest-1/resume", auth: boss, status: 204},
		{
			name: "drain one with a token of an environment", method: "PUT", path: "/system/v1/nodes/ingest-1/drain",
			status: 403,
		},
		{name: "list them with a token of an environment", method: "GET", path: "/system/v1/nodes", status: 403},
		{
			name: "list changes", method: "GET",
			path: log +
				"?limit=1&actor=ci&operation=delete-asset&resource_id=asset1&since=2026-01-01T00:00:00Z&until=1767225600", status: 200,
		},
		{
			name: "list those before", method: "GET", path: log + "?cursor=01942038-9600-7000-8000-000000000001",
			status: 200,
		},
		{name: "list with a wrong cursor", method: "GET", path: log + "?cursor=1&since=then&limit=0", status: 400},
	})
}
