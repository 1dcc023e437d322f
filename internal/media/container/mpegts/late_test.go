package mpegts_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/media/codec"
	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/frame"
)

// sequence notes what a Demuxer gives out as one sees it that has to begin somewhere.
type sequence struct {
	sound   []frame.Config // the parameters of sound, as they came
	before  int            // how many of them before the first picture
	pending int            // pictures so far
	heard   int            // frames of sound
}

func (s *sequence) Configure(c frame.Config) error {
	if c.Kind == frame.Audio {
		s.sound = append(s.sound, c)
	}
	return nil
}

func (s *sequence) Write(f frame.Frame) error {
	if f.Kind == frame.Audio {
		s.heard++
		return nil
	}
	if s.pending == 0 {
		s.before = len(s.sound)
	}
	s.pending++
	return nil
}

// TestSoundThatBeginsLate: sound that the program has and that doesn't come with the first pictures has the usual
// parameters until it comes, so that who takes the frames can fill its place with silence.
func TestSoundThatBeginsLate(t *testing.T) {
	t.Parallel()
	mono := []byte(nil) // AAC-LC, 44.1 kHz, one channel
	for range 2 {
		mono = append(mono, 0xff, 0xf1, 0x50, 0x40, 0x0c, 0x9f, 0xfc)
		mono = append(mono, make([]byte, 93)...)
	}
	for name, tt := range map[string]struct {
		es      es
		sound   []byte // that comes after five seconds; nil: none ever does
		presume string // the codec's name
		rates   []int  // of the parameters, in Hz
		heard   int
	}{
		"AAC that is as presumed": {es{0x0f, audioPID, ""}, adtsFrames(2, 100), "mp4a.40.2", []int{48000}, 50},
		"AAC that is not":         {es{0x0f, audioPID, ""}, mono, "mp4a.40.2", []int{48000, 44100}, 50},
		"AAC that never comes":    {es{0x0f, audioPID, ""}, nil, "mp4a.40.2", []int{48000}, 0},
		"AAC in LATM":             {es{0x11, audioPID, ""}, nil, "mp4a.40.2", []int{48000}, 0},
		"MP3":                     {es{0x03, audioPID, ""}, nil, "mp4a.40.34", []int{48000}, 0},
		"AC-3":                    {es{0x81, audioPID, ""}, nil, "ac-3", []int{48000}, 0},
		"Opus":                    {es{0x06, audioPID, "\x05\x04Opus\x7f\x02\x80\x02"}, nil, "opus", []int{48000}, 0},
		"AAC, of which too little can be read": {
			es{0x0f, audioPID, ""}, make([]byte, 200), "mp4a.40.2", []int{48000}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMux()
			m.pat(0, 1, mapPID)
			m.pmt(mapPID, 1, 0, es{0x1b, videoPID, ""}, tt.es)
			for i := range 150 {
				at := int64(i) * tick
				m.pes(videoPID, 0xe0, at, at, h264Unit(i%10 == 0, 700))
				if i >= 125 && tt.sound != nil {
					m.pes(audioPID, 0xc0, at, at, tt.sound)
				}
			}
			var got sequence
			d := mpegts.NewDemuxer(&got)
			d.PresumeSound()
			if err := d.Write(m.b, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if err := d.Flush(); err != nil {
				t.Fatal(err)
			}
			if got.before != 1 || got.pending != 150 || got.heard != tt.heard || len(got.sound) != len(tt.rates) {
				t.Fatalf("%+v", got)
			}
			for i, c := range got.sound {
				if c.SampleRate != tt.rates[i] || i == 0 && (codec.Name(c) != tt.presume || c.Channels != 2) {
					t.Errorf("parameters %d: %s, %d Hz, %d channels", i, codec.Name(c), c.SampleRate, c.Channels)
				}
			}
		})
	}
}

// TestSoundIsAwaited: nothing is presumed of sound that comes with the first pictures, or in a stream that ends before.
func TestSoundIsAwaited(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ pictures, from, want int }{
		"sound 0.9 s behind": {50, 22, 1}, "a short stream without": {20, 99, 0},
	} {
		m := newMux()
		m.tables()
		for i := range tt.pictures {
			at := int64(i) * tick
			m.pes(videoPID, 0xe0, at, at, h264Unit(i%10 == 0, 700))
			if i >= tt.from {
				m.pes(audioPID, 0xc0, at, at, adtsFrames(2, 100))
			}
		}
		r := newRecorder()
		d := mpegts.NewDemuxer(r)
		d.PresumeSound()
		if err := errors.Join(d.Write(m.b, time.Unix(1, 0)), d.Flush()); err != nil {
			t.Fatal(err)
		}
		if got := r.configs[frame.Audio]; len(got) != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
