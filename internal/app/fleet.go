package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/app/roles"
	"millrace/internal/certificate"
	"millrace/internal/copies"
	"millrace/internal/internode"
	"millrace/internal/lifecycle"
	"millrace/internal/storage/db"
)

// fleet is how this node and others on the same database speak to each other. All of it but the departure is nil where
// it serves alone.
type fleet struct {
	departure *departure              // how this node leaves
	leave     context.CancelCauseFunc // has it leave, and says why

	internal *internode.Server // what other nodes may ask
	peers    *internode.Client // how they are asked
	reach    *reach            // at which URL others reach this one
	trust    *trust            // nil: in clear text, here as elsewhere
	owners   *owners           // who has which live stream
	workers  *roles.Workers    // who makes what this node does not; nil: it makes all
	copies   *copies.Service   // what nodes copy of each other's live streams
}

// reachability is what /readyz says of it, in lines; empty: this node serves alone. Viewers are served whatever it is.
func (f *fleet) reachability() string {
	if f.reach == nil {
		return ""
	}
	state := "reach this one"
	switch {
	case f.reach.URL() == "":
		state = "can't reach this one yet"
	case f.peers.ClockDiffers():
		state = "have another time: set the clocks by NTP"
	}
	return "other nodes: " + state + "\n"
}

// openFleet makes what keeps the row of this node, and what other packages hand their handlers to. Nothing listens
// before joinFleet.
func (n *node) openFleet() (err error) {
	schema, err := db.SchemaVersion()
	if err != nil {
		return err
	}
	n.makeRow(schema)
	if n.cfg.InternalAddr == "" {
		return nil
	}
	if n.trust, err = n.trustOf(); err != nil {
		return fmt.Errorf("prepare TLS between nodes: %w", err)
	}
	self := internode.Greeting{Node: n.id, Run: n.run, Version: cli.Version(), Speaks: internode.Spoken()}
	key := internode.Key(n.db.Key("internode"))
	n.internal = internode.NewServer(internode.ServerOptions{
		Key: key, Self: self, Now: clock, Logger: n.log, Tracer: n.tracing.Tracer(),
	})
	n.peers = internode.NewClient(internode.ClientOptions{
		Key: key, Self: self, TLS: n.trust.client(), Now: clock, Logger: n.log,
	})
	n.close = append(n.close, func() error { n.peers.Close(); return nil })
	n.owners = newOwners(n.db.Directory(), n.id)
	n.workers = roles.Ask(n.cfg.Node.Roles, n.db.Nodes(), peers{n.peers}, n.metrics.Ordered(), n.log)
	return nil
}

// joinFleet listens for other nodes and looks whether they reach this one. A URL that leads to somebody else is an
// error.
func (n *node) joinFleet(ctx context.Context, g *lifecycle.Group) error {
	if n.cfg.InternalAddr == "" {
		return nil
	}
	ln, err := n.listen(ctx, "internal", n.cfg.InternalAddr, n.budgets.nodes)
	if err != nil {
		return err
	}
	s := &nodeServer{
		server: n.internal.HTTP(n.trust.server()), ln: ln, drain: n.departure.grace, ended: make(chan error, 1),
	}
	s.server.ConnState = connState
	n.close = append(n.close, s.server.Close)
	go func() { s.ended <- s.serve() }() // before Run: what follows calls it
	n.reach = &reach{
		url: n.cfg.AdvertisedBase(ln.Addr().String()).String(), check: n.peers.Check, every: reachEvery, log: n.log,
	}
	if err = n.reach.first(ctx); err != nil {
		return err
	}
	if n.trust != nil {
		g.Add(n.trust.files)
	}
	g.Add(s)
	g.Add(n.reach)
	return nil
}

// nodeServer is the listener for other nodes as a service. It serves before it runs.
type nodeServer struct {
	server *http.Server
	ln     net.Listener
	drain  func() time.Duration
	ended  chan error
}

// Name implements lifecycle.Service.
func (*nodeServer) Name() string { return "internal" }

func (n *nodeServer) serve() error {
	if n.server.TLSConfig != nil {
		return n.server.ServeTLS(n.ln, "", "")
	}
	return n.server.Serve(n.ln)
}

// Run implements lifecycle.Service.
func (n *nodeServer) Run(ctx context.Context) error {
	select {
	case err := <-n.ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.drain())
	defer cancel()
	err := n.server.Shutdown(grace)
	if err != nil {
		err = n.server.Close()
	}
	if ended := <-n.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// trust is TLS between nodes. nil: there is none, but to URLs with https of peers behind a proxy.
type trust struct {
	files *certificate.Files
	ca    *x509.CertPool // nil: the system's authorities
}

func (n *node) trustOf() (*trust, error) {
	if n.cfg.InternalTLSCert == "" {
		return nil, nil //nolint:nilnil // nil is the documented value of "none"
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	n.close = append(n.close, func() error { signal.Stop(reload); return nil })
	files, err := certificate.NewFiles(certificate.FilesOptions{
		Cert: n.cfg.InternalTLSCert, Key: n.cfg.InternalTLSKey, Reload: reload, Now: clock, Logger: n.log,
	})
	if err != nil || n.cfg.InternalTLSCA == "" {
		return &trust{files: files}, err
	}
	text, err := os.ReadFile(n.cfg.InternalTLSCA)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	ca := x509.NewCertPool()
	if !ca.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authorities: %s has no certificate in PEM", n.cfg.InternalTLSCA)
	}
	return &trust{files: files, ca: ca}, nil
}

// server is what the listener shows, and what it asks of callers where there is an authority of our own.
func (t *trust) server() *tls.Config {
	if t == nil {
		return nil
	}
	c := &tls.Config{GetCertificate: t.files.GetCertificate, MinVersion: tls.VersionTLS13}
	if t.ca != nil {
		c.ClientCAs, c.ClientAuth = t.ca, tls.RequireAndVerifyClientCert
	}
	return c
}

// client is what this node shows to those that it calls, and whom it believes.
func (t *trust) client() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12} // of a proxy, which may be older
	if t != nil {
		c.RootCAs = t.ca
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.files.GetCertificate(nil)
		}
	}
	return c
}

const (
	reachEvery = 5 * time.Second // how often a URL that does not lead here yet is called
	reachTime  = 3 * time.Second // that it may take
	reachTell  = 12              // how many calls there are between two lines in the log
)

// reach finds out at which URL other nodes reach this one.
type reach struct {
	url   string
	check func(ctx context.Context, url string) error
	every time.Duration
	log   *slog.Logger

	reached atomic.Bool
}

// URL is where other nodes reach this one; empty: nowhere yet, or this node serves alone.
func (r *reach) URL() string {
	if r == nil || !r.reached.Load() {
		return ""
	}
	return r.url
}

// first calls the URL for the first time. Who responds and is somebody else is an error: nobody else is to get what is
// meant for this node. What does not respond may come later, as a load balancer.
func (r *reach) first(ctx context.Context) error {
	err := r.call(ctx)
	switch internode.CodeOf(err) { //nolint:exhaustive // all others may pass
	case internode.OtherNode, internode.ForeignKey, internode.Protocol, internode.Unproven:
		return fmt.Errorf("check advertise-url %s: %w", r.url, err)
	default:
		r.tell(ctx, err)
		return nil
	}
}

func (r *reach) call(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	err := r.check(ctx, r.url)
	r.reached.Store(err == nil)
	return err
}

func (r *reach) tell(ctx context.Context, err error) {
	if err != nil {
		r.log.WarnContext(ctx, "other nodes can't reach this one yet", "advertise_url", r.url,
			"code", internode.CodeOf(err), "error", err)
		return
	}
	r.log.InfoContext(ctx, "other nodes reach this one", "advertise_url", r.url)
}

// Name implements lifecycle.Service.
func (*reach) Name() string { return "advertise-url" }

// Run implements lifecycle.Service: it calls the URL until it leads here.
func (r *reach) Run(ctx context.Context) error {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for calls := 1; !r.reached.Load(); calls++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.call(ctx); err == nil || calls%reachTell == 0 {
			r.tell(ctx, err)
		}
	}
	<-ctx.Done()
	return nil
}
