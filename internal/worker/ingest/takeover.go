package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// unfit is what of an MP4 can't stay as it is.
type unfit struct {
	rewrite        bool          // it can't be played from its byte ranges
	picture, sound bool          // the track has to be encoded, whatever ffprobe finds
	texts          bool          // there are text tracks in it
	length         time.Duration // of a fragmented file, whose clock ffprobe counts in; 0: of any other
	reasons        asset.NonStandard

	damaged bool       // decoders refuse something of it: it has to be encoded for that alone
	video   *mp4.Track // what can stay as it is
	audio   *mp4.Track // likewise
	nth     int        // which of the file's sounds is used, from 0
}

// hidden has the picture encoded, too, where an edit list hides pictures that others are decoded from: what is unpacked
// has no edit list, and would begin with what was cut away.
func (u *unfit) hidden(video *mp4.Track) {
	if video == nil || video.MediaTime <= 0 {
		return
	}
	for i := range video.Len() {
		u.picture = u.picture || video.PTS(i)+int64(video.Sample(i).Duration) <= video.EditStart()
	}
}

// adoptable tells what is in an MP4 and makes the timeline of it, stored as the asset's source, or says why it can't
// stay as it is.
func (i *inspector) adoptable(
	ctx context.Context, a asset.Asset, in assetopt.Input, r io.ReaderAt, size int64,
) (t *timeline.Timeline, u unfit, err error) {
	err = i.limiter.Examine(ctx, func() (bad error) {
		t, u, bad = i.examine(ctx, a, in, r, size)
		return bad
	})
	return t, u, err
}

func (i *inspector) examine(
	ctx context.Context, a asset.Asset, in assetopt.Input, r io.ReaderAt, size int64,
) (t *timeline.Timeline, u unfit, err error) {
	index, err := mp4.Index(r, size)
	if err != nil {
		info := asset.InputInfo{Settings: in}
		info.File.ContainerFormat = containerName("mp4")
		return nil, u, errors.Join(unusable(err), i.report.found(ctx, a, info))
	}
	if err = i.report.found(ctx, a, describeMP4(in, index)); err != nil {
		return nil, u, err
	}
	if err = i.report.endsInFragment(ctx, a, index); err != nil {
		return nil, u, err
	}
	if t, u, err = i.judged(ctx, a, r, index); index.Fragmented {
		u.length = index.Length()
	}
	return t, u, err
}

// judged makes the timeline of an indexed file, or says why it can't stay as it is.
func (i *inspector) judged(
	ctx context.Context, a asset.Asset, r io.ReaderAt, index *mp4.File,
) (t *timeline.Timeline, u unfit, err error) {
	if a.Options.Test {
		return nil, unfit{rewrite: true}, nil
	}
	video, audio, u, err := choose(index)
	if texts, n := u.texts, u.nth; err == nil && !u.rewrite {
		t, u, err = planTracks(r, video, audio, objectkey.SourceFile(a.Media),
			boundsOf(ladder.Tier(a.Options.MaxResolution)))
		u.texts, u.nth = texts, n
	}
	if err != nil {
		return nil, u, err
	}
	if u.rewrite = u.rewrite || over(a) ||
		audio != nil && (a.Options.NormalizeAudio || audio.Config.Channels > 2); u.rewrite {
		u.hidden(video)
		return nil, u, nil
	}
	if err = i.freezeLast(ctx, a, t, r, video); err != nil {
		return nil, u, err
	}
	u.video, u.audio = video, audio
	return t, u, i.report.unusual(ctx, a, u.reasons)
}

// packed makes the timeline of bare sound that was put into an MP4.
func (i *inspector) packed(ctx context.Context, path, key string) (t *timeline.Timeline, err error) {
	f, size, err := attempt.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	err = i.limiter.Examine(ctx, func() error {
		index, bad := mp4.Index(f, size)
		if bad != nil {
			return unusable(bad)
		}
		_, audio, u, bad := choose(index)
		if bad == nil && !u.rewrite {
			t, u, bad = planTracks(f, nil, audio, key, bounds{})
		}
		if bad == nil && u.rewrite {
			bad = errors.New("sound that was put into an MP4 can't be played from it")
		}
		return bad
	})
	return t, err
}

// planTracks makes the timeline of tracks that can stay as they are, and says what is unusual about them nevertheless.
func planTracks(
	r io.ReaderAt, video, audio *mp4.Track, key string, limits bounds,
) (t *timeline.Timeline, u unfit, err error) {
	var idrs []int
	if video != nil {
		if idrs, err = mp4.IDRs(r, video); err != nil {
			return nil, u, unusable(err)
		}
		u = unfitPicture(video, idrs, limits)
	}
	if audio != nil && audio.NonStandardEdit {
		u.rewrite, u.sound, u.reasons.AudioEditList = true, true, unusual
	}
	if u.rewrite {
		return nil, u, nil
	}
	t, err = ondemand.Plan(video, audio, idrs, key)
	switch {
	case errors.Is(err, mp4.ErrUnsupported):
		return nil, unfit{rewrite: true}, nil
	case err != nil:
		return nil, u, unusable(err)
	}
	return t, u, nil
}

// finish makes the asset ready with a whole timeline, and with the text tracks that were found in its file.
func (w *Worker) finish(ctx context.Context, a asset.Asset, t *timeline.Timeline, texts ...asset.Track) error {
	f, err := assetfile.WriteIndex(ctx, w.opt.Store, a, t)
	if err != nil {
		return err
	}
	f.Tracks = append(f.Tracks, texts...)
	return orGone(w.opt.Assets.Finish(ctx, a.ID, f, w.opt.Now()))
}

// cover is how long sound has to be, in seconds, for a single picture beside it to be its cover.
const cover = 30

// choose picks the first video that can be played and the first enabled audio that can. A file in which there is video
// but none that can be played has to be rewritten, and audio alike; what is picked is said nevertheless.
func choose(f *mp4.File) (video, audio *mp4.Track, u unfit, err error) {
	refused, audios := map[frame.Kind]bool{}, -1
	for _, t := range f.Tracks {
		if t.Kind == frame.Audio {
			audios++
		}
		switch {
		case t.Kind == frame.Text:
			u.texts = true
		case t.Config.Codec == "":
			refused[t.Kind] = true
			u.picture = u.picture || t.Changes && t.Kind == frame.Video
			u.sound = u.sound || t.Changes && t.Kind == frame.Audio
		case t.Len() == 0:
		case t.Kind == frame.Video && video == nil:
			video = t
		case t.Kind == frame.Audio && (audio == nil || !audio.Enabled && t.Enabled):
			audio, u.nth = t, audios
		}
	}
	u.rewrite = video == nil && refused[frame.Video] || audio == nil && refused[frame.Audio]
	switch {
	case u.rewrite:
	case video == nil && audio == nil:
		err = nothing()
	case video != nil && audio != nil && video.Len() == 1 && audio.Duration() > cover*int64(audio.Timescale):
		video = nil
	}
	return video, audio, u, err
}

// unusable tells what is wrong with a file in its own words; an error of reading is ours.
func unusable(err error) error {
	switch {
	case errors.Is(err, mp4.ErrEncrypted):
		return fault.Wrap(fault.Invalid, err, "the file is encrypted: only files without DRM can be used")
	case errors.Is(err, mp4.ErrTruncated):
		return fault.Wrap(fault.Invalid, err, "the file is not complete, its end is missing (%s)", err)
	case errors.Is(err, mp4.ErrMalformed), errors.Is(err, mp4.ErrNotMP4):
		return fault.Wrap(fault.Invalid, err, "the file is damaged (%s)", err)
	case errors.Is(err, ondemand.ErrNothing), errors.Is(err, ondemand.ErrTooLong), errors.Is(err, ondemand.ErrApart):
		return fault.Wrap(fault.Invalid, err, "%s", err)
	case errors.Is(err, mp4.ErrUnsupported), errors.Is(err, mp4.ErrTooLarge), errors.Is(err, timeline.ErrOrder):
		return fault.Wrap(fault.Invalid, err, "the file can't be played (%s)", err)
	}
	return fmt.Errorf("plan file: %w", err)
}
