// Package track performs the job track.ingest: it adds the file at a URL to an asset as a text track or an alternate
// audio track. It must never know HTTP serving or SQL. It starts no goroutine.
package track

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// Options is what a Worker needs.
type Options struct {
	Assets       asset.TrackMaker
	Store        blob.Store
	Fetch        *fetch.Client
	Engine       *encode.Engine
	Scratch      string               // folder for downloads
	MaxSize      int64                // of an audio file, bytes
	ProbeLimiter attempt.ProbeLimiter // where files are looked into
	Now          func() time.Time
}

// Worker does track.ingest.
type Worker struct {
	opt   Options
	files attempt.Scratch
}

// New returns a Worker.
func New(o Options) *Worker { return &Worker{o, attempt.NewScratch(o.Scratch, "track-")} }

// attempts are as many as those of asset.ingest; at what the track's host does not give there are outside of them.
const attempts, outside = 8, 5

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobTrackIngest, MaxAttempts: attempts, Timeout: 6 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.TrackArgs](j)
	if err != nil {
		return err
	}
	return attempt.Task[asset.Track]{
		Assets: w.opt.Assets, Asset: args.Asset, Media: args.Media, Outside: outside,
		Cannot: "the file can't be processed", Failed: "the track could not be made",
		Find: func(a asset.Asset) (asset.Track, attempt.State) { return attempt.TrackOf(a, args.Track) },
		Work: w.attempt,
		Drop: func(ctx context.Context, a asset.Asset) error { return w.dropped(ctx, a, args.Track) },
		Clear: func(ctx context.Context, a asset.Asset, t asset.Track) error {
			if t.Status == asset.TrackErrored { // an earlier attempt may have died before it had cleared up
				return w.clear(ctx, a, t.ID)
			}
			return w.discard(a.ID, t.ID)
		},
		Fail: func(ctx context.Context, a asset.Asset, t asset.Track, why asset.Errors) error {
			if err := w.opt.Assets.TrackFailed(ctx, a.ID, t.ID, why, w.opt.Now()); err != nil {
				return err
			}
			return w.clear(ctx, a, t.ID)
		},
	}.Do(ctx, j)
}

// attempt makes the track.
func (w *Worker) attempt(ctx context.Context, a asset.Asset, t asset.Track) error {
	var err error
	if t.Type == asset.TextTrack {
		err = w.text(ctx, a, &t)
	} else {
		err = w.audio(ctx, a, &t)
	}
	if err != nil {
		return err
	}
	if err := w.opt.Assets.TrackReady(ctx, a.ID, t, w.opt.Now()); err != nil {
		return err
	}
	return w.discard(a.ID, t.ID)
}

// The storage keys of a track's file follow from the track, so that a second run overwrites the first.
func textKey(a asset.Asset, t id.Track) string {
	return objectkey.Track(a.Media, t, "vtt")
}

func soundKey(a asset.Asset, t id.Track) string {
	return objectkey.Track(a.Media, t, "m4a")
}

// dropped removes what was stored for a track that is not there any more, unless a clip may play it: then its purge has
// looked after it.
func (w *Worker) dropped(ctx context.Context, a asset.Asset, t id.Track) error {
	err := assetfile.DropTrack(ctx, w.opt.Store, w.opt.Assets, a, textKey(a, t), soundKey(a, t))
	if err != nil {
		return err
	}
	return w.discard(a.ID, t)
}

// clear removes what there is of a track that nobody plays.
func (w *Worker) clear(ctx context.Context, a asset.Asset, t id.Track) error {
	if err := w.opt.Store.Delete(ctx, textKey(a, t), soundKey(a, t)); err != nil {
		return fmt.Errorf("delete file of track: %w", err)
	}
	return w.discard(a.ID, t)
}

func (w *Worker) text(ctx context.Context, a asset.Asset, t *asset.Track) error {
	data, _, err := w.opt.Fetch.Get(ctx, t.URL, captions.MaxInput)
	if err != nil {
		return err
	}
	var d captions.Document
	err = w.opt.ProbeLimiter.Examine(ctx, func() (err error) {
		if d, err = captions.Parse(data); err != nil {
			return fault.Wrap(fault.Invalid, err, "the file is no usable subtitle file: %s", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.Object, t.Rendition, t.Duration = textKey(a, t.ID), string(t.ID), d.End().Seconds()
	if err := w.opt.Store.Put(ctx, t.Object, bytes.NewReader(d.AppendVTT(nil))); err != nil {
		return fmt.Errorf("store text track: %w", err)
	}
	return nil
}

// raw is where a track's download goes, made where the M4A that is made of it.
func (w *Worker) raw(a id.Asset, t id.Track) string { return w.files.File(string(a) + "-" + string(t)) }

func made(raw string) string { return raw + ".m4a" }

// discard removes what a track has in the scratch folder.
func (w *Worker) discard(a id.Asset, t id.Track) error {
	return errors.Join(attempt.Discard(made(w.raw(a, t))), fetch.Discard(w.raw(a, t)))
}

// Tidy removes what earlier processes have left in the scratch folder of tracks that are not being made any more. It is
// called before the first job.
func (w *Worker) Tidy(ctx context.Context) error { return w.files.Tidy(ctx, w.preparing) }

func (w *Worker) preparing(ctx context.Context, name string) (bool, error) {
	owner, track, _ := strings.Cut(name, "-")
	a, err := w.opt.Assets.Find(ctx, id.Asset(owner))
	if err != nil {
		return false, attempt.IgnoreAbsent(err)
	}
	_, is := attempt.TrackOf(a, id.Track(track))
	return is == attempt.Wanted, nil
}
