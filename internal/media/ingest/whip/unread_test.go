package whip

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/rtp"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest/ingesttest"
)

// smallSPS are the parameters that a browser goes on with when the machine is too busy for larger pictures.
var smallSPS = []byte{
	0x67, 0x42, 0xc0, 0x0d, 0xd9, 0x01, 0x41, 0xfb, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00, 0x03, 0x03,
	0xc0, 0xf1, 0x42, 0xa4, 0x80,
}

// blockedReader is a browser that sends 25 pictures a second, a key frame when one is asked for, and what becomes of
// its packets.
type blockedReader struct {
	m       *media
	seq     uint16
	key     time.Duration // when the next key frame is due; less than 0: none
	numbers map[int]bool  // pictures that are key frames
	queue   []*rtp.Packet // waits for a reader that does not come
	bytes   int
}

// TestPicturesComeBack takes packets away from a reader, or time, and gives them back: pictures go on within two
// seconds, each one follows another or is a key frame of the parameters that were told.
func TestPicturesComeBack(t *testing.T) {
	t.Parallel()
	const ms, second = time.Millisecond, time.Second
	from, to := 4*second, 9*second
	in := func(at time.Duration) bool { return at >= from && at < to }
	chance := uint32(1)
	dice := func(n uint32) uint32 {
		chance = chance*1664525 + 1013904223
		return chance >> 8 % n
	}
	for name, tt := range map[string]struct {
		lose func(at time.Duration, n, of int) bool // packet n of a picture's
		// nobody reads meanwhile; as much as a socket's buffer holds is kept
		unread  bool
		jump    uint16 // of the sequence numbers, at the end
		small   bool   // another size in the midst of it
		holding int    // bytes that the buffer holds
	}{
		"nothing arrives":            {lose: func(at time.Duration, _, _ int) bool { return in(at) }},
		"every other packet is lost": {lose: func(at time.Duration, n, _ int) bool { return in(at) && n%2 == 1 }},
		"three of a hundred are lost": {
			lose: func(at time.Duration, _, _ int) bool { return in(at) && dice(100) < 3 },
		},
		"first packets are lost": {lose: func(at time.Duration, n, _ int) bool { return in(at) && n == 0 }},
		"last packets are lost": {
			lose: func(at time.Duration, n, of int) bool { return in(at) && n == of-1 },
		},
		"first packets, another size": {
			lose: func(at time.Duration, n, _ int) bool { return in(at) && n == 0 }, small: true,
		},
		"nothing arrives, another size": {
			lose: func(at time.Duration, _, _ int) bool { return in(at) }, small: true,
		},
		"nobody reads":                     {unread: true, holding: 1 << 30},
		"nobody reads, the buffer is full": {unread: true, holding: 100_000},
		"nobody reads, another size":       {unread: true, holding: 300_000, small: true},
		"sequence numbers jump forwards":   {jump: 20000},
		"sequence numbers jump backwards":  {jump: 1<<16 - 20000},
		"both at once":                     {unread: true, holding: 100_000, jump: 5000, small: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ingesttest.NewRecorder()
			b := &blockedReader{
				m: newMedia(negotiated{codec: frame.H264, rate: 90000}, negotiated{}, 1<<20, videoPatience,
					at(0)),
				numbers: map[int]bool{}, key: -1,
			}
			b.m.sink = r
			give := func(p *rtp.Packet, now time.Duration) {
				if err := b.m.packet(frame.Video, p, at(0).Add(now)); err != nil {
					t.Fatal(err)
				}
			}
			for now := time.Duration(0); now < 15*second; now += 40 * ms {
				if now == to {
					b.seq += tt.jump
				}
				n := int(now / (40 * ms))
				key := n == 0 || b.key >= 0 && now >= b.key
				if key {
					b.key, b.numbers[n] = -1, true
				}
				au := picture(n, key, 3000+20000*map[bool]int{true: 1}[key])
				if tt.small && now >= (from+to)/2 {
					au = bytes.Replace(au, testSPS, smallSPS, 1)
				}
				list := packetsOf(t, au, uint32(now*90/ms), &b.seq)
				for i, p := range list {
					switch {
					case tt.lose != nil && tt.lose(now, i, len(list)):
					case tt.unread && in(now):
						if b.bytes += len(p.Payload); b.bytes <= tt.holding {
							b.queue = append(b.queue, p)
						}
					default:
						for _, old := range b.queue {
							give(old, now)
						}
						b.queue = nil
						give(p, now)
					}
				}
				if tt.unread && in(now) {
					continue
				}
				if err := b.m.tick(at(0).Add(now)); err != nil {
					t.Fatal(err)
				}
				if b.m.wantsKey(at(0).Add(now)) && b.key < 0 {
					b.key = now + 120*ms
				}
			}
			b.check(t, r, to+2*second)
		})
	}
}

// check looks at what came out; from one moment on every picture has to be there.
func (b *blockedReader) check(t *testing.T, r *ingesttest.Recorder, back time.Duration) {
	t.Helper()
	frames, last := r.Of(frame.Video), -1
	width := 1920
	for _, f := range frames {
		n := numberOf(f.Data)
		if n != last+1 && !f.Key {
			t.Errorf("picture %d follows %d and is no key frame", n, last)
		}
		if f.Key != b.numbers[n] {
			t.Errorf("picture %d is a key frame: %t", n, f.Key)
		}
		sets := false
		for nal := range h264.NALs(f.Data, 4) {
			sets = sets || h264.Type(nal) == h264.TypeSPS
			if bytes.Equal(nal, smallSPS) {
				width = 320
			}
		}
		if f.Key && !sets {
			t.Errorf("key frame %d came without its parameters", n)
		}
		if time.Duration(n)*40*time.Millisecond >= back && n > last+1 {
			t.Errorf("picture %d follows %d", n, last)
		}
		last = n
	}
	if want := int(14 * time.Second / (40 * time.Millisecond)); last < want {
		t.Errorf("the last picture is %d, want %d or later: %d of them, %+v", last, want, len(frames), b.m.total())
	}
	if c, _ := r.Config(frame.Video); c.Width != width {
		t.Errorf("pictures are %d wide, told was %d", width, c.Width)
	}
}
