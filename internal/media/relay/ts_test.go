package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bluenviron/mediacommon/v2/pkg/formats/mpegts"
	srt "github.com/datarhei/gosrt"

	"millrace/internal/media/frame"
)

// unit is an access unit as the independent demuxer reads it, without delimiters.
type unit struct {
	pts, dts int64
	data     [][]byte
}

// demux reads a whole transport stream.
func demux(t *testing.T, in io.Reader) (video, audio []unit) {
	t.Helper()
	r := &mpegts.Reader{R: in}
	if err := r.Initialize(); err != nil {
		t.Errorf("read transport stream: %v", err)
		return nil, nil
	}
	for _, track := range r.Tracks() {
		switch {
		case track.Codec.IsVideo():
			take := func(pts, dts int64, au [][]byte) error {
				video = append(video, unit{pts, dts, au})
				return nil
			}
			r.OnDataH264(track, take)
		default:
			r.OnDataMPEG4Audio(track, func(pts int64, aus [][]byte) error {
				audio = append(audio, unit{pts, pts, aus})
				return nil
			})
		}
	}
	for {
		if err := r.Read(); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("read transport stream: %v", err)
			}
			return video, audio
		}
	}
}

// wantUnits checks that pictures from…to and sounds came, parameter sets in front of each key frame.
func wantUnits(t *testing.T, video, audio []unit, from, n int) {
	t.Helper()
	if len(video) < n || len(audio) < n {
		t.Fatalf("%d pictures and %d sounds, want %d", len(video), len(audio), n)
	}
	for i := range n {
		want := picture(from + i)
		units := [][]byte{want.Data[4:]}
		if want.Key {
			units = [][]byte{sps, pps, want.Data[4:]}
		}
		got := video[i].data
		if len(got) > 0 && len(got[0]) > 0 && got[0][0]&0x1f == 9 {
			got = got[1:]
		}
		if !bytes.Equal(bytes.Join(got, []byte("|")), bytes.Join(units, []byte("|"))) {
			t.Fatalf("picture %d is %q, want %q", i, got, units)
		}
		if video[i].dts-video[0].dts != ticks(want.DTS)-ticks(picture(from).DTS) || video[i].pts-video[i].dts != 7200 {
			t.Errorf("picture %d at %d + %d", i, video[i].dts, video[i].pts-video[i].dts)
		}
		if s := sound(from + i); !bytes.Equal(bytes.Join(audio[i].data, nil), s.Data) ||
			audio[i].pts-video[i].dts != 0 {
			t.Errorf("sound %d is %q at %d, the picture at %d", i, audio[i].data, audio[i].pts, video[i].dts)
		}
	}
}

func TestTransportStream(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w, err := newTSWriter(&out, []frame.Config{h264Config, aacConfig})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if err := errors.Join(w.write(picture(n)), w.write(sound(n))); err != nil {
			t.Fatal(err)
		}
	}
	video, audio := demux(t, &out)
	wantUnits(t, video, audio, 0, 99) // a demuxer gives out the last picture with the next one
	if err := w.configure(h264Config); err != nil {
		t.Errorf("the same parameters: %v", err)
	}
	other := aacConfig
	other.ASC = []byte{0x12, 0x10}
	if err := w.configure(other); !errors.Is(err, errTracks) {
		t.Errorf("another sound: %v", err)
	}
	if w, err := newTSWriter(&out, []frame.Config{aacConfig}); err != nil ||
		!errors.Is(w.configure(h264Config), errTracks) {
		t.Errorf("a picture that joins: %v", err)
	}
}

func TestTransportStreamCarries(t *testing.T) {
	t.Parallel()
	for codec, want := range map[frame.Codec]bool{
		frame.H264: true, frame.HEVC: true, frame.AAC: true, frame.Opus: true, frame.AC3: true, frame.MP3: true,
		frame.AV1: false, frame.VP9: false, frame.VP8: false, frame.FLAC: false,
	} {
		if err := tsCarries(frame.Config{Codec: codec}); (err == nil) != want {
			t.Errorf("%s: %v", codec, err)
		}
	}
	if _, err := newTSWriter(io.Discard, []frame.Config{
		{Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x09, 0x90}},
	}); err == nil {
		t.Error("AAC Main is taken")
	}
}

// srtHeld is how long the server's library holds what comes: more than the caller asks for.
const srtHeld = 500 * time.Millisecond

// patient is a server's library whose callers may leave: it throws away what is not due yet when it hears of a caller's
// end, and on a busy machine all of it is due late. It implements srt.Logger, which is told of packets before anything
// is done about them.
type patient struct {
	conn  atomic.Pointer[srt.Conn]
	taken atomic.Uint64 // packets
}

func (*patient) HasTopic(string) bool   { return false }
func (*patient) Listen() <-chan srt.Log { return nil }
func (*patient) Close()                 {}

func (p *patient) Print(topic string, _ uint32, _ int, _ func() string) {
	conn := p.conn.Load()
	if topic != "control:recv:shutdown:dump" || conn == nil {
		return
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-look.C {
		var s srt.Statistics
		(*conn).Stats(&s)
		if s.Instantaneous.PktRecvBuf == 0 && p.taken.Load() >= s.Accumulated.PktRecvUnique {
			return
		}
	}
}

// srtServer takes one caller at a time with a stream ID and a passphrase and gives the bytes that it sends until it
// hangs up.
func srtServer(t *testing.T, streamID, passphrase string) (addr string, taken <-chan []byte) {
	t.Helper()
	library := &patient{}
	config := srt.DefaultConfig()
	config.ReceiverLatency, config.Logger = srtHeld, library
	ln, err := srt.Listen("srt", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan []byte, 4)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			req, err := ln.Accept2()
			if err != nil {
				return
			}
			if req.StreamId() != streamID || !req.IsEncrypted() || req.SetPassphrase(passphrase) != nil {
				req.Reject(srt.REJ_BADSECRET)
				continue
			}
			conn, err := req.Accept()
			if err != nil {
				continue
			}
			library.conn.Store(&conn)
			var b bytes.Buffer
			for {
				p, err := conn.ReadPacket()
				if err != nil {
					break
				}
				b.Write(p.Data())
				p.Decommission()
				library.taken.Add(1)
			}
			_ = conn.Close()
			all <- b.Bytes()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-done
	})
	return ln.Addr().String(), all
}

// TestForwardsOverSRT calls a listener with stream ID and passphrase.
func TestForwardsOverSRT(t *testing.T) {
	t.Parallel()
	addr, taken := srtServer(t, "live/"+streamKey, "0123456789abcdef")
	url := "srt://" + addr + "?streamid=live/" + streamKey + "&passphrase="
	w := start(t, Options{Dial: loopback, Targets: []Target{
		{ID: "a", URL: url + "0123456789abcdef&latency=80&pbkeylen=32"}, {ID: "wrong", URL: url + "fedcba9876543210"},
	}})
	p := w.Join("srt")
	p.Configure(h264Config)
	p.Configure(aacConfig)
	for n := range 100 {
		p.Write(picture(n))
		p.Write(sound(n))
	}
	w.await("a", Up, 1)
	w.await("wrong", Down, 1)
	began := time.Now()
	p.Close()
	w.stop()
	if took := time.Since(began); took < srtHeld {
		t.Errorf("it hangs up after %v, before the last picture is shown", took)
	}
	video, audio := demux(t, bytes.NewReader(<-taken))
	wantUnits(t, video, audio, 0, 99)
	if said := w.said("a"); len(said) != 1 {
		t.Errorf("reported %v", said)
	}
	if log := w.log.String(); strings.Contains(log, streamKey) || strings.Contains(log, "0123456789abcdef") ||
		strings.Contains(log, "fedcba") {
		t.Errorf("a secret in the log:\n%s", log)
	}
}

// TestNobodyRespondsOverSRT is a destination that is dead: UDP does not say so.
func TestNobodyRespondsOverSRT(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	g := New(Options{
		Dial: loopback, Targets: []Target{{ID: "a", URL: "srt://127.0.0.1:9"}}, Logger: discard,
		Report: func(Report) {},
	})
	if l, err := dialSRT(ctx, g.targets[0], []frame.Config{h264Config}); err == nil {
		l.close(false)
		t.Error("somebody responds")
	}
	if _, err := netip.ParseAddrPort("127.0.0.1:9"); err != nil {
		t.Error(err)
	}
}
