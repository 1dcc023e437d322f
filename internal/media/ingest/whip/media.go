package whip

import (
	"errors"
	"fmt"
	"time"

	"github.com/pion/rtp"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

const (
	videoPatience = 400 * time.Millisecond // for a packet that was asked for again
	audioPatience = 120 * time.Millisecond // for one that is late; browsers do not repeat sound

	keyInterval = 1900 * time.Millisecond // between key frames: with the way there and back about 2 s
	keyAgain    = 500 * time.Millisecond  // before a request is repeated
	keyFirst    = 250 * time.Millisecond  // before the first one: a stream begins with a key frame by itself

	// of pictures by which the tracks' first relation is found when no reports are there.
	stableTime = 300 * time.Millisecond
	startWait  = 5 * time.Second // for a track that was announced
	heldBytes  = 16 << 20

	maxMalformed = 100 // frames that may be unreadable before the first one that is not
)

// track is one RTP stream on its way to frames.
type track struct {
	kind      frame.Kind
	reorder   reorder
	assembler assembler
	payloads  depacketizer
	config    *frame.Config // read and not given to the sink yet
	readable  bool          // a config was read
	last      time.Duration // DTS of the last frame
	written   bool
}

// unit is one access unit whose time is not known yet.
type unit struct {
	frame.Frame
	ts     int64 // unwrapped
	config *frame.Config
}

// media turns packets into frames for a sink. It is used by one goroutine; now only grows.
type media struct {
	sink   ingest.Sink
	tracks [2]*track // nil: not negotiated
	clocks clocks
	began  time.Time // what arrival times count from

	running bool // frames flow; before, they are held until their tracks' relation is known
	held    []unit
	bytes   int
	firstAt time.Time // of the first frame held
	keyAt   time.Time // of the last key frame; zero: none yet

	needKey bool // pictures are dropped until a key frame
	asked   time.Time
	counts  counts
	failed  error
}

// counts is what a publication leaves in the log.
type counts struct{ video, audio, malformed, damaged, lost, late, requests int }

// newMedia makes media of the negotiated codecs; an empty one means that there is no such track. patience is for
// packets of pictures.
func newMedia(video, audio negotiated, maxFrame int, patience time.Duration, began time.Time) *media {
	m := &media{began: began, needKey: true}
	for kind, n := range [2]negotiated{frame.Video: video, frame.Audio: audio} {
		if n.codec == "" {
			continue
		}
		t := &track{kind: frame.Kind(kind), payloads: newDepacketizer(n.codec), reorder: reorder{patience: patience}}
		// RFC 7741, RFC 9628 and AV1's payload format want the marker; RFC 6184 section 5.1 says not to rely on it.
		t.assembler = assembler{limit: maxFrame, headCheck: t.payloads.head, marked: n.codec != frame.H264}
		if t.kind == frame.Audio {
			t.reorder.patience, t.assembler.single = audioPatience, true
		}
		m.tracks[kind] = t
		m.clocks.tracks[kind].rate = int64(n.rate)
	}
	return m
}

// packet takes an RTP packet.
func (m *media) packet(k frame.Kind, p *rtp.Packet, now time.Time) error {
	t := m.tracks[k]
	if t == nil {
		return nil
	}
	if k == frame.Video && m.asked.IsZero() {
		m.asked = now.Add(keyFirst - keyAgain)
	}
	t.reorder.push(p, now)
	return m.drain(t, now)
}

// tick gives up what has been waited for long enough.
func (m *media) tick(now time.Time) error {
	for _, t := range m.tracks {
		if t == nil {
			continue
		}
		if err := m.drain(t, now); err != nil {
			return err
		}
	}
	return m.start(now)
}

func (m *media) drain(t *track, now time.Time) error {
	for {
		w, hole := t.reorder.pop(now)
		if w.packet == nil {
			return m.failed
		}
		t.assembler.add(w, hole, func(a *assembler) { m.unit(t, a, now) }, func() { m.damage(t) })
		if m.failed != nil {
			return m.failed
		}
	}
}

// damage is told that a track has lost a frame. Pictures are dropped until one that needs no other: what refers to a
// lost one can't be shown as it was.
func (m *media) damage(t *track) {
	if t.kind != frame.Video {
		return
	}
	if !m.needKey {
		m.counts.damaged++
	}
	m.needKey = true
}

// unit takes the packets of one access unit.
func (m *media) unit(t *track, a *assembler, now time.Time) {
	data, key, config, err := t.payloads.sample(a.payloads, a.torn)
	if config != nil {
		t.config, t.readable = config, true
	}
	switch {
	case errors.Is(err, errNoFrame):
		return
	case errors.Is(err, errTorn):
		m.damage(t)
		return
	}
	if err != nil {
		m.counts.malformed++
		m.damage(t)
		if m.counts.malformed >= maxMalformed && m.counts.video+m.counts.audio == 0 {
			m.failed = fmt.Errorf("none of the frames can be read: %w", err)
		}
		return
	}
	ts := m.clocks.tracks[t.kind].unwrap(a.first.packet.Timestamp)
	m.clocks.arrived(t.kind, ts, a.first.at.Sub(m.began))
	if t.kind == frame.Video {
		switch {
		case key && t.readable:
			m.needKey, m.keyAt = false, now
		case m.needKey || !t.readable:
			return
		}
	}
	u := unit{Frame: frame.Frame{Kind: t.kind, Key: key, Data: data, Received: a.last.at}, ts: ts, config: t.config}
	t.config = nil
	if m.running {
		m.failed = m.write(u)
		return
	}
	if len(m.held) == 0 {
		m.firstAt = now
	}
	m.held = append(m.held, u)
	m.bytes += len(data)
	m.failed = m.start(now)
}

// start lets the held frames go when it is known how sound and picture belong together, or when one of them does not
// come.
func (m *media) start(now time.Time) error {
	if m.running || len(m.held) == 0 {
		return nil
	}
	alone := m.tracks[frame.Video] == nil || m.tracks[frame.Audio] == nil
	stable := !m.keyAt.IsZero() && (m.clocks.both() || now.Sub(m.keyAt) >= stableTime)
	if !alone && !stable && now.Sub(m.firstAt) < startWait && m.bytes < heldBytes {
		return nil
	}
	m.running = true
	held := m.held
	m.held = nil
	for _, k := range []frame.Kind{frame.Video, frame.Audio} { // reports move the sound when both have a place
		for _, u := range held {
			if u.Kind == k {
				m.clocks.time(k, u.ts)
				break
			}
		}
	}
	for i, u := range held {
		held[i].DTS = m.clocks.time(u.Kind, u.ts)
	}
	// both tracks in the order of decoding, one beside the other by their times
	rest := [2][]unit{}
	for _, u := range held {
		rest[u.Kind] = append(rest[u.Kind], u)
	}
	for len(rest[0])+len(rest[1]) > 0 {
		k := frame.Video
		if len(rest[k]) == 0 || len(rest[frame.Audio]) > 0 && rest[frame.Audio][0].DTS < rest[k][0].DTS {
			k = frame.Audio
		}
		u := rest[k][0]
		rest[k] = rest[k][1:]
		if err := m.write(u); err != nil {
			return err
		}
	}
	return nil
}

// write gives a frame to the sink.
func (m *media) write(u unit) error {
	t := m.tracks[u.Kind]
	if u.config != nil {
		if err := m.sink.Configure(*u.config); err != nil {
			return fmt.Errorf("configure %v: %w", u.Kind, err)
		}
	}
	f := u.Frame
	f.PTS = m.clocks.time(u.Kind, u.ts)
	f.DTS = f.PTS
	if least := t.last + time.Millisecond; t.written && f.DTS < least && f.DTS > t.last-time.Second {
		f.DTS = least // an encoder that reorders pictures has only times of presentation in RTP
	}
	t.last, t.written = f.DTS, true
	if u.Kind == frame.Video {
		m.counts.video++
	} else {
		m.counts.audio++
	}
	return m.sink.Write(f)
}

// wantsKey reports whether a key frame is to be asked for now, and takes it that this is done.
func (m *media) wantsKey(now time.Time) bool {
	if m.tracks[frame.Video] == nil || m.asked.IsZero() || now.Sub(m.asked) < keyAgain {
		return false
	}
	if !m.needKey && now.Sub(m.keyAt) < keyInterval {
		return false
	}
	m.asked = now
	m.counts.requests++
	return true
}

// link is how the connection does.
func (m *media) link() ingest.LinkStats {
	var l ingest.LinkStats
	for _, t := range m.tracks {
		if t != nil {
			l.Packets += int64(t.reorder.packets)
			l.Lost += int64(t.reorder.missed)
			l.Retransmitted += int64(t.reorder.mend)
			l.Dropped += int64(t.reorder.lost)
		}
	}
	return l
}

// total is what there is to tell at the end.
func (m *media) total() counts {
	c := m.counts
	for _, t := range m.tracks {
		if t != nil {
			c.lost += t.reorder.lost
			c.late += t.reorder.late
		}
	}
	return c
}
