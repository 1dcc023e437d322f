package db_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/internal/storage/db/dbtest"
)

// Of several that want to make the same one may; when it is made, or the one that makes it has gone, another one.
func TestClaims(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		ctx := t.Context()
		c, other := dbtest.Open(t, url).Claims(), dbtest.Open(t, url).Claims()
		taken := func(want string, keys []string, err error) {
			t.Helper()
			slices.Sort(keys)
			if got := fmt.Sprint(keys); err != nil || got != want {
				t.Errorf("got %s, %v; want %s", got, err, want)
			}
		}
		held := func(key string, want bool) {
			t.Helper()
			now, err := other.Held(ctx, key)
			if err != nil || now != want {
				t.Errorf("%s is held: %v, %v", key, now, err)
			}
		}
		keys, err := c.Take(ctx, "a", []string{"m/1", "m/2", "m/3"}, time.Hour)
		taken("[m/1 m/2 m/3]", keys, err)
		keys, err = other.Take(ctx, "b", []string{"m/3", "m/4"}, time.Hour)
		taken("[m/4]", keys, err)
		keys, err = c.Take(ctx, "a", []string{"m/1"}, time.Hour)
		taken("[]", keys, err)
		held("m/1", true)
		held("m/5", false)

		keys, err = c.Renew(ctx, []string{"a", "b", "x"}, time.Hour)
		taken("[]", keys, err)
		for key, want := range map[string]bool{"m/3": true, "m/5": false} {
			if got, failed := other.Want(ctx, key); failed != nil || got != want {
				t.Errorf("%s is there to be wanted: %v, %v", key, got, failed)
			}
		}
		keys, err = c.Renew(ctx, []string{"a", "b"}, time.Hour)
		taken("[a]", keys, err)

		if err = other.Give(ctx, "b", "m/1"); err != nil { // not b's
			t.Error(err)
		}
		held("m/1", true)
		if err = c.Give(ctx, "a", "m/1"); err != nil {
			t.Error(err)
		}
		held("m/1", false)
		held("m/2", true)
		if err = c.Give(ctx, "a"); err != nil {
			t.Error(err)
		}
		held("m/2", false)
		held("m/4", true)

		keys, err = c.Take(ctx, "gone", []string{"m/6", "m/7"}, -time.Second)
		taken("[m/6 m/7]", keys, err)
		held("m/6", false)
		keys, err = other.Take(ctx, "b", []string{"m/6"}, time.Hour)
		taken("[m/6]", keys, err)
		keys, err = c.Renew(ctx, []string{"gone"}, time.Hour) // what nobody took meanwhile
		taken("[]", keys, err)
		held("m/7", true)
		if _, err = c.Take(ctx, "gone", []string{"m/8"}, -2*time.Minute); err != nil {
			t.Error(err)
		}
		if err = other.Give(ctx, "b"); err != nil {
			t.Error(err)
		}
		keys, err = c.Renew(ctx, []string{"gone"}, time.Hour)
		taken("[]", keys, err)
		held("m/8", false) // it was left behind
	})
}

// What many take at once has one holder each.
func TestClaimsAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		c := dbtest.Open(t, url).Claims()
		var mu sync.Mutex
		count := map[string]int{}
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range 10 {
					var keys []string
					for k := range 5 {
						keys = append(keys, fmt.Sprintf("m/%d", i*3+k))
					}
					got, err := c.Take(t.Context(), fmt.Sprint(w, "/", i), keys, time.Hour)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					for _, key := range got {
						count[key]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for i := range 32 {
			if key := fmt.Sprintf("m/%d", i); count[key] != 1 {
				t.Errorf("%s was given to %d", key, count[key])
			}
		}
	})
}
