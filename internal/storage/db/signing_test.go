package db_test

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestSigningKeys(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, ctx := d.Signing(), t.Context()
		env, err := d.Access().EnsureDefault(ctx, access.Environment{
			ID: "env", Name: "Default", Kind: "production", CreatedAt: at(0),
		})
		must(t, err)
		key := func(i int, env id.Environment) signing.Key {
			public := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(int64(2*i+1)), 2047, 1), E: 65537}
			return signing.Key{
				ID: id.SigningKey(fmt.Sprint("k", i)), Environment: env, Public: public, CreatedAt: at(i),
			}
		}
		errs := together(12, func(i int) error { return store.InsertKey(ctx, key(i, env.ID), 10) })
		refused := 0
		for _, err := range errs {
			if fault.Is(err, fault.Conflict) {
				refused++
			} else {
				must(t, err)
			}
		}
		if refused != 2 {
			t.Errorf("%d of 12 keys were refused, of which an environment may have 10", refused)
		}
		all, err := store.Keys(ctx, env.ID, 1, 100)
		must(t, err)
		if len(all) != 10 || all[0].CreatedAt.Before(all[9].CreatedAt) {
			t.Errorf("%d keys, the first of %v, the last of %v", len(all), all[0].CreatedAt, all[9].CreatedAt)
		}
		for n, want := range map[int]int{1: 4, 2: 4, 3: 2, 4: 0} {
			if page, pageErr := store.Keys(ctx, env.ID, n, 4); pageErr != nil || len(page) != want {
				t.Errorf("page %d: %d keys, %v", n, len(page), pageErr)
			}
		}
		other := key(20, "other")
		must(t, store.InsertKey(ctx, other, 10))
		got, err := store.Key(ctx, "k20")
		must(t, err)
		if got.Environment != "other" || !got.Public.Equal(other.Public) || !got.CreatedAt.Equal(at(20)) {
			t.Errorf("read %+v", got)
		}
		must(t, store.DeleteKey(ctx, env.ID, all[0].ID))
		for what, err := range map[string]error{
			"deleted":     func() error { _, err := store.Key(ctx, all[0].ID); return err }(),
			"impossible":  func() error { _, err := store.Key(ctx, "\xff"); return err }(),
			"again":       store.DeleteKey(ctx, env.ID, all[0].ID),
			"another's":   store.DeleteKey(ctx, env.ID, "k20"),
			"no such key": store.DeleteKey(ctx, env.ID, "k\x00"),
		} {
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := errors.Join(store.InsertKey(ctx, all[0], 10), store.DeleteKey(ctx, "other", "k20")); err != nil {
			t.Error(err)
		}
		wantKind(t, store.InsertKey(ctx, all[0], 100), fault.Conflict)
	})
}
