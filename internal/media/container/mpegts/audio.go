package mpegts

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/ac3"
	"millrace/internal/media/codec/mp3"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/frame"
)

// framer cuts one codec's frames out of its elementary stream.
type framer interface {
	// sync is the first byte of every frame.
	sync() byte
	// next reads the frame at the start of b. size is how many bytes it takes of b, or would take if b were longer;
	// short says that b is too short to tell. An error means that there is no frame here.
	next(b []byte) (size int, short bool, err error)
	// open reads the frame b[:size] that next found: what it holds, one access unit for each data, and how long each
	// lasts.
	open(b []byte) (units [][]byte, each time.Duration, err error)
	// config is the track configuration as of the last frame that was opened.
	config() (frame.Config, error)
	// changed reports whether it has changed since config was called.
	changed() bool
	// presume takes the usual for the track configuration, as if a frame had said so: 48 kHz and two channels, or what
	// the program's tables say.
	presume()
}

// What most encoders send.
const (
	usualRate     = 48000 // Hz
	usualChannels = 2
)

func newFramer(e elementary) framer {
	switch e.codec {
	case codecADTS:
		return &adts{}
	case codecLATM:
		return &latm{}
	case codecMPEGAudio:
		return &mpegAudio{}
	case codecAC3:
		return &dolby{}
	case codecOpus:
		return &opusFramer{channels: e.channels}
	case none, codecH264, codecHEVC:
	}
	return nil
}

// audio makes access units of a stream of sound.
type audio struct {
	framer  framer
	carry   []byte        // the beginning of a frame whose end is in the next PES packet
	next    time.Duration // when the next frame begins
	timed   bool
	usable  bool // the configuration could be used
	given   bool // something was given out
	unread  int  // PES packets that could not be read, or frames of a kind that can not, while nothing was given out
	waiting []sound
}

// maxUnread is how many PES packets, or frames, are looked at for a first frame that can be read: MPEG audio of layer
// II has the stream type of MP3, and AAC's object types share one.
const maxUnread = 8

// sound is an access unit and its length.
type sound struct {
	data []byte
	long time.Duration
}

// lost tells that something is missing: what has begun has no end.
func (a *audio) lost() { a.carry, a.timed, a.waiting = nil, false, nil }

// addPacket takes the payload of a PES packet. Its time is that of the first frame that begins in it, section 2.4.3.7.
func (a *audio) addPacket(d *Demuxer, b []byte, t stamps) error {
	if err := a.place(d, t); err != nil {
		return err
	}
	carried := len(a.carry)
	own := make([]byte, 0, carried+len(b)) // the frames share it
	own = append(append(own, a.carry...), b...)
	return a.frames(d, own, !a.timed, func(at int, u sound) error {
		if t.known && at >= carried {
			a.next, a.timed, t.known = t.pts, true, false
		}
		if !a.timed {
			return nil
		}
		begin := a.next
		a.next += u.long
		return a.sound(d, u, begin)
	})
}

// unreadable reports whether so much of the stream could not be read that nothing will be.
func (a *audio) unreadable() bool { return !a.given && a.unread >= maxUnread }

// resume takes what is behind a hole in a PES packet. Its time is known when the next PES packet comes.
func (a *audio) resume(d *Demuxer, tail []byte) error {
	a.lost()
	return a.frames(d, bytes.Clone(tail), true, func(_ int, u sound) error {
		a.waiting = append(a.waiting, u)
		return nil
	})
}

// place gives out the sound behind a hole now that its end is known.
func (a *audio) place(d *Demuxer, t stamps) error {
	waiting := a.waiting
	a.waiting = nil
	if !t.known || len(waiting) == 0 {
		return nil
	}
	begin := t.pts
	if len(a.carry) > 0 { // one more has begun
		begin -= waiting[len(waiting)-1].long
	}
	for _, u := range waiting {
		begin -= u.long
	}
	for _, u := range waiting {
		if begin > a.next-u.long/2 {
			if err := a.sound(d, u, begin); err != nil {
				return err
			}
		}
		begin += u.long
	}
	a.next, a.timed = begin, true
	return nil
}

// frames cuts b into frames and carries over what is left. sure asks that the first is followed by another, or by
// nothing: b may not begin with one.
func (a *audio) frames(d *Demuxer, b []byte, sure bool, yield func(at int, u sound) error) error {
	at, unread := 0, 0
	a.carry = nil
	defer func() { a.unread += unread }()
	for at < len(b) {
		size, short, err := a.framer.next(b[at:])
		if err == nil && (short || at+size > len(b)) {
			a.carry = bytes.Clone(b[at:])
			return nil
		}
		if err == nil && sure {
			_, _, err = a.framer.next(b[at+size:])
		}
		if err != nil {
			unread = 1
			if !sure { // one complaint for each place where it goes wrong
				d.stats.Malformed++
			}
			sure = true
			n := bytes.IndexByte(b[at+1:], a.framer.sync())
			if n < 0 {
				return nil
			}
			at += 1 + n
			continue
		}
		sure = false
		units, each, err := a.framer.open(b[at : at+size])
		if err != nil {
			unread = 1
			d.stats.Malformed++
		}
		for _, u := range units {
			if err := yield(at, sound{u, each}); err != nil {
				return err
			}
		}
		at += size
	}
	return nil
}

// presume gives out the usual configuration of a stream that the program has and that has given nothing yet. Sound that
// comes with another one changes it.
func (a *audio) presume(d *Demuxer) error {
	a.framer.presume()
	c, err := a.framer.config()
	if err != nil {
		return nil //nolint:nilerr // the tables say something that can't be used: its frames say more
	}
	a.usable = true
	return d.out.Configure(c)
}

// sound gives out one access unit, after its configuration.
func (a *audio) sound(d *Demuxer, u sound, at time.Duration) error {
	if a.framer.changed() {
		c, err := a.framer.config()
		if a.usable = err == nil; a.usable {
			if err := d.configure(c); err != nil {
				return err
			}
		} else {
			d.stats.Malformed++
		}
	}
	if !a.usable {
		a.unread++
		return nil
	}
	a.given = true
	d.stats.Audio++
	return d.write(frame.Frame{Kind: frame.Audio, DTS: at, PTS: at, Key: true, Data: u.data, Received: d.when})
}

// long is how long so many samples last.
func long(samples int64, rate int) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(samples) * time.Second / time.Duration(rate)
}

// setting remembers a configuration by the header bytes it follows from.
type setting struct {
	key   []byte
	fresh bool
}

func (s *setting) changed() bool { return s.fresh }

func (s *setting) set(key []byte) {
	if s.key == nil || !bytes.Equal(s.key, key) {
		s.key, s.fresh = bytes.Clone(key), true
	}
}

// adts cuts AAC in ADTS.
type adts struct {
	setting
	rate int
}

func (*adts) sync() byte { return 0xff }

func (*adts) next(b []byte) (size int, short bool, err error) {
	if len(b) < aac.ADTSHeaderSize {
		return 0, true, nil
	}
	h, err := aac.ParseADTS(b)
	return h.Size, false, err
}

func (a *adts) open(b []byte) ([][]byte, time.Duration, error) {
	h, err := aac.ParseADTS(b)
	if err != nil {
		return nil, 0, err
	}
	if a.set(h.ASC[:]); a.fresh || a.rate == 0 {
		c, err := aac.Parse(a.key)
		if err != nil {
			return nil, 0, err
		}
		a.rate = c.SampleRate
	}
	return [][]byte{b[h.Header:len(b):len(b)]}, long(1024, a.rate), nil
}

func (a *adts) presume() { a.set(aac.LC(usualRate, usualChannels)) }

func (a *adts) config() (frame.Config, error) {
	a.fresh = false
	return aac.TrackConfig(a.key)
}

// latm cuts AAC in LATM with LOAS framing, ISO 14496-3 section 1.7.2.
type latm struct {
	setting
	mux  aac.LATM
	each time.Duration
}

func (*latm) sync() byte { return 0x56 }

func (*latm) next(b []byte) (size int, short bool, err error) {
	if len(b) < aac.LOASHeaderSize {
		return 0, true, nil
	}
	n, err := aac.ParseLOAS(b)
	return aac.LOASHeaderSize + n, false, err
}

func (l *latm) open(b []byte) ([][]byte, time.Duration, error) {
	units, err := l.mux.Read(b[aac.LOASHeaderSize:])
	if err != nil || l.mux.ASC() == nil {
		return nil, 0, err
	}
	if l.set(l.mux.ASC()); l.fresh || l.each == 0 {
		c, err := aac.Parse(l.key)
		if err != nil {
			return nil, 0, err
		}
		l.each = long(int64(c.SamplesPerFrame), c.SampleRate)
	}
	return units, l.each, nil
}

func (l *latm) presume() { l.set(aac.LC(usualRate, usualChannels)) }

func (l *latm) config() (frame.Config, error) {
	l.fresh = false
	return aac.TrackConfig(l.key)
}

// mpegAudio cuts MP3.
type mpegAudio struct {
	setting
	header []byte
}

func (*mpegAudio) sync() byte { return 0xff }

func (*mpegAudio) next(b []byte) (size int, short bool, err error) {
	if len(b) < mp3.HeaderSize {
		return 0, true, nil
	}
	h, err := mp3.Parse(b)
	return h.Size, false, err
}

// usualMP3 is the header of a frame of 128 kbit/s, 48 kHz and two channels, ISO 11172-3 section 2.4.1.3.
var usualMP3 = []byte{0xff, 0xfb, 0x94, 0} //nolint:gochecknoglobals // a constant

func (m *mpegAudio) presume() {
	if h, err := mp3.Parse(usualMP3); err == nil {
		m.seen(h, usualMP3)
	}
}

func (m *mpegAudio) open(b []byte) ([][]byte, time.Duration, error) {
	h, err := mp3.Parse(b)
	if err != nil {
		return nil, 0, err
	}
	m.seen(h, b)
	return [][]byte{slices.Clip(b)}, long(h.Samples, h.SampleRate), nil
}

func (m *mpegAudio) seen(h mp3.Header, b []byte) {
	// bit rates may vary
	key := [...]byte{byte(h.Channels), byte(h.SampleRate >> 16), byte(h.SampleRate >> 8), byte(h.SampleRate)}
	if m.set(key[:]); m.fresh {
		m.header = bytes.Clone(b[:mp3.HeaderSize])
	}
}

func (m *mpegAudio) config() (frame.Config, error) {
	m.fresh = false
	return mp3.TrackConfig(m.header)
}

// dolby cuts AC-3.
type dolby struct {
	setting
	header []byte
}

func (*dolby) sync() byte { return 0x0b }

func (*dolby) next(b []byte) (size int, short bool, err error) {
	if len(b) < ac3.HeaderSize {
		return 0, true, nil
	}
	h, err := ac3.Parse(b)
	return h.Size, false, err
}

// usualAC3 is the header of a frame of 192 kbit/s, 48 kHz and two channels, ETSI TS 102 366 section 4.3.
var usualAC3 = []byte{0x0b, 0x77, 0, 0, 0x14, 0x40, 0x43} //nolint:gochecknoglobals // a constant

func (d *dolby) presume() {
	if h, err := ac3.Parse(usualAC3); err == nil {
		d.seen(h, usualAC3)
	}
}

func (d *dolby) open(b []byte) ([][]byte, time.Duration, error) {
	h, err := ac3.Parse(b)
	if err != nil {
		return nil, 0, err
	}
	d.seen(h, b)
	return [][]byte{slices.Clip(b)}, long(ac3.Samples, h.SampleRate), nil
}

func (d *dolby) seen(h ac3.Header, b []byte) {
	if d.set(h.Specific[:]); d.fresh {
		d.header = bytes.Clone(b[:ac3.HeaderSize])
	}
}

func (d *dolby) config() (frame.Config, error) {
	d.fresh = false
	return ac3.TrackConfig(d.header)
}

// bytes of a packet: eight channels, 120 ms in frames of 2.5 ms at the largest size of one.
const maxOpus = 8 * 1275 * 48

var errOpusControl = errors.New("malformed Opus control header")

// opusFramer cuts Opus by its control headers, "Opus in MPEG-TS" section 4.
type opusFramer struct {
	channels   int
	configured bool
}

func (*opusFramer) sync() byte { return 0x7f }

func (*opusFramer) next(b []byte) (size int, short bool, err error) {
	at, n, short, err := opusHeader(b)
	return at + n, short, err
}

// opusHeader reads a control header: at is where the packet begins and n how long it is.
func opusHeader(b []byte) (at, n int, short bool, err error) {
	if len(b) < 3 {
		return 0, 0, true, nil
	}
	if b[0] != 0x7f || b[1]&0xe0 != 0xe0 {
		return 0, 0, false, errOpusControl
	}
	flags := b[1]
	for at = 2; ; at++ {
		if n > maxOpus {
			return 0, 0, false, errOpusControl
		}
		if at >= len(b) {
			return 0, 0, true, nil
		}
		if n += int(b[at]); b[at] != 0xff {
			at++
			break
		}
	}
	if flags&0x10 != 0 {
		at += 2 // samples to cut at the start
	}
	if flags&0x08 != 0 {
		at += 2 // and at the end
	}
	if flags&0x04 != 0 {
		if at >= len(b) {
			return 0, 0, true, nil
		}
		at += 1 + int(b[at])
	}
	if n == 0 || n > maxOpus {
		return 0, 0, false, errOpusControl
	}
	return at, n, false, nil
}

func (*opusFramer) open(b []byte) ([][]byte, time.Duration, error) {
	at, n, short, err := opusHeader(b)
	if short || err != nil || at+n > len(b) {
		return nil, 0, errOpusControl
	}
	samples := opus.Samples(b[at : at+n])
	if samples <= 0 {
		return nil, 0, errOpusControl
	}
	return [][]byte{b[at : at+n : at+n]}, long(samples, opus.SampleRate), nil
}

func (*opusFramer) presume() {} // the tables say how many channels there are

func (o *opusFramer) changed() bool { return !o.configured }

func (o *opusFramer) config() (frame.Config, error) {
	o.configured = true
	h, err := opus.Header(o.channels)
	if err != nil {
		return frame.Config{}, err
	}
	return opus.TrackConfig(h)
}
