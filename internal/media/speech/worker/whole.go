package worker

// The pieces that sound which has ended is recognised in: cut at the quietest moment between the two lengths, in
// samples.
const (
	wholeLeast, wholeMost = 10 * samplesPerSecond, 20 * samplesPerSecond
	quietWindow           = samplesPerSecond / 5 // of which the loudness is looked at
)

// wholeArgs are the library's arguments for sound that has ended. A silence that it removes would shift what follows,
// and in silence of nothing but zeros it finds words, unless there is a little noise, which is the same each time.
func wholeArgs() []string {
	return []string{"-cmn", "batch", "-remove_silence", "no", "-dither", "yes", "-seed", "1"}
}

// wholeDecoder recognises sound that has ended. Each piece is normalised by the mean of its own spectrum, where a
// stream can take only the mean of what came before: that is most of what makes a second pass better.
type wholeDecoder struct {
	report

	engine engine
	first  int64 // sample
	held   []int16
}

// feed implements decoder.
func (w *wholeDecoder) feed(first int64, samples []int16) error {
	if len(w.held) > 0 && first != w.first+int64(len(w.held)) {
		if err := w.end(); err != nil {
			return err
		}
	}
	if len(w.held) == 0 {
		w.first = first
	}
	w.held = append(w.held, samples...)
	for len(w.held) >= wholeMost {
		if err := w.recognise(quietest(w.held[:wholeMost], wholeLeast)); err != nil {
			return err
		}
	}
	return nil
}

// end implements decoder.
func (w *wholeDecoder) end() error { return w.recognise(len(w.held)) }

// recognise tells the words of the first n samples that are held.
func (w *wholeDecoder) recognise(n int) error {
	if n == 0 {
		return nil
	}
	w.engine.startStream()
	if err := w.engine.startUtterance(); err != nil {
		return err
	}
	if err := w.engine.process(w.held[:n], true); err != nil {
		return err
	}
	w.base = w.first
	if err := w.say(w.engine.endUtterance()); err != nil {
		return err
	}
	w.first += int64(n)
	w.held = append(w.held[:0], w.held[n:]...)
	return w.emitUntil(w.first, nil)
}

// quietest is the middle of the quietest moment behind so many samples.
func quietest(samples []int16, behind int) int {
	best, least := len(samples), int64(-1)
	for from := behind; from+quietWindow <= len(samples); from += quietWindow / 2 {
		var sum int64
		for _, s := range samples[from : from+quietWindow] {
			sum += int64(s) * int64(s)
		}
		if least < 0 || sum < least {
			best, least = from+quietWindow/2, sum
		}
	}
	return best
}
