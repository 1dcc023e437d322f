// Package ingest defines what all ingest protocols need: a gate that admits a publication, and a sink that accepts its
// frames.
package ingest

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"millrace/internal/media/frame"
)

// Why a gate says no. The protocol turns each into the refusal that its encoders show.
var (
	ErrUnknownKey = errors.New("stream key is unknown")
	ErrDisabled   = errors.New("live stream is disabled")
	ErrBusy       = errors.New("another encoder is live on this stream key")
	ErrShutdown   = errors.New("the node is shutting down or drained")
)

// Why a publication ended. Anything else is a lost connection.
var (
	ErrEncoderEnded = errors.New("encoder ended the stream") // FCUnpublish, deleteStream, a clean close
	ErrEnded        = errors.New("stream was ended by its owner")
	ErrSilent       = errors.New("encoder sent nothing for too long")
	ErrReplaced     = errors.New("another connection took the place of a silent encoder")
	ErrKeyReset     = errors.New("stream key was reset")
)

// Unsupported is why a publication ended that sends what can not be recorded, from a protocol or from its sink. Its
// text is for people: the encoder, the log and the asset show it.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Publication is who asks to publish. Key is a secret: never log it.
type Publication struct {
	Protocol string // "rtmp"
	Key      string
	Remote   netip.AddrPort
	Encoder  string // what the encoder calls itself, if it says
	// Link tells how the connection does; nil where the protocol has nothing to tell. It is called from other
	// goroutines than the connection's, every few seconds, until the sink is closed and perhaps once after.
	Link func() LinkStats
	// Move asks the encoder to connect again, to another node, and to leave when it has; nil: this one can't be asked.
	// It does not wait. It is called from another goroutine than the connection's, once at most.
	Move func()
}

// LinkStats is what a protocol knows of its connection. Counts are since its start; what a protocol does not have is
// zero.
type LinkStats struct {
	Encoder       string        // what the encoder has called itself since it was admitted
	Packets       int64         // that came, repeated ones too
	Lost          int64         // found missing, whether they came later or not
	Retransmitted int64         // sent again
	Dropped       int64         // given up: they never came, or too late
	RTT           time.Duration // round trip, smoothed
}

// Gate decides whether a key may publish. Admit returns one of the errors above, or an internal one. The returned
// context ends, with the cause, when the publication must stop (disabled, ended, key reset, silent, replaced, lease
// lost, shutdown): the protocol then closes the connection.
type Gate interface {
	Admit(ctx context.Context, p Publication) (context.Context, Sink, error)
}

// Labelled is a Sink that has something to say in every log line about its publication, such as what it publishes to.
type Labelled interface {
	LogAttributes() []any // alternating keys and values, as slog takes them
}

// Logger returns a logger for lines about the publication of a sink.
func Logger(l *slog.Logger, s Sink) *slog.Logger {
	if labelled, ok := s.(Labelled); ok {
		return l.With(labelled.LogAttributes()...)
	}
	return l
}

// Sink takes one publication's frames. It is used by one goroutine, never blocks on a reader, and is closed exactly
// once. Frames of a track are written after a Config of its kind; a Config that equals the last one is ignored. An
// error means that the publication can not go on: the protocol closes the connection and passes it to Close.
type Sink interface {
	Configure(c frame.Config) error
	Write(f frame.Frame) error
	Close(cause error)
}
