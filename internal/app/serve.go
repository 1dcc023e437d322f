package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/app/cleanup"
	"millrace/internal/app/cli"
	"millrace/internal/app/metrics"
	"millrace/internal/app/roles"
	"millrace/internal/broadcast"
	"millrace/internal/claim"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audience"
	"millrace/internal/control/live"
	nodes "millrace/internal/control/node"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/lifecycle"
	"millrace/internal/media/encode"
	"millrace/internal/media/follow"
	"millrace/internal/media/frame"
	"millrace/internal/media/images"
	"millrace/internal/media/ingest/rtmp"
	"millrace/internal/media/ingest/srt"
	"millrace/internal/media/metering"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/overlay"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/transform"
	"millrace/internal/media/watching"
	"millrace/internal/mediastore"
	"millrace/internal/permit"
	"millrace/internal/presentation"
	"millrace/internal/receive"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/streamhealth"
	"millrace/internal/tally"
	"millrace/internal/web/api"
	"millrace/internal/web/header"
	"millrace/internal/web/stats"
	"millrace/internal/worker/sweep"
)

// assets are those of the API, and those of broadcasts and jobs.
type assets struct {
	*asset.Service
	*asset.Work
}

func newAssets(o asset.Options) assets { return assets{asset.New(o), asset.NewWork(o)} }

// node is everything one process holds, built before anything runs.
type node struct {
	cfg  config.Config
	log  *slog.Logger
	out  io.Writer // what a person reads, once
	id   id.Node
	db   *db.DB
	blob blob.Store
	observed
	fetch  *fetch.Client
	ffmpeg *encode.Engine
	recognition

	access *access.Service
	people
	fleet
	others  *follow.Follower // what follows broadcasts of other nodes; nil: there are none
	streams *live.Service
	assets  assets
	uploads *upload.Service
	files   *receive.Files
	usage   *usage.Service
	meter   metering.Meter // of what viewers are sent
	watched *watching.Register
	admission
	counts  *audience.Service // of those who watch
	live    *broadcast.Service
	viewers *presentation.Source
	library *ondemand.Library
	row     *nodes.Service // of this node
	schemas *nodes.Schemas // of all nodes
	run     string         // of this process
	claims  *claim.Claimer // nil: there are no other nodes
	rungs   *justintime.Maker
	mark    overlay.Layer // what test streams and test assets get
	images  *images.Maker
	spares  []*encode.Reserve
	budgets budgets

	died  int64          // the job that the process before this one died of; 0: none
	base  string         // how the outside reaches the HTTP listener, without a last slash
	close []func() error // in the order of opening
}

// serveAll runs the service. leave has it end as if it were told to stop.
func serveAll(
	ctx context.Context, leave context.CancelCauseFunc, cfg config.Config, log *slog.Logger, out io.Writer,
) (err error) {
	release, err := occupy(cfg.DataDir)
	if err != nil {
		return err
	}
	defer release()
	collectLess(cfg, debug.SetGCPercent)
	n := &node{cfg: cfg, log: log, out: out, run: id.New(), fleet: fleet{
		departure: newDeparture(cfg.ShutdownTimeout), leave: leave,
	}}
	defer func() { err = errors.Join(err, n.shut()) }()
	var g lifecycle.Group
	if err = n.start(ctx, &g); errors.Is(err, errStopped) || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // it was told to stop before it had started
	} else if err != nil {
		return err
	}
	log.InfoContext(ctx, "ready", "node", n.id, "public_url", n.base, "roles", n.cfg.Node.Roles.String())
	g.Add(&lifecycle.Supervisor{Alive: func() { n.live.Broadcasts() }}) // the lock that every stream needs
	g.Add(departureOf(n, ctx))
	err = g.Run(ctx)
	log.InfoContext(ctx, "stopped")
	return err
}

// start has all that g runs ready, and the listeners open.
func (n *node) start(ctx context.Context, g *lifecycle.Group) error {
	if err := n.open(ctx); err != nil {
		return err
	}
	if err := n.assemble(ctx, g); err != nil {
		return err
	}
	return n.firstLink(ctx)
}

// collectLess makes the garbage collector run half as often as Go's default: streams keep little memory and leave much
// behind. Where an operator gives GOGC, whatever its value, the runtime has read it already.
func collectLess(cfg config.Config, set func(percent int) int) {
	if cfg.Given("gogc") {
		return
	}
	if percent, err := strconv.Atoi(cfg.GOGC); err == nil {
		set(percent)
	}
}

func (n *node) shut() error {
	var errs []error
	for _, shut := range slices.Backward(n.close) {
		errs = append(errs, shut())
	}
	return errors.Join(errs...)
}

// open opens what the services stand on.
func (n *node) open(ctx context.Context) (err error) {
	if n.id, err = nodeID(n.cfg); err != nil {
		return err
	}
	if err = n.watchCrashes(ctx); err != nil {
		return err
	}
	if n.tracing, err = metrics.NewTracing(n.cfg.Traces, n.id, cli.Version(), n.log); err != nil {
		return fmt.Errorf("prepare traces: %w", err)
	}
	if err = n.connections(ctx); err != nil {
		return err
	}
	if err = n.openDatabase(ctx); err != nil {
		return err
	}
	if n.blob, err = openStorage(ctx, n.cfg, n.cfg.Storage.URL); err != nil {
		return fmt.Errorf("open storage: %w", err)
	}
	n.close = append(n.close, n.blob.Close)
	n.measure()
	n.blob = n.tracing.Store(n.blob)
	n.fetch = fetch.New(fetch.Options{
		Allow:     n.cfg.FetchAllow,
		Public:    n.cfg.WebRTCPublicIPs,
		UserAgent: "millrace/" + cli.Version(),
		Logger:    n.log,
	})
	n.close = append(n.close, func() error { n.fetch.Close(); return nil })
	if n.ffmpeg, err = n.newEngine(ctx, encode.H264(n.cfg.H264Encoder)); err != nil {
		return err
	}
	if err = n.prepareSpeech(); err != nil {
		return err
	}
	n.library = ondemand.NewLibrary(objects{n.blob}, 256<<20)
	n.access = access.New(access.Options{Store: n.db.Access()})
	n.sessions = access.NewSessions(access.SessionOptions{Store: n.db.Sessions(), Access: n.access})
	n.admitViewers()
	if err = n.openFleet(); err != nil {
		return err
	}
	n.usage = usage.New(n.db.Usage())
	n.countViewers()
	n.assets = newAssets(asset.Options{
		Store: n.db.Assets(), DRM: n.drm.Named, Recognition: n.recognisable,
		Changed: func(a id.Asset) { n.viewers.AssetChanged(a) },
	})
	n.streams = live.New(live.Options{
		Store: n.db.LiveStreams(), DRM: n.drm.Named, Recognition: n.recognisable,
		Changed:     func(s id.LiveStream) { n.live.Changed(s) },
		Readdressed: func(s id.LiveStream) { n.viewers.StreamChanged(s) },
	})
	if n.mark, err = transform.Mark(); err != nil {
		return err
	}
	version, err := n.ffmpeg.Encoder(ctx)
	if err != nil {
		return fmt.Errorf("ask for ffmpeg's version: %w (millrace doctor says what is wrong)", err)
	}
	made := mediastore.Derived{Objects: mediastore.Objects{Blob: n.blob}, Assets: n.assets}
	n.makeRungs(made, version)
	n.makeUploads()
	if err = openBroadcasts(n, made); err != nil {
		return err
	}
	n.departure.live = n.live.Leaving()
	n.makeImages(made)
	n.viewers = presentation.New(presentation.Options{
		Access: n.access, Assets: n.assets, Broadcasts: n.broadcasts(),
		Blob: n.blob, Library: n.library, Renditions: n.rungs, Images: n.images,
		Workers: roles.Elsewhere(n.workers),
		Meter:   &n.meter, Guard: n.guard, Keys: permit.Keys{Source: n.drm}, Now: clock, Logger: n.log,
	})
	roles.Serve(n.cfg.Node.Roles, n.internal, presentation.Orders{Source: n.viewers}, n.log)
	return firstToken(ctx, n.access, n.cfg, n.log, n.out)
}

// openDatabase opens the database for this process alone, as far as others would be in its way. SQLite is never away.
func (n *node) openDatabase(ctx context.Context) (err error) {
	open := func(ctx context.Context) (*db.DB, error) { return openDatabase(ctx, n.cfg, n.log) }
	var patience time.Duration
	if n.cfg.Database.Engine == config.Postgres {
		patience = goneAfter
		n.db, err = awaited(ctx, n.log, open)
	} else {
		n.db, err = open(ctx)
	}
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	n.close = append(n.close, n.db.Close)
	return n.db.Occupy(ctx, n.id, patience)
}

// goneAfter is how long a process may take to go that had this node's name before: so late PostgreSQL notices that its
// machine has no power.
const goneAfter = 15 * time.Second

// makeRungs builds what makes segments of smaller renditions. With SQLite there are no other nodes.
func (n *node) makeRungs(made mediastore.Derived, version string) {
	o := justintime.Options{
		Encoder: n.ffmpeg,
		Store:   made,
		Version: version,
		Cores:   n.ffmpeg.Budget().Cores(),
		Now:     clock,
		Logger:  n.log,
	}
	if n.cfg.Database.Engine == config.Postgres {
		n.claims = claim.New(claim.Options{Store: n.db.Claims(), Node: n.id, Run: n.run, Now: clock, Logger: n.log})
		o.Claims = n.claims
	}
	if n.metrics != nil {
		o.Encoded = n.metrics.Encoded
	}
	n.rungs = justintime.New(o)
}

// makeImages builds what makes thumbnails, animations and storyboards.
func (n *node) makeImages(made mediastore.Derived) {
	pictures, webps := encode.NewWarm(n.ffmpeg, encode.PictureArgs(frame.SDR), 2),
		encode.NewWarm(n.ffmpeg, encode.WebPArgs(), 1)
	n.spares = append(n.spares, pictures.Reserve, webps.Reserve)
	o := images.Options{
		Encoder: n.ffmpeg, Pictures: pictures, WebPs: webps, Budget: n.ffmpeg.Budget(), Store: made,
		Now: clock, Logger: n.log,
	}
	if n.claims != nil {
		o.Claims = n.claims
	}
	n.images = images.New(o)
}

// assemble adds the services; they stop in the reverse order: encoders first, so that their last segments are stored.
func (n *node) assemble(ctx context.Context, g *lifecycle.Group) error {
	n.tracing.Send(g)
	jobs, err := n.jobs(ctx)
	if err != nil {
		return err
	}
	if err = n.joinFleet(ctx, g); err != nil {
		return err
	}
	n.sharesDatabase(g)
	if n.cfg.Node.Roles.Has(nodes.RoleAPI) {
		g.Add(n.webhooks())
	}
	g.Add(tally.New(tally.Options{Meter: &n.meter, Usage: n.usage, Share: n.counts.Share, Now: clock, Logger: n.log}))
	for _, v := range n.spares {
		g.Add(v)
	}
	g.Add(n.rungs)
	g.Add(n.images)
	if n.copies != nil {
		g.Add(n.copies)
	}
	g.Add(n.live)
	g.Add(jobs)
	if err = n.serveMetrics(ctx, g); err != nil {
		return err
	}
	g.Add(&sweep.Sweeper{
		Assets: n.assets, Uploads: n.uploads, Store: n.blob, Alone: n.storageUsers().alone, Queue: n.db,
		Every: 10 * time.Minute, Now: clock, Logger: n.log,
	})
	n.tidy(g)
	web, err := n.listenBehindProxies(ctx, "http", n.cfg.HTTPAddr, n.budgets.viewers)
	if err != nil {
		return err
	}
	n.base = strings.TrimSuffix(n.cfg.PublicBase(web.Addr().String()).String(), "/")
	var players http.Handler = playback.New(playback.Options{
		Logger: n.log, Source: n.viewers, Base: n.base, Watching: n.watched, Clients: n.clients(),
		Unsent: n.budgets.unsent,
	})
	if n.metrics != nil {
		players = n.metrics.Viewers(players)
	}
	players = n.departure.viewers.of(roles.Gate(n.cfg.Node.Roles, players))
	publishers, err := n.publishers(ctx)
	if err != nil {
		return err
	}
	uploads, err := n.uploadHandler()
	if err != nil {
		return err
	}
	mux := roles.Gate(n.cfg.Node.Roles, n.mux(players, publishers, uploads))
	secure, err := n.identity()
	if err != nil {
		return err
	}
	g.Add(&webServer{
		name: "http", ln: web, mux: secure.plain(mux), players: players, log: n.log, drain: n.departure.grace,
		unsent: n.budgets.unsent, clients: n.clients(),
	})
	var encoders *rtmp.Server
	if n.cfg.Node.Roles.Has(nodes.RoleIngest) {
		encoders = rtmp.New(rtmp.Options{
			Gate: n.live, Logger: n.log, MaxConnsPerIP: n.cfg.MaxConnectionsPerAddress,
		})
	}
	if secure != nil {
		if err = n.secure(ctx, g, secure, mux, players, encoders); err != nil {
			return err
		}
	}
	if encoders == nil {
		n.encodersConnect(n.cfg.RTMPAddr, n.cfg.SRTAddr, n.cfg.WebRTC()) // at other nodes, whose settings are these
		return nil
	}
	return listenEncoders(ctx, n, g, encoders, publishers)
}

// listenEncoders adds the listeners for SRT and RTMP, and that of WHIP; publishers may be nil.
func listenEncoders(
	ctx context.Context, n *node, g *lifecycle.Group, encoders *rtmp.Server, publishers *publishers,
) error {
	callers, err := n.listenSRT(ctx, g)
	if err != nil {
		return err
	}
	ln, err := n.listenBehindProxies(ctx, "rtmp", n.cfg.RTMPAddr, n.budgets.publishers)
	if err != nil {
		return err
	}
	n.encodersConnect(ln.Addr().String(), callers.Addr().String(), publishers != nil)
	g.Add(&encoderServer{name: "rtmp", ln: ln, server: encoders})
	if publishers != nil {
		g.Add(publishers)
	}
	return nil
}

// listenSRT adds the listener for SRT.
func (n *node) listenSRT(ctx context.Context, g *lifecycle.Group) (*srt.Server, error) {
	callers, err := srt.Listen(ctx, n.cfg.SRTAddr, srt.Options{
		Gate: n.live, Secrets: n.live, Logger: n.log, MaxConnsPerIP: n.cfg.MaxConnectionsPerAddress,
	})
	if err != nil {
		return nil, fmt.Errorf("%w (millrace doctor says who has the port)", err)
	}
	n.close = append(n.close, func() error { callers.Close(); return nil })
	n.log.InfoContext(ctx, "listening", "listener", "srt", "address", callers.Addr().String())
	g.Add(callerServer{callers})
	return callers, nil
}

// sharesDatabase adds the database and what other nodes know of this one; they are the last to stop.
func (n *node) sharesDatabase(g *lifecycle.Group) {
	g.Add(n.db)
	g.Add(n.row)
	g.Add(nodes.WatchDrain(db.Drains(n.db), n.id, n.run, n.departure.drain, n.log))
	if n.workers != nil {
		g.Add(n.workers)
	}
	g.Add(n.schemas)
	if n.claims != nil {
		g.Add(n.claims)
	}
}

// secure adds the listeners over TLS; encoders nil: none for them.
func (n *node) secure(
	ctx context.Context, g *lifecycle.Group, id *identity, mux, players http.Handler, encoders *rtmp.Server,
) error {
	https, err := n.listenBehindProxies(ctx, "https", n.cfg.HTTPSAddr, n.budgets.viewers)
	if err != nil {
		return err
	}
	g.Add(&webServer{
		name: "https", ln: https, cert: id.web(), mux: header.Strict(n.cfg.HSTSMaxAge, mux),
		players: header.Strict(n.cfg.HSTSMaxAge, players), log: n.log,
		drain: n.departure.grace, unsent: n.budgets.unsent, clients: n.clients(),
	})
	g.Add(id.source)
	if n.ingest.RTMPS = n.rtmpsBase(n.cfg.RTMPSAddr); encoders == nil {
		return nil
	}
	rtmps, err := n.listenBehindProxies(ctx, "rtmps", n.cfg.RTMPSAddr, n.budgets.publishers)
	if err != nil {
		return err
	}
	n.ingest.RTMPS = n.rtmpsBase(rtmps.Addr().String())
	g.Add(&encoderServer{name: "rtmps", ln: rtmps, secure: id.encoders(), server: encoders})
	return nil
}

func (n *node) mux(players http.Handler, p *publishers, uploads http.Handler) http.Handler {
	var ingest http.Handler
	if p != nil {
		ingest = p.server
	}
	return router(
		api.New(api.Options{
			Live: n.streams, Assets: n.assets, Uploads: n.uploads, Callers: n.callers(),
			Health: streamhealth.One{All: n.health()},
			Usage:  n.usage, Vocabularies: n.vocabularies,
			Received: n.files.Received,
			Viewers:  api.Viewers{Signing: n.signing, Restrictions: n.restrictions, DRM: n.drm},
			Installation: api.Installation{
				Nodes: servedNodes{n.row, db.Drains(n.db)}, Retention: cleanup.Retention(n.db),
			},
			Webhooks: n.endpoints(), Events: n.db, EventForm: formOf(n.db, n.base),
			Now: clock, Logger: n.log, Version: cli.Version(), PublicURL: n.base,
		}),
		players,
		uploads,
		ingest,
		n.ready(),
		stats.Handler(stats.Options{Counter: n.counts, Now: clock, Logger: n.log}),
		n.licences(),
		n.watchPage(),
		n.dashboard(),
	)
}

// objects opens stored files for the on-demand library.
type objects struct{ store blob.Store }

// Open implements ondemand.Objects.
func (o objects) Open(ctx context.Context, key string) (ondemand.ReaderAtCloser, int64, error) {
	info, err := o.store.Stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	r, err := blob.ReaderAt(ctx, o.store, key, info.Size)
	return r, info.Size, err
}
