package audience

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/sketch"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// house has an asset with two playback IDs, and two other nodes.
type house struct{ others []Views }

// Verify takes "kind id".
func (house) Verify(_ context.Context, r Request, _ time.Time) (Grant, error) {
	kind, name, ok := strings.Cut(r.Token, " ")
	if !ok {
		return Grant{}, fault.New(fault.Denied, "no token")
	}
	return Grant{"env", Kind(kind), name}, nil
}

func (house) PlaybackIDs(_ context.Context, g Grant) ([]id.Playback, error) {
	switch g.ID {
	case "p", "q", "silent":
		return []id.Playback{id.Playback(g.ID)}, nil
	case "film":
		return []id.Playback{"p", "q"}, nil
	case "unplayable":
		return nil, nil
	}
	return nil, fault.New(fault.NotFound, "there is none")
}

func (house) Key(p id.Playback) uint64 { return uint64(p[0]) }

func (house) Now(time.Time) Views {
	return Views{'p': sketch.Of([]uint64{1, 2}), 'q': sketch.Of([]uint64{2}), 'x': sketch.Of([]uint64{9})}
}

func (h house) Reported(_ context.Context, but id.Node, keys []uint64) ([]Views, error) {
	if but != "here" || slices.Contains(keys, 'x') {
		return nil, fault.New(fault.Internal, "asked for %v but %s", keys, but)
	}
	return h.others, nil
}

func (house) Tell(context.Context, id.Node, Views) error { return nil }

func TestCount(t *testing.T) {
	t.Parallel()
	elsewhere := []Views{{'p': sketch.Of([]uint64{2, 3})}, {'q': sketch.Of([]uint64{4})}}
	for _, tt := range []struct {
		token          string
		others         []Views
		views, viewers int
		kind           fault.Kind // Internal: none
	}{
		{"playback_id p", nil, 2, 2, 0},
		{"playback_id p", elsewhere, 3, 3, 0},
		{"asset_id film", nil, 3, 2, 0},
		{"asset_id film", elsewhere, 5, 4, 0},
		{"live_stream_id film", nil, 3, 2, 0},
		{"playback_id silent", elsewhere, 0, 0, 0},
		{"asset_id unplayable", nil, 0, 0, 0},
		{"asset_id absent", nil, 0, 0, fault.NotFound},
		{"video_id p", nil, 0, 0, fault.Invalid},
		{"v p", nil, 0, 0, fault.Denied},
		{"junk", nil, 0, 0, fault.Denied},
		{"", nil, 0, 0, fault.Invalid},
	} {
		h := house{tt.others}
		got, err := New(Options{Verifier: h, Finder: h, Local: h, Store: h, Node: "here"}).Count(t.Context(),
			Request{Token: tt.token}, noon)
		if err != nil && (tt.kind == 0 || fault.KindOf(err) != tt.kind) || err == nil && tt.kind != 0 {
			t.Errorf("%s: %v", tt.token, err)
		}
		if got.Views != tt.views || got.Viewers != tt.viewers || err == nil && !got.UpdatedAt.Equal(noon) {
			t.Errorf("%s: %+v, want %d views of %d viewers", tt.token, got, tt.views, tt.viewers)
		}
	}
	h := house{}
	alone := New(Options{Verifier: h, Finder: h, Local: h})
	if got, err := alone.Count(t.Context(), Request{Token: "asset_id film"}, noon); err != nil || got.Views != 3 {
		t.Errorf("alone: %+v, %v", got, err)
	}
	if err := alone.Share(t.Context(), noon); err != nil {
		t.Error(err)
	}
}
