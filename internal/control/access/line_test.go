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

// chosen stores a token as another process does whose settings have it: a person may have chosen its secret.
func chosen(t *testing.T, store access.Store, token id.Token, secret string) access.Credentials {
	t.Helper()
	_, err := access.New(access.Options{Store: store}).SeedToken(t.Context(), token, secret, start)
	must(t, err)
	return access.Credentials{Token: token, Secret: secret}
}

// inBubble runs a test of a service with the clock of a bubble, on a database of its own.
func inBubble(t *testing.T, test func(t *testing.T, s *access.Service, store access.Store)) {
	t.Helper()
	url := dbtest.SQLite(t)
	dbtest.Fill(t, url)
	synctest.Test(t, func(t *testing.T) {
		d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
		must(t, err)
		defer func() { must(t, d.Close()) }()
		test(t, access.New(access.Options{Store: d.Access()}), d.Access())
	})
}

// TestKnownSecretsDoNotWait fills the line of secrets to be hashed, and anyone who waits in it stays: nobody leaves
// before the test ends.
func TestKnownSecretsDoNotWait(t *testing.T) {
	t.Parallel()
	s, store, _ := newService(t)
	right := chosen(t, store, "chosen", "a secret of mine")
	wrong := access.Credentials{Token: right.Token, Secret: "another secret"}
	_, err := s.Authenticate(t.Context(), right, start)
	must(t, err)
	free := s.HoldLine(t)

	who, err := s.Authenticate(t.Context(), right, start.Add(time.Hour)) // the cache's time is long over
	must(t, err)
	if who.Token.ID != right.Token {
		t.Errorf("identity %+v", who)
	}
	_, err = s.Authenticate(t.Context(), wrong, start.Add(time.Hour))
	wantKind(t, err, fault.TooMany)
	must(t, s.SetQuality(t.Context(), "", "plus", start.Add(time.Hour)))
	who, err = s.Authenticate(t.Context(), right, start.Add(time.Hour))
	must(t, err)
	if who.Environment.VideoQuality != "plus" {
		t.Errorf("environment %+v: it was read before the change", who.Environment)
	}
	free()
	_, err = s.Authenticate(t.Context(), wrong, start.Add(2*time.Hour))
	wantKind(t, err, fault.Unauthorized)
	s.HoldLine(t)
	must(t, store.RevokeToken(t.Context(), "", right.Token, start)) // in another process
	for _, c := range []access.Credentials{right, wrong} {
		_, err = s.Authenticate(t.Context(), c, start.Add(3*time.Hour))
		wantKind(t, err, fault.Unauthorized)
	}
}

// TestGuessesKeepNobodyOut has a thousand addresses guess at once, each as often as it may before it has to wait: five
// times at one token, and then at others. Whoever has the secret of that one is let in at once, in a process that has
// not seen it before.
func TestGuessesKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const addresses = 1000
	made := func(t *testing.T, store access.Store) access.Credentials {
		t.Helper()
		other := access.New(access.Options{Store: store})
		token, secret, err := other.CreateToken(t.Context(), access.TokenInput{}, start)
		must(t, err)
		return access.Credentials{Token: token.ID, Secret: secret}
	}
	for name, token := range map[string]func(*testing.T, *access.Service, access.Store) access.Credentials{
		"made by the API": func(t *testing.T, _ *access.Service, store access.Store) access.Credentials {
			return made(t, store)
		},
		"of an earlier version, used": func(t *testing.T, _ *access.Service, store access.Store) access.Credentials {
			right := made(t, store)
			must(t, store.SetTokenDigests(t.Context(), map[id.Token][]byte{right.Token: nil}))
			before := access.New(access.Options{Store: store})
			_, err := before.Authenticate(t.Context(), right, start)
			must(t, err)
			must(t, before.WriteUse(t.Context()))
			return right
		},
		"of the settings": func(t *testing.T, s *access.Service, _ access.Store) access.Credentials {
			_, err := s.SeedToken(t.Context(), "chosen", "a secret of mine", start)
			must(t, err)
			return access.Credentials{Token: "chosen", Secret: "a secret of mine"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *access.Service, store access.Store) {
				right := token(t, s, store)
				s.HoldHashing(t)
				guessing, end := context.WithCancel(t.Context())
				for i := range addresses {
					go func() {
						for n := range 5 {
							c := access.Credentials{Token: right.Token, Secret: fmt.Sprint("guess ", i, n)}
							c.From = fmt.Sprint("address", i)
							_, _ = s.Authenticate(guessing, c, start)
							c.Token = id.Token(fmt.Sprint("another", n))
							_, _ = s.Authenticate(guessing, c, start)
						}
					}()
				}
				synctest.Wait()
				right.From = "an address of its own"
				asked, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := s.Authenticate(asked, right, start); err != nil {
					t.Error(err)
				}
				end()
				synctest.Wait()
				s.LetHash(t)
			})
		})
	}
}

// TestWrongSecretsAreBounded has many wrong secrets come at once: each is told so, or that there are too many, and a
// token that they are not about is found right beside them.
func TestWrongSecretsAreBounded(t *testing.T) {
	t.Parallel()
	s, store, _ := newService(t)
	for i := range 4 {
		chosen(t, store, id.Token(fmt.Sprint("wrong", i)), "a secret of mine")
	}
	right := chosen(t, store, "right", "a secret of mine")
	s.HoldHashing(t) // nothing is hashed until the test ends: what waits is counted
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	results := make(chan error, 4*access.MaxOfToken+200)
	for i := range cap(results) {
		wg.Go(func() {
			c := access.Credentials{Secret: fmt.Sprint(i), From: fmt.Sprint(i)}
			c.Token = id.Token(fmt.Sprint("wrong", i%4))
			_, err := s.Authenticate(ctx, c, start)
			results <- err
		})
	}
	var refused int
	for range cap(results) - 4*access.MaxOfToken {
		wantKind(t, <-results, fault.TooMany)
		refused++
	}
	wg.Go(func() {
		_, err := s.Authenticate(ctx, right, start) // has a place: those four have not taken them all
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
			inBubble(t, func(t *testing.T, s *access.Service, store access.Store) {
				right := chosen(t, store, "chosen", "a secret of mine")
				s.HoldHashing(t)
				leaving, leave := context.WithCancel(t.Context())
				all := make(chan error, 3*tt.n)
				try := func(ctx context.Context, secret string) {
					_, err := s.Authenticate(ctx, access.Credentials{Token: right.Token, Secret: secret}, start)
					all <- err
				}
				go try(leaving, right.Secret)
				synctest.Wait()
				for range tt.n - 1 {
					go try(t.Context(), right.Secret)
					go try(t.Context(), right.Secret+"x")
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

// TestGuessesOfOneAddress: a thousand guesses that come at once from one address have few places in the line, so that
// 64 clients with the right secret wait for their turn and get in, and so does who comes from that address when the
// secret is known to be right.
func TestGuessesOfOneAddress(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *access.Service, store access.Store) {
		right := chosen(t, store, "chosen", "a secret of mine")
		s.HoldHashing(t)
		guesses, clients := make(chan error, 1000), make(chan error, 64)
		for n := range cap(guesses) {
			go func() {
				c := access.Credentials{Token: right.Token, Secret: fmt.Sprint("guess ", n), From: "a"}
				_, failed := s.Authenticate(t.Context(), c, start)
				guesses <- failed
			}()
		}
		synctest.Wait()
		if n := len(guesses); n != cap(guesses)-5 {
			t.Errorf("%d guesses were refused", n)
		}
		right.From = "b"
		for range cap(clients) {
			go func() {
				_, failed := s.Authenticate(t.Context(), right, start)
				clients <- failed
			}()
		}
		synctest.Wait()
		if n := len(clients); n != 0 {
			t.Errorf("%d clients did not wait", n)
		}
		beside := right
		beside.From = "a"
		s.LetHash(t)
		for range cap(clients) {
			must(t, <-clients)
		}
		_, err := s.Authenticate(t.Context(), beside, start)
		must(t, err)
		for range cap(guesses) {
			if err := <-guesses; !fault.Is(err, fault.TooMany) && !fault.Is(err, fault.Unauthorized) {
				t.Errorf("a guess: %v", err)
			}
		}
	})
}

// TestTurnIsBounded: nobody waits for longer than ten seconds, however busy the machine is.
func TestTurnIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *access.Service, store access.Store) {
		right := chosen(t, store, "chosen", "a secret of mine")
		s.HoldHashing(t)
		began := time.Now()
		_, err := s.Authenticate(t.Context(), right, start)
		wantKind(t, err, fault.TooMany)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		s.LetHash(t)
		_, err = s.Authenticate(t.Context(), right, start)
		must(t, err)
	})
}
