package access_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestKnownSecretsDoNotWait fills the line of secrets to be hashed, and anyone who waits in it stays: nobody leaves before the test ends.
func TestKnownSecretsDoNotWait(t *testing.T) {
	t.Parallel()
	s, store, _ := newService(t)
	token, secret, err := s.CreateToken(t.Context(), access.TokenInput{Name: ""}, start)
	must(t, err)
	_, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret}, start)
	must(t, err)
	free := s.HoldLine(t)

	who, err := s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret}, start.Add(time.Hour)) // the cache's time is long over
	must(t, err)
	if who.Token.ID != token.ID {
		t.Errorf("identity %+v", who)
	}
	_, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret + "x"}, start.Add(time.Hour))
	wantKind(t, err, fault.TooMany)
	must(t, s.SetQuality(t.Context(), "", "plus", start.Add(time.Hour)))
	who, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret}, start.Add(time.Hour))
	must(t, err)
	if who.Environment.VideoQuality != "plus" {
		t.Errorf("environment %+v: it was read before the change", who.Environment)
	}
	must(t, store.RevokeToken(t.Context(), "", token.ID, start)) // in another process
	_, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret}, start.Add(2*time.Hour))
	wantKind(t, err, fault.Unauthorized)
	free()
	_, err = s.Authenticate(t.Context(), access.Credentials{Token: token.ID, Secret: secret + "x"}, start.Add(2*time.Hour))
	wantKind(t, err, fault.Unauthorized)
}

// TestWrongSecretsAreBounded has many wrong secrets come at once: each is told so, or that there are too many, and a token that they are
// not about is found right beside them.
func TestWrongSecretsAreBounded(t *testing.T) {
	t.Parallel()
	s, _, _ := newService(t)
	token, secret, err := s.CreateToken(t.Context(), access.TokenInput{Name: ""}, start)
	must(t, err)
	s.HoldHashing(t) // nothing is hashed until the test ends: what waits is counted
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	results := make(chan error, 1000)
	for i := range cap(results) {
		wg.Go(func() {
			_, err := s.Authenticate(ctx, access.Credentials{Token: id.Token(fmt.Sprint("wrong", i%4)), Secret: fmt.Sprint(i)}, start)
			results <- err
		})
	}
	var refused int
	for range cap(results) - 4*access.MaxOfToken {
		wantKind(t, <-results, fault.TooMany)
		refused++
	}
	wg.Go(func() {
		_, err := s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start) // has a place: those four have not taken them all
		results <- err
	})
	leave()
	wg.Wait()
	for range 4*access.MaxOfToken + 1 {
		wantKind(t, <-results, fault.Internal) // they have left
	}
}

// TestBurstOfOneSecret: many clients that come at once with one right secret all wait and get in, also when the one for
// whom it is hashed leaves; those with a wrong one are told so, and no more of either than there may be wait.
func TestBurstOfOneSecret(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		n    int
	}{{"sixteen", 16}, {"more than may wait", access.MaxSharing + 20}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.SQLite(t)
			dbtest.Fill(t, url)
			synctest.Test(t, func(t *testing.T) {
				d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
				must(t, err)
				defer func() { must(t, d.Close()) }()
				s := access.New(access.Options{Store: d.Access()})
				token, secret, err := s.CreateToken(t.Context(), access.TokenInput{Name: ""}, start)
				must(t, err)
				s.HoldHashing(t)
				leaving, leave := context.WithCancel(t.Context())
				all := make(chan error, 3*tt.n)
				try := func(ctx context.Context, secret string) {
					_, err := s.Authenticate(ctx, access.Credentials{Token: token.ID, Secret: secret}, start)
					all <- err
				}
				go try(leaving, secret)
				synctest.Wait()
				for range tt.n - 1 {
					go try(t.Context(), secret)
					go try(t.Context(), secret+"x")
				}
				synctest.Wait()
				leave()
				synctest.Wait()
				s.LetHash(t)
				synctest.Wait()
				kinds := map[fault.Kind]int{}
				in := 0
				for range 2*tt.n - 1 {
					if err := <-all; err == nil {
						in++
					} else {
						kinds[fault.KindOf(err)]++
					}
				}
				most := min(tt.n-1, access.MaxSharing)
				if in != most || kinds[fault.Internal] != 1 || kinds[fault.Unauthorized] < min(tt.n-1, most) {
					t.Errorf("%d of %d are in, others %v", in, tt.n-1, kinds)
				}
			})
		})
	}
}
