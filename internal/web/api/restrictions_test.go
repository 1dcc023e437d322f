package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"millrace/internal/control/restriction"
	"millrace/internal/id"
)

// fakeRestrictions responds with the same restriction every time.
type fakeRestrictions struct{ *notebook }

func plainRestriction() restriction.Restriction {
	return restriction.Restriction{
		ID: "restriction1", Environment: envID, CreatedAt: noon, UpdatedAt: noon.Add(time.Hour),
		Referrer:  restriction.Referrer{AllowedDomains: []string{"*.example.com"}},
		UserAgent: restriction.UserAgent{AllowNone: true},
	}
}

func (f *fakeRestrictions) Create(
	_ context.Context, _ id.Environment, referrer restriction.Referrer, agent restriction.UserAgent, _ time.Time,
) (restriction.Restriction, error) {
	f.note("restriction.Create", referrer, agent)
	if len(referrer.AllowedDomains) > 0 {
		return plainRestriction(), outcome(referrer.AllowedDomains[0])
	}
	return plainRestriction(), nil
}

func (f *fakeRestrictions) Get(
	_ context.Context, _ id.Environment, r id.PlaybackRestriction,
) (restriction.Restriction, error) {
	f.note("restriction.Get", r)
	return plainRestriction(), outcome(string(r))
}

func (f *fakeRestrictions) List(
	_ context.Context, _ id.Environment, page, limit int,
) ([]restriction.Restriction, error) {
	f.note("restriction.List", page, limit)
	return []restriction.Restriction{plainRestriction()}, nil
}

func (f *fakeRestrictions) SetReferrer(
	_ context.Context, _ id.Environment, r id.PlaybackRestriction, v restriction.Referrer, _ time.Time,
) (restriction.Restriction, error) {
	f.note("restriction.SetReferrer", r, v)
	return plainRestriction(), outcome(string(r))
}

func (f *fakeRestrictions) SetUserAgent(
	_ context.Context, _ id.Environment, r id.PlaybackRestriction, v restriction.UserAgent, _ time.Time,
) (restriction.Restriction, error) {
	f.note("restriction.SetUserAgent", r, v)
	return plainRestriction(), outcome(string(r))
}

func (f *fakeRestrictions) Delete(_ context.Context, _ id.Environment, r id.PlaybackRestriction) error {
	f.note("restriction.Delete", r)
	return outcome(string(r))
}

func TestPlaybackRestrictions(t *testing.T) {
	t.Parallel()
	const base, item = restrictionPath, restrictionPath + "/restriction1"
	reader := func(r *http.Request) { r.SetBasicAuth(readerID, tokenValue) }
	runScenarios(t, "playback_restrictions.txt", []scenario{
		{
			name: "create with defaults", method: "POST", path: base, body: `{"referrer":{},"user_agent":{}}`,
			status: 201,
		},
		{
			name: "create with everything", method: "POST", path: base, status: 201,
			body: `{"referrer":{"allowed_domains":["*.example.com"],"allow_no_referrer":true},"user_agent":{"allow_no_user_agent":false,"allow_high_risk_user_agent":false}}`,
		},
		{name: "create without blocks", method: "POST", path: base, body: `{}`, status: 400},
		{
			name: "create without user_agent", method: "POST", path: base,
			body: `{"referrer":{"allowed_domains":["*"]}}`, status: 400,
		},
		{
			name: "create with text for a list", method: "POST", path: base,
			body: `{"referrer":{"allowed_domains":"*"},"user_agent":{}}`, status: 400,
		},
		{
			name: "create one too many", method: "POST", path: base,
			body: `{"referrer":{"allowed_domains":["busy"]},"user_agent":{}}`, status: 400,
		},
		{name: "list", method: "GET", path: base + "?limit=2&page=3", status: 200},
		{name: "get", method: "GET", path: item, status: 200},
		{name: "get an absent one", method: "GET", path: base + "/absent", status: 404},
		{
			name: "replace referrer", method: "PUT", path: item + "/referrer", body: `{"allowed_domains":[]}`,
			status: 200,
		},
		{
			name: "replace referrer of an absent one", method: "PUT", path: base + "/absent/referrer", body: `{}`,
			status: 404,
		},
		{
			name: "replace user agent", method: "PUT", path: item + "/user_agent",
			body: `{"allow_high_risk_user_agent":false}`, status: 200,
		},
		{name: "replace user agent with a dash", method: "PUT", path: item + "/user-agent", body: `{}`, status: 404},
		{name: "delete", method: "DELETE", path: item, status: 204},
		{name: "delete an absent one", method: "DELETE", path: base + "/absent", status: 404},
		{name: "read without the permission to write", method: "GET", path: item, auth: reader, status: 200},
		{
			name: "write without the permission", method: "PUT", path: item + "/referrer", body: `{}`, auth: reader,
			status: 403,
		},
	})
}
