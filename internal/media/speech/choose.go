package speech

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Rules say which engine recognises which language: pairs of a base language, or *, and an engine's name. The zero
// value leaves it to the engines: the first one that takes a language.
type Rules []Rule

// Rule is one of them.
type Rule struct{ Language, Engine string }

// None is the name of the engine that a rule names so that nothing is recognised.
const None = "none"

// ParseRules reads rules as they are written in configuration: en=pocketsphinx,*=openai.
func ParseRules(text string) (Rules, error) {
	var out Rules
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		lang, engine, ok := strings.Cut(part, "=")
		lang, engine = strings.ToLower(strings.TrimSpace(lang)), strings.TrimSpace(engine)
		if !ok || lang == "" || engine == "" {
			return nil, fmt.Errorf("%q must have the form language=engine, such as en=pocketsphinx or *=openai", part)
		}
		out = append(out, Rule{lang, engine})
	}
	return out, nil
}

// Engines are those that are configured, in the order in which they are tried.
type Engines struct {
	All     []Engine
	Default Rules
	Now     func() time.Time

	mu     sync.Mutex
	probed map[string]*probe
}

// probe is the newest one of an engine. Whoever wants to look at it, or to make another, holds turn: an engine is
// probed once at a time.
type probe struct {
	turn chan struct{}
	at   time.Time
	err  error
}

// fresh is for how long it stands that an engine runs, and for how long that it does not.
const fresh, freshFailure = 10 * time.Minute, 10 * time.Second

// Probe says whether an engine runs, as it was a short time ago.
func (e *Engines) Probe(ctx context.Context, engine Engine) error {
	p := e.probe(engine.Name())
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for the probe of %s: %w", engine.Name(), context.Cause(ctx))
	}
	defer func() { <-p.turn }()
	if age := e.Now().Sub(p.at); p.err == nil && age < fresh || age < freshFailure {
		return p.err
	}
	err := engine.Probe(ctx)
	if ctx.Err() == nil { // else it says nothing about the engine
		p.at, p.err = e.Now(), err
	}
	return err
}

func (e *Engines) probe(name string) *probe {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probed == nil {
		e.probed = map[string]*probe{}
	}
	if e.probed[name] == nil {
		e.probed[name] = &probe{turn: make(chan struct{}, 1)}
	}
	return e.probed[name]
}

// NoEngineError says why there is none for a language.
type NoEngineError struct {
	Message   string
	Temporary bool // one takes the language, but does not run at the moment
}

func (n *NoEngineError) Error() string { return n.Message }

// Takes reports whether an engine takes a language, whether it runs at the moment or not; it waits for nothing. rules,
// where there are any, go before the default ones. The error is a NoEngineError, with a sentence for the person who
// asked.
func (e *Engines) Takes(language string, rules Rules) error {
	_, err := e.candidates(language, rules)
	return err
}

// For gives the engine for a language, the first one that runs; see Takes.
func (e *Engines) For(ctx context.Context, language string, rules Rules) (Engine, error) {
	all, err := e.candidates(language, rules)
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, engine := range all {
		if err = e.Probe(ctx, engine); err == nil {
			return engine, nil
		}
		reasons = append(reasons, engine.Name()+": "+err.Error())
	}
	return nil, &NoEngineError{
		Message:   "speech recognition for the language " + language + " does not run: " + strings.Join(reasons, "; "),
		Temporary: true,
	}
}

// candidates are the engines that take a language.
func (e *Engines) candidates(language string, rules Rules) (out []Engine, err error) {
	named := e.named(language, rules)
	if named == None {
		return nil, &NoEngineError{Message: "speech is not recognised in " + language +
			": it is switched off in this environment (millrace environment captions)"}
	}
	var reasons []string
	lacking := false // one would take it if something were there
	for _, engine := range e.All {
		if named != "" && engine.Name() != named {
			continue
		}
		can, bad := engine.Abilities()
		switch {
		case !can.Speaks(language):
			reasons = append(reasons, engine.Name()+" does not take it")
		case bad != nil:
			lacking, reasons = true, append(reasons, engine.Name()+": "+bad.Error())
		default:
			out = append(out, engine)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if len(reasons) == 0 {
		reasons = []string{"no engine is configured"}
		if named != "" {
			reasons = []string{"the engine " + named + " is not configured"}
		}
	}
	message := "there is no speech recognition for the language " + language + ": " + strings.Join(reasons, "; ")
	if !lacking {
		message += "; configure one that takes it: a server (--speech-servers) or a model for ffmpeg " +
			"(--speech-ffmpeg-model)"
	}
	return nil, &NoEngineError{Message: message}
}

// named is the engine that rules name for a language; empty: none.
func (e *Engines) named(language string, rules Rules) string {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	for _, set := range []Rules{rules, e.Default} {
		for _, l := range []string{base, AnyLanguage} {
			if i := slices.IndexFunc(set, func(r Rule) bool { return r.Language == l }); i >= 0 {
				return set[i].Engine
			}
		}
	}
	return ""
}
