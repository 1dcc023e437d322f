package whip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest/ingesttest"
)

// packetsOf puts an access unit in Annex B into packets.
func packetsOf(t testing.TB, annexB []byte, ts uint32, seq *uint16) []*rtp.Packet {
	t.Helper()
	return packed((&codecs.H264Payloader{}).Payload(1200, annexB), ts, seq)
}

func packed(payloads [][]byte, ts uint32, seq *uint16) []*rtp.Packet {
	out := make([]*rtp.Packet, len(payloads))
	for i, p := range payloads {
		out[i] = &rtp.Packet{
			Header:  rtp.Header{Version: 2, SequenceNumber: *seq, Timestamp: ts, Marker: i == len(payloads)-1},
			Payload: p,
		}
		*seq++
	}
	return out
}

// Frames of other codecs, each with a key frame of 320 by 180 or so; the rest of them is filled up.
var (
	// Temporal unit of libaom: sequence header, then a frame OBU that begins with show_existing_frame 0, frame_type 0,
	// show_frame 1.
	av1Header = []byte{0x0a, 0x0b, 0x00, 0x00, 0x00, 0x04, 0x3c, 0xff, 0xbc, 0xff, 0xf8, 0x42, 0x40}
	vp8Key    = append([]byte{
		0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0x00,
	}, bytes.Repeat([]byte{7}, 3000)...)
	vp9Key = append([]byte{
		0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xf0, 0x0b, 0x36, 0x08,
	}, bytes.Repeat([]byte{7}, 3000)...)
)

func av1Unit(header, key bool, size int) []byte {
	first := byte(0x30) // an inter frame
	if key {
		first = 0x10
	}
	var tu []byte
	if header {
		tu = append(tu, av1Header...)
	}
	tu = append(tu, 0x32)
	tu = binary.AppendUvarint(tu, uint64(size+1))
	return append(append(tu, first), bytes.Repeat([]byte{7}, size)...)
}

// TestPayloads takes apart what pion's payloaders made of a key frame and one that is none.
func TestPayloads(t *testing.T) {
	t.Parallel()
	type unit struct {
		payloads [][]byte
		want     []byte
		key      bool
	}
	sample := func(nals ...[]byte) (out []byte) {
		for _, n := range nals {
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(n))), n...)
		}
		return out
	}
	key, other := picture(1, true, 5000), picture(2, false, 300)
	keySlice, otherSlice := key[bytes.Index(key, []byte{0, 0, 0, 1, 0x65})+4:], other[4:]
	inter := bytes.Clone(vp8Key)
	inter[0] |= 1
	av1, av1Inter := av1Unit(true, true, 4000), av1Unit(false, false, 200)
	for codec, units := range map[frame.Codec][]unit{
		frame.H264: {
			{(&codecs.H264Payloader{}).Payload(1200, key), sample(testSPS, testPPS, keySlice), true},
			{(&codecs.H264Payloader{}).Payload(1200, other), sample(otherSlice), false},
		},
		frame.VP8: {
			{(&codecs.VP8Payloader{EnablePictureID: true}).Payload(1200, vp8Key), vp8Key, true},
			{(&codecs.VP8Payloader{EnablePictureID: true}).Payload(1200, inter), inter, false},
		},
		frame.VP9: {
			{(&codecs.VP9Payloader{}).Payload(1200, vp9Key), vp9Key, true},
		},
		frame.AV1: {
			{(&codecs.AV1Payloader{}).Payload(1200, append([]byte{0x12, 0x00}, av1...)), av1, true},
			{(&codecs.AV1Payloader{}).Payload(1200, av1Inter), av1Inter, false},
		},
		frame.Opus: {{[][]byte{silence}, silence, true}},
	} {
		t.Run(string(codec), func(t *testing.T) {
			t.Parallel()
			d := newDepacketizer(codec)
			for round := range 2 {
				for i, u := range units {
					if !d.head(u.payloads[0]) {
						t.Errorf("unit %d: the first packet is no head", i)
					}
					data, key, config, err := d.sample(u.payloads, false)
					if err != nil || key != u.key || !bytes.Equal(data, u.want) {
						t.Errorf("unit %d: %v, key %t, %d bytes for %d", i, err, key, len(data), len(u.want))
					}
					if announced := round == 0 && i == 0; announced != (config != nil) {
						t.Errorf("round %d, unit %d: configuration %v", round, i, config)
					} else if announced && config.Codec != codec {
						t.Errorf("configuration is of %s", config.Codec)
					}
				}
			}
		})
	}
}

// TestUnreadable has frames that are dropped whole.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		codec    frame.Codec
		payloads [][]byte
		want     error
	}{
		"FU-A without an end":        {frame.H264, [][]byte{{0x7c, 0x85, 1, 2}}, errPayload},
		"STAP-A that lies":           {frame.H264, [][]byte{{0x78, 0xff, 0xff, 1}}, errPayload},
		"reserved type":              {frame.H264, [][]byte{{0x7f, 1}}, errPayload},
		"parameter sets alone":       {frame.H264, [][]byte{testSPS, testPPS}, errNoFrame},
		"parameter sets of nonsense": {frame.H264, [][]byte{{0x67, 1}, testPPS, {0x65, 1}}, errPayload},
		"AV1 without a frame":        {frame.AV1, [][]byte{append([]byte{0x10}, av1Header...)}, errPayload},
		"AV1 that lies":              {frame.AV1, [][]byte{{0x00, 0xff, 0xff}}, errPayload},
		"VP8 descriptor cut":         {frame.VP8, [][]byte{{0x90}}, errPayload},
		"VP8 key frame cut":          {frame.VP8, [][]byte{{0x10, 0x10, 2}}, errPayload},
		"VP9 descriptor cut":         {frame.VP9, [][]byte{{0x80}}, errPayload},
		"VP9 nothing":                {frame.VP9, [][]byte{{0x08}}, errNoFrame},
		"Opus nothing":               {frame.Opus, [][]byte{{}}, errPayload},
		"Opus in two":                {frame.Opus, [][]byte{silence, silence}, errPayload},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, _, err := newDepacketizer(tt.codec).sample(tt.payloads, false); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func at(ms int) time.Time { return time.Unix(1700000000, 0).Add(time.Duration(ms) * time.Millisecond) }

// TestReorder lists arrivals (sequence number, ms) and what comes out: a minus before a number says that packets before
// it are lost.
func TestReorder(t *testing.T) {
	t.Parallel()
	type in struct{ seq, ms int }
	for name, tt := range map[string]struct {
		in         []in
		want       []int
		lost, late int
	}{
		"in order":            {[]in{{65534, 0}, {65535, 1}, {0, 2}, {1, 3}}, []int{65534, 65535, 0, 1}, 0, 0},
		"swapped":             {[]in{{10, 0}, {12, 1}, {11, 2}, {13, 3}}, []int{10, 11, 12, 13}, 0, 0},
		"twice":               {[]in{{10, 0}, {12, 0}, {12, 1}, {11, 2}, {10, 3}}, []int{10, 11, 12}, 0, 1},
		"lost":                {[]in{{10, 0}, {12, 1}, {13, 90}, {14, 102}}, []int{10, -12, 13, 14}, 1, 0},
		"two holes, one wait": {[]in{{10, 0}, {12, 1}, {14, 2}, {15, 200}}, []int{10, -12, -14, 15}, 2, 0},
		"too late": {
			[]in{{10, 0}, {12, 1}, {13, 102}, {11, 103}, {14, 104}}, []int{10, -12, 13, 14}, 1, 1,
		},
		"far ahead": {
			[]in{{10, 0}, {12, 1}, {5000, 2}, {5001, 3}, {5002, 200}}, []int{10, -5001, 5002}, 4989, 0,
		},
		"one wrong number":      {[]in{{10, 0}, {5000, 1}, {11, 2}, {5001, 3}, {12, 4}}, []int{10, 11, 12}, 0, 0},
		"still waits":           {[]in{{10, 0}, {12, 1}, {13, 99}}, []int{10}, 0, 0},
		"before the first seen": {[]in{{10, 0}, {9, 1}, {11, 2}}, []int{10, 11}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reorder{patience: 100 * time.Millisecond}
			var got []int
			for _, i := range tt.in {
				r.push(&rtp.Packet{Header: rtp.Header{SequenceNumber: uint16(i.seq)}}, at(i.ms))
				for {
					w, hole := r.pop(at(i.ms))
					if w.packet == nil {
						break
					}
					n := int(w.packet.SequenceNumber)
					if hole {
						n = -n
					}
					got = append(got, n)
				}
			}
			if !equal(got, tt.want) || r.lost != tt.lost || r.late != tt.late {
				t.Errorf("got %v, %d lost, %d late; want %v, %d, %d", got, r.lost, r.late, tt.want, tt.lost, tt.late)
			}
		})
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestReorderIsBounded keeps a hole open for ever and counts again.
func TestReorderIsBounded(t *testing.T) {
	t.Parallel()
	r := &reorder{patience: time.Hour}
	r.push(&rtp.Packet{Header: rtp.Header{SequenceNumber: 1}}, at(0))
	r.pop(at(0))
	out := 0
	for i := range 100_000 {
		r.push(&rtp.Packet{Header: rtp.Header{SequenceNumber: uint16(3 + i)}, Payload: make([]byte, 1200)}, at(1))
		for {
			w, _ := r.pop(at(1))
			if w.packet == nil {
				break
			}
			out++
		}
		if r.bytes > reorderBytes+1200 || r.count > reorderSlots {
			t.Fatalf("%d packets with %d bytes wait", r.count, r.bytes)
		}
	}
	if out == 0 {
		t.Error("nothing comes out")
	}
	next := int(r.next)
	for i := range 2 * reorderStale {
		r.push(&rtp.Packet{Header: rtp.Header{SequenceNumber: uint16(next - 20000 + i)}}, at(2))
	}
	if r.count != reorderStale+1 {
		t.Errorf("%d packets of a sender that starts its sequence again wait, want %d", r.count, reorderStale+1)
	}
	if w, hole := r.pop(at(3600_000 + 3)); w.packet == nil || !hole {
		t.Error("a sender that starts its sequence again is not noticed")
	}
}

// ntp is a time of the sender's wall clock.
func ntp(d time.Duration) uint64 {
	return uint64(d/time.Second)<<32 | uint64(d%time.Second)<<32/uint64(time.Second)
}

// TestClocks gives two tracks whose clocks begin anywhere. The sound is 70 ms late by its arrival, and reports put it
// right.
func TestClocks(t *testing.T) {
	t.Parallel()
	const videoStart, audioStart = 1<<32 - 45000, 1<<32 - 1000
	c := clocks{tracks: [2]rtpClock{frame.Video: {rate: 90000}, frame.Audio: {rate: 48000}}}
	video := func(at time.Duration) time.Duration {
		k := &c.tracks[frame.Video]
		ts := k.unwrap(uint32(videoStart + int64(at*90/time.Millisecond)))
		c.arrived(frame.Video, ts, at+30*time.Millisecond)
		return c.time(frame.Video, ts)
	}
	audio := func(at time.Duration) time.Duration {
		k := &c.tracks[frame.Audio]
		ts := k.unwrap(uint32(audioStart + int64(at*48/time.Millisecond)))
		c.arrived(frame.Audio, ts, at+100*time.Millisecond)
		return c.time(frame.Audio, ts)
	}
	report := func(k frame.Kind, at, wall time.Duration) {
		start, rate := int64(videoStart), int64(90)
		if k == frame.Audio {
			start, rate = audioStart, 48
		}
		c.report(k, ntp(wall+at), uint32(start+int64(at)*rate/int64(time.Millisecond)))
	}
	off := func(at time.Duration) time.Duration { return (audio(at) - video(at)).Round(100 * time.Microsecond) }
	const wall, ms = 3900000000 * time.Second, time.Millisecond
	for _, step := range []struct {
		name string
		do   func()
		at   time.Duration
		want time.Duration
	}{
		{"by arrival", func() {}, 0, 70 * ms},
		{"after a wrap", func() {}, 2 * time.Second, 70 * ms},
		{"one report", func() { report(frame.Video, 1900*ms, wall) }, 2100 * ms, 70 * ms},
		{"both", func() { report(frame.Audio, 2*time.Second, wall) }, 2200 * ms, 0},
		{"a small difference", func() { report(frame.Audio, 3*time.Second, wall+8*ms) }, 3 * time.Second, 1 * ms},
		{"a large one", func() { report(frame.Audio, 4*time.Second, wall+300*ms) }, 4 * time.Second, 1 * ms},
		{"told twice", func() { report(frame.Audio, 5*time.Second, wall+300*ms) }, 5 * time.Second, 300 * ms},
		{
			"a wall clock without meaning", func() { report(frame.Audio, 6*time.Second, 5*time.Second) },
			6 * time.Second, 300 * ms,
		},
	} {
		step.do()
		if got := off(step.at); got != step.want {
			t.Errorf("%s: the sound is %v off, want %v", step.name, got, step.want)
		}
	}
}

// TestStart holds frames back until sound and picture are there, and gives both in order.
func TestStart(t *testing.T) {
	t.Parallel()
	video, audio := negotiated{codec: frame.H264, rate: 90000}, negotiated{codec: frame.Opus, rate: 48000}
	sound := func(t *testing.T, m *media, seq *uint16, ms int) {
		t.Helper()
		for _, p := range packed([][]byte{silence}, uint32(ms*48), seq) {
			if err := m.packet(frame.Audio, p, at(ms)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("the picture is late", func(t *testing.T) {
		t.Parallel()
		r := ingesttest.NewRecorder()
		m := newMedia(video, audio, 1<<20, videoPatience, at(0))
		m.sink = r
		var as, vs uint16
		for ms := 0; ms < 3000; ms += 20 {
			sound(t, m, &as, ms)
			if ms >= 2000 && ms%40 == 0 {
				for _, p := range packetsOf(t, picture(ms/40, ms == 2000, 100), uint32(ms*90), &vs) {
					if err := m.packet(frame.Video, p, at(ms)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if ms == 2200 && len(r.Frames()) > 0 {
				t.Error("frames flow before the relation of the tracks is known")
			}
		}
		if n, k := len(r.Of(frame.Audio)), len(r.Of(frame.Video)); n != 150 || k != 25 {
			t.Errorf("%d sounds and %d pictures", n, k)
		}
		if r.Of(frame.Video)[0].DTS != 2*time.Second || r.Of(frame.Audio)[0].DTS != 0 {
			t.Errorf("the picture begins at %v, the sound at %v", r.Of(frame.Video)[0].DTS, r.Of(frame.Audio)[0].DTS)
		}
		last := time.Duration(0)
		for _, f := range r.Frames() {
			if f.DTS < last {
				t.Fatalf("%v at %v comes after %v", f.Kind, f.DTS, last)
			}
			last = f.DTS
		}
	})
	t.Run("no picture comes", func(t *testing.T) {
		t.Parallel()
		r := ingesttest.NewRecorder()
		m := newMedia(video, audio, 1<<20, videoPatience, at(0))
		m.sink = r
		var as uint16
		for ms := 0; ms < 5000; ms += 20 {
			sound(t, m, &as, ms)
		}
		if len(r.Frames()) > 0 {
			t.Error("nobody waits for the picture")
		}
		sound(t, m, &as, 5000)
		if n := len(r.Of(frame.Audio)); n != 251 {
			t.Errorf("%d sounds", n)
		}
	})
	t.Run("frames too large", func(t *testing.T) {
		t.Parallel()
		r := ingesttest.NewRecorder()
		m := newMedia(video, negotiated{}, 4000, videoPatience, at(0))
		m.sink = r
		var vs uint16
		for i := range 4 {
			size := 100
			if i%2 == 1 {
				size = 9000
			}
			for _, p := range packetsOf(t, picture(i, true, size), uint32(i*3600), &vs) {
				if err := m.packet(frame.Video, p, at(i*40)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := len(r.Of(frame.Video)); n != 2 {
			t.Errorf("%d pictures, want the two that are not too large", n)
		}
	})
}

// FuzzPayloads gives one frame's payloads to every depacketizer. The input is packets, each behind a byte of length.
func FuzzPayloads(f *testing.F) {
	for _, payloads := range [][][]byte{
		(&codecs.H264Payloader{}).Payload(200, picture(1, true, 500)),
		(&codecs.VP8Payloader{}).Payload(200, vp8Key[:400]),
		(&codecs.VP9Payloader{}).Payload(200, vp9Key[:400]),
		(&codecs.AV1Payloader{}).Payload(200, av1Unit(true, true, 400)),
		{silence},
	} {
		var in []byte
		for _, p := range payloads {
			in = append(append(in, byte(len(p))), p...)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var payloads [][]byte
		for len(in) > 1 {
			n := min(int(in[0]), len(in)-1)
			if n > 0 {
				payloads = append(payloads, in[1:1+n])
			}
			in = in[1+n:]
		}
		if len(payloads) == 0 {
			return
		}
		for _, c := range []frame.Codec{frame.H264, frame.AV1, frame.VP9, frame.VP8, frame.Opus} {
			d := newDepacketizer(c)
			d.head(payloads[0])
			data, _, config, err := d.sample(payloads, false)
			if err == nil && len(data) == 0 {
				t.Errorf("%s: an empty frame", c)
			}
			if config != nil && config.Codec != c {
				t.Errorf("%s: configuration of %s", c, config.Codec)
			}
			if err == nil && c == frame.H264 && h264.Check(data) != nil {
				t.Error("an access unit that can't be taken apart")
			}
		}
	})
}

// FuzzPackets gives packets in any order, at any time, to both tracks. The input is, for each packet: track and marker,
// sequence number, timestamp, time that passed, length, payload.
func FuzzPackets(f *testing.F) {
	var seed []byte
	seq := uint16(0)
	for i := range 3 {
		for _, p := range packetsOf(f, picture(i, i == 0, 300), uint32(i*3600), &seq) {
			b := byte(0)
			if p.Marker {
				b = 2
			}
			seed = append(seed, b)
			seed = binary.BigEndian.AppendUint16(seed, p.SequenceNumber)
			seed = binary.BigEndian.AppendUint32(seed, p.Timestamp)
			seed = append(seed, 20, byte(len(p.Payload)))
			seed = append(seed, p.Payload...)
		}
		seed = append(seed, 1, 0, byte(i), 0, 0, byte(i*4), 0, 20, 3, 0xf8, 0xff, 0xfe)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in []byte) {
		r := ingesttest.NewRecorder()
		m := newMedia(negotiated{codec: frame.H264, rate: 90000}, negotiated{codec: frame.Opus, rate: 48000}, 1<<16,
			videoPatience, at(0))
		m.sink = r
		now := at(0)
		for len(in) >= 9 {
			now = now.Add(time.Duration(in[7]) * 4 * time.Millisecond)
			p := &rtp.Packet{
				Header: rtp.Header{
					Marker: in[0]&2 != 0, SequenceNumber: binary.BigEndian.Uint16(in[1:]),
					Timestamp: binary.BigEndian.Uint32(in[3:]),
				},
			}
			kind, n := frame.Kind(in[0]&1), min(int(in[8]), len(in)-9)
			p.Payload, in = in[9:9+n], in[9+n:]
			if m.packet(kind, p, now) != nil || m.tick(now) != nil {
				return
			}
			m.wantsKey(now)
			m.clocks.report(kind, uint64(p.Timestamp)<<32, p.Timestamp)
			if m.bytes > heldBytes+1<<16 || len(m.held) > 1<<16 {
				t.Fatalf("%d frames with %d bytes are held", len(m.held), m.bytes)
			}
		}
		for _, f := range r.Frames() {
			if len(f.Data) == 0 {
				t.Error("an empty frame")
			}
		}
	})
}
