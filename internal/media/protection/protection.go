// Package protection encrypts media for viewers: it wraps a clear presentation. Media is stored in the clear and
// encrypted when it is sent, once for each segment, part and node. Package cenc encrypts; this package adds the
// playlist tags that tell players about it. It must never know resources, licences or who may watch. It starts no
// goroutine.
package protection

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
)

// Content is how something is encrypted.
type Content struct {
	// of what has the keys; together with a recording, a rendition and a segment it names the same bytes for ever
	Name    string
	Scheme  cenc.Scheme
	Keys    []cenc.Key // that players are told of beforehand: those of now, and those that come
	Systems []System
	// KeyOf is the key of media in a period; false: such media is not encrypted.
	KeyOf func(m cenc.Media, period int) (cenc.Key, bool)
	First int // number of the only period, where keys do not change
	// PeriodAt is the number of the period that a segment is in, by the wall-clock time of its first frame; nil: keys
	// do not change.
	PeriodAt func(time.Time) int
}

func (c *Content) period(start time.Time) int {
	if c.PeriodAt == nil {
		return c.First
	}
	return c.PeriodAt(start)
}

// View is what viewers may see of a presentation, encrypted; it implements playback.Presentation. What it does not
// encrypt, as images and text, stays as it is.
type View struct {
	playback.Presentation // in clear

	Content Content
	Store   *Store
}

var _ playback.Presentation = View{}

// state is what is kept of a presentation from one request to the next.
type state struct {
	mu     sync.Mutex
	tracks map[trackKey]track
	lists  map[listKey]*playlist
	clear  map[string]bool // renditions that are not encrypted
}

type trackKey struct {
	rendition string
	init      delivered.Init
	period    int
}

// track is how media with one init segment is encrypted.
type track struct {
	cipher *cenc.Track // nil: it is clear
	key    cenc.Key
}

type listKey struct {
	rendition string
	skip      bool
}

// playlist is one of one version.
type playlist struct{ clear, text, packed []byte }

// maxTracks is how many tracks are kept: a new one comes with each change of an encoder's parameters, and with each
// period.
const maxTracks = 1000

// Multivariant implements playback.Renditions. Variants that can't be encrypted are not offered.
func (v View) Multivariant(ctx context.Context, c playback.Clip) (*hls.Multivariant, error) {
	m, err := v.Presentation.Multivariant(ctx, c)
	if err != nil {
		return nil, err
	}
	refused := ""
	leaveOut := func(variant hls.Variant) bool {
		i := slices.IndexFunc(variant.Codecs, func(codec string) bool { return !cenc.Supported(codec) })
		if i >= 0 {
			refused = variant.Codecs[i]
		}
		return i >= 0
	}
	m.Spare = slices.DeleteFunc(slices.Clone(m.Spare), leaveOut)
	m.Variants = slices.DeleteFunc(slices.Clone(m.Variants), leaveOut)
	if len(m.Variants) == 0 && refused != "" {
		return nil, unsupported(refused)
	}
	for _, k := range v.Content.Keys {
		m.SessionKeys = v.appendKeys(m.SessionKeys, hls.SessionKeyTag, k)
	}
	return m, nil
}

// Pictures implements playback.Renditions.
func (v View) Pictures(ctx context.Context) ([]hls.Picture, error) {
	all, err := v.Presentation.Pictures(ctx)
	for i := range all {
		refused := slices.ContainsFunc(all[i].Codecs, func(codec string) bool { return !cenc.Supported(codec) })
		all[i].Offered = all[i].Offered && !refused
	}
	return all, err
}

func unsupported(codec string) error {
	return fault.New(fault.Invalid, "the codec %s can't be encrypted: DRM needs video of H.264 or HEVC", codec)
}

// Playlist implements playback.Renditions.
func (v View) Playlist(
	ctx context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	t, err := v.Presentation.Playlist(ctx, rendition, r, false)
	if err != nil || len(t.Data) == 0 {
		return t, err
	}
	l, err := v.list(ctx, listKey{rendition, r.Skip}, t.Data)
	if err != nil {
		return t, err
	}
	if t.Data = l.text; compressed {
		t.Data = v.state().packed(l)
	}
	return t, nil
}

// list is a playlist with its keys. That of a text which has not changed since it was asked for last is kept.
func (v View) list(ctx context.Context, k listKey, text []byte) (*playlist, error) {
	kept := v.state()
	kept.mu.Lock()
	had := kept.lists[k]
	kept.mu.Unlock()
	if had != nil && len(had.clear) == len(text) && &had.clear[0] == &text[0] {
		return had, nil
	}
	lines := map[trackKey][]byte{}
	out, err := hls.WithKeys(text, func(uri string, start time.Time) ([]byte, error) {
		_, name, _ := strings.Cut(uri, "/")
		r, ok := hls.ParseResource(name)
		if !ok {
			return nil, fault.New(fault.Internal, "an init segment has the URI %q", uri)
		}
		at := trackKey{k.rendition, delivered.Init{Number: r.Init, Generation: r.Generation}, v.Content.period(start)}
		if had, ok := lines[at]; ok {
			return had, nil
		}
		t, err := v.track(ctx, at)
		if err != nil {
			return nil, err
		}
		lines[at] = nil
		if t.cipher != nil {
			lines[at] = v.appendKeys(nil, hls.KeyTag, t.key)
		}
		return lines[at], nil
	})
	if err != nil {
		return nil, err
	}
	l := &playlist{clear: text, text: out}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.lists[k] = l
	return l, nil
}

// packed is a playlist, compressed once.
func (s *state) packed(l *playlist) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.packed == nil {
		l.packed = hls.Gzip(l.text)
	}
	return l.packed
}

func (v View) state() *state { return v.Store.state(stateKey{v.Content.Name, v.Media()}) }

// track is how media is encrypted that is decoded with an init segment.
func (v View) track(ctx context.Context, k trackKey) (track, error) {
	kept := v.state()
	kept.mu.Lock()
	had, ok := kept.tracks[k]
	kept.mu.Unlock()
	if ok {
		return had, nil
	}
	init, err := delivered.Bytes(v.Presentation.Chunk(ctx, k.rendition, hls.Resource{
		Generation: k.init.Generation,
		Init:       k.init.Number,
		Part:       -1,
		Ext:        "mp4",
	}))
	if err != nil {
		return track{}, err
	}
	t, err := v.newTrack(init, k.period)
	if err != nil {
		return track{}, err
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if len(kept.tracks) >= maxTracks {
		clear(kept.tracks)
	}
	kept.tracks[k] = t
	return t, nil
}

func (v View) newTrack(init []byte, period int) (t track, err error) {
	m, err := cenc.Describe(init)
	if err != nil {
		return t, err
	}
	key, encrypted := v.Content.KeyOf(m, period)
	if !encrypted {
		return t, nil
	}
	t.key = key
	t.cipher, err = cenc.NewTrack(init, v.Content.Scheme, key)
	if errors.Is(err, cenc.ErrUnsupported) {
		err = unsupported(m.Codec())
	}
	if err == nil && v.Content.PeriodAt != nil {
		t.cipher = t.cipher.InGroups()
	}
	return t, err
}
