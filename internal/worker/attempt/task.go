package attempt

import (
	"context"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/id"
)

// State is what is to become of something that a job was to make.
type State int

// What a Task finds.
const (
	Gone   State = iota // nobody wants it any more
	Wanted              // it is to be made
	Ended               // it is made, or will not be
)

// Finder reads assets.
type Finder interface {
	Find(ctx context.Context, a id.Asset) (asset.Asset, error)
}

// Task is a job that makes something of an asset, a T, or the asset itself.
type Task[T any] struct {
	Assets  Finder
	Asset   id.Asset
	Media   id.Media // of the asset, for when that is gone; empty: a job of an older version does not say
	Outside int      // see Ending

	Cannot string // begins the message of what the service has ended at each time: "the file can't be made"
	Failed string // begins that of a trouble of the service: "the file could not be made"

	Find  func(a asset.Asset) (T, State)
	Work  func(ctx context.Context, a asset.Asset, of T) error // an attempt to make it
	Clear func(ctx context.Context, a asset.Asset, of T) error // clears up behind what has ended; nil: nothing is left
	// Drop deletes what is stored of what is gone. Of an asset that is gone, it has ID and Media alone.
	Drop func(ctx context.Context, a asset.Asset) error
	// Fail records why it will not be made, and deletes what is stored of it.
	Fail func(ctx context.Context, a asset.Asset, of T, why asset.Errors) error
}

// Do does the job.
func (t Task[T]) Do(ctx context.Context, j job.Job) error {
	a, err := t.Assets.Find(ctx, t.Asset)
	if Absent(err) {
		return t.Drop(ctx, asset.Asset{ID: t.Asset, Media: t.Media})
	}
	if err != nil {
		return err
	}
	of, state := t.Find(a)
	switch {
	case state == Gone:
		return t.Drop(ctx, a)
	case state == Ended && t.Clear != nil:
		return t.Clear(ctx, a, of)
	case state == Ended:
		return nil
	}
	return Ending{
		Outside: t.Outside,
		Gone: func(ctx context.Context) (bool, error) {
			now, err := t.Assets.Find(ctx, a.ID)
			if err != nil {
				return Absent(err), IgnoreAbsent(err)
			}
			_, state := t.Find(now)
			return state == Gone, nil
		},
		Drop: func(ctx context.Context) error { return t.Drop(ctx, a) },
		Fail: func(ctx context.Context, err error) error {
			return t.Fail(ctx, a, of, asset.Errors{Type: Type(err), Messages: Reason(err, t.Failed)})
		},
	}.Of(ctx, j, Run(j, t.Cannot, func() error { return t.Work(ctx, a, of) }))
}

// TrackOf is a track of an asset. It is wanted while it is preparing.
func TrackOf(a asset.Asset, t id.Track) (asset.Track, State) {
	for _, have := range a.Tracks {
		switch {
		case have.ID != t:
		case have.Status == asset.TrackPreparing:
			return have, Wanted
		default:
			return have, Ended
		}
	}
	return asset.Track{}, Gone
}
