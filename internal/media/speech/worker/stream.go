package worker

import "slices"

const (
	// step is how much sound is processed between looks at whether somebody speaks, in samples.
	step = 1600
	// onset is how late it is known that somebody speaks, in samples, with what the library takes along from before.
	onset = 8000
	// safe is how far behind the end a word has to have ended that is taken when speech is cut, in frames.
	safe = 80
	// look is between looks at what is known of speech that goes on, in samples. A word is told that ended so many
	// frames before, stable, and was the same at the look before: hardly any changes after that.
	look, stable = 2 * step, 100
	// drift is by how many frames the beginning of a word that is the same may have moved.
	drift = 3
	// pause is what speech is best cut at: one so long, in frames, and so far behind the end.
	pause, pauseBefore = 8, 30
)

// streamDecoder recognises sound while it streams: it finds out where speech begins and ends, tells words while it goes
// on, and cuts what has no pauses: at a word, from which on the sound is processed again.
type streamDecoder struct {
	report

	engine  engine
	longest int64 // samples of speech without a pause; 0: any

	begun    bool      // an utterance is open
	at       int64     // sample that comes next
	speaking bool      // somebody speaks
	before   []segment // what was known of that at the look before
	since    int64     // sample since which
	kept     []int16   // the samples before at, as far back as a cut may lead
}

// begin starts a stream at a sample.
func (s *streamDecoder) begin(at int64) error {
	s.engine.startStream()
	s.base, s.at, s.speaking, s.kept = at, at, false, s.kept[:0]
	s.begun, s.before = true, nil
	return s.engine.startUtterance()
}

// feed takes samples, the first of which has a number. One that does not follow begins a stream of its own.
func (s *streamDecoder) feed(first int64, samples []int16) error {
	if s.begun && first != s.at {
		if err := s.end(); err != nil {
			return err
		}
	}
	if !s.begun {
		if err := s.begin(first); err != nil {
			return err
		}
	}
	for len(samples) > 0 {
		n := min(step, len(samples))
		if err := s.step(samples[:n]); err != nil {
			return err
		}
		samples = samples[n:]
	}
	return s.advance()
}

func (s *streamDecoder) step(samples []int16) error {
	if err := s.engine.process(samples, false); err != nil {
		return err
	}
	s.keep(samples)
	s.at += int64(len(samples))
	now := s.engine.speaking()
	switch {
	case now && !s.speaking:
		s.speaking, s.since = true, s.at
	case !now && s.speaking:
		s.speaking, s.before = false, nil
		if err := s.say(s.engine.endUtterance()); err != nil {
			return err
		}
		return s.engine.startUtterance()
	case now && s.longest > 0 && s.at-s.since >= s.longest:
		return s.cut()
	case now && s.at%look < step:
		return s.emitStable()
	}
	return nil
}

// emitStable passes on the words of speech that goes on which will hardly change any more.
func (s *streamDecoder) emitStable() error {
	all := s.engine.soFar()
	n, end := 0, int32((s.at-s.base)/frameSamples)
	for n < min(len(all), len(s.before)) && all[n].last < end-stable && all[n].same(s.before[n]) {
		n++
	}
	s.before = all
	return s.say(all[:n])
}

// same reports whether two segments are one, seen at different times.
func (s segment) same(o segment) bool {
	return s.word == o.word && max(s.first-o.first, o.first-s.first) <= drift
}

// keep holds what a cut may have to process again.
func (s *streamDecoder) keep(samples []int16) {
	if s.longest == 0 {
		return
	}
	s.kept = append(s.kept, samples...)
	if most := int(s.longest) + 4*onset; len(s.kept) > 2*most {
		s.kept = append(s.kept[:0], s.kept[len(s.kept)-most:]...)
	}
}

// cut ends an utterance in which somebody speaks: its words are told up to where it is best, and the sound behind them
// is processed again.
func (s *streamDecoder) cut() error {
	all := s.engine.endUtterance()
	n := cutAt(all, int32((s.at-s.base)/frameSamples))
	now, from := s.at, s.at
	if n > 0 && n < len(all) {
		from = max(s.base+int64(all[n].first)*frameSamples, s.at-int64(len(s.kept)))
		if from <= s.since-onset { // no way forward
			from = now
		}
	} else {
		n = len(all)
	}
	if err := s.say(all[:n]); err != nil {
		return err
	}
	again := slices.Clone(s.kept[len(s.kept)-int(now-from):])
	if err := s.begin(from); err != nil {
		return err
	}
	for len(again) > 0 {
		k := min(step, len(again))
		if err := s.step(again[:k]); err != nil {
			return err
		}
		again = again[k:]
	}
	return nil
}

// cutAt is how many segments to take of speech that goes on at a frame: up to the last pause, or to the last word that
// has ended for sure.
func cutAt(all []segment, end int32) int {
	at, word := 0, 0
	for i, s := range all {
		if filler(s.word) {
			if i > 1 && s.last < end-pauseBefore && s.last-s.first > pause {
				at = i
			}
		} else if s.last < end-safe {
			word = i + 1
		}
	}
	if at > 0 {
		return at
	}
	return word
}

// end ends the stream.
func (s *streamDecoder) end() error {
	if !s.begun {
		return nil
	}
	s.begun = false
	if err := s.say(s.engine.endUtterance()); err != nil {
		return err
	}
	s.speaking = false
	return s.emitUntil(s.at, nil)
}

// advance tells how far all is known.
func (s *streamDecoder) advance() error {
	until := s.at - onset
	if s.speaking {
		until = s.since - onset
	}
	if until < s.until+step {
		return nil
	}
	return s.emitUntil(until, nil)
}
