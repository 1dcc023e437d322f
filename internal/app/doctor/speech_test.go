package doctor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"millrace/internal/media/speech"
)

// probed is an engine whose probe has an outcome.
type probed struct {
	speech.Engine

	can speech.Abilities
	err error
}

func (probed) Name() string                           { return "vosk" }
func (p probed) Abilities() (speech.Abilities, error) { return p.can, nil }
func (p probed) Probe(context.Context) error          { return p.err }

// tried is an engine that has to recognise something besides.
type tried struct {
	probed

	outcome error
}

func (t tried) Try(context.Context) error { return t.outcome }

func TestSpeechEngine(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection refused")
	expect(t, SpeechEngine{Engine: probed{err: gone}, Configured: true}, Problem, "connection refused")
	expect(t, SpeechEngine{Engine: probed{err: gone}}, Warning, "connection refused")
	expect(t, SpeechEngine{Engine: probed{can: speech.Abilities{Languages: []string{"en"}}}}, OK, "in the language en")
	expect(t, SpeechEngine{
		Engine: probed{can: speech.Abilities{Languages: []string{speech.AnyLanguage}}}, Configured: true,
	}, OK, "vosk recognises speech")
	server := tried{outcome: gone}
	expect(t, SpeechEngine{Engine: server, Configured: true}, Problem, "connection refused")
	server.outcome = fmt.Errorf("%w: 2 s of sound", speech.ErrBusy)
	expect(t, SpeechEngine{Engine: server, Configured: true}, Warning, "the server is busy: 2 s of sound")
	server.outcome, server.err = nil, gone // which is not asked
	expect(t, SpeechEngine{Engine: server, Configured: true}, OK, "vosk recognises speech")
	slow := fmt.Errorf("%w (of itself)", speech.ErrNotInTime)
	busy := func() (float64, int) { return 15.2, 2 }
	expect(t, SpeechEngine{Engine: probed{err: slow}, Load: busy}, Warning, "this machine is busy (a load of 15.2")
	checks := Checks(Options{SpeechEngines: []speech.Engine{probed{}, probed{err: gone}}})
	names := map[string]bool{}
	for _, c := range checks {
		if s, is := c.(SpeechEngine); is {
			names[s.Name()] = s.Configured
		}
	}
	if len(names) != 1 || !names["speech vosk"] {
		t.Errorf("checked: %v", names)
	}
}
