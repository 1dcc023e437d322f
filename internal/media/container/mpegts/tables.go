package mpegts

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"millrace/internal/media/frame"
)

const (
	patPID     = 0
	tablePAT   = 0x00
	tablePMT   = 0x02
	maxSection = 1024 // bytes of a PAT or PMT section, section 2.4.4
	maxTables  = 64   // programs that are looked at
	maxStreams = 32   // streams of a program that are looked at
)

// codec is what a stream of a program holds.
type codec uint8

const (
	none codec = iota // nothing that is known here
	codecH264
	codecHEVC
	codecADTS
	codecLATM
	codecMPEGAudio
	codecAC3
	codecOpus
)

func (c codec) kind() frame.Kind {
	if c == codecH264 || c == codecHEVC {
		return frame.Video
	}
	return frame.Audio
}

// elementary is one stream of a program map.
type elementary struct {
	pid      uint16
	typ      byte // stream_type
	codec    codec
	channels int  // Opus, of its descriptor
	unread   bool // what it holds is not what its program map says, or a kind of that which can't be read
}

// usable reports whether the stream can be read, for all that is known.
func (e elementary) usable() bool { return e.codec != none && !e.unread }

// streamTypes names what is not read here, for people: table 2-34 and what ATSC and others use beyond it.
var streamTypes = map[byte]string{ //nolint:gochecknoglobals // a table
	0x01: "MPEG-1 video", 0x02: "MPEG-2 video", 0x05: "private sections", 0x06: "private data", 0x10: "MPEG-4 visual",
	0x15: "metadata",
	0x1c: "MPEG-4 audio without framing", 0x20: "MVC", 0x21: "JPEG 2000", 0x33: "VVC", 0x42: "AVS", 0x80: "PCM",
	0x82: "DTS", 0x83: "TrueHD",
	0x84: "E-AC-3", 0x86: "SCTE-35", 0x87: "E-AC-3", 0xea: "VC-1",
}

// otherThan says what a stream is, for people, of which nothing could be read.
var otherThan = map[codec]string{ //nolint:gochecknoglobals // a table
	codecADTS: "AAC other than AAC-LC", codecLATM: "AAC other than AAC-LC", codecMPEGAudio: "MPEG audio other than MP3",
}

var codecNames = map[codec]string{ //nolint:gochecknoglobals // a table
	codecH264:      "H.264",
	codecHEVC:      "HEVC",
	codecADTS:      "AAC",
	codecLATM:      "AAC in LATM",
	codecMPEGAudio: "MPEG audio",
	codecAC3:       "AC-3",
	codecOpus:      "Opus",
}

func (e elementary) String() string {
	name := codecNames[e.codec]
	if other := otherThan[e.codec]; e.unread && other != "" {
		return other
	}
	if e.unread {
		return "unreadable " + name
	}
	if name == "" {
		name = streamTypes[e.typ]
	}
	if name == "" {
		return fmt.Sprintf("stream type 0x%02x", e.typ)
	}
	return name
}

// program is a program map.
type program struct {
	number  uint16
	streams []elementary
}

// tables finds the program that is used.
type tables struct {
	sections map[uint16]*section // by PID
	programs []listing           // as the association table lists them
	chosen   int                 // number of the program that is used; 0 while there is none
}

// listing is an entry of the association table.
type listing struct {
	number, pid uint16
	raw         []byte // its program map as last read
	program     program
}

func newTables() tables { return tables{sections: map[uint16]*section{patPID: {}}} }

func (t *tables) wanted(pid uint16) bool { return t.sections[pid] != nil }

// section joins sections, section 2.4.4.
type section struct {
	buf     []byte
	open    bool
	counter int8
	rest    []byte // of the payload, behind a section that is complete
}

// assemble takes a packet and returns a section that is complete with it. It is valid until the next call; more says
// what follows it.
func (t *tables) assemble(pid uint16, h header, payload []byte) []byte {
	s := t.sections[pid]
	if !h.payload || len(payload) == 0 {
		return nil
	}
	if s.open && h.counter != (s.counter+1)&15 && !h.start {
		s.open = h.counter == s.counter // sent twice: what is there stays, but it is not taken again
		if s.open {
			return nil
		}
	}
	s.counter = h.counter
	if h.start { // what an unfinished section still lacks is not waited for: tables come again
		n := 1 + int(payload[0])
		if n > len(payload) {
			s.open = false
			return nil
		}
		if before := payload[1:n]; s.open && len(before) > 0 {
			s.buf = append(s.buf, before...)
			if whole := s.cut(); whole != nil {
				s.rest, s.open = payload[n:], true
				return whole
			}
		}
		s.buf, s.open, payload = s.buf[:0], true, payload[n:]
	}
	if !s.open || len(s.buf)+len(payload) > maxSection+PacketSize {
		s.open = false
		return nil
	}
	s.buf = append(s.buf, payload...)
	return t.cutSection(s)
}

// more returns the next section of the same packet.
func (t *tables) more(pid uint16) []byte {
	s := t.sections[pid]
	if s == nil || !s.open {
		return nil
	}
	s.buf, s.rest = append(s.buf[:0], s.rest...), nil
	return t.cutSection(s)
}

func (t *tables) cutSection(s *section) []byte {
	whole := s.cut()
	if whole == nil {
		return nil
	}
	if s.rest = s.buf[len(whole):]; len(s.rest) == 0 || s.rest[0] == 0xff { // stuffing up to the end of the packet
		s.open, s.rest = false, nil
	}
	return whole
}

// cut returns the section at the buffer's start if it is whole.
func (s *section) cut() []byte {
	if len(s.buf) < 3 {
		return nil
	}
	n := 3 + int(binary.BigEndian.Uint16(s.buf[1:])&0xfff)
	if n > maxSection {
		s.open = false
		return nil
	}
	if len(s.buf) < n {
		return nil
	}
	return s.buf[:n:n]
}

// section takes a whole section of the PAT or of a PMT.
func (d *Demuxer) section(pid uint16, b []byte) error {
	want := byte(tablePMT)
	if pid == patPID {
		want = tablePAT
	}
	if b[0] != want { // other tables may share the PID
		return nil
	}
	if len(b) < 12 || b[1]&0x80 == 0 || crc(b) != 0 {
		d.stats.Malformed++
		return nil
	}
	if b[5]&1 == 0 { // not in force yet
		return nil
	}
	if pid == patPID {
		return d.association(b)
	}
	return d.programMap(pid, b)
}

// association takes a program association section, 2.4.4.3. One of several sections that list different programs is
// taken for all.
func (d *Demuxer) association(b []byte) error {
	t := &d.tables
	var next []listing
	for e := b[8 : len(b)-4]; len(e) >= 4 && len(next) < maxTables; e = e[4:] {
		l := listing{number: binary.BigEndian.Uint16(e), pid: binary.BigEndian.Uint16(e[2:]) & 0x1fff}
		if l.number == 0 || l.pid == patPID || l.pid == nullPID { // 0: the network's table
			continue
		}
		if i := slices.IndexFunc(t.programs, func(o listing) bool {
			return o.number == l.number && o.pid == l.pid
		}); i >= 0 {
			l = t.programs[i]
		}
		next = append(next, l)
	}
	t.programs = next
	sections := map[uint16]*section{patPID: t.sections[patPID]}
	for _, l := range next {
		if sections[l.pid] = t.sections[l.pid]; sections[l.pid] == nil {
			sections[l.pid] = &section{}
		}
	}
	t.sections = sections
	if t.chosen != 0 && !slices.ContainsFunc(next, func(l listing) bool { return int(l.number) == t.chosen }) {
		t.chosen = 0
		for _, l := range next { // one that is known already; its tables may come late
			if l.raw != nil {
				if err := d.consider(l.program); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// programMap takes a program map section, 2.4.4.8.
func (d *Demuxer) programMap(pid uint16, b []byte) error {
	number := binary.BigEndian.Uint16(b[3:])
	t := &d.tables
	i := slices.IndexFunc(t.programs, func(l listing) bool { return l.pid == pid && l.number == number })
	if i < 0 || bytes.Equal(t.programs[i].raw, b) {
		return nil
	}
	p, ok := parseProgram(b)
	if !ok {
		d.stats.Malformed++
		return nil
	}
	t.programs[i].raw, t.programs[i].program = bytes.Clone(b), p
	if err := d.consider(p); err != nil || t.chosen != 0 {
		return err
	}
	return t.hopeless()
}

// hopeless is the error of a stream none of whose programs can be used; nil while one is not known yet.
func (t *tables) hopeless() error {
	var seen []program
	for _, l := range t.programs {
		if l.raw == nil {
			return nil
		}
		seen = append(seen, l.program)
	}
	return unsupported(seen)
}

// disown takes note that nothing of a stream of the program in use could be read: another one of its kind takes its
// place, if there is one.
func (d *Demuxer) disown(s *stream) error {
	t := &d.tables
	for i := range t.programs {
		l := &t.programs[i]
		if int(l.number) != t.chosen {
			continue
		}
		for n, e := range l.program.streams {
			if s.is(e) {
				l.program.streams[n].unread = true
			}
		}
		if slices.ContainsFunc(l.program.streams, elementary.usable) {
			return d.adopt(l.program)
		}
		t.chosen, d.video, d.audio = 0, nil, nil
		for _, o := range t.programs {
			if err := d.consider(o.program); err != nil || t.chosen != 0 {
				return err
			}
		}
		return t.hopeless()
	}
	return nil
}

// consider takes the program if it is the one in use, or if there is none in use and it has media.
func (d *Demuxer) consider(p program) error {
	t := &d.tables
	usable := slices.ContainsFunc(p.streams, elementary.usable)
	if t.chosen == 0 && usable {
		t.chosen = int(p.number)
	}
	if t.chosen != int(p.number) || !usable { // a program in use that announces nothing for a while comes back
		return nil
	}
	return d.adopt(p)
}

func parseProgram(b []byte) (program, bool) {
	p := program{number: binary.BigEndian.Uint16(b[3:])}
	end := len(b) - 4
	at := 12 + int(binary.BigEndian.Uint16(b[10:])&0xfff)
	for at+5 <= end && len(p.streams) < maxStreams {
		n := int(binary.BigEndian.Uint16(b[at+3:]) & 0xfff)
		if at+5+n > end {
			return program{}, false
		}
		e := elementary{typ: b[at], pid: binary.BigEndian.Uint16(b[at+1:]) & 0x1fff}
		e.identify(b[at+5 : at+5+n])
		p.streams = append(p.streams, e)
		at += 5 + n
	}
	return p, at <= end
}

// Descriptor tags: ISO 13818-1 table 2-45 and ETSI EN 300 468 table 12.
const (
	tagRegistration = 0x05
	tagAC3          = 0x6a
	tagExtension    = 0x7f
	extensionOpus   = 0x80 // "Opus in MPEG-TS", 2.1
)

// identify finds the codec by stream type and descriptors.
func (e *elementary) identify(descriptors []byte) {
	switch e.typ {
	case 0x1b:
		e.codec = codecH264
	case 0x24:
		e.codec = codecHEVC
	case 0x0f:
		e.codec = codecADTS
	case 0x11:
		e.codec = codecLATM
	case 0x03, 0x04:
		e.codec = codecMPEGAudio
	case 0x81:
		e.codec = codecAC3
	case 0x06:
		e.private(descriptors)
	}
}

// private finds what private data is by its descriptors.
func (e *elementary) private(b []byte) {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		tag, body := b[0], b[2:2+int(b[1])]
		b = b[2+len(body):]
		switch {
		case tag == tagRegistration && bytes.HasPrefix(body, []byte("Opus")):
			e.codec, e.channels = codecOpus, max(e.channels, 2)
		case tag == tagRegistration && bytes.HasPrefix(body, []byte("AC-3")), tag == tagAC3:
			e.codec = codecAC3
		case tag == tagExtension && len(body) >= 2 && body[0] == extensionOpus:
			if e.channels = int(body[1]); body[1] == 0 || body[1] > 8 { // dual mono, and what has a mapping of its own
				e.channels = 2
			}
		}
	}
}

// crcTable is of CRC-32/MPEG-2, ISO 13818-1 annex A.
var crcTable = func() (t [256]uint32) { //nolint:gochecknoglobals // a table
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}()

// crc is 0 for a section whose checksum is right.
func crc(b []byte) uint32 {
	c := ^uint32(0)
	for _, v := range b {
		c = c<<8 ^ crcTable[byte(c>>24)^v]
	}
	return c
}
