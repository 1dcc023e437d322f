package bridge

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
	"millrace/internal/media/ladder"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/transcode"
)

// Footage says what a file to download of an asset is made of: the renditions that viewers get where they fit, else a rung.
func (p *Playback) Footage(ctx context.Context, row asset.Asset, want download.Want) (download.Footage, error) {
	t, err := p.stored(ctx, row)
	if err != nil {
		return download.Footage{}, err
	}
	v, err := p.present(ctx, row, t)
	if err != nil {
		return download.Footage{}, err
	}
	f := download.Footage{Zero: t.ZeroTime(), Spans: v.spans}
	if video := t.Lane(timeline.MainVideo); video != nil && !want.Sound {
		if err := v.picture(&f, row, video, want); err != nil {
			return download.Footage{}, err
		}
	}
	if audio := t.Lane(timeline.MainAudio); audio != nil {
		f.Lanes = append(f.Lanes, v.track(audio))
		f.Anew = !want.Original && !simple(audio)
		for _, in := range audio.Inits {
			f.SampleRate, f.Channels = max(f.SampleRate, in.SampleRate), max(f.Channels, in.Channels)
		}
	}
	return f, nil
}

func (v *recorded) track(l *timeline.Lane) download.Lane {
	return download.Lane{Kind: l.Kind, Timescale: l.Timescale, First: v.timeline.First, Chunks: l.Chunks, Source: delivered{v, l}}
}

// picture adds the picture. It is the recording's own where all of it is of one piece that every player shows, and not too large.
func (v *recorded) picture(f *download.Footage, row asset.Asset, video *timeline.Lane, want download.Want) error {
	src := sourceOf(video)
	most := ladder.Tier(row.Options.MaxResolution)
	if want.Short > 0 {
		most = min(most, want.Short)
	}
	if want.Original || src.Within(most) && plain(video) {
		f.Width, f.Height = src.Width, src.Height
		f.Lanes = append(f.Lanes, v.track(video))
		return nil
	}
	if v.p.opt.Rungs == nil || src.Short() == 0 {
		return fault.New(fault.Invalid, "the picture of the asset can't be encoded")
	}
	w := v.offered(min(most, src.Short()))
	if w == nil {
		rung := ladder.At(src, ladder.Quality(row.Quality()), most)
		w = v.work(row, video, rung, v.p.opt.Rungs.Rendition(rung))
		w.Prefix = want.Spare + v.p.opt.Rungs.Rendition(rung)
	}
	l := v.track(video)
	l.Source = encoded{v, w}
	l.Chunks = make([]timeline.Chunk, len(video.Chunks)) // a rung has one init segment
	for i, c := range video.Chunks {
		l.Chunks[i] = timeline.Chunk{Gap: c.Gap, Time: c.Time, Duration: c.Duration}
	}
	f.Width, f.Height, f.Lanes = w.Rung.Width, w.Rung.Height, append(f.Lanes, l)
	f.Fill = func(ctx context.Context, msn int64) (bool, error) { return v.p.opt.Rungs.Fill(ctx, w, msn) }
	return nil
}

// offered is the rung that viewers get whose shorter side has so many pixels; nil when there is none.
func (v *recorded) offered(short int) *transcode.Work {
	for _, w := range v.rungs {
		if min(w.Rung.Width, w.Rung.Height) == short {
			return w
		}
	}
	return nil
}

// plain says that one decoder shows all of a rendition, and that phones and QuickTime have it: they read one sample description in a file.
func plain(l *timeline.Lane) bool {
	in := only(l)
	return in != nil && (isH264(in.Codec) || strings.HasPrefix(in.Codec, "hvc1"))
}

// simple is plain of sound: AAC without a hole.
func simple(l *timeline.Lane) bool {
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
func only(l *timeline.Lane) *timeline.Init {
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

// delivered is a rendition as viewers get it.
type delivered struct {
	v *recorded
	l *timeline.Lane
}

// Init implements download.Source.
func (d delivered) Init(ctx context.Context, n int) ([]byte, error) {
	return whole(d.v.init(ctx, d.l, n))
}

// Segment implements download.Source.
func (d delivered) Segment(ctx context.Context, msn int64) (io.ReadCloser, int64, error) {
	b, err := d.v.segment(ctx, d.l, msn)
	return b.Reader, b.Size, err
}

// encoded is a rung; what of it nobody has watched is made.
type encoded struct {
	v *recorded
	w *transcode.Work
}

// Init implements download.Source.
func (e encoded) Init(ctx context.Context, _ int) ([]byte, error) {
	if err := e.v.p.opt.Rungs.Init(ctx, e.w); err != nil {
		return nil, err
	}
	return whole(e.v.p.object(ctx, e.w.InitKey(), 0, -1))
}

// Segment implements download.Source.
func (e encoded) Segment(ctx context.Context, msn int64) (io.ReadCloser, int64, error) {
	b, err := e.v.p.object(ctx, e.w.SegmentKey(msn), 0, -1)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		e.v.p.opt.Rungs.Forget(e.w, msn)
		if _, err = e.v.p.opt.Rungs.Fill(ctx, e.w, msn); err == nil {
			b, err = e.v.p.object(ctx, e.w.SegmentKey(msn), 0, -1)
		}
	}
	return b.Reader, b.Size, err
}

// fileKey is where a file to download is stored.
func fileKey(m id.Media, f id.StaticRendition, ext string) string {
	return mediaPrefix(m) + "/files/" + string(f) + "." + ext
}

// File implements playback.Downloads.
func (v *recorded) File(ctx context.Context, name string) (playback.File, error) {
	return v.p.file(ctx, id.Media(v.media), v.files, name)
}

// File implements playback.Downloads: the files of a recording are made when it is over.
func (v *edgeView) File(ctx context.Context, name string) (playback.File, error) {
	return v.p.file(ctx, id.Media(v.media), v.files, name)
}

// file is a file to download by its name.
func (p *Playback) file(ctx context.Context, m id.Media, all asset.Static, name string) (playback.File, error) {
	for _, f := range all.Files {
		if f.Name != name {
			continue
		}
		switch f.Status {
		case asset.FileReady:
			return p.download(ctx, fileKey(m, f.ID, f.Ext), mediaTypes[f.Ext])
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

func (p *Playback) download(ctx context.Context, key, typ string) (playback.File, error) {
	info, err := p.opt.Blob.Stat(ctx, key)
	if err != nil {
		return playback.File{}, err
	}
	sum := sha256.Sum256([]byte(key)) // a file is made once under its key, always of the same bytes
	return playback.File{
		Size: info.Size, Type: typ, Tag: hex.EncodeToString(sum[:12]),
		Open: func(ctx context.Context, off, n int64) (io.ReadCloser, error) {
			r, err := p.opt.Blob.Get(ctx, key, off, n)
			if err != nil {
				return nil, fmt.Errorf("read file: %w", err)
			}
			return r.ReadCloser, nil
		},
	}, nil
}

// Master implements playback.Masters.
func (p *Playback) Master(ctx context.Context, a, expires, signature string) (playback.File, error) {
	row, err := p.opt.Assets.Find(ctx, id.Asset(a))
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return playback.File{}, err
	}
	if err != nil || !row.Master.Opens(expires, signature, p.opt.Now()) {
		return playback.File{}, fault.New(fault.Denied, "the address of the master is wrong or too old: set master_access to temporary for a new one")
	}
	return p.download(ctx, fileKey(row.Media, row.Master.ID, "mp4"), mediaTypes["mp4"])
}
