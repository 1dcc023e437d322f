package ingest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/attempt"
)

// action is what is done with a file.
type action string

// The actions.
const (
	toAdopt  action = "adopt"  // it is stored as it is, and segments are its byte ranges
	toRemux  action = "remux"  // its packets are put into segments
	toEncode action = "encode" // tracks that not every player plays are encoded on the way into segments
)

// plan says how a file becomes an asset. It is decided once, before anything of the file is stored.
type plan struct {
	action action

	path     string             // adopt: of the MP4
	texts    bool               // adopt: there are text tracks in it
	timeline *timeline.Timeline // adopt: of its byte ranges

	conform             // remux, encode
	info    encode.Info // remux, encode: what ffprobe says
}

// inspector finds out what a file is, and how it becomes an asset.
type inspector struct {
	engine   *encode.Engine
	limiter  attempt.ProbeLimiter
	store    blob.Store // takes a picture that is held at the end
	report   *report
	overlays *overlays
}

// decide says how the file at path becomes an asset, and tells what is found in it.
func (i *inspector) decide(ctx context.Context, a asset.Asset, in assetopt.Input, path string) (plan, error) {
	f, long, err := attempt.Open(path)
	if err != nil {
		return plan{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if long == 0 {
		return plan{}, fault.New(fault.Invalid, "the file is empty")
	}
	format, err := sniff.Read(f)
	if err != nil {
		return plan{}, fmt.Errorf("read download: %w", err)
	}
	switch {
	case format == sniff.MP4:
		t, u, err := i.adoptable(ctx, a, in, f, long)
		if err == nil && !u.rewrite {
			err = i.lookThrough(ctx, f, path, t, &u)
		}
		if err != nil || !u.rewrite {
			return plan{action: toAdopt, path: path, timeline: t, texts: u.texts}, err
		}
		return i.decideRewrite(ctx, a, in, path, format, u)
	case format == sniff.ADTS:
		return i.decideSound(ctx, a, in, path)
	case format.Demuxer() != "":
		return i.decideRewrite(ctx, a, in, path, format, unfit{})
	}
	info := asset.InputInfo{Settings: in}
	info.File.ContainerFormat = containerName(format)
	if err := i.report.found(ctx, a, info); err != nil {
		return plan{}, err
	}
	return plan{}, fault.New(fault.Invalid, "%s", refusal(format))
}

// decideSound puts AAC without a container into an MP4, which is adopted, unless the sound can't stay as it is.
func (i *inspector) decideSound(ctx context.Context, a asset.Asset, in assetopt.Input, path string) (plan, error) {
	info, err := i.limiter.Probe(ctx, i.engine, path, encode.ADTS)
	if err != nil {
		return plan{}, err
	}
	if a.Options.NormalizeAudio ||
		slices.ContainsFunc(info.Tracks, func(t encode.Track) bool { return t.Channels > 2 }) {
		return i.decideRewrite(ctx, a, in, path, sniff.ADTS, unfit{})
	}
	if err = i.report.found(ctx, a, describe(in, sniff.ADTS, info)); err != nil {
		return plan{}, err
	}
	p := plan{action: toAdopt, path: sound(path)}
	err = i.engine.EncodeAudio(ctx, encode.Ingest, encode.AudioArgs{
		Input:  path,
		Format: encode.ADTS,
		Output: p.path,
		Copy:   true,
	}, nil)
	if err == nil {
		p.timeline, err = i.packed(ctx, p.path, objectkey.SourceFile(a.Media))
	}
	return p, err
}

// sound is the name beside a download for the file that its bare AAC is put into.
func sound(path string) string { return path + ".m4a" }

// decideRewrite says what ffmpeg does with a file; u is what of an MP4 can't stay as it is.
func (i *inspector) decideRewrite(
	ctx context.Context, a asset.Asset, in assetopt.Input, path string, kind sniff.Format, u unfit,
) (p plan, err error) {
	format := encode.Format(kind.Demuxer())
	if p.info, err = i.limiter.Probe(ctx, i.engine, path, format); err != nil {
		return p, err
	}
	if format == encode.MPEGTS || format == encode.MPEGPS {
		forgetLength(&p.info)
	}
	if u.length > 0 {
		setLength(&p.info, u.length)
	}
	if kind != sniff.MP4 { // which was described by its own index
		if err = i.report.found(ctx, a, describe(in, kind, p.info)); err != nil {
			return p, err
		}
	}
	if p.conform, err = i.conformed(ctx, a, p.info, u.picture || !format.Timed()); err != nil {
		return p, err
	}
	p.args.Input, p.args.Format = path, format
	p.heed(u)
	var read flow
	if format == encode.MPEGTS {
		if read, err = i.flows(ctx, path); err != nil {
			return p, err
		}
		p.oneSound(read)
	}
	if err = i.mend(ctx, a, &p.conform, u, read.torn); err != nil {
		return p, err
	}
	if err = i.report.unusual(ctx, a, p.reasons); err != nil {
		return p, err
	}
	if p.info.Duration > ondemand.MaxDuration+time.Second && p.args.Length == 0 {
		return p, unusable(ondemand.ErrTooLong)
	}
	if a.Options.NormalizeAudio && p.audio != nil {
		if err = i.level(ctx, &p.conform); err != nil {
			return p, err
		}
	}
	p.action = toRemux
	if p.args.Picture != nil || p.args.Sound != nil {
		p.action = toEncode
	}
	return p, nil
}

// heed adds what an MP4's index says to what ffprobe does.
func (c *conform) heed(u unfit) {
	c.reasons.GOP, c.reasons.Bitrate = u.reasons.GOP, u.reasons.Bitrate
	c.reasons.VideoEditList, c.reasons.AudioEditList = u.reasons.VideoEditList, u.reasons.AudioEditList
	if u.sound && c.audio != nil && c.args.Sound == nil {
		c.args.Sound = &encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
	}
}

// forgetLength leaves out lengths that no asset may have. Those of MPEG streams are only what lies between its first
// and its last clock time: where recordings with clocks of their own follow each other that can be a day, and how long
// it lasts is known when it has been read.
func forgetLength(info *encode.Info) {
	if info.Duration <= ondemand.MaxDuration {
		return
	}
	setLength(info, 0)
}

// setLength says how long a file is, in place of what ffprobe says of it and its tracks; 0: nobody knows.
func setLength(info *encode.Info, long time.Duration) {
	info.Duration = long
	for i := range info.Tracks {
		info.Tracks[i].Duration = 0
	}
}

// level has the sound made as loud as assets are to be; what is so already stays as it is.
func (i *inspector) level(ctx context.Context, c *conform) error {
	as := encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
	s, err := i.engine.Level(ctx, encode.LoudnessArgs{
		Input: c.args.Input, Format: c.args.Format, Audio: c.args.Audio, Length: c.args.Length, Sound: as,
	}, asset.Loudness)
	if err == nil && (c.args.Sound != nil || s != as) {
		c.args.Sound = &s
	}
	return err
}
