package session

import (
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestFramesOfTheirOwnLength has sound whose frames do not all last the same: each gets its place by what it says, with
// no hole between.
func TestFramesOfTheirOwnLength(t *testing.T) {
	t.Parallel()
	info := make([]byte, 34)
	info[2] = 0x10 // blocks up to 4096
	opus := frame.Config{Kind: frame.Audio, Codec: frame.Opus, SampleRate: 48000, Channels: 2}
	flac := frame.Config{Kind: frame.Audio, Codec: frame.FLAC, SampleRate: 44100, Channels: 2, Header: info}
	for name, tt := range map[string]struct {
		config frame.Config
		rate   int64
		frames [][]byte
		length []int64
		jitter time.Duration
	}{
		"Opus 20 ms":  {opus, 48000, [][]byte{{0xf8, 1}}, []int64{960}, 0},
		"Opus 2.5 ms": {opus, 48000, [][]byte{{0xe0, 1}}, []int64{120}, 0},
		"Opus 20 to 60": {
			opus, 48000, [][]byte{{0xf8, 1}, {0xf8, 2}, {0x18, 1}, {0x10, 1}}, []int64{960, 960, 2880, 1920}, 10 * ms,
		},
		"Opus 120 ms": {opus, 48000, [][]byte{{0x1b, 2, 1}}, []int64{5760}, 15 * ms},
		"FLAC":        {flac, 44100, [][]byte{{0xff, 0xf8, 0xc9, 0x18, 0, 0}}, []int64{4096}, 0},
		"FLAC and change": {
			flac, 44100,
			[][]byte{{0xff, 0xf8, 0xc9, 0x18, 0, 0}, {0xff, 0xf8, 0x19, 0x18, 0, 0}},
			[]int64{4096, 192},
			5 * ms,
		},
		"AC-3": {
			frame.Config{Kind: frame.Audio, Codec: frame.AC3, SampleRate: 48000},
			48000,
			[][]byte{{0x0b, 0x77}},
			[]int64{1536},
			0,
		},
		"MP3": {
			frame.Config{Kind: frame.Audio, Codec: frame.MP3, SampleRate: 44100},
			44100,
			[][]byte{{0xff}},
			[]int64{1152},
			0,
		},
		"MP3 at 22.05": {
			frame.Config{Kind: frame.Audio, Codec: frame.MP3, SampleRate: 22050},
			22050,
			[][]byte{{0xff}},
			[]int64{576},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := start(t, tt.config)
			pos, sent := int64(0), 0
			for ; pos < 10*tt.rate; sent++ {
				at := (time.Duration(pos) * time.Second / time.Duration(tt.rate)).Truncate(ms)
				if sent%3 == 1 {
					at += tt.jitter
				}
				f := frame.Frame{
					Kind: frame.Audio, DTS: at, PTS: at, Key: true, Data: tt.frames[sent%len(tt.frames)],
					Received: epoch.Add(at),
				}
				if err := s.Write(f); err != nil {
					t.Fatal(err)
				}
				pos += tt.length[sent%len(tt.length)]
			}
			s.Close(nil)
			if out.count[frame.Audio] != sent || out.totalHoles[frame.Audio] != 0 || len(out.breaks) > 0 {
				t.Errorf("%d of %d frames, holes of %v, breaks %q: %+v", out.count[frame.Audio], sent,
					out.totalHoles[frame.Audio], out.breaks, s.Stats())
			}
			at := int64(0)
			for n, f := range out.frames[frame.Audio] {
				near(t, "frame", f.DTS, time.Duration(at)*time.Second/time.Duration(tt.rate), time.Microsecond)
				if at += tt.length[n%len(tt.length)]; t.Failed() {
					break
				}
			}
		})
	}
}

// TestCodecChanges has an encoder change the codec of its sound and of its picture in mid-stream: one discontinuity,
// and no time is lost.
func TestCodecChanges(t *testing.T) {
	t.Parallel()
	s, out, x := standard(t)
	x.run(4 * time.Second)
	for _, c := range []frame.Config{
		{Kind: frame.Video, Codec: frame.VP9, Header: []byte{1}, Width: 1280, Height: 720},
		{Kind: frame.Audio, Codec: frame.AC3, SampleRate: 48000, Channels: 6, Header: []byte{1, 2, 3}},
	} {
		if err := s.Configure(c); err != nil {
			t.Fatal(err)
		}
	}
	x.step = 1536 * time.Second / 48000
	x.n[frame.Audio] = int(x.clock[frame.Audio]/x.step) + 1
	x.clock[frame.Audio] = time.Duration(x.n[frame.Audio]) * x.step
	x.run(4 * time.Second)
	s.Close(nil)
	if len(out.breaks) != 1 || out.configs != [2]int{2, 2} {
		t.Errorf("breaks %q, configurations %v", out.breaks, out.configs)
	}
	near(t, "picture", length(out, frame.Video), 8*time.Second, 80*ms)
	near(t, "sound", length(out, frame.Audio), 8*time.Second, 80*ms)
	one, two := frame.Config{Kind: frame.Audio, Codec: frame.Opus, Header: []byte{1}},
		frame.Config{Kind: frame.Audio, Codec: frame.Opus, Header: []byte{2}}
	if !same(one, one) || same(one, two) ||
		same(frame.Config{Codec: frame.HEVC, VPS: []byte{1}}, frame.Config{Codec: frame.HEVC}) {
		t.Error("same")
	}
}
