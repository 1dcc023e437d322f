package db_test

import (
	"fmt"
	"reflect"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/restriction"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestRestrictions(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, ctx := d.Restrictions(), t.Context()
		env, err := d.Access().EnsureDefault(ctx, access.Environment{
			ID: "env", Name: "Default", Kind: "production", CreatedAt: at(0),
		})
		must(t, err)
		made := func(i int, env id.Environment) restriction.Restriction {
			return restriction.Restriction{
				ID: id.PlaybackRestriction(fmt.Sprint("r", i)), Environment: env, CreatedAt: at(i), UpdatedAt: at(i),
				Referrer: restriction.Referrer{
					AllowedDomains: []string{"example.com", "*.example.com"}, AllowNoReferrer: true,
				},
				UserAgent: restriction.UserAgent{AllowNone: true, AllowHighRisk: true},
			}
		}
		refused := 0
		for _, err := range together(6, func(i int) error { return store.Insert(ctx, made(i, env.ID), 5) }) {
			if fault.Is(err, fault.Conflict) {
				refused++
			} else {
				must(t, err)
			}
		}
		all, err := store.List(ctx, env.ID, 1, 4)
		must(t, err)
		rest, err := store.List(ctx, env.ID, 2, 4)
		must(t, err)
		if refused != 1 || len(all) != 4 || len(rest) != 1 || all[0].CreatedAt.Before(rest[0].CreatedAt) {
			t.Errorf("%d refused, %d and %d found", refused, len(all), len(rest))
		}
		want := made(20, env.ID)
		must(t, store.Insert(ctx, want, 6))
		got, err := store.Get(ctx, want.ID)
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, want %+v", got, want)
		}
		want.Referrer, want.UpdatedAt = restriction.Referrer{AllowedDomains: []string{}}, at(30)
		got, err = store.SetReferrer(ctx, env.ID, want.ID, want.Referrer, at(30))
		must(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("changed to %+v, want %+v", got, want)
		}
		want.UserAgent, want.UpdatedAt = restriction.UserAgent{}, at(31)
		_, err = store.SetUserAgent(ctx, env.ID, want.ID, want.UserAgent, at(31))
		must(t, err)
		if got, err = store.Get(ctx, want.ID); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("changed to %+v, %v, want %+v", got, err, want)
		}
		for what, change := range map[string]func(env id.Environment, r id.PlaybackRestriction) error{
			"referrer": func(env id.Environment, r id.PlaybackRestriction) error {
				_, setErr := store.SetReferrer(ctx, env, r, restriction.Referrer{}, at(1))
				return setErr
			},
			"user agent": func(env id.Environment, r id.PlaybackRestriction) error {
				_, setErr := store.SetUserAgent(ctx, env, r, restriction.UserAgent{}, at(1))
				return setErr
			},
			"delete": func(env id.Environment, r id.PlaybackRestriction) error { return store.Delete(ctx, env, r) },
		} {
			for _, of := range []struct {
				env id.Environment
				r   id.PlaybackRestriction
			}{{"other", want.ID}, {env.ID, "absent"}, {env.ID, "\xff"}} {
				if changeErr := change(of.env, of.r); !fault.Is(changeErr, fault.NotFound) {
					t.Errorf("%s of %+v: %v", what, of, changeErr)
				}
			}
		}
		must(t, store.Delete(ctx, env.ID, want.ID))
		_, err = store.Get(ctx, want.ID)
		wantKind(t, err, fault.NotFound)
	})
}
