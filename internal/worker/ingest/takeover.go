package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/settle"
)

// takeOver indexes a local MP4, moves it into the store and makes the asset ready: nothing of it is copied or re-encoded.
func (w *Worker) takeOver(ctx context.Context, a asset.Asset, path string) error {
	key := fmt.Sprintf("media/%s/source.mp4", a.Media)
	t, err := plan(path, key)
	if err != nil {
		return err
	}
	if err := w.opt.Store.Adopt(ctx, key, path); err != nil {
		return fmt.Errorf("store upload: %w", err)
	}
	f, err := settle.Write(ctx, w.opt.Store, a.Media, t)
	if err != nil {
		return err
	}
	return gone(w.opt.Assets.Finish(ctx, a.ID, f, w.opt.Now()))
}

// plan makes the timeline of a local MP4 that will be stored under key.
func plan(path, key string) (*timeline.Timeline, error) {
	file, err := os.Open(path) //nolint:gosec // our own scratch file
	if err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	st, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at file: %w", err)
	}
	index, err := mp4.Index(file, st.Size())
	if err != nil {
		return nil, unusable(err)
	}
	video, audio := choose(index)
	if video == nil && audio == nil {
		return nil, fault.New(fault.Invalid, "the file has neither H.264 video nor AAC audio")
	}
	var idrs []int
	if video != nil {
		if idrs, err = mp4.IDRs(file, video); err != nil {
			return nil, unusable(err)
		}
	}
	t, err := ondemand.Plan(video, audio, idrs, key)
	if err != nil {
		return nil, unusable(err)
	}
	return t, nil
}

// choose picks the first video and the first enabled audio track.
func choose(f *mp4.File) (video, audio *mp4.Track) {
	for _, t := range f.Tracks {
		if t.Len() == 0 {
			continue
		}
		switch {
		case t.Kind == frame.Video && video == nil && t.Config.Codec == frame.H264:
			video = t
		case t.Kind == frame.Audio && t.Config.Codec == frame.AAC && (audio == nil || !audio.Enabled && t.Enabled):
			audio = t
		}
	}
	return video, audio
}

// unusable tells what is wrong with a file in its own words; an error of reading is ours.
func unusable(err error) error {
	for _, known := range []error{
		mp4.ErrNotMP4, mp4.ErrMalformed, mp4.ErrUnsupported, mp4.ErrTooLarge, ondemand.ErrNothing, timeline.ErrOrder,
	} {
		if errors.Is(err, known) {
			return fault.Wrap(fault.Invalid, err, "the file can not be played: %s", err)
		}
	}
	return fmt.Errorf("index file: %w", err)
}
