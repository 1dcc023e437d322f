package broadcast_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/rtmp"
)

// platform is a place that streams are forwarded to: an RTMP server without a kernel below it, and the door to it.
type platform struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu     sync.Mutex
	off    bool // nobody responds
	began  int  // publications
	frames int
	causes []error
}

// platform runs one until the test ends.
func (w *world) platform() *platform {
	p := &platform{conns: make(chan net.Conn), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	ended := make(chan error, 1)
	go func() {
		ended <- rtmp.New(rtmp.Options{Gate: p, Logger: slog.New(slog.DiscardHandler)}).Serve(ctx, p, nil)
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	return p
}

func (p *platform) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	off := p.off
	p.mu.Unlock()
	if off || strings.HasPrefix(address, "dead") {
		return nil, errors.New("no route to host")
	}
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *platform) Resolve(context.Context, string, string) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("there is no UDP here")
}

func (p *platform) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *platform) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *platform) Addr() net.Addr { return &net.TCPAddr{} }

func (p *platform) Admit(ctx context.Context, _ ingest.Publication) (context.Context, ingest.Sink, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began++
	return ctx, taker{p}, nil
}

// taker is a publication at the platform.
type taker struct{ *platform }

func (t taker) Configure(frame.Config) error { return nil }

func (t taker) Write(frame.Frame) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frames++
	if t.off {
		return errors.New("out of order")
	}
	return nil
}

func (t taker) Close(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.causes = append(t.causes, cause)
}

func (p *platform) work(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off = !on
}

func (p *platform) counts() (began, frames int, causes []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began, p.frames, slices.Clone(p.causes)
}

func forwardTo(urls ...string) func(*live.CreateInput) {
	return func(in *live.CreateInput) {
		for _, u := range urls {
			in.SimulcastTargets = append(in.SimulcastTargets, live.SimulcastTarget{URL: u})
		}
	}
}

func (w *world) targets(s live.Stream, want ...live.TargetState) {
	w.t.Helper()
	synctest.Wait() // what has happened is told
	var got []live.TargetState
	for _, t := range w.row(s.ID).Settings.SimulcastTargets {
		got = append(got, t.State)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("targets are %v, want %v", got, want)
	}
}

// simulcasts gives the events about targets, without what they have in common.
func (w *world) simulcasts() (types []string) {
	for _, e := range w.events() {
		if rest, ok := strings.CutPrefix(e, "simulcast_target."); ok && rest != "created" {
			types = append(types, rest)
		}
	}
	return types
}

// TestSimulcast leads three targets through a broadcast with a reconnect: one that works, one that is dead and one that
// can't be served.
func TestSimulcast(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		p := w.platform()
		n := w.start("a", func(o *broadcast.Options) { o.Simulcast = p })
		s := w.stream(forwardTo("rtmp://good/app/k", "rtmp://dead/app/k", "srt://srt:9000?streamid=x"))
		e := n.publish(s.StreamKey)
		w.targets(s, live.TargetStarting, live.TargetStarting, live.TargetStarting)
		e.send(10 * time.Second)
		w.targets(s, live.TargetBroadcasting, live.TargetErrored, live.TargetFatal)
		e.stop()
		w.wait(0)
		w.targets(s, live.TargetIdle, live.TargetIdle, live.TargetFatal)
		w.wait(30 * time.Second)
		if began, _, causes := p.counts(); began != 1 || len(causes) != 1 ||
			!errors.Is(causes[0], ingest.ErrEncoderEnded) {
			t.Errorf("%d publications at the platform, ended by %v", began, causes)
		}
		e = n.publish(s.StreamKey)
		w.targets(s, live.TargetStarting, live.TargetStarting, live.TargetFatal)
		e.send(10 * time.Second)
		w.targets(s, live.TargetBroadcasting, live.TargetErrored, live.TargetFatal)
		p.work(false)
		e.send(5 * time.Second)
		w.targets(s, live.TargetErrored, live.TargetErrored, live.TargetFatal)
		p.work(true)
		e.send(90 * time.Second)
		w.targets(s, live.TargetBroadcasting, live.TargetErrored, live.TargetFatal)
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(5 * time.Second)
		w.targets(s, live.TargetIdle, live.TargetIdle, live.TargetIdle)
		e.stop()
		w.wait(0)
		_, frames, causes := p.counts()
		if last := causes[len(causes)-1]; !errors.Is(last, ingest.ErrEncoderEnded) {
			t.Errorf("the last publication was ended by %v", last)
		}
		if frames < (10+10+60)*(fps+48) {
			t.Errorf("%d frames were forwarded", frames)
		}
		got := w.simulcasts()
		counts := map[string]int{}
		for _, typ := range got {
			counts[typ]++
		}
		if counts["starting"] != 5 || counts["idle"] != 2+3 || counts["broadcasting"] < 3 || counts["errored"] < 4 {
			t.Errorf("told %v", got)
		}
		if log := w.logged(); strings.Contains(log, "app/k") {
			t.Error("a target's URL is in the log")
		}
	})
}

// TestSimulcastGivenUpStaysSo over a restart of the service, until the broadcast has ended.
func TestSimulcastGivenUpStaysSo(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		p := w.platform()
		forward := func(o *broadcast.Options) { o.Simulcast = p }
		n := w.start("a", forward)
		s := w.stream(forwardTo("srt://srt:9000", "rtmp://good/app/k"))
		n.publish(s.StreamKey).send(10 * time.Second)
		w.targets(s, live.TargetFatal, live.TargetBroadcasting)
		n.end()
		w.targets(s, live.TargetFatal, live.TargetIdle)
		n = w.start("a", forward)
		again := n.publish(s.StreamKey)
		again.send(10 * time.Second)
		w.targets(s, live.TargetFatal, live.TargetBroadcasting)
		again.stop()
		w.targets(s, live.TargetFatal, live.TargetIdle)
		w.wait(2 * time.Minute)
		w.targets(s, live.TargetIdle, live.TargetIdle)
		e, err := n.admitOver("rtmp", s.StreamKey)
		w.must(err)
		w.targets(s, live.TargetStarting, live.TargetStarting)
		e.stop()
	})
}
