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
func (d *wholeDecoder) feed(first int64, samples []int16) error {
	if len(d.held) > 0 && first != d.first+int64(len(d.held)) {
		if err := d.end(); err != nil {
			return err
		}
	}
	if len(d.held) == 0 {
		d.first = first
	}
	d.held = append(d.held, samples...)
	for len(d.held) >= wholeMost {
		if err := d.recognise(quietest(d.held[:wholeMost], wholeLeast)); err != nil {
			return err
		}
	}
	return nil
}

// end implements decoder.
func (d *wholeDecoder) end() error { return d.recognise(len(d.held)) }

// recognise tells the words of the first n samples that are held.
func (d *wholeDecoder) recognise(n int) error {
	if n == 0 {
		return nil
	}
	d.engine.startStream()
	if err := d.engine.startUtterance(); err != nil {
		return err
	}
	if err := d.engine.process(d.held[:n], true); err != nil {
		return err
	}
	d.base = d.first
	if err := d.say(d.engine.endUtterance()); err != nil {
		return err
	}
	d.first += int64(n)
	d.held = append(d.held[:0], d.held[n:]...)
	return d.tellUntil(d.first, nil)
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
