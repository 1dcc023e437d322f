package relay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

var (
	sps = []byte{
		0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9e, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
		0x03, 0x03, 0xc0, 0xf1, 0x42, 0x99, 0x60,
	}
	pps = []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}

	h264Config = frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Width: 320, Height: 180, FrameRate: 25,
	}
	aacConfig = frame.Config{
		Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x11, 0x90}, SampleRate: 48000, Channels: 2,
	}
)

// picture is frame n of 25 per second with a key frame each second.
func picture(n int) frame.Frame {
	at := time.Duration(n) * 40 * time.Millisecond
	kind := byte(0x41)
	if n%25 == 0 {
		kind = 0x65
	}
	body := append([]byte{kind}, fmt.Sprintf("picture %d", n)...)
	return frame.Frame{
		Kind: frame.Video, DTS: at, PTS: at + 80*time.Millisecond, Duration: 40 * time.Millisecond, Key: n%25 == 0,
		Data: append([]byte{0, 0, 0, byte(len(body))}, body...),
	}
}

// sound is frame n of 25 per second.
func sound(n int) frame.Frame {
	at := time.Duration(n) * 40 * time.Millisecond
	return frame.Frame{
		Kind: frame.Audio, DTS: at, PTS: at, Duration: 40 * time.Millisecond, Key: true,
		Data: fmt.Appendf(nil, "sound %d", n),
	}
}

// held is what a queue gives, in short: "v0 a0 …", C and A for the parameters.
func held(q *queue) (out []string) {
	for {
		i, ok := q.pop()
		switch {
		case !ok:
			return out
		case i.config != nil:
			out = append(out, map[frame.Kind]string{frame.Video: "V", frame.Audio: "A"}[i.config.Kind])
		case i.frame.Kind == frame.Video:
			out = append(out, fmt.Sprint("v", int(i.frame.DTS/(40*time.Millisecond))))
		default:
			out = append(out, fmt.Sprint("a", int(i.frame.DTS/(40*time.Millisecond))))
		}
	}
}

func filled(from, to int) *queue {
	q := newQueue()
	q.join(1)
	q.configure(h264Config)
	q.configure(aacConfig)
	for n := from; n < to; n++ {
		q.write(picture(n))
		q.write(sound(n))
	}
	return q
}

func wantHeld(t *testing.T, q *queue, first []string, n int, dropped int) {
	t.Helper()
	_, _, lost, _ := q.tally()
	got := held(q)
	if len(got) < len(first) || !slices.Equal(got[:len(first)], first) || len(got) != n || lost != dropped {
		t.Errorf("%d items, %d dropped, first %v; want %d, %d, %v", len(got), lost, got[:min(4, len(got))], n, dropped,
			first)
	}
	if q.bytes != 0 {
		t.Errorf("an empty queue counts %d bytes", q.bytes)
	}
}

func TestQueueBeginsWithAKeyFrame(t *testing.T) {
	t.Parallel()
	wantHeld(t, filled(20, 30), []string{"V", "A", "v25", "a25"}, 2+10, 10)
}

func TestQueueIsBoundedInTime(t *testing.T) {
	t.Parallel()
	q := filled(0, 101) // 4 s and no more
	if _, _, _, full := q.tally(); full != 0 {
		t.Errorf("over %d times", full)
	}
	q.write(picture(101)) // drops the first group of pictures
	if _, _, _, full := q.tally(); full != 1 {
		t.Errorf("over %d times", full)
	}
	wantHeld(t, q, []string{"V", "A", "v25", "a25"}, 2+2*76+1, 50)
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	q := filled(0, 1)
	big := picture(1)
	big.Data = make([]byte, maxBytes)
	q.write(big) // nothing to begin with is left
	if q.bytes > 100 || !q.waiting {
		t.Errorf("%d bytes are kept, waiting %v", q.bytes, q.waiting)
	}
	q.write(picture(2))
	q.write(sound(2))
	q.write(picture(25))
	wantHeld(t, q, []string{"V", "A", "v25"}, 3, 5)
	big = picture(50)
	big.Data = make([]byte, 2*maxBytes) // one frame is never too much
	q.write(big)
	wantHeld(t, q, []string{"v50"}, 1, 5)
}

func TestQueueKeepsParameters(t *testing.T) {
	t.Parallel()
	q := filled(0, 25)
	other := h264Config
	other.Width = 640
	q.configure(h264Config)
	q.configure(other) // replaces the one before: no frame was between them
	for n := 25; n < 101; n++ {
		q.write(picture(n))
	}
	q.write(picture(101))
	i, _ := q.pop()
	if i.config == nil || i.config.Width != 640 {
		t.Errorf("first comes %+v", i)
	}
	wantHeld(t, q, []string{"A", "v25", "v26"}, 1+77, 50)
}

func TestQueueRestarts(t *testing.T) {
	t.Parallel()
	q := filled(0, 60)
	for range 2 + 20 {
		q.pop()
	}
	q.restart() // at the next key frame, with all parameters
	wantHeld(t, q, []string{"V", "A", "v25", "a25"}, 2+2*35, 30)
	q.restart()
	q.write(picture(60))
	q.write(picture(75))
	wantHeld(t, q, []string{"V", "A", "v75"}, 3, 31)
	q.write(picture(76))
	q.join(2) // what is left of the first publication is too old
	q.configure(aacConfig)
	q.write(sound(0)) // begins with sound: there is no picture
	wantHeld(t, q, []string{"A", "a0"}, 2, 32)
	q.restart()
	q.shut()
	q.configure(h264Config)
	q.write(sound(1))
	wantHeld(t, q, nil, 0, 32)
}

func TestQueueStand(t *testing.T) {
	t.Parallel()
	q := newQueue()
	if s := q.stand(); s.frames || s.configs != nil {
		t.Errorf("new: %+v", s)
	}
	q = filled(0, 0)
	if s := q.stand(); s.frames || len(s.configs) != 2 {
		t.Errorf("with parameters: %+v", s)
	}
	q = filled(24, 26)
	if s := q.stand(); !s.frames || len(s.configs) != 2 || s.configs[0].Codec != frame.H264 {
		t.Errorf("with a key frame: %+v", s)
	}
	q.pop()
	q.pop()
	q.pop()
	q.pop()
	if s := q.stand(); s.frames || len(s.configs) != 2 {
		t.Errorf("emptied: %+v", s)
	}
}

// TestQueueOfAStalledTargetStaysSmall lets an hour go by.
func TestQueueOfAStalledTargetStaysSmall(t *testing.T) {
	t.Parallel()
	q := filled(0, 3600*25)
	if q.bytes > maxBytes || len(q.items) > 2*101+2 {
		t.Errorf("%d items, %d bytes", len(q.items), q.bytes)
	}
}
