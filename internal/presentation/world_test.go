package presentation_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/media/ingest"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/presentation"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/worker/finish"
)

const env = id.Environment("env")

// world is a database, a storage, a node whose broadcasts are watched, and others that have none. Its clock is the
// bubble's: it goes on only when everybody waits.
type world struct {
	t       *testing.T
	ctx     context.Context
	db      *db.DB
	objects blob.Store
	access  *access.Service
	streams *live.Service
	assets  struct {
		*asset.Service
		*asset.Work
	}
	ingest *broadcast.Service // of the node that was started first
}

// run gives test a world in a bubble of its own.
func run(t *testing.T, test func(w *world)) {
	t.Helper()
	path, dir := filepath.Join(t.TempDir(), "world.db"), t.TempDir()
	dbtest.Fill(t, path)
	synctest.Test(t, func(t *testing.T) {
		// who hangs is let go before the machine's patience ends
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		w := &world{t: t, ctx: ctx}
		var err error
		w.db, err = db.Open(ctx, db.Options{URL: path, MasterKey: masterkey.Of(masterkey.Key{})})
		w.must(err)
		w.objects, err = blob.Open(ctx, blob.Options{Dir: dir, NoSync: true})
		w.must(err)
		w.access = access.New(access.Options{Store: w.db.Access()})
		w.streams = live.New(live.Options{
			Store: w.db.LiveStreams(),
			Changed: func(s id.LiveStream) {
				if w.ingest != nil {
					w.ingest.Changed(s)
				}
			},
		})
		kept := asset.Options{Store: w.db.Assets()}
		w.assets.Service, w.assets.Work = asset.New(kept), asset.NewWork(kept)
		defer func() {
			synctest.Wait()
			if err := errors.Join(w.objects.Close(), w.db.Close()); err != nil {
				t.Error(err)
			}
		}()
		test(w)
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// stream makes a live stream with a playback ID, whose assets have one too.
func (w *world) stream(change ...func(*live.CreateInput)) live.Stream {
	w.t.Helper()
	public := []playbackid.Policy{playbackid.Public}
	in := live.CreateInput{PlaybackPolicies: public, NewAsset: &assetopt.Options{PlaybackPolicies: public}}
	for _, c := range change {
		c(&in)
	}
	s, err := w.streams.Create(w.ctx, env, in, time.Now())
	w.must(err)
	return s
}

// window has a stream's broadcasts wait so long for their encoder.
func window(seconds float64) func(*live.CreateInput) {
	return func(in *live.CreateInput) { in.ReconnectWindow = &seconds }
}

// node is one process of the service.
type node struct {
	*broadcast.Service // nil: it has no broadcasts

	w        *world
	shows    presentation.Options
	playback *presentation.Source
	meter    metering.Meter
}

// start makes a node and runs it until the test's end. The first one has broadcasts.
func (w *world) start(name id.Node) *node {
	w.t.Helper()
	n := &node{w: w}
	log := slog.New(slog.DiscardHandler)
	n.shows = presentation.Options{
		Access: w.access, Assets: w.assets.Work, Blob: w.objects, Meter: &n.meter, Now: time.Now, Logger: log,
	}
	if w.ingest == nil {
		n.Service = broadcast.New(broadcast.Options{
			Streams: live.NewBroadcasts(w.db.LiveStreams()), Assets: w.assets.Work, Store: w.objects,
			Owner: live.Owner{Node: name, Run: string(name)}, Now: time.Now, Logger: log, Meter: &n.meter,
		})
		w.ingest, n.shows.Broadcasts = n.Service, n.Service
		ctx, stop := context.WithCancel(context.WithoutCancel(w.ctx))
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		w.t.Cleanup(func() {
			stop()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				w.t.Error(err)
			}
		})
		synctest.Wait()
	}
	n.playback = presentation.New(n.shows)
	return n
}

// publish connects an encoder.
func (n *node) publish(key string) *encoder {
	n.w.t.Helper()
	ctx, sink, err := n.Admit(n.w.ctx, ingest.Publication{
		Protocol: "rtmp", Key: key, Remote: netip.MustParseAddrPort("192.0.2.1:4711"), Encoder: "test",
	})
	n.w.must(err)
	return &encoder{t: n.w.t, ctx: ctx, sink: sink}
}

func (n *node) viewer() playbacktest.Viewer { return playbacktest.New(n.w.t, n.playback) }

// row is a stream as it is stored.
func (w *world) row(s id.LiveStream) live.Stream {
	w.t.Helper()
	st, err := w.db.LiveStreams().Find(w.ctx, s)
	w.must(err)
	return st
}

// asset is an asset as it is stored.
func (w *world) asset(a id.Asset) asset.Asset {
	w.t.Helper()
	got, err := w.db.Assets().Find(w.ctx, a)
	w.must(err)
	return got
}

func (w *world) playbackID(a id.Asset) id.Playback { return w.asset(a).PlaybackIDs[0].ID }

// finish does what the queue would do after a broadcast.
func (w *world) finish(a id.Asset) {
	w.t.Helper()
	worker := &finish.Worker{Assets: w.assets, Store: w.objects, Now: time.Now}
	args := job.New(asset.JobFinish, string(a), asset.FinishArgs{Asset: a})
	w.must(worker.Handler().Work(w.ctx, job.Job{Kind: args.Kind, Args: args.Args, Attempt: 1, MaxAttempts: 1}))
}

// wait lets time pass.
func (w *world) wait(d time.Duration) {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
}

// pause is wait without waiting for the others; for goroutines beside the test's.
func pause(d time.Duration) { time.Sleep(d) }
