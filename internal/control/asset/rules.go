package asset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/field"
	"millrace/internal/control/language"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// The values that subtitles have today.
const (
	Subtitles     = "subtitles"      // text_type
	Uploaded      = "uploaded"       // text_source: by a request
	Embedded      = "embedded"       // text_source: from inside the media
	GeneratedLive = "generated_live" // text_source: recognized while it was recorded
	// GeneratedFinal is the text_source of what is recognised again when a broadcast has ended, and then stands in for
	// GeneratedLive.
	GeneratedFinal = "generated_live_final"
	GeneratedVOD   = "generated_vod" // text_source: recognised in sound that was there as a whole
	DefaultAudio   = "Default"       // name of the primary audio track that nobody named
	maxTracks      = 100             // of one asset
)

// Check says all that is wrong with in by itself, and as a clip of source; nil: it is none, or of what is not known.
// fault.Invalid; fault.Conflict where the source is not ready yet.
func (c CreateInput) Check(source *Asset) error {
	var l fault.List
	c.Options.Check(&l, "", assetopt.ForAsset)
	if source != nil {
		checkClip(&l, c.Options, *source)
	}
	if err := l.Err(); err != nil {
		return err
	}
	if source != nil && source.Status != Ready {
		return fault.At(fault.Conflict, "inputs[0].url", "must name an asset that is ready")
	}
	return nil
}

// clipOf is the asset that in asks for a clip of; false: it asks for none.
func (c CreateInput) clipOf() (id.Asset, bool) {
	if len(c.Options.Inputs) == 0 {
		return "", false
	}
	of, clip := assetopt.ClipSource(c.Options.Inputs[0].URL)
	return of, clip && of != ""
}

// Check says all that is wrong with in by itself. fault.Invalid.
func (p PatchInput) Check() error {
	var l fault.List
	if p.Passthrough != nil {
		field.Passthrough(&l, "passthrough", *p.Passthrough)
	}
	if p.Meta != nil {
		p.Meta.Check(&l, "meta")
	}
	return l.Err()
}

// check adds what is wrong with the request by itself. A missing text_type is subtitles, the only one there is.
func (ti TrackInput) check() error {
	var l fault.List
	if ti.URL == "" {
		l.At("url", "is required")
	} else {
		field.WebURL(&l, "url", ti.URL)
	}
	if ti.Type == "" {
		l.At("type", "is required: text or audio")
	} else {
		field.OneOf(&l, "type", string(ti.Type), string(TextTrack), string(AudioTrack))
	}
	if ti.TextType != "" {
		field.OneOf(&l, "text_type", ti.TextType, Subtitles)
		if ti.Type == AudioTrack {
			l.At("text_type", "may be set only when type is text")
		}
	}
	if ti.LanguageCode == "" {
		l.At("language_code", "is required")
	} else {
		field.Language(&l, "language_code", ti.LanguageCode)
	}
	if ti.ClosedCaptions && ti.Type == AudioTrack {
		l.At("closed_captions", "may be set only when type is text")
	}
	field.Name(&l, "name", ti.Name, field.MaxName)
	field.Passthrough(&l, "passthrough", ti.Passthrough)
	return l.Err()
}

// track makes the preparing track that in asks for.
func (ti TrackInput) track(a id.Asset, others []Track, now time.Time) (Track, error) {
	return named(ti.preparing(a, now), others)
}

// preparing is the track that in asks for, under the name that it gives, if it gives one.
func (ti TrackInput) preparing(a id.Asset, now time.Time) Track {
	t := Track{
		ID:             id.Track(id.New()),
		Asset:          a,
		Type:           ti.Type,
		Status:         TrackPreparing,
		LanguageCode:   ti.LanguageCode,
		Name:           ti.Name,
		ClosedCaptions: ti.ClosedCaptions,
		Passthrough:    ti.Passthrough,
		URL:            ti.URL,
		CreatedAt:      now,
	}
	t.Rendition = string(t.ID)
	if t.Type == TextTrack {
		t.TextType, t.TextSource = Subtitles, Uploaded
	}
	return t
}

// named gives t its default name, or checks the one it has: unique among the asset's tracks of its type. A default that
// is taken is counted on ("English (2)"), since nobody chose it; a chosen name that is taken is refused.
func named(t Track, others []Track) (Track, error) {
	chosen := t.Name != ""
	if !chosen {
		t.Name = language.EnglishName(t.LanguageCode)
	}
	err := t.nameAmong(others, chosen)
	return t, err
}

// counted is base, or where another track of t's type has that name, base with the next number that is free.
func counted(base string, t Track, others []Track) string {
	name := base
	for n := 2; t.taken(name, others); n++ {
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	return name
}

// taken reports whether another track of t's type has a name. One that is errored stays so, and gives its name free.
func (t Track) taken(name string, others []Track) bool {
	return slices.ContainsFunc(others, func(o Track) bool {
		return o.ID != t.ID && o.Type == t.Type && o.Name == name && o.Status != TrackErrored
	})
}

// nameAmong gives t a name that no other track of its type has: a chosen one must be free, another is counted.
func (t *Track) nameAmong(others []Track, chosen bool) error {
	if chosen && t.taken(t.Name, others) {
		return fault.At(fault.Invalid, "name", "must be unique among the asset's %s tracks", t.Type)
	}
	t.Name = counted(t.Name, *t, others)
	return nil
}

// extraTracks makes the preparing tracks of the inputs after the first one, in their order.
func extraTracks(a id.Asset, inputs []assetopt.Input, now time.Time) ([]Track, error) {
	var made []Track
	at := map[id.Track]int{}
	for _, chosen := range []bool{true, false} { // chosen names first, so that no default takes one
		if len(inputs) > 0 {
			embedded, err := embeddedTracks(a, inputs[0].EmbeddedSubtitles, made, chosen, now)
			if err != nil {
				return nil, err
			}
			made = append(made, embedded...)
			generated, err := generatedTracks(a, "", inputs[0].GeneratedSubtitles, made, chosen, now)
			if err != nil {
				return nil, err
			}
			made = append(made, generated...)
			for i, t := range append(embedded, generated...) {
				at[t.ID] = len(inputs) + i
			}
		}
		for i, in := range inputs {
			if i == 0 || in.Overlay != nil || (in.Name != "") != chosen {
				continue
			}
			t, err := trackInput(in).track(a, made, now)
			if err != nil {
				return nil, err
			}
			made = append(made, t)
			at[t.ID] = i
		}
	}
	slices.SortFunc(made, func(x, y Track) int { return at[x.ID] - at[y.ID] })
	return made, nil
}

// recordedTracks makes the preparing tracks that each recording of a live stream gets of its further inputs, beside
// those of the broadcast itself. A name that one of these has is counted on, since the broadcast goes on in any case.
func recordedTracks(a id.Asset, inputs []assetopt.Input, others []Track, now time.Time) (made []Track) {
	for i, in := range inputs {
		if i == 0 || in.Overlay != nil {
			continue
		}
		t := trackInput(in).preparing(a, now)
		t.Name = counted(cmp.Or(in.Name, language.EnglishName(in.LanguageCode)), t, slices.Concat(others, made))
		made = append(made, t)
	}
	return made
}

func trackInput(in assetopt.Input) TrackInput {
	return TrackInput{
		URL: in.URL, Type: TrackType(in.Type), TextType: in.TextType, LanguageCode: in.LanguageCode, Name: in.Name,
		ClosedCaptions: in.ClosedCaptions, Passthrough: in.Passthrough,
	}
}

// apply changes t as p asks; others are the asset's tracks.
func (tp TrackPatch) apply(t Track, others []Track) (Track, error) {
	var l fault.List
	if t.Type == VideoTrack {
		return t, fault.New(fault.Invalid, "only text and audio tracks can be changed")
	}
	if tp.LanguageCode != nil && field.Language(&l, "language_code", *tp.LanguageCode) {
		t.LanguageCode = *tp.LanguageCode
	}
	if tp.ClosedCaptions != nil {
		if *tp.ClosedCaptions && t.Type != TextTrack {
			l.At("closed_captions", "may be set only for text tracks")
		}
		t.ClosedCaptions = *tp.ClosedCaptions
	}
	if tp.Passthrough != nil {
		field.Passthrough(&l, "passthrough", *tp.Passthrough)
		t.Passthrough = *tp.Passthrough
	}
	if tp.Name != nil {
		field.Name(&l, "name", *tp.Name, field.MaxName)
		t.Name = *tp.Name
	}
	if tp.Name != nil {
		var err error
		if t, err = named(t, others); l.Take(err) != nil {
			return t, err
		}
	}
	return t, l.Err()
}

// Check says all that is wrong with p as a change of t; others are the asset's tracks. fault.Invalid.
func (tp TrackPatch) Check(t Track, others []Track) error {
	_, err := tp.apply(t, others)
	return err
}

// maxTime is the latest second of an asset whose duration is not known yet.
const maxTime = 86400

// checkThumbnail allows seconds at which the asset has a picture, as far as that is known.
func (a Asset) checkThumbnail(l *fault.List, v float64) {
	last := float64(maxTime)
	if d := a.Facts.Duration; d > 0 && !a.growing() {
		last = d
	}
	field.Between(l, "thumbnail_time", v, 0, last)
}

// checkClip adds what is wrong with a clip of source, which is in the same environment. What a clip shows are the
// source's own pictures: overlays are part of those, and none can be laid over them.
func checkClip(l *fault.List, o assetopt.Options, source Asset) {
	in := o.Inputs[0]
	overlaid := func(in assetopt.Input) bool { return in.Overlay != nil }
	if i := slices.IndexFunc(o.Inputs, overlaid); i >= 0 {
		l.At(field.Join(field.At("inputs", i), "overlay_settings"),
			": nothing can be laid over a clip, which plays its source's pictures as they are")
	}
	checkClipName(l, in.Name, source)
	if o.CopyOverlays != nil && !*o.CopyOverlays && slices.ContainsFunc(source.Options.Inputs, overlaid) {
		l.At("copy_overlays",
			"must not be false: the source's overlays are part of its picture and can't be taken away")
	}
	if source.IsLive || source.Facts.Duration <= 0 {
		return
	}
	start, end := in.ClipRange()
	if start > source.Facts.Duration-0.5 {
		l.At("inputs[0].start_time", "must be at least 0.5 seconds before the end of the source asset")
	}
	// Measured and shown durations differ by less than a segment's rounding.
	if in.EndTime != nil && end > source.Facts.Duration+1 {
		l.At("inputs[0].end_time", "must not be more than a second after the end of the source asset")
	}
}

// checkClipName refuses a name for the clip's sound that another audio track has, which it takes over from its source.
func checkClipName(l *fault.List, name string, source Asset) {
	taken := func(t Track) bool {
		return t.Type == AudioTrack && !t.Primary && t.Status != TrackErrored && t.Name == name
	}
	if name != "" && slices.ContainsFunc(source.Tracks, taken) {
		l.At("inputs[0].name", "must be unique among the audio tracks, and the source asset has one of that name")
	}
}

// growing reports whether the asset's timeline may still get entries: a recording until its broadcast is over, anything
// else until it has an index.
func (a Asset) growing() bool {
	if a.Status == Errored {
		return false
	}
	if a.LiveStream != "" {
		return a.IsLive
	}
	return a.Index == ""
}

// merge puts the media tracks found by a worker in: by rendition, new ones named, known ones measured again. It gives
// the tracks to write.
func (a *Asset) merge(found []Track, now time.Time) []Track {
	written := make([]Track, 0, len(found))
	for _, f := range found {
		i := slices.IndexFunc(a.Tracks, func(t Track) bool { return t.Rendition == f.Rendition })
		if i < 0 && f.Type == TextTrack && a.LiveStream != "" { // deleted meanwhile
			continue
		}
		if i < 0 {
			a.Tracks = append(slices.Clip(a.Tracks), a.fresh(f, now))
			i = len(a.Tracks) - 1
		} else {
			a.Tracks = slices.Clone(a.Tracks)
			a.Tracks[i] = measured(a.Tracks[i], f)
		}
		written = append(written, a.Tracks[i])
	}
	return written
}

// fresh fills in what a worker does not know of a main track.
func (a *Asset) fresh(t Track, now time.Time) Track {
	t.ID, t.Asset, t.CreatedAt = id.Track(id.New()), a.ID, now
	if t.Status == "" {
		t.Status = TrackReady
	}
	if t.Type != AudioTrack {
		return t
	}
	t.Primary = !slices.ContainsFunc(a.Tracks, func(o Track) bool { return o.Type == AudioTrack && o.Primary })
	if t.Primary && t.Name == "" {
		t.Name = DefaultAudio
		if len(a.Options.Inputs) > 0 {
			if in := a.Options.Inputs[0]; in.Name != "" || in.LanguageCode != "" {
				t.Name, t.LanguageCode = in.Name, in.LanguageCode
			}
		}
	}
	if n, err := named(Track{
		ID:           t.ID,
		Type:         t.Type,
		Name:         t.Name,
		LanguageCode: t.LanguageCode,
	}, a.Tracks); err == nil {
		t.Name = n.Name
		return t
	}
	// The name of the file's own track, which nobody chose, is taken by one that came with the request.
	t.Name = counted(t.Name, t, a.Tracks)
	return t
}

// measured keeps who t is and takes over what was measured of it.
func measured(t, f Track) Track {
	if f.Status != "" && t.Status == TrackPreparing {
		t.Status = f.Status
	}
	if f.Object != "" {
		t.Object = f.Object
	}
	t.Duration, t.MaxWidth, t.MaxHeight = f.Duration, f.MaxWidth, f.MaxHeight
	t.MaxFrameRate, t.MaxChannels = f.MaxFrameRate, f.MaxChannels
	return t
}
