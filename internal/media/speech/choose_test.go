package speech

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// speaker is an engine that takes some languages.
type speaker struct {
	loud
	name      string
	languages []string
	lacks     error // to run at all
	err       error // of the probe
	probes    *int
}

func (s speaker) Name() string { return s.name }

func (s speaker) Abilities() (Abilities, error) { return Abilities{Languages: s.languages}, s.lacks }

func (s speaker) Probe(context.Context) error {
	if s.probes != nil {
		*s.probes++
	}
	return s.err
}

func TestChoose(t *testing.T) {
	t.Parallel()
	probes := 0
	now := time.Unix(1, 0)
	e := &Engines{
		All: []Engine{
			speaker{name: "sphinx", languages: []string{"en"}, probes: &probes},
			speaker{name: "server", languages: []string{"*"}},
			speaker{name: "nothing", languages: []string{"*"}, lacks: errors.New("no model")},
			speaker{name: "away", languages: []string{"*"}, err: errors.New("connection refused")},
		},
		Default: Rules{{"fr", "away"}, {"it", "nothing"}}, Now: func() time.Time { return now },
	}
	for _, tt := range []struct{ language, rules, want string }{
		{"en", "", "sphinx"},
		{"en-US", "", "sphinx"},
		{"de", "", "server"},
		{"en", "en=server", "server"},
		{"en", "*=server", "server"},
		{"fr", "", "connection refused"},
		{"fr", "fr=server", "server"},
		{"en", "en=none", "switched off"},
		{"de", "de=sphinx", "does not take it"},
		{"de", "de=nobody", "not configured"},
		{"auto", "", "does not take it"},
		{"it", "", "no model"},
	} {
		rules, err := ParseRules(tt.rules)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.For(t.Context(), tt.language, rules)
		var none *NoEngineError
		switch {
		case err == nil && got.Name() != tt.want:
			t.Errorf("%s by %q: %s, want %s", tt.language, tt.rules, got.Name(), tt.want)
		case err != nil && (!errors.As(err, &none) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s by %q: %v, want %s", tt.language, tt.rules, err, tt.want)
		case err != nil && none.Temporary != (e.Takes(tt.language, rules) == nil):
			t.Errorf("%s by %q: temporary is %t, and it is taken: %v", tt.language, tt.rules, none.Temporary,
				e.Takes(tt.language, rules))
		}
	}
	if probes != 1 {
		t.Errorf("probed %d times", probes)
	}
	now = now.Add(time.Hour)
	if _, err := e.For(t.Context(), "en", nil); err != nil || probes != 2 {
		t.Errorf("an hour later: %v, %d probes", err, probes)
	}
	for _, bad := range []string{"en", "=x", "en="} {
		if _, err := ParseRules(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// hung is an engine whose probe takes until somebody lets it go on.
type hung struct {
	loud
	probes atomic.Int64
	goOn   chan struct{}
}

func (h *hung) Name() string                  { return "hung" }
func (h *hung) Abilities() (Abilities, error) { return Abilities{Languages: []string{"*"}}, nil }

func (h *hung) Probe(ctx context.Context) error {
	h.probes.Add(1)
	select {
	case <-h.goOn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestProbesTakeTurns: an engine is probed once at a time, who waits for that may give up, and a probe that was given
// up says nothing of the engine.
func TestProbesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := &hung{goOn: make(chan struct{})}
		e := &Engines{All: []Engine{engine}, Now: time.Now}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				if _, err := e.For(ctx, "en", nil); err == nil {
					t.Error("found what does not run")
				}
			})
		}
		synctest.Wait()
		if n := engine.probes.Load(); n != 1 {
			t.Errorf("%d probes at once", n)
		}
		wait.Wait()
		before := engine.probes.Load()
		close(engine.goOn)
		for range 3 {
			wait.Go(func() {
				if got, err := e.For(t.Context(), "en", nil); err != nil || got != engine {
					t.Errorf("found %v, %v", got, err)
				}
			})
		}
		wait.Wait()
		if n := engine.probes.Load() - before; n != 1 {
			t.Errorf("%d probes of what runs", n)
		}
	})
}
