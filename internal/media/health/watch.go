package health

import "time"

const (
	quietTime = 10 * time.Minute // before the same trouble is told again
	tellTime  = time.Hour        // in which at most
	tellMost  = 12               // warnings are told, of all kinds
)

// Warning is trouble that is there now.
type Warning struct {
	Kind    string
	Message string
	Since   time.Time
}

// Change is trouble that has come or is over.
type Change struct {
	Warning

	Over bool
	Tell bool // it has come and was not told lately, so that an encoder that flaps floods nobody
}

// Watch looks at the samples of a stream's publications, one after the other, and knows what is wrong.
type Watch struct {
	audioOnly     bool
	states        map[string]*standing
	bitrate, rate float64 // usual
	seen          int     // samples
	trouble       int     // samples in a row with something wrong
	warned        []time.Time
}

// standing is how a rule stands.
type standing struct {
	bad, good int // samples in a row
	raised    bool
	warning   Warning
	warned    time.Time
}

// Begin starts with a new publication: what was usual of the last one does not count. Troubles stay until samples show
// that they are over.
func (w *Watch) Begin(audioOnly bool) {
	w.audioOnly, w.bitrate, w.rate, w.seen, w.trouble = audioOnly, 0, 0, 0, 0
	for _, s := range w.states {
		s.bad, s.good = 0, 0
	}
}

// End is for a publication that is over: nobody sends anything that could be in trouble.
func (w *Watch) End() {
	for _, s := range w.states {
		s.raised, s.bad, s.good = false, 0, 0
	}
}

// Look takes a sample. video and audio say which tracks there are.
func (w *Watch) Look(s Sample, video, audio bool) []Change {
	v := view{Sample: s, video: video, audio: audio, audioOnly: w.audioOnly}
	if w.seen >= usualAfter {
		v.bitrate, v.rate = w.bitrate, w.rate
	}
	var changes []Change
	troubled := false
	for _, r := range rules() {
		message := r.bad(v)
		troubled = troubled || message != ""
		if c, ok := w.of(r.kind).judge(r, message, s.At); ok {
			c.Tell = !c.Over && w.due(r.kind, s.At)
			changes = append(changes, c)
		}
	}
	w.learn(v, troubled)
	return changes
}

// learn lets the usual follow what came: not while something is wrong, and slowly when it stays so. The first sample is
// not looked at: many encoders begin with what they have in store.
func (w *Watch) learn(v view, troubled bool) {
	w.seen++
	if !troubled || w.seen <= usualAfter {
		w.trouble = 0
	} else {
		w.trouble++
	}
	follow := usualFollows
	switch {
	case w.seen == 1:
		return
	case w.seen <= usualAfter:
		follow = 1 / float64(w.seen-1)
	case w.trouble > patience:
		follow = usualTroubled
	case w.trouble > 0:
		return
	}
	w.bitrate += (v.total() - w.bitrate) * follow
	w.rate += (v.Video.Rate - w.rate) * follow
}

func (w *Watch) of(kind string) *standing {
	if w.states == nil {
		w.states = map[string]*standing{}
	}
	s := w.states[kind]
	if s == nil {
		s = &standing{}
		w.states[kind] = s
	}
	return s
}

// judge counts a sample and reports whether the trouble has come or gone with it.
func (s *standing) judge(r rule, message string, now time.Time) (Change, bool) {
	if message == "" {
		s.bad, s.good = 0, s.good+1
		if !s.raised || s.good < r.until {
			return Change{}, false
		}
		s.raised = false
		return Change{Warning: s.warning, Over: true}, true
	}
	s.bad, s.good = s.bad+1, 0
	if s.raised {
		s.warning.Message = message
		return Change{}, false
	}
	if s.bad < r.after {
		return Change{}, false
	}
	s.raised, s.warning = true, Warning{Kind: r.kind, Message: message, Since: now}
	return Change{Warning: s.warning}, true
}

// due reports whether a warning is to be told, and counts it.
func (w *Watch) due(kind string, now time.Time) bool {
	recent := w.warned[:0]
	for _, at := range w.warned {
		if now.Sub(at) < tellTime {
			recent = append(recent, at)
		}
	}
	w.warned = recent
	s := w.of(kind)
	if !s.warned.IsZero() && now.Sub(s.warned) < quietTime || len(w.warned) >= tellMost {
		return false
	}
	s.warned, w.warned = now, append(w.warned, now)
	return true
}

// Warnings lists what is wrong now, in the order of the rules.
func (w *Watch) Warnings() []Warning {
	var out []Warning
	for _, r := range rules() {
		if s := w.states[r.kind]; s != nil && s.raised {
			out = append(out, s.warning)
		}
	}
	return out
}
