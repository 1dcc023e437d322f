package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/id"
)

const signingTag = "Signing keys"

// SigningKey is a signing key as it is shown.
type SigningKey struct {
	ID         string `json:"id"`
	CreatedAt  string `json:"created_at" doc:"Seconds since the Unix epoch." example:"1609869152"`
	PrivateKey string `json:"private_key,omitempty" doc:"The RSA private key in PEM, base64-encoded. Only in the response that creates the key."`
}

// SigningKeyRef names a signing key in a path; exported for huma, which reads embedded fields of exported types only.
type SigningKeyRef struct {
	ID string `path:"signing_key_id" maxLength:"255"`
}

type signingKeys struct {
	signing signing.API
	now     func() time.Time
}

// register has the operations twice: under their own path and under the older one.
func (s signingKeys) register(on *server) {
	for _, at := range []struct{ path, suffix, text string }{
		{"/system/v1/signing-keys", "", ""},
		{"/video/v1/signing-keys", "-url", "An alias of /system/v1/signing-keys for older clients."},
	} {
		handle(on, route{
			method:     http.MethodPost,
			path:       at.path,
			id:         "create" + at.suffix + "-signing-key",
			tag:        signingTag,
			status:     http.StatusCreated,
			permission: systemWrite,
			summary:    "Create a signing key",
			text: strings.TrimSpace("Used to sign viewers' tokens. The private key is shown only in this " +
				"response. " + at.text),
		}, s.create)
		handle(on, route{
			method:     http.MethodGet,
			path:       at.path,
			id:         "list" + at.suffix + "-signing-keys",
			tag:        signingTag,
			permission: systemRead,
			summary:    "List signing keys",
			text:       strings.TrimSpace("Newest first. " + at.text),
		}, s.list)
		handle(on, route{
			method:     http.MethodGet,
			path:       at.path + "/{signing_key_id}",
			id:         "get" + at.suffix + "-signing-key",
			tag:        signingTag,
			permission: systemRead,
			summary:    "Retrieve a signing key",
			text:       at.text,
		}, s.get)
		handle(on, route{
			method:     http.MethodDelete,
			path:       at.path + "/{signing_key_id}",
			id:         "delete" + at.suffix + "-signing-key",
			tag:        signingTag,
			status:     http.StatusNoContent,
			permission: systemWrite,
			summary:    "Delete a signing key",
			text: strings.TrimSpace("Tokens signed with it are refused from now on, on every node at once. " +
				"Caches in front of the service may keep what they have. " + at.text),
		}, s.delete)
	}
}

func (s signingKeys) create(ctx context.Context, _ *struct{}) (*one[SigningKey], error) {
	k, private, err := s.signing.Create(ctx, environment(ctx), s.now())
	out := wireSigningKey(k)
	out.PrivateKey = private
	return just(out), err
}

func (s signingKeys) list(ctx context.Context, in *struct{ Page }) (*many[SigningKey], error) {
	return listed(ctx, in.Page, s.signing.List, wireSigningKey)
}

func (s signingKeys) get(ctx context.Context, in *SigningKeyRef) (*one[SigningKey], error) {
	k, err := s.signing.Get(ctx, environment(ctx), id.SigningKey(in.ID))
	return just(wireSigningKey(k)), err
}

func (s signingKeys) delete(ctx context.Context, in *SigningKeyRef) (*none, error) {
	return &none{}, s.signing.Delete(ctx, environment(ctx), id.SigningKey(in.ID))
}

func wireSigningKey(k signing.Key) SigningKey {
	return SigningKey{ID: string(k.ID), CreatedAt: epoch(k.CreatedAt)}
}
