package api

import (
	"context"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/retention"
	"millrace/internal/id"
)

// fakeRetention has a policy, and one asset that it deletes.
type fakeRetention struct{ *notebook }

func (fakeRetention) of(env id.Environment, l retention.Limits) retention.Policy {
	return retention.Policy{Environment: env, Limits: l, StartsAt: noon.Add(time.Hour), UpdatedAt: noon}
}

func (f fakeRetention) Policy(_ context.Context, env id.Environment) (retention.Policy, error) {
	f.note("retention.Policy", env)
	return f.of(env, retention.Limits{MaxAgeDays: 30}), nil
}

func (f fakeRetention) Set(
	_ context.Context, env id.Environment, l retention.Limits, grace time.Duration,
) (retention.Policy, error) {
	f.note("retention.Set", l, grace.String())
	return f.of(env, l), nil
}

func (f fakeRetention) TurnOff(_ context.Context, env id.Environment) error {
	f.note("retention.TurnOff", env)
	return nil
}

func (f fakeRetention) Preview(
	_ context.Context, env id.Environment, l retention.Limits, grace time.Duration,
) (retention.Preview, error) {
	f.note("retention.Preview", l, grace.String())
	film := asset.Asset{ID: "a", CreatedAt: noon, Options: assetopt.Options{Meta: assetopt.Meta{Title: "Film"}}}
	return retention.Preview{
		Policy: f.of(env, l), Stored: retention.Stored{Bytes: 5e12, Unmeasured: 3}, Until: noon.Add(time.Hour),
		Count: 2, Bytes: 7, First: []retention.Due{
			{Asset: film, Bytes: 7, Measured: true, At: noon.Add(time.Hour), Reason: retention.ByAge},
			{Asset: asset.Asset{ID: "b", CreatedAt: noon}, At: noon.Add(time.Hour), Reason: retention.BySize},
		},
	}, nil
}

func (f *fakeAssets) SetExempt(
	_ context.Context, _ id.Environment, a id.Asset, exempt bool, _ time.Time,
) error {
	return f.setExempt(a, exempt)
}

// TestRetention: what the service is asked for, and how its answers look.
func TestRetention(t *testing.T) {
	t.Parallel()
	const (
		policy  = "/system/v1/retention"
		preview = policy + "/preview"
		exempt  = policy + "/exempt-assets/"
	)
	runScenarios(t, "retention.txt", []scenario{
		{name: "get", method: "GET", path: policy, status: 200},
		{
			name: "set", method: "PUT", path: policy, status: 200,
			body: `{"max_age_days":30,"max_bytes":5000000000000,"grace_hours":5}`,
		},
		{name: "set an age alone", method: "PUT", path: policy, body: `{"max_age_days":30}`, status: 200},
		{
			name: "zero is not left out", method: "PUT", path: policy, status: 200,
			body: `{"max_age_days":0,"max_bytes":0,"grace_hours":0}`,
		},
		{
			name: "more hours than a duration has", method: "PUT", path: policy, status: 200,
			body: `{"max_age_days":1,"grace_hours":9000000000000000}`,
		},
		{name: "turn off", method: "DELETE", path: policy, status: 204},
		{
			name: "preview", method: "GET", status: 200,
			path: preview + "?max_age_days=7&max_bytes=9000000&grace_hours=1",
		},
		{name: "preview the policy that there is", method: "GET", path: preview, status: 200},
		{name: "preview what is no number", method: "GET", path: preview + "?max_bytes=5GB", status: 400},
		{name: "exempt", method: "PUT", path: exempt + "a", status: 204},
		{name: "include", method: "DELETE", path: exempt + "a", status: 204},
		{name: "exempt what is not there", method: "PUT", path: exempt + "absent", status: 404},
	})
}
