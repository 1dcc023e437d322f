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
func (d *streamDecoder) begin(at int64) error {
	d.engine.startStream()
	d.base, d.at, d.speaking, d.kept = at, at, false, d.kept[:0]
	d.begun, d.before = true, nil
	return d.engine.startUtterance()
}

// feed takes samples, the first of which has a number. One that does not follow begins a stream of its own.
func (d *streamDecoder) feed(first int64, samples []int16) error {
	if d.begun && first != d.at {
		if err := d.end(); err != nil {
			return err
		}
	}
	if !d.begun {
		if err := d.begin(first); err != nil {
			return err
		}
	}
	for len(samples) > 0 {
		n := min(step, len(samples))
		if err := d.step(samples[:n]); err != nil {
			return err
		}
		samples = samples[n:]
	}
	return d.advance()
}

func (d *streamDecoder) step(samples []int16) error {
	if err := d.engine.process(samples, false); err != nil {
		return err
	}
	d.keep(samples)
	d.at += int64(len(samples))
	now := d.engine.speaking()
	switch {
	case now && !d.speaking:
		d.speaking, d.since = true, d.at
	case !now && d.speaking:
		d.speaking, d.before = false, nil
		if err := d.say(d.engine.endUtterance()); err != nil {
			return err
		}
		return d.engine.startUtterance()
	case now && d.longest > 0 && d.at-d.since >= d.longest:
		return d.cut()
	case now && d.at%look < step:
		return d.tellStable()
	}
	return nil
}

// tellStable tells the words of speech that goes on which will hardly change any more.
func (d *streamDecoder) tellStable() error {
	all := d.engine.soFar()
	n, end := 0, int32((d.at-d.base)/frameSamples)
	for n < min(len(all), len(d.before)) && all[n].last < end-stable && all[n].same(d.before[n]) {
		n++
	}
	d.before = all
	return d.say(all[:n])
}

// same reports whether two segments are one, seen at different times.
func (s segment) same(o segment) bool {
	return s.word == o.word && max(s.first-o.first, o.first-s.first) <= drift
}

// keep holds what a cut may have to process again.
func (d *streamDecoder) keep(samples []int16) {
	if d.longest == 0 {
		return
	}
	d.kept = append(d.kept, samples...)
	if most := int(d.longest) + 4*onset; len(d.kept) > 2*most {
		d.kept = append(d.kept[:0], d.kept[len(d.kept)-most:]...)
	}
}

// cut ends an utterance in which somebody speaks: its words are told up to where it is best, and the sound behind them
// is processed again.
func (d *streamDecoder) cut() error {
	all := d.engine.endUtterance()
	n := cutAt(all, int32((d.at-d.base)/frameSamples))
	now, from := d.at, d.at
	if n > 0 && n < len(all) {
		from = max(d.base+int64(all[n].first)*frameSamples, d.at-int64(len(d.kept)))
		if from <= d.since-onset { // no way forward
			from = now
		}
	} else {
		n = len(all)
	}
	if err := d.say(all[:n]); err != nil {
		return err
	}
	again := slices.Clone(d.kept[len(d.kept)-int(now-from):])
	if err := d.begin(from); err != nil {
		return err
	}
	for len(again) > 0 {
		k := min(step, len(again))
		if err := d.step(again[:k]); err != nil {
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
func (d *streamDecoder) end() error {
	if !d.begun {
		return nil
	}
	d.begun = false
	if err := d.say(d.engine.endUtterance()); err != nil {
		return err
	}
	d.speaking = false
	return d.tellUntil(d.at, nil)
}

// advance tells how far all is known.
func (d *streamDecoder) advance() error {
	until := d.at - onset
	if d.speaking {
		until = d.since - onset
	}
	if until < d.until+step {
		return nil
	}
	return d.tellUntil(until, nil)
}
