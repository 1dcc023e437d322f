package relay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/rtmpwire"
)

// play publishes pictures and sound from frame `from` up to `to`, in their time when pace is true; the last frame is
// followed by its duration. Frame 0 of a publication is a key frame, as a session gives it.
func play(p *Tap, from, to int, pace bool) {
	p.Configure(h264Config)
	p.Configure(aacConfig)
	began := time.Now()
	for n := from; n < to; n++ {
		if pace {
			time.Sleep(time.Until(began.Add(time.Duration(n-from) * 40 * time.Millisecond)))
		}
		for _, f := range []frame.Frame{picture(n), sound(n)} {
			f.Received = time.Now()
			p.Write(f)
		}
	}
	if pace {
		time.Sleep(time.Until(began.Add(time.Duration(to-from) * 40 * time.Millisecond)))
	}
}

// wantFrames checks that what came is frames from…to of kind k, unchanged, each at its time, first at `at`.
func wantFrames(t *testing.T, got []frame.Frame, k frame.Kind, from, to int, at time.Duration) {
	t.Helper()
	make1 := picture
	if k == frame.Audio {
		make1 = sound
	}
	if len(got) != to-from {
		t.Fatalf("%d %s frames, want %d", len(got), k, to-from)
	}
	for i, f := range got {
		want := make1(from + i)
		if !bytes.Equal(f.Data, want.Data) {
			t.Fatalf("%s frame %d is %q, want %q", k, i, f.Data, want.Data)
		}
		if due := at + time.Duration(i)*40*time.Millisecond; f.DTS != due || f.PTS-f.DTS != want.PTS-want.DTS ||
			f.Key != want.Key {
			t.Errorf("%s frame %d at %v + %v, key %v; want %v + %v", k, i, f.DTS, f.PTS-f.DTS, f.Key, due,
				want.PTS-want.DTS)
		}
	}
}

func rtmpTarget(id, host string) Target {
	return Target{ID: id, URL: "rtmp://" + host + "/app", Key: streamKey}
}

func TestForwards(t *testing.T) {
	t.Parallel()
	r, ln := newReceiver(t), listen(t)
	r.serve(ln)
	w := start(t, Options{Dial: loopback, Targets: []Target{rtmpTarget("a", ln.Addr().String())}})
	p := w.Join("rtmp")
	play(p, 0, 75, false)
	w.await("a", Up, 1)
	p.Close()
	w.stop()
	got := r.ended(1)
	if len(got) != 1 || !errors.Is(got[0].cause, ingest.ErrEncoderEnded) {
		t.Fatalf("%d publications, ended by %v", len(got), got[0].cause)
	}
	wantFrames(t, got[0].of(frame.Video), frame.Video, 0, 75, 0)
	wantFrames(t, got[0].of(frame.Audio), frame.Audio, 0, 75, 0)
	for _, c := range got[0].configs {
		if c.Kind == frame.Video && (!bytes.Equal(c.SPS, sps) || !bytes.Equal(c.PPS, pps)) ||
			c.Kind == frame.Audio && !bytes.Equal(c.ASC, aacConfig.ASC) {
			t.Errorf("parameters %+v", c)
		}
	}
	if states := w.said("a"); !slices.Equal(states, []State{Up}) {
		t.Errorf("reported %v", states)
	}
	if strings.Contains(w.log.String(), streamKey) {
		t.Errorf("a secret in the log:\n%s", w.log)
	}
}

// hosts is a door to destinations that are nothing but functions.
type hosts map[string]func(ctx context.Context) (net.Conn, error)

func (h hosts) dial() dialFunc {
	return func(ctx context.Context, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return h[host](ctx)
	}
}

// frozen accepts and never reads.
func frozen(t *testing.T) func(ctx context.Context) (net.Conn, error) {
	t.Helper()
	return func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		return ours, nil
	}
}

// TestBadTargetsHarmNobody forwards to a platform that works beside ones that do not: it gets every frame at its time,
// and the source is never held up, while the others are tried again and again.
func TestBadTargetsHarmNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		good, refuses, closes, stalls := newReceiver(t), newReceiver(t), newReceiver(t), newReceiver(t)
		refuses.refuse = ingest.ErrDisabled
		closes.onWrite = func(n int) error {
			if n >= 2*25*5 { // 5 s
				return errors.New("enough")
			}
			return nil
		}
		release := make(chan struct{})
		stalls.onWrite = func(n int) error {
			if n == 100 {
				<-release // it was admitted, and reads no more
			}
			return nil
		}
		at := hosts{
			"frozen": frozen(t),
			"dead":   func(context.Context) (net.Conn, error) { return nil, errors.New("connection refused") },
		}
		for name, r := range map[string]*receiver{
			"good": good, "refuses": refuses, "closes": closes, "stalls": stalls,
		} {
			ln := newPipes()
			r.serve(ln)
			at[name] = ln.dial
		}
		var targets []Target
		for _, name := range []string{"frozen", "dead", "refuses", "closes", "stalls", "good"} {
			targets = append(targets, rtmpTarget(name, name))
		}
		w := start(t, Options{Dial: at.dial(), Targets: targets})
		const seconds = 120
		began := time.Now()
		p := w.Join("rtmp")
		play(p, 0, seconds*25, true)
		if took := time.Since(began); took != seconds*time.Second {
			t.Errorf("the source took %v", took) // in a bubble time goes on only while everybody waits
		}
		p.Close()
		close(release)
		w.stop()
		got := good.ended(1)
		if len(got) != 1 {
			t.Errorf("the good one was connected to %d times", len(got))
		}
		wantFrames(t, got[0].of(frame.Video), frame.Video, 0, seconds*25, 0)
		wantFrames(t, got[0].of(frame.Audio), frame.Audio, 0, seconds*25, 0)
		if said := w.said("good"); !slices.Equal(said, []State{Up}) {
			t.Errorf("good: %v", said)
		}
		for _, name := range []string{"frozen", "dead", "refuses"} {
			if said := w.said(name); !slices.Equal(said, []State{Down}) {
				t.Errorf("%s: %v", name, said)
			}
		}
		if said := w.said("closes"); len(said) < 6 || said[0] != Up || said[1] != Down || said[2] != Up {
			t.Errorf("closes: %v", said)
		}
		if said := w.said("stalls"); len(said) < 2 || said[0] != Up || said[1] != Down {
			t.Errorf("stalls: %v", said)
		}
		for _, s := range closes.ended(3) {
			video := s.of(frame.Video)
			first := int(video[0].DTS / (40 * time.Millisecond))
			if first%25 != 0 || video[0].DTS != time.Duration(first)*40*time.Millisecond {
				t.Errorf("a link begins at %v", video[0].DTS)
			}
			wantFrames(t, video, frame.Video, first, first+len(video), video[0].DTS) // its times are the stream's
		}
		if strings.Contains(w.log.String(), streamKey) {
			t.Errorf("a secret in the log:\n%s", w.log)
		}
	})
}

// TestPauses are those between attempts: they grow from a second to a minute, each up to half shorter.
func TestPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		at := hosts{"dead": func(context.Context) (net.Conn, error) {
			tries = append(tries, time.Now())
			return nil, errors.New("no route")
		}}
		w := start(t, Options{Dial: at.dial(), Targets: []Target{rtmpTarget("dead", "dead")}})
		p := w.Join("rtmp")
		play(p, 0, 600*25, true)
		p.Close()
		w.stop()
		want := time.Second
		for i := 1; i < len(tries); i++ {
			pause := tries[i].Sub(tries[i-1])
			if pause < want/2 || pause > want+time.Second { // and the wait for a key frame
				t.Errorf("pause %d is %v, want up to %v", i, pause, want)
			}
			want = min(2*want, time.Minute)
		}
		if len(tries) < 15 || len(tries) > 40 {
			t.Errorf("%d attempts in ten minutes", len(tries))
		}
	})
}

// TestSourceComesBack within the time that a link is held, and after it.
func TestSourceComesBack(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away  time.Duration
		links int
	}{"soon": {3 * time.Second, 1}, "late": {20 * time.Second, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, ln := newReceiver(t), newPipes()
				r.serve(ln)
				w := start(t, Options{Dial: hosts{"h": ln.dial}.dial(), Targets: []Target{rtmpTarget("a", "h")}})
				p := w.Join("rtmp")
				play(p, 0, 50, true)
				p.Close()
				time.Sleep(tt.away)
				p.Configure(h264Config) // it is over
				p.Write(picture(50))
				synctest.Wait() // the target has seen whatever there is
				p = w.Join("rtmp")
				play(p, 0, 50, true)
				p.Close()
				w.stop()
				got := r.ended(tt.links)
				if len(got) != tt.links {
					t.Fatalf("%d links, want %d", len(got), tt.links)
				}
				var video []frame.Frame
				for _, s := range got {
					if !errors.Is(s.cause, ingest.ErrEncoderEnded) {
						t.Errorf("a link was ended by %v", s.cause)
					}
					video = append(video, s.of(frame.Video)...)
				}
				wantFrames(t, video[:50], frame.Video, 0, 50, 0)
				// the clock goes on, as long as the encoder was away
				wantFrames(t, video[50:], frame.Video, 0, 50, 2*time.Second+tt.away)
				if said := w.reports; len(said) != 2 || said[0].Publication != 1 || said[1].Publication != 2 ||
					said[1].State != Up {
					t.Errorf("reported %+v", said)
				}
			})
		})
	}
}

// TestParametersChange in the middle: the destination is told before the key frame that needs them.
func TestParametersChange(t *testing.T) {
	t.Parallel()
	r, ln := newReceiver(t), listen(t)
	r.serve(ln)
	w := start(t, Options{Dial: loopback, Targets: []Target{rtmpTarget("a", ln.Addr().String())}})
	p := w.Join("rtmp")
	play(p, 0, 25, false)
	other := h264Config
	other.PPS = append(slices.Clone(pps), 0x80)
	p.Configure(other)
	for n := 25; n < 50; n++ {
		p.Write(picture(n))
	}
	w.await("a", Up, 1)
	p.Close()
	w.stop()
	got := r.ended(1)[0]
	wantFrames(t, got.of(frame.Video), frame.Video, 0, 50, 0)
	var sets [][]byte
	for _, c := range got.configs {
		if c.Kind == frame.Video {
			sets = append(sets, c.PPS)
		}
	}
	if len(sets) != 2 || !bytes.Equal(sets[0], pps) || !bytes.Equal(sets[1], other.PPS) {
		t.Errorf("parameters %x", sets)
	}
}

// TestImpossible are targets that are given up at once, and nothing is dialled for most of them. From then on nothing
// is kept for them, not even while it is being reported.
func TestImpossible(t *testing.T) {
	t.Parallel()
	vp8 := frame.Config{Kind: frame.Video, Codec: frame.VP8}
	for name, tt := range map[string]struct {
		target   Target
		config   frame.Config
		protocol string
		dial     error
		want     string
	}{
		"codec": {rtmpTarget("a", "h"), vp8, "webrtc", nil, `RTMP does not carry video of codec "vp8"`},
		"protocol": {
			Target{ID: "a", URL: "srt://h:1?passphrase=0123456789"},
			h264Config, "rtmp", nil,
			"an SRT destination is served only while the encoder sends SRT; it sends rtmp",
		},
		"ts codec": {
			Target{ID: "a", URL: "srt://127.0.0.1:1"},
			vp8, "srt", nil,
			`a transport stream does not carry video of codec "vp8"`,
		},
		"address": {
			rtmpTarget("a", "h"), h264Config, "rtmp", fault.New(fault.Invalid, "address 10.0.0.1 is not allowed"),
			"connect: address 10.0.0.1 is not allowed",
		},
		"url": {
			Target{ID: "a", URL: "rtmp://u:secret@h/app"}, h264Config, "rtmp", nil, "the target's URL can not be used",
		},
		"no app": {Target{ID: "a", URL: "rtmp://h/"}, h264Config, "rtmp", nil, "the target's URL has no application"},
		"scheme": {
			Target{ID: "a", URL: "http://h/secret"},
			h264Config, "rtmp", nil,
			"a target's URL begins with rtmp, rtmps or srt",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p *Tap
			w := start(t, Options{
				Targets: []Target{tt.target},
				Dial: dialFunc(func(context.Context, string) (net.Conn, error) {
					if tt.dial == nil {
						t.Error("dialled")
					}
					return nil, tt.dial
				}),
				Report: func(Report) {
					for n := range 1000 {
						p.Write(picture(n))
					}
				},
			})
			p = w.Join(tt.protocol)
			p.Configure(tt.config)
			p.Write(picture(0))
			w.await("a", Impossible, 1)
			if r := w.last("a"); r.Err.Error() != tt.want {
				t.Errorf("because %q, want %q", r.Err, tt.want)
			}
			if _, _, dropped, _ := w.targets[0].q.tally(); dropped > 0 {
				t.Errorf("%d frames were dropped of a stream that goes nowhere", dropped)
			}
			if log := w.log.String(); strings.Contains(log, "secret") || strings.Contains(log, "0123456789") {
				t.Errorf("a secret in the log:\n%s", log)
			}
		})
	}
}

// TestHostileDestination sends what no server should: each time the link fails and nothing else.
func TestHostileDestination(t *testing.T) {
	t.Parallel()
	hello := make([]byte, 1+2*rtmpwire.HandshakeSize)
	hello[0] = 3
	for name, response := range map[string][]byte{
		"nothing":      nil,
		"HTTP":         append([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), make([]byte, 4000)...),
		"chunk size 0": append(slices.Clone(hello), 2, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0),
		"huge message": append(slices.Clone(hello), 3, 0, 0, 0, 0xff, 0xff, 0xff, 20, 0, 0, 0, 0),
		"endless garbage": append(slices.Clone(hello),
			bytes.Repeat([]byte{3, 0, 0, 0, 0, 0, 1, 20, 0, 0, 0, 0, 5}, 10_000)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln := listen(t)
			defer ln.Close()
			go func() {
				for {
					c, err := ln.Accept()
					if err != nil {
						return
					}
					go func() {
						_, _ = c.Write(response)
						_ = c.(*net.TCPConn).CloseWrite()
						_, _ = io.Copy(io.Discard, c)
						_ = c.Close()
					}()
				}
			}()
			w := start(t, Options{Dial: loopback, Targets: []Target{rtmpTarget("a", ln.Addr().String())}})
			p := w.Join("rtmp")
			play(p, 0, 10, false)
			w.await("a", Down, 1)
			w.stop()
		})
	}
}

// TestRefusalIsReported without the key that a server may repeat.
func TestRefusalIsReported(t *testing.T) {
	t.Parallel()
	r, ln := newReceiver(t), listen(t)
	r.refuse = ingest.ErrBusy
	r.serve(ln)
	w := start(t, Options{Dial: loopback, Targets: []Target{rtmpTarget("a", ln.Addr().String())}})
	play(w.Join("rtmp"), 0, 10, false)
	w.await("a", Down, 1)
	if got := w.last("a").Err; !errors.Is(got, errRefused) ||
		!strings.Contains(got.Error(), "NetStream.Publish.BadName") {
		t.Errorf("because %v", got)
	}
	w.stop()
	l := &rtmpLink{addr: address{name: "k3y", app: "app?token=t0ken"}}
	said := []any{
		nil,
		rtmpwire.Status("error", "NetStream.Publish.BadName",
			"stream k3y with token=t0ken\n"+strings.Repeat("x", 1000)),
	}
	if err := l.refusal(rtmpwire.Command{Name: "onStatus", Args: said}); err == nil ||
		strings.Contains(err.Error(), "k3y") || strings.Contains(err.Error(), "t0ken") ||
		strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
		t.Errorf("says %v", err)
	}
}
