package broadcast

import (
	"context"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/session"
)

// broken is an output that panics, in Write or in Close.
type broken struct {
	session.Output
	write, close bool
}

func (b broken) Configure(frame.Config) error { return nil }
func (b broken) Rate(float64, bool) error     { return nil }
func (b broken) Discontinuity(string) error   { return nil }

func (b broken) Write(frame.Frame) error {
	if b.write {
		panic("write broke")
	}
	return nil
}

func (b broken) Close(error) error {
	if b.close {
		panic("close broke")
	}
	return nil
}

// Break makes a publication panic with the next frame that comes through, or when it is closed.
func Break(in ingest.Sink, write, closing bool) {
	s := in.(*sink)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session.New(session.Options{Output: broken{write: write, close: closing}, Now: s.owner.opt.Now})
}

// AwaitStored is what makes rungs of a live stream's broadcast as it is now waits for.
func AwaitStored(l *Service, s id.LiveStream) func(ctx context.Context, msn int64) error {
	return l.broadcasts.of(s).awaitStored
}

// Expect admits an encoder to a new broadcast, as Admit does, and leaves its publication to be opened.
func Expect(ctx context.Context, l *Service, key string) error {
	s, err := l.opt.Streams.Connect(ctx, live.Connection{
		StreamKey: key, Protocol: "rtmp", NewAsset: id.Asset(id.New()), Owner: l.opt.Owner,
	}, l.opt.Now())
	if err != nil {
		return err
	}
	_, err = l.begin(ctx, s, true)
	return err
}

// Panic has the goroutine panic that leads a stream's broadcast, and again when it ends the broadcast.
func Panic(l *Service, s id.LiveStream, again bool) {
	b := l.broadcasts.of(s)
	b.mail.post(func() {
		if again {
			b.outbox.list = nil
			b.outbox.add("panic", func(context.Context) error { panic("message broke") })
		}
		panic("mail broke")
	})
}
