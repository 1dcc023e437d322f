package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/id"
)

// fakeSigning responds with the same keys every time.
type fakeSigning struct{ *notebook }

func plainKey() signing.Key { return signing.Key{ID: "key1", Environment: envID, CreatedAt: noon} }

func (f *fakeSigning) Create(context.Context, id.Environment, time.Time) (signing.Key, string, error) {
	f.note("signing.Create")
	return plainKey(), "LS0tLS1CRUdJTg==", nil
}

func (f *fakeSigning) Get(_ context.Context, _ id.Environment, k id.SigningKey) (signing.Key, error) {
	f.note("signing.Get", k)
	return plainKey(), outcome(string(k))
}

func (f *fakeSigning) List(_ context.Context, _ id.Environment, page, limit int) ([]signing.Key, error) {
	f.note("signing.List", page, limit)
	return []signing.Key{plainKey()}, nil
}

func (f *fakeSigning) Delete(_ context.Context, _ id.Environment, k id.SigningKey) error {
	f.note("signing.Delete", k)
	return outcome(string(k))
}

func TestSigningKeys(t *testing.T) {
	t.Parallel()
	reader := func(r *http.Request) { r.SetBasicAuth(readerID, tokenValue) }
	var list []scenario
	for _, base := range []string{"/system/v1/signing-keys", "/video/v1/signing-keys"} {
		list = append(list,
			scenario{name: "create", method: "POST", path: base, status: 201},
			scenario{
				name: "create with a body that nobody asked for", method: "POST", path: base, body: `{}`, status: 201,
			},
			scenario{name: "list", method: "GET", path: base + "?limit=2&page=3", status: 200},
			scenario{name: "list with a wrong page", method: "GET", path: base + "?page=0", status: 400},
			scenario{name: "get", method: "GET", path: base + "/key1", status: 200},
			scenario{name: "get an absent one", method: "GET", path: base + "/absent", status: 404},
			scenario{name: "delete", method: "DELETE", path: base + "/key1", status: 204},
			scenario{name: "delete an absent one", method: "DELETE", path: base + "/absent", status: 404},
			scenario{name: "change", method: "PATCH", path: base + "/key1", body: `{}`, status: 405},
			scenario{name: "create without the permission", method: "POST", path: base, auth: reader, status: 403},
			scenario{name: "list without the permission", method: "GET", path: base, auth: reader, status: 403},
		)
	}
	runScenarios(t, "signing_keys.txt", list)
}
