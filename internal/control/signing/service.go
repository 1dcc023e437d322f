package signing

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"sync/atomic"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/stalecache"
)

const (
	bits = 2048
	// fresh is how late this process sees that another one has deleted a key, where it is not told by Forget.
	fresh = time.Second
	// stale is how long a key is good for that can't be looked up, because the database does not respond: longer than a
	// restart of the database or the usual failover takes, and no longer, because the key may have been deleted
	// meanwhile.
	stale    = time.Minute
	maxCache = 4096
)

// Options configures a Service.
type Options struct{ Store Store }

// Service keeps signing keys and verifies what was signed with them. All its methods may be called at the same time.
type Service struct {
	store   Store
	keys    *stalecache.Cache[id.SigningKey, Key]
	secrets *stalecache.Cache[int64, *secret]
	last    atomic.Pointer[secret] // that was used
	opened  opened
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	return &Service{
		store: o.Store, keys: stalecache.New[id.SigningKey, Key](maxCache, fresh).GoodFor(stale),
		secrets: stalecache.New[int64, *secret](maxSecrets, keptSecret),
	}
}

// Create makes a key; see API.
func (s *Service) Create(ctx context.Context, env id.Environment, now time.Time) (Key, string, error) {
	// Before the work of a key, which is a tenth of a second. InsertKey counts again, as others may be faster.
	all, err := s.store.Keys(ctx, env, 1, MaxKeys)
	if err != nil {
		return Key{}, "", err
	}
	if len(all) >= MaxKeys {
		return Key{}, "", fault.New(fault.Conflict, "an environment may have at most %d signing keys; delete one first",
			MaxKeys)
	}
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return Key{}, "", fmt.Errorf("generate signing key: %w", err)
	}
	k := Key{
		ID: id.SigningKey(id.New()), Environment: env, Public: &private.PublicKey, CreatedAt: change.Stamp(now),
	}
	if err = s.store.InsertKey(ctx, k, MaxKeys); err != nil {
		return Key{}, "", err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	return k, base64.StdEncoding.EncodeToString(block), nil
}

// Get reads a key; see API.
func (s *Service) Get(ctx context.Context, env id.Environment, k id.SigningKey) (Key, error) {
	found, err := s.store.Key(ctx, k)
	if err == nil && found.Environment != env {
		return Key{}, errNoKey()
	}
	return found, err
}

// List lists keys, newest first; see API.
func (s *Service) List(ctx context.Context, env id.Environment, page, limit int) ([]Key, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.Keys(ctx, env, page, limit)
}

// Delete deletes a key; see API.
func (s *Service) Delete(ctx context.Context, env id.Environment, k id.SigningKey) error {
	defer s.keys.Drop(k)
	return s.store.DeleteKey(ctx, env, k)
}

// Forget says that a key was deleted by any process: the next one who needs it asks the database.
func (s *Service) Forget(k id.SigningKey) { s.keys.Drop(k) }

// ForgetAll is Forget for every key.
func (s *Service) ForgetAll() { s.keys.DropAll() }

func errNoKey() error { return fault.New(fault.NotFound, "the signing key does not exist") }

// Known is a key by its ID, from the cache where it is there. One that is not there, was deleted or is another
// environment's is fault.Denied, in the same words. An empty environment stands for any.
func (s *Service) Known(ctx context.Context, env id.Environment, k id.SigningKey, now time.Time) (Key, error) {
	if k == "" || len(k) > field.MaxID {
		return Key{}, errUnknownKey()
	}
	found, err := s.keys.Get(ctx, k, now, func(ctx context.Context) (Key, error) { return s.store.Key(ctx, k) })
	if fault.Is(err, fault.NotFound) || err == nil && env != "" && found.Environment != env {
		return Key{}, errUnknownKey()
	}
	return found, err
}

func errUnknownKey() error {
	return fault.Coded(fault.Denied, CodeKeyUnknown, "token: the signing key is not known (it may be deleted)")
}
