package api

import (
	"context"
	"testing"

	"millrace/internal/control/drm"
	"millrace/internal/id"
)

// fakeDRM returns the same configuration every time.
type fakeDRM struct{ *notebook }

func plainDRM() drm.Configuration {
	return drm.Configuration{
		ID: "drm1", Environment: envID, Name: "ours", CreatedAt: noon,
		Settings: drm.Settings{
			Scheme: drm.CBCS, Vendors: drm.Vendors{Widevine: &drm.LicenceServer{URL: "https://secret.example"}},
		},
	}
}

func (f fakeDRM) Get(_ context.Context, _ id.Environment, c id.DRMConfiguration) (drm.Configuration, error) {
	f.note("drm.Get", c)
	return plainDRM(), outcome(string(c))
}

func (f fakeDRM) List(_ context.Context, _ id.Environment, page, limit int) ([]drm.Configuration, error) {
	f.note("drm.List", page, limit)
	return []drm.Configuration{plainDRM()}, nil
}

func TestDRMConfigurations(t *testing.T) {
	t.Parallel()
	const base = "/video/v1/drm-configurations"
	runScenarios(t, "drm_configurations.txt", []scenario{
		{name: "list", method: "GET", path: base + "?limit=2&page=3", status: 200},
		{name: "list with a wrong limit", method: "GET", path: base + "?limit=x", status: 400},
		{name: "get", method: "GET", path: base + "/drm1", status: 200},
		{name: "get an absent one", method: "GET", path: base + "/absent", status: 404},
		{name: "create", method: "POST", path: base, body: `{}`, status: 405},
		{name: "delete", method: "DELETE", path: base + "/drm1", status: 405},
	})
}
