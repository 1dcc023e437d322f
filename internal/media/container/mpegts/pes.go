package mpegts

import (
	"bytes"
	"encoding/binary"
	"time"

	"millrace/internal/media/frame"
)

const (
	pesHeader = 6 // bytes up to PES_packet_length
	pesStart  = 9 // bytes up to the optional fields

	maxVideoPES = 8 << 20   // bytes of an access unit, as for the other protocols
	maxAudioPES = 256 << 10 // some seconds of audio

	// trust is how many PES packets in a row must have had stuffing nowhere but in their last packet before stuffing is
	// taken for the end.
	trust = 8
)

// stream joins the PES packets of one elementary stream, section 2.4.3.6.
type stream struct {
	elementary

	buf     []byte // the PES packet so far
	need    int    // its whole length in bytes; 0 while not known
	open    bool   // a PES packet has begun and is not complete
	stuffed bool   // its newest packet was stuffed
	padded  bool   // so was one before it
	early   bool   // the last one was taken for complete because of its stuffing
	// PES packets of unknown length that had stuffing in their last packet alone; below 0 once one had not
	faithful int
	counter  int8 // of the newest packet with payload; -1 before the first
	suspect  bool // so much was lost that the counters may not show it
	holeAt   int  // where in buf something is missing first; 0 nowhere
	tailAt   int  // and where last

	last  int64 // the newest timestamp, unwrapped, in 90 kHz
	timed bool

	video video
	audio audio
}

func newStream(e elementary) *stream {
	return &stream{elementary: e, counter: -1, video: video{codec: e.codec}, audio: audio{framer: newFramer(e)}}
}

func (s *stream) is(e elementary) bool { return s.elementary == e }

func (s *stream) limit() int {
	if s.codec.kind() == frame.Video {
		return maxVideoPES
	}
	return maxAudioPES
}

// packet takes one packet of the stream.
func (s *stream) packet(d *Demuxer, h header, payload []byte) error {
	if !h.payload {
		return nil
	}
	if s.counter >= 0 {
		switch gap := (h.counter - s.counter - 1) & 15; {
		case gap == 15 && bytes.HasSuffix(s.buf, payload):
			d.stats.Duplicates++
			return nil
		case gap != 0 || s.suspect:
			if !h.discontinuity {
				d.stats.Lost += int(gap)
			}
			if err := s.hole(d); err != nil {
				return err
			}
		}
	}
	s.counter, s.suspect = h.counter, false
	if h.start {
		if err := s.finish(d, false); err != nil {
			return err
		}
		s.buf, s.open, s.need, s.holeAt, s.tailAt = s.buf[:0], true, 0, 0, 0
		s.stuffed, s.padded, s.early = false, false, false
	}
	if !s.open {
		if s.early { // what was taken for the end was none
			s.early, s.faithful = false, -1
			return s.hole(d)
		}
		return nil
	}
	s.padded = s.padded || s.stuffed
	s.stuffed = h.stuffed
	if len(s.buf)+len(payload) > s.limit() {
		d.stats.Malformed++
		return s.drop(d)
	}
	s.buf = append(s.buf, payload...)
	return s.complete(d)
}

// complete gives out the PES packet if that was its last packet: by its length or, when it has none as video is allowed
// to, by stuffing.
func (s *stream) complete(d *Demuxer) error {
	if s.need == 0 && len(s.buf) >= pesHeader {
		if n := int(binary.BigEndian.Uint16(s.buf[4:])); n > 0 {
			s.need = pesHeader + n
		}
	}
	switch {
	case s.holeAt > 0: // its length tells nothing then
		return nil
	case s.need > 0 && len(s.buf) >= s.need:
		s.buf = s.buf[:s.need]
	case s.need == 0 && s.stuffed && s.faithful >= trust && len(s.buf) >= pesStart:
		s.early = true
	default:
		return nil
	}
	return s.finish(d, true)
}

// cutShort reports whether the PES packet at hand lacks its end when nothing more comes: as far as can be told from an
// encoder's stuffing.
func (s *stream) cutShort() bool {
	return s.open && s.need == 0 && s.faithful >= trust && !s.stuffed
}

// finish gives out what has come of the PES packet. known says that its end is, and not merely that the next one
// begins.
func (s *stream) finish(d *Demuxer, known bool) error {
	if !s.open {
		return nil
	}
	if !known && s.need == 0 && s.faithful >= 0 {
		if s.faithful = min(s.faithful+1, trust); s.padded {
			s.faithful = -1
		}
	}
	b := s.buf
	if s.need > len(b) && s.holeAt == 0 { // it was cut short
		s.holeAt, s.tailAt = len(b), len(b)
	}
	at, ok := pesPayload(b)
	switch {
	case !ok:
		d.stats.Malformed++
		return s.drop(d)
	case b[6]&0x30 != 0:
		d.stats.Scrambled++
		return s.drop(d)
	case s.holeAt > 0 && (s.holeAt < at || s.codec.kind() == frame.Video):
		return s.drop(d)
	}
	s.open = false
	t := s.times(d, b)
	switch {
	case s.codec.kind() == frame.Video:
		return s.video.addPacket(d, b[at:], t)
	case s.holeAt == 0:
		return s.addAudio(d, b[at:], t)
	}
	d.stats.Broken++
	if err := s.addAudio(d, b[at:s.holeAt], t); err != nil {
		return err
	}
	return s.audio.resume(d, b[s.tailAt:])
}

// addAudio takes sound, and tells when the stream has none that can be read.
func (s *stream) addAudio(d *Demuxer, b []byte, t stamps) error {
	if err := s.audio.addPacket(d, b, t); err != nil || !s.audio.unreadable() {
		return err
	}
	return d.disown(s)
}

// hole notes that something of the stream is missing before the next packet.
func (s *stream) hole(d *Demuxer) error {
	s.counter, s.suspect, s.video.holed = -1, false, true
	if s.open && s.codec.kind() == frame.Audio {
		if s.tailAt = len(s.buf); s.holeAt == 0 {
			s.holeAt = s.tailAt // sound before it and after it can be used
		}
		return nil
	}
	if s.open {
		return s.drop(d)
	}
	s.audio.lost()
	return nil
}

// drop passes over the PES packet.
func (s *stream) drop(d *Demuxer) error {
	d.stats.Broken++
	s.open = false
	s.audio.lost()
	if s.codec.kind() == frame.Video && s.video.configured {
		return s.damaged(d)
	}
	return nil
}

// damaged has the picture of the PES packet at hand, which has a hole, made up for as far as that can be.
func (s *stream) damaged(d *Demuxer) error {
	if at, ok := pesPayload(s.buf); ok && s.buf[6]&0x30 == 0 {
		if t := s.times(d, s.buf); t.known {
			return s.video.damaged(d, s.buf[at:], t)
		}
	}
	s.video.holed = true
	return nil
}

// pesPayload is where the elementary stream begins in a PES packet, section 2.4.3.7.
func pesPayload(b []byte) (at int, ok bool) {
	if len(b) < pesStart || b[0] != 0 || b[1] != 0 || b[2] != 1 || b[6]&0xc0 != 0x80 {
		return 0, false
	}
	switch b[3] {
	case 0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xff, 0xf2, 0xf8: // maps, padding, private data 2 and others have no such header
		return 0, false
	}
	at = pesStart + int(b[8])
	return at, at <= len(b)
}

// stamps are the times of a PES packet.
type stamps struct {
	pts, dts time.Duration
	known    bool
	decoding bool // dts is the stream's own
}

// times reads and unwraps the timestamps of a PES packet.
func (s *stream) times(d *Demuxer, b []byte) stamps {
	has := b[7] >> 6
	if has < 2 || int(b[8]) < 5*int(has-1) {
		return stamps{}
	}
	pts, ok := timestamp(b[pesStart:])
	dts := pts
	if ok && has == 3 {
		dts, ok = timestamp(b[pesStart+5:])
	}
	if !ok {
		d.stats.Malformed++
		return stamps{}
	}
	at := s.unwrap(d, dts)
	return stamps{dts: duration(at), pts: duration(at + nearest(pts-dts)), known: true, decoding: has == 3}
}

// timestamp reads 33 bits with their marker bits.
func timestamp(b []byte) (v int64, ok bool) {
	v = int64(b[0]>>1&7)<<30 | int64(b[1])<<22 | int64(b[2]>>1)<<15 | int64(b[3])<<7 | int64(b[4]>>1)
	return v, b[0]&b[2]&b[4]&1 == 1
}

const wrap = 1 << 33

// nearest turns a difference of timestamps into the smallest that means the same.
func nearest(d int64) int64 {
	d &= wrap - 1
	if d >= wrap/2 {
		d -= wrap
	}
	return d
}

// unwrap continues a timestamp of 33 bits beyond them. Each stream goes on from its own last one, so that one that
// jumps about does not take the other along.
func (s *stream) unwrap(d *Demuxer, v int64) int64 {
	switch {
	case s.timed:
		v = s.last + nearest(v-s.last)
	case d.timed:
		v = d.last + nearest(v-d.last)
	}
	s.last, s.timed, d.last, d.timed = v, true, v, true
	return v
}

func duration(ticks int64) time.Duration { return time.Duration(ticks * 100000 / 9) }
