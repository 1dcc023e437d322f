// Package mpegts demultiplexes MPEG transport streams (ISO 13818-1): bytes in, track configurations and access units
// out.
//
// It selects the first program that has media, and in it the first video and the first audio that it can read, and
// stays with them while the program has them. Continuity counters reveal losses: an access unit with a hole is never
// returned; pictures that refer to one are, since decoders conceal what is missing. In place of a lost key frame, the
// previous one is returned again (lost.go says why). For any input, memory is bounded by the largest access units and
// time by the number of bytes.
//
// It must never know files, sockets, time of day or a logger, and it starts no goroutines.
package mpegts

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/internal/media/frame"
)

// PacketSize is the length of a transport packet in bytes.
const PacketSize = 188

const (
	syncByte = 0x47
	nullPID  = 0x1fff

	// patience is how many bytes may come without a program that can be used; encoders repeat the tables ten times a
	// second.
	patience = 32 << 20
)

// The errors that end a stream. What is merely broken is passed over and counted, see Stats.
var (
	// ErrUnsupported means that the stream has no program with a codec that is known here.
	ErrUnsupported = errors.New("unsupported transport stream")
	// ErrNotTS means that there is no transport stream in the bytes.
	ErrNotTS = errors.New("no MPEG transport stream")
)

// Output takes what a Demuxer finds. A track's frames come after a Config of its kind, a Config that equals the last
// one is not repeated. Its errors end the stream.
type Output interface {
	Configure(c frame.Config) error
	Write(f frame.Frame) error
}

// Stats counts since the beginning.
type Stats struct {
	Packets    int // transport packets
	Skipped    int // bytes that were no packets
	Lost       int // packets missing by their continuity counters; a run of 16 counts as none
	Duplicates int // packets that were sent twice
	Scrambled  int // packets or PES packets that are encrypted
	Damaged    int // packets marked by the sender as broken
	Malformed  int // tables, PES packets and frames that can not be read or are too large
	Broken     int // access units that came with a hole and were dropped
	Waiting    int // pictures that were dropped because they refer to a lost key frame that nothing could stand in for
	Replaced   int // key frames that were lost, and in whose place the one before was given out again
	Repeated   int // references that were lost, and in whose place a picture that repeats others was given out
	Video      int // frames given out
	Audio      int
}

// Demuxer takes one stream apart. It is used by one goroutine.
type Demuxer struct {
	out   Output
	stats Stats

	rest     []byte // of a packet that is not complete, or of bytes in which a packet is looked for
	unsure   bool   // packets are looked for
	tables   tables
	video    *stream
	audio    *stream
	ignored  []string
	presumes bool
	start    startBuffer
	when     time.Time // when the bytes at hand came
	last     int64     // the newest timestamp of any track, unwrapped, in 90 kHz
	timed    bool      // last is known
	err      error
}

// NewDemuxer returns a Demuxer that writes to out.
func NewDemuxer(out Output) *Demuxer { return &Demuxer{out: out, tables: newTables()} }

// PresumeSound has sound that the program has, and that doesn't come within a second of the first picture, configured
// with the usual parameters: so who takes the frames can write silence until it comes. It is called before Write.
func (d *Demuxer) PresumeSound() { d.presumes = true }

// Stats returns the counters.
func (d *Demuxer) Stats() Stats { return d.stats }

// Ignored names the streams of the program that are not used, for people.
func (d *Demuxer) Ignored() []string { return d.ignored }

// Write takes the next bytes of the stream, which came at received, in portions of any size. It keeps none of them. An
// error is for good.
func (d *Demuxer) Write(b []byte, received time.Time) error {
	if d.err != nil {
		return d.err
	}
	d.when = received
	if len(d.rest) > 0 { // at most two packets, so the copying is bounded
		n := min(len(b), 2*PacketSize+1-len(d.rest))
		d.rest = append(d.rest, b[:n]...)
		left := d.packets(d.rest)
		if d.err != nil {
			return d.err
		}
		switch {
		case len(left) <= n: // all that was kept is used up: go on in b itself
			b = b[n-len(left):]
			d.rest = d.rest[:0]
		case n == len(b):
			d.rest = append(d.rest[:0], left...)
			return nil
		}
	}
	d.rest = append(d.rest[:0], d.packets(b)...)
	return d.err
}

// Flush gives out what waits for the start of the next access unit: nothing more comes.
func (d *Demuxer) Flush() error {
	d.stats.Skipped += len(d.rest)
	d.rest = d.rest[:0]
	for _, s := range [...]*stream{d.video, d.audio} {
		if s == nil || d.err != nil {
			continue
		}
		if s.cutShort() {
			d.stats.Broken++
			continue
		}
		d.err = s.finish(d, true)
	}
	if d.video != nil && d.err == nil {
		d.err = d.video.video.resolveDates(d)
	}
	if d.err == nil {
		d.err = d.release()
	}
	return d.err
}

// startBuffer keeps the first pictures until the sound that the program has is there too: encoders gather it for up to
// 0.7 s before they send any, and who takes the frames should know of both tracks when the first one comes.
type startBuffer struct {
	over   bool
	config *frame.Config
	frames []frame.Frame
	bytes  int
}

const (
	maxStart      = time.Second // of pictures, by their clock
	maxStartBytes = maxVideoPES
)

func (d *Demuxer) configure(c frame.Config) error {
	if d.start.over || c.Kind == frame.Audio {
		return d.out.Configure(c)
	}
	if d.start.config != nil { // the parameters change already
		if err := d.release(); err != nil {
			return err
		}
		return d.out.Configure(c)
	}
	d.start.config = &c
	return nil
}

func (d *Demuxer) write(f frame.Frame) error {
	h := &d.start
	if f.Kind == frame.Audio && d.video != nil && d.video.video.dating.pictures > 0 {
		return d.video.video.keep(d, f)
	}
	if h.over {
		return d.out.Write(f)
	}
	if f.Kind == frame.Video && d.audio != nil {
		h.frames, h.bytes = append(h.frames, f), h.bytes+len(f.Data)
		if first := h.frames[0].DTS; h.bytes <= maxStartBytes && f.DTS >= first && f.DTS-first < maxStart {
			return nil
		}
		if d.presumes && !d.audio.audio.given {
			if err := d.audio.audio.presume(d); err != nil {
				return err
			}
		}
		return d.release()
	}
	if err := d.release(); err != nil {
		return err
	}
	return d.out.Write(f)
}

// release gives out what is held, and holds nothing any more.
func (d *Demuxer) release() error {
	h := d.start
	d.start = startBuffer{over: true}
	if h.config != nil {
		if err := d.out.Configure(*h.config); err != nil {
			return err
		}
	}
	for _, f := range h.frames {
		if err := d.out.Write(f); err != nil {
			return err
		}
	}
	return nil
}

// Missing tells that about so many bytes of the stream were lost just now. The continuity counters show small losses,
// but they count to 16 only.
func (d *Demuxer) Missing(size int) {
	d.rest = d.rest[:0]
	if size < 16*PacketSize {
		return
	}
	for _, s := range [...]*stream{d.video, d.audio} {
		if s != nil {
			s.suspect = true
		}
	}
}

// packets takes whole packets off b and returns the rest, which is at most two packets long.
func (d *Demuxer) packets(b []byte) []byte {
	for len(b) >= PacketSize {
		if d.unsure || b[0] != syncByte {
			n, found := findSync(b)
			d.stats.Skipped += n
			b = b[n:]
			if d.unsure = !found; d.unsure || len(b) < PacketSize {
				break
			}
		}
		if d.err = d.packet(b[:PacketSize:PacketSize]); d.err != nil {
			return nil
		}
		b = b[PacketSize:]
	}
	if d.video == nil && d.audio == nil && d.stats.Packets*PacketSize+d.stats.Skipped > patience {
		d.err = fmt.Errorf("%w: no program in %d bytes", ErrNotTS, d.stats.Packets*PacketSize+d.stats.Skipped)
		return nil
	}
	return b
}

// findSync returns where two packets follow each other. When there is no such place, what is before at can not be the
// start of a packet, and less than one packet's length follows it.
func findSync(b []byte) (at int, found bool) {
	for {
		i := bytes.IndexByte(b[at:], syncByte)
		if i < 0 {
			return len(b), false
		}
		at += i
		switch {
		case at+PacketSize >= len(b):
			return at, false
		case b[at+PacketSize] == syncByte:
			return at, true
		}
		at++
	}
}

// packet takes one transport packet, section 2.4.3.2.
func (d *Demuxer) packet(p []byte) error {
	d.stats.Packets++
	pid := uint16(p[1]&0x1f)<<8 | uint16(p[2])
	switch {
	case pid == nullPID:
		return nil
	case p[1]&0x80 != 0:
		d.stats.Damaged++
		return nil
	}
	s := d.of(pid)
	table := s == nil && d.tables.wanted(pid)
	if s == nil && !table {
		return nil
	}
	if p[3]&0xc0 != 0 {
		d.stats.Scrambled++
		if s != nil {
			return s.hole(d)
		}
		return nil
	}
	h, payload, ok := parseHeader(p)
	if !ok {
		d.stats.Malformed++
		return nil
	}
	if table {
		section := d.tables.assemble(pid, h, payload)
		for section != nil {
			if err := d.section(pid, section); err != nil {
				return err
			}
			section = d.tables.more(pid)
		}
		return nil
	}
	return s.packet(d, h, payload)
}

func (d *Demuxer) of(pid uint16) *stream {
	switch {
	case d.video != nil && d.video.pid == pid:
		return d.video
	case d.audio != nil && d.audio.pid == pid:
		return d.audio
	}
	return nil
}

// header is what a packet says besides its payload.
type header struct {
	start         bool // a PES packet or a section starts in it
	counter       int8 // continuity counter
	payload       bool
	stuffed       bool // the adaptation field is longer than what it says
	discontinuity bool // the counter, or the clock, may jump
}

// parseHeader reads header and adaptation field, sections 2.4.3.2 and 2.4.3.4.
func parseHeader(p []byte) (h header, payload []byte, ok bool) {
	h = header{start: p[1]&0x40 != 0, counter: int8(p[3] & 15), payload: p[3]&0x10 != 0}
	payload = p[4:]
	if p[3]&0x20 != 0 {
		n := int(payload[0])
		if n >= len(payload) && h.payload || n > len(payload)-1 {
			return h, nil, false
		}
		h.adaptation(payload[1 : 1+n])
		payload = payload[1+n:]
	}
	if !h.payload {
		payload = nil
	}
	return h, payload, true
}

// adaptation reads an adaptation field behind its length.
func (h *header) adaptation(field []byte) {
	h.stuffed = true
	if len(field) == 0 {
		return
	}
	used, flags := 1, field[0]
	h.discontinuity = flags&0x80 != 0
	if flags&0x10 != 0 {
		used += 6 // PCR
	}
	if flags&0x08 != 0 {
		used += 6 // original PCR
	}
	if flags&0x04 != 0 {
		used++
	}
	h.stuffed = len(field) > used && flags&0x03 == 0 // private data and extensions are not stuffing
}

// adopt makes the streams of a program the current ones, as far as they are not already.
func (d *Demuxer) adopt(p program) error {
	video, audio := pick(p.streams, frame.Video, d.video), pick(p.streams, frame.Audio, d.audio)
	if video == nil && audio == nil {
		return nil
	}
	d.ignored = d.ignored[:0]
	for i := range p.streams {
		if e := &p.streams[i]; e != video && e != audio {
			d.ignored = append(d.ignored, e.String())
		}
	}
	for _, t := range [...]struct {
		current **stream
		next    *elementary
	}{{&d.video, video}, {&d.audio, audio}} {
		if old := *t.current; old != nil && t.next != nil && old.is(*t.next) {
			continue
		} else if old != nil {
			if err := old.finish(d, true); err != nil {
				return err
			}
			if err := old.video.resolveDates(d); err != nil {
				return err
			}
		}
		*t.current = nil
		if t.next != nil {
			*t.current = newStream(*t.next)
		}
	}
	return nil
}

// pick chooses the stream of a kind: the current one while the program has it, else the first that can be read.
func pick(streams []elementary, kind frame.Kind, current *stream) (chosen *elementary) {
	for i := range streams {
		switch e := &streams[i]; {
		case !e.usable() || e.codec.kind() != kind:
		case current != nil && current.is(*e):
			return e
		case chosen == nil:
			chosen = e
		}
	}
	return chosen
}

// unsupported is the error of a stream none of whose programs can be used.
func unsupported(programs []program) error {
	var names []string
	for _, p := range programs {
		for _, e := range p.streams {
			names = append(names, e.String())
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: its programs have no streams", ErrUnsupported)
	}
	return fmt.Errorf("%w: send H.264 or HEVC video and AAC, MP3, AC-3 or Opus audio, not %s", ErrUnsupported,
		strings.Join(names, ", "))
}
