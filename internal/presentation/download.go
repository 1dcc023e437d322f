package presentation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/download"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
)

// Footage says what a file to download of an asset is made of: the renditions that viewers get where they fit, else a
// rung.
func (src *Source) Footage(ctx context.Context, row asset.Asset, want download.Want) (download.Footage, error) {
	t, err := src.stored(ctx, row)
	if err != nil {
		return download.Footage{}, err
	}
	v, err := src.present(ctx, row, t)
	if err != nil {
		return download.Footage{}, err
	}
	f := download.Footage{Zero: t.ZeroTime(), Spans: v.spans}
	if video := t.Rendition(timeline.MainVideo); video != nil && !want.Sound {
		if err := v.picture(&f, row, video, want); err != nil {
			return download.Footage{}, err
		}
	}
	if audio := t.Rendition(timeline.MainAudio); audio != nil {
		f.Renditions = append(f.Renditions, v.track(audio))
		f.EncodeAudio = !want.Original && !simple(audio)
		for _, in := range audio.Inits {
			f.SampleRate, f.Channels = max(f.SampleRate, in.SampleRate), max(f.Channels, in.Channels)
		}
	}
	return f, nil
}

func (rec *recorded) track(l *timeline.Rendition) download.Rendition {
	return download.Rendition{
		Kind: l.Kind, Timescale: l.Timescale, First: rec.timeline.First, Chunks: l.Chunks,
		Source: rec.source(l),
	}
}

// picture adds the picture. It is the recording's own where all of it is of one piece that every player shows, and not
// too large.
func (rec *recorded) picture(
	f *download.Footage, row asset.Asset, video *timeline.Rendition, want download.Want,
) error {
	src := rendition.Largest(video)
	most := ladder.Tier(row.Options.MaxResolution)
	if want.Short > 0 {
		most = min(most, want.Short)
	}
	if want.Original || src.Within(most) && plain(video) {
		f.Width, f.Height = src.Width, src.Height
		f.Renditions = append(f.Renditions, rec.track(video))
		return nil
	}
	filled, ok := rec.below.Fill(most, want.Spare)
	if !ok {
		return fault.New(fault.Invalid, "the picture of the asset can't be encoded")
	}
	l := rec.track(video)
	l.Source = filled
	l.Chunks = make([]timeline.Chunk, len(video.Chunks)) // it has one init segment
	for i, c := range video.Chunks {
		l.Chunks[i] = timeline.Chunk{Gap: c.Gap, Time: c.Time, Duration: c.Duration}
	}
	f.Width, f.Height, f.Renditions = filled.Width, filled.Height, append(f.Renditions, l)
	f.Fill = filled.Make
	return nil
}

// plain reports whether one decoder shows all of a rendition, and that phones and QuickTime have it: they read one
// sample description in a file.
func plain(l *timeline.Rendition) bool {
	in := only(l)
	return in != nil && (rendition.IsH264(in.Codec) || strings.HasPrefix(in.Codec, "hvc1"))
}

// simple reports whether sound is AAC without a hole; see plain.
func simple(l *timeline.Rendition) bool {
	in := only(l)
	if in == nil || !slices.Contains([]string{"mp4a.40.2", "mp4a.40.5", "mp4a.40.29"}, in.Codec) {
		return false
	}
	hole := false
	for i, c := range l.Chunks {
		if c.Gap {
			hole = hole || i > 0 && !l.Chunks[i-1].Gap
		} else if hole {
			return false
		}
	}
	return true
}

// only is what describes all of a rendition; nil when nothing does.
func only(l *timeline.Rendition) *timeline.Init {
	var used *timeline.Init
	for _, c := range l.Chunks {
		if c.Gap {
			continue
		}
		in := &l.Inits[c.Init]
		if used != nil && in != used && (in.Hash == "" || in.Hash != used.Hash) {
			return nil
		}
		used = in
	}
	return used
}

// File implements playback.Presentation.
func (rec *recorded) File(ctx context.Context, name string) (playback.File, error) {
	f, err := rec.p.file(ctx, rec.media, rec.files, name)
	f.Watched.Of, f.Watched.Length = rec.meter, rec.timeline.Duration()
	return f, err
}

// File implements playback.Presentation: the files of a recording are made when it is over.
func (l *live) File(ctx context.Context, name string) (playback.File, error) {
	return l.p.file(ctx, l.about.Media, l.files, name)
}

// file is a file to download by its name.
func (src *Source) file(ctx context.Context, m id.Media, all asset.Static, name string) (playback.File, error) {
	for _, f := range all.Files {
		if f.Name != name {
			continue
		}
		switch f.Status {
		case asset.FileReady:
			found, err := src.download(ctx, objectkey.File(m, f.ID, f.Ext), mediaTypes[f.Ext])
			found.Watched.Pixels, found.Short = f.Width*f.Height, min(f.Width, f.Height)
			return found, err
		case asset.FilePreparing:
			return playback.File{}, fault.New(fault.NotReady, "the file is being made: ask again in a while")
		case asset.FileSkipped, asset.FileErrored, asset.FilesDisabled:
		}
	}
	if all.Status == asset.FilePreparing {
		return playback.File{}, fault.New(fault.NotReady, "the files of the asset are being made: ask again in a while")
	}
	return playback.File{}, fault.New(fault.NotFound, "the asset has no such file to download")
}

var mediaTypes = map[string]string{"mp4": "video/mp4", "m4a": "audio/mp4"} //nolint:gochecknoglobals // a table

func (src *Source) download(ctx context.Context, key, typ string) (playback.File, error) {
	info, err := src.opt.Blob.Stat(ctx, key)
	if err != nil {
		return playback.File{}, err
	}
	sum := sha256.Sum256([]byte(key)) // a file is made once under its key, always of the same bytes
	return playback.File{
		Size: info.Size, Type: typ, Tag: hex.EncodeToString(sum[:12]),
		Open: func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
			r, err := src.opt.Blob.Get(ctx, key, off, n)
			if err != nil {
				return nil, fmt.Errorf("read file: %w", err)
			}
			return r.ReadCloser, nil
		},
	}, nil
}

// Master implements playback.Source.
func (src *Source) Master(ctx context.Context, a, expires, signature string) (playback.File, error) {
	row, err := src.opt.Assets.Find(ctx, id.Asset(a))
	if err != nil && !fault.Is(err, fault.NotFound) {
		return playback.File{}, err
	}
	if err != nil || !row.Master.Opens(expires, signature, src.opt.Now()) {
		return playback.File{}, fault.New(fault.Denied,
			"the address of the master is wrong or too old: set master_access to temporary for a new one")
	}
	return src.download(ctx, objectkey.File(row.Media, row.Master.ID, "mp4"), mediaTypes["mp4"])
}
