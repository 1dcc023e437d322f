package window

import (
	"bytes"
	"context"
	"errors"
	"io"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
)

// Fault says a reader's error in the words of a fault: for players.
func Fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotYet):
		return fault.New(fault.NotReady, "the live stream has just started: ask again in a moment")
	case errors.Is(err, ErrTooFar):
		return fault.New(fault.Invalid, "_HLS_msn: is too far ahead of the live edge")
	case errors.Is(err, ErrUnknown):
		return fault.New(fault.NotFound, "there is no such rendition, segment or part")
	case errors.Is(err, ErrTimeout):
		return fault.New(fault.Unavailable, "the live edge stands still")
	case errors.Is(err, ErrMoved):
		return fault.Wrap(fault.Unavailable, err, "the live stream is moving to another node: ask again in a moment")
	}
	return err
}

// Open opens what is found where an edge says; err is the edge's, and becomes a fault.
func (l Location) Open(ctx context.Context, objects delivered.Objects, err error) (delivered.Body, error) {
	if err != nil {
		return delivered.Body{}, Fault(err)
	}
	b, err := l.open(ctx, objects)
	b.Init, b.Start = l.Init, l.Start
	return b, err
}

func (l Location) open(ctx context.Context, objects delivered.Objects) (delivered.Body, error) {
	if l.Data != nil {
		return delivered.Body{Data: l.Data}, nil
	}
	if l.File != nil {
		s, err := l.File.Section(l.Offset, l.N-int64(len(l.Tail)))
		switch {
		case err != nil: // it has been stored since
		case l.Tail != nil:
			return delivered.Body{Reader: joined{io.MultiReader(s, bytes.NewReader(l.Tail)), s}, Size: l.N}, nil
		default:
			return delivered.Body{Reader: s, Size: l.N}, nil
		}
	}
	return objects.Open(ctx, l.Object, l.Offset, l.N)
}

// joined is what a file has of a segment, and the rest.
type joined struct {
	io.Reader
	io.Closer
}

// Source is a rendition at the edge as viewers get it; its errors are faults.
func (e *Edge) Source(rendition string, objects delivered.Objects) delivered.Source {
	return source{e, rendition, objects}
}

type source struct {
	e         *Edge
	rendition string
	objects   delivered.Objects
}

// Init implements delivered.Source.
func (s source) Init(ctx context.Context, n int) ([]byte, error) {
	p, err := s.e.ReadInit(s.rendition, n)
	return delivered.Bytes(p.Open(ctx, s.objects, err))
}

// Segment implements delivered.Source.
func (s source) Segment(ctx context.Context, msn int64) (delivered.Body, error) {
	p, err := s.e.ReadSegment(ctx, s.rendition, msn)
	return p.Open(ctx, s.objects, err)
}
