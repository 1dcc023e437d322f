package attempt_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/worker/attempt"
)

// rows has one asset, which may go.
type rows struct {
	a   asset.Asset
	err error
}

func (r *rows) Find(context.Context, id.Asset) (asset.Asset, error) { return r.a, r.err }

// TestTask: what is wanted is made, what is gone is dropped, also when it goes while it is made; what has ended is
// cleared up behind; what fails for good says why.
func TestTask(t *testing.T) {
	t.Parallel()
	gone := fault.New(fault.NotFound, "no such asset")
	away, bad := errors.New("the database is away"), fault.New(fault.Invalid, "it is damaged")
	preparing := asset.Asset{ID: "a", Media: "m", Tracks: []asset.Track{{ID: "t", Status: asset.TrackPreparing}}}
	ready := asset.Asset{ID: "a", Media: "m", Tracks: []asset.Track{{ID: "t", Status: asset.TrackReady}}}
	for name, tt := range map[string]struct {
		rows  rows
		work  func(r *rows) error
		want  string
		error error
	}{
		"wanted":         {rows{a: preparing}, func(*rows) error { return nil }, "work a", nil},
		"the asset left": {rows{err: gone}, nil, "drop a of m", nil},
		"the track left": {rows{a: asset.Asset{ID: "a", Media: "m"}}, nil, "drop a of m", nil},
		"it is ready":    {rows{a: ready}, nil, "clear a", nil},
		"nobody knows":   {rows{err: away}, nil, "", away},
		"for good":       {rows{a: preparing}, func(*rows) error { return bad }, "work a, fail a: it is damaged", bad},
		"at the moment":  {rows{a: preparing}, func(*rows) error { return away }, "work a", away},
		"it leaves then": {
			rows{a: preparing}, func(r *rows) error { r.a.Tracks = nil; return away }, "work a, drop a of m", nil,
		},
		"asset goes then": {
			rows{a: preparing}, func(r *rows) error { r.err = gone; return away }, "work a, drop a of m", nil,
		},
		"it panics": {rows{a: preparing}, func(*rows) error { panic("at the disco") }, "work a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var did []string
			err := attempt.Task[asset.Track]{
				Assets: &tt.rows, Asset: "a", Media: "m", Cannot: "it can't be made", Failed: "it could not be made",
				Find: func(a asset.Asset) (asset.Track, attempt.State) { return attempt.TrackOf(a, "t") },
				Work: func(_ context.Context, a asset.Asset, _ asset.Track) error {
					did = append(did, "work "+string(a.ID))
					return tt.work(&tt.rows)
				},
				Clear: func(_ context.Context, a asset.Asset, _ asset.Track) error {
					did = append(did, "clear "+string(a.ID))
					return nil
				},
				Drop: func(_ context.Context, a asset.Asset) error {
					did = append(did, "drop "+string(a.ID)+" of "+string(a.Media))
					return nil
				},
				Fail: func(_ context.Context, a asset.Asset, _ asset.Track, why asset.Errors) error {
					did = append(did, "fail "+string(a.ID)+": "+strings.Join(why.Messages, "; "))
					return nil
				},
			}.Do(t.Context(), job.Job{Attempt: 1, MaxAttempts: 8})
			if got := strings.Join(did, ", "); got != tt.want {
				t.Errorf("did %q, want %q", got, tt.want)
			}
			if _, panicked := errors.AsType[*fault.PanicError](err); name == "it panics" && panicked {
				return
			}
			if !errors.Is(err, tt.error) || tt.error == nil && err != nil {
				t.Errorf("%v, want %v", err, tt.error)
			}
		})
	}
}
