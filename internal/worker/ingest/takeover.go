package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ladder"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/settle"
)

// sourceKey is where a file that is played from its byte ranges is stored.
func sourceKey(m id.Media) string { return settle.Prefix(m) + "source.mp4" }

// mp4 takes over a downloaded MP4 or MOV, or has it encoded anew.
func (w *Worker) mp4(ctx context.Context, a asset.Asset, in assetopt.Input, f *os.File, path string) error {
	err := w.takeOver(ctx, a, &in, f, path)
	if anew, ok := errors.AsType[*errAnew](err); ok {
		return w.rewrite(ctx, a, in, path, sniff.MP4, anew)
	}
	return err
}

// takeOver plans a local MP4, moves it into the store and makes the asset ready: nothing of it is copied or re-encoded. in is nil when
// what was found in the input is told already.
func (w *Worker) takeOver(ctx context.Context, a asset.Asset, in *assetopt.Input, f *os.File, path string) error {
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	var t *timeline.Timeline
	if in != nil {
		t, err = w.plan(ctx, a, *in, f, st.Size())
	} else {
		t, err = w.planSound(ctx, f, st.Size(), sourceKey(a.Media))
	}
	if err != nil {
		return err
	}
	if err := w.decodes(ctx, path, encode.MOV, t.Lane(timeline.MainVideo) != nil); err != nil {
		return err
	}
	if err := w.opt.Store.Adopt(ctx, sourceKey(a.Media), path); err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	return w.finish(ctx, a, t)
}

// plan tells what is in an MP4 and makes the timeline of it, stored as the asset's source.
func (w *Worker) plan(ctx context.Context, a asset.Asset, in assetopt.Input, r io.ReaderAt, size int64) (t *timeline.Timeline, err error) {
	err = w.opt.Desk.Examine(ctx, func() error {
		t, err = w.examine(ctx, a, in, r, size)
		return err
	})
	return t, err
}

func (w *Worker) examine(ctx context.Context, a asset.Asset, in assetopt.Input, r io.ReaderAt, size int64) (*timeline.Timeline, error) {
	index, err := mp4.Index(r, size)
	if err != nil {
		info := asset.InputInfo{Settings: in}
		info.File.ContainerFormat = containerName("mp4")
		return nil, errors.Join(unusable(err), w.found(ctx, a, info))
	}
	if err = w.found(ctx, a, describeMP4(in, index)); err != nil {
		return nil, err
	}
	if err = w.tellPiece(ctx, a, index); err != nil {
		return nil, err
	}
	if a.Options.Test {
		return nil, &errAnew{}
	}
	video, audio, err := choose(index)
	if err != nil {
		return nil, whole(err, video)
	}
	t, stays, err := planTracks(r, video, audio, sourceKey(a.Media), boundsOf(ladder.Tier(a.Options.MaxResolution)))
	if err == nil && (over(a) || audio != nil && (a.Options.NormalizeAudio || audio.Config.Channels > 2)) {
		err = &errAnew{}
	}
	if err == nil {
		err = w.holdLast(ctx, a, t, r, video)
	}
	if err == nil {
		err = w.tellUnusual(ctx, a, stays)
	}
	return t, whole(err, video)
}

// whole has the picture encoded anew too where something is and an edit list hides pictures that others are decoded from: what is unpacked has
// no edit list, and would begin with what was cut away.
func whole(err error, video *mp4.Track) error {
	anew, ok := errors.AsType[*errAnew](err)
	if !ok || video == nil || video.MediaTime <= 0 {
		return err
	}
	for i := range video.Len() {
		anew.picture = anew.picture || video.PTS(i)+int64(video.Sample(i).Duration) <= video.EditStart()
	}
	return anew
}

func (w *Worker) planSound(ctx context.Context, r io.ReaderAt, size int64, key string) (t *timeline.Timeline, err error) {
	err = w.opt.Desk.Examine(ctx, func() error {
		index, bad := mp4.Index(r, size)
		if bad != nil {
			return unusable(bad)
		}
		_, audio, bad := choose(index)
		if bad != nil {
			return bad
		}
		t, _, bad = planTracks(r, nil, audio, key, bounds{})
		return bad
	})
	return t, err
}

// planTracks makes the timeline of tracks that can stay as they are, and says what is unusual about them nevertheless.
func planTracks(r io.ReaderAt, video, audio *mp4.Track, key string, limits bounds) (t *timeline.Timeline, stays asset.NonStandard, err error) {
	var idrs []int
	if video != nil {
		if idrs, err = mp4.IDRs(r, video); err != nil {
			return nil, stays, unusable(err)
		}
		stays, err = asItIs(video, idrs, limits)
	}
	if audio != nil && audio.NonStandardEdit {
		e, ok := errors.AsType[*errAnew](err)
		if !ok {
			e = &errAnew{}
		}
		e.sound, e.reasons.AudioEditList, err = true, unusual, e
	}
	if err != nil {
		return nil, stays, err
	}
	if t, err = ondemand.Plan(video, audio, idrs, key); err != nil {
		if errors.Is(err, mp4.ErrUnsupported) {
			return nil, stays, &errAnew{}
		}
		return nil, stays, unusable(err)
	}
	return t, stays, nil
}

// finish makes the asset ready with a whole timeline.
func (w *Worker) finish(ctx context.Context, a asset.Asset, t *timeline.Timeline) error {
	f, err := settle.Write(ctx, w.opt.Store, a, t)
	if err != nil {
		return err
	}
	err = w.opt.Assets.Finish(ctx, a.ID, f, w.opt.Now())
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return errGone
	}
	return err
}

// cover is how long sound has to be, in seconds, for a single picture beside it to be its cover.
const cover = 30

// choose picks the first video that can be played and the first enabled audio that can. A file in which there is video but none that can
// be played has to be encoded anew (errAnew), and audio alike; what is picked is said nevertheless.
func choose(f *mp4.File) (video, audio *mp4.Track, err error) {
	refused, anew := map[frame.Kind]bool{}, &errAnew{}
	for _, t := range f.Tracks {
		switch {
		case t.Kind == frame.Text:
		case t.Config.Codec == "":
			refused[t.Kind] = true
			anew.picture = anew.picture || t.Changes && t.Kind == frame.Video
			anew.sound = anew.sound || t.Changes && t.Kind == frame.Audio
		case t.Len() == 0:
		case t.Kind == frame.Video && video == nil:
			video = t
		case t.Kind == frame.Audio && (audio == nil || !audio.Enabled && t.Enabled):
			audio = t
		}
	}
	switch {
	case video == nil && refused[frame.Video], audio == nil && refused[frame.Audio]:
		return video, audio, anew
	case video == nil && audio == nil:
		return nil, nil, nothing()
	case video != nil && audio != nil && video.Len() == 1 && audio.Duration() > cover*int64(audio.Timescale):
		video = nil
	}
	return video, audio, nil
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
