package follow

import (
	"context"
	"strings"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
)

// Playlist implements playback.Renditions. A playlist that is kept is given for as long as no change is known of behind
// it, and none is given that is older than one that anybody was given here.
func (v view) Playlist(
	ctx context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	v.touch()
	a := wire.Ask{
		What: wire.Playlist, Event: v.event, Texts: v.added, Rendition: rendition, MSN: -1, Part: -1,
		Skip: r.Skip, Hold: r.TextHoldBack, Clip: wire.ClipOf(r.Clip), Compressed: compressed,
	}
	return onward(ctx, v.broadcast, func(b *broadcast) (playback.Text, error) { return b.playlist(ctx, a, r) })
}

func (b *broadcast) playlist(ctx context.Context, a wire.Ask, r playback.Reload) (playback.Text, error) {
	need := b.newest()
	if r.Clip == (playback.Clip{}) {
		had, ok := b.f.kept.get(b, a)
		reached := r.MSN < 0 || had.listed.At.Reached(r)
		if ok && reached && (b.isAdrift() || had.listed.At.Revision >= need) {
			return textOf(had), nil
		}
	}
	a.MSN, a.Part = r.MSN, r.Part
	// What others have asked for already may be older; what is asked for now is not.
	for range 3 {
		got, err := b.direct(ctx, a)
		for fault.Is(err, fault.Invalid) && b.isCatchingUp() && wait(ctx, seekEvery) == nil {
			got, err = b.direct(ctx, a)
		}
		if err != nil {
			return playback.Text{}, err
		}
		if got.listed.At.Revision >= need {
			return textOf(got), nil
		}
	}
	return playback.Text{}, fault.New(fault.Internal, "the node that has the live stream gives playlists of the past")
}

func textOf(r response) playback.Text {
	return playback.Text{Data: r.data, MaxAge: r.listed.MaxAge, At: r.listed.At}
}

// listed keeps a playlist as the newest one of its kind, and asks for the part that it says comes next.
func (b *broadcast) listed(a wire.Ask, r response) {
	at := r.listed.At
	b.know(at.Revision)
	if a.Clip != (wire.Clip{}) {
		return
	}
	kind := a
	kind.MSN, kind.Part = -1, -1
	if had, ok := b.f.kept.get(b, kind); !ok || had.listed.At.Revision < at.Revision {
		b.f.kept.put(b.ctx, b, kind, r)
	}
	b.expect(a, at)
}

// wanted is for how long the parts of a rendition are asked for ahead of viewers, behind the last one that a viewer
// wanted.
const wanted = 5 * time.Second

// expect asks for the part that comes next before any viewer does, if viewers take the parts of that rendition.
func (b *broadcast) expect(a wire.Ask, at playback.At) {
	_, name, ok := strings.Cut(at.Hint, "/")
	next, named := hls.ParseResource(name)
	b.mu.Lock()
	taken := b.f.opt.Now().Sub(b.watched[a.Rendition]) < wanted
	b.mu.Unlock()
	if !ok || !named || !taken {
		return
	}
	part := wire.Ask{What: wire.Chunk, Event: a.Event, Texts: a.Texts, Rendition: a.Rendition, Resource: next}
	go func() {
		_, _ = b.keep(b.ctx, part) // a part that does not come is told to who asks for it
	}()
}

// wants notes that a viewer takes the media of a rendition.
func (b *broadcast) wants(rendition string) {
	now := b.f.opt.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.watched[rendition]; !ok && len(b.watched) >= maxWatched {
		clear(b.watched)
	}
	b.watched[rendition] = now
}

// maxWatched bounds how many names of renditions are remembered.
const maxWatched = 64
