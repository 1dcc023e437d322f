package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/lifecycle"
	"millrace/internal/media/playback"
	"millrace/internal/proxyprotocol"
	"millrace/internal/socket"
	"millrace/internal/unsent"
	"millrace/internal/web/api"
	"millrace/internal/web/dashboard"
	"millrace/internal/web/express"
	"millrace/internal/web/express/h2"
	"millrace/internal/web/header"
	"millrace/internal/web/licence"
	"millrace/internal/web/publish"
	"millrace/internal/web/upload"
	"millrace/internal/web/watch"
)

// router puts the REST API, playback, direct uploads, pages and, if there is one, WHIP behind one listener. Playback
// stands at the root. No path leads elsewhere: what http.ServeMux would redirect, after it has cleaned the path or
// added a slash, is served as it is.
func router(rest, playback, uploads, whip, ready, counts, licences, page, people http.Handler) http.Handler {
	rest = header.Closed(finishing(rest))
	mux := http.NewServeMux()
	handle := func(pattern string, h http.Handler) { mux.Handle(pattern, header.Closed(h)) }
	for _, path := range []string{
		"/video", "/video/", "/system", "/system/", "/openapi.json", "/openapi.yaml", "/docs", "/docs/", "/data/v1",
		"/data/v1/", "/robots/v0", "/robots/v0/",
	} {
		mux.Handle(path, rest)
	}
	handle("/counts", counts)
	handle(licence.Path, licences)
	handle(licence.CertificatePath, licences)
	handle(upload.Path, uploads)
	handle("/watch", page)
	handle("/watch/", page)
	handle("/embed", page)
	handle("/embed/", page)
	handle(watch.OEmbedPath, page)
	if whip != nil {
		handle("/whip", finishing(whip))
		handle("/whip/", finishing(whip))
		handle("/publish", publish.Handler())
		handle("/publish/", publish.Handler())
	}
	handle("GET /healthz", ready)
	handle("GET /readyz", ready)
	handle("GET "+readyNode, ready)
	handle("GET /{$}", front(people != nil))
	if people != nil {
		handle(dashboard.Path, people)
		handle(dashboard.Path+"/", people)
	}
	mux.Handle("/", playback)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case api.PlainPath(r.URL.Path):
			mux.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/video/"), strings.HasPrefix(r.URL.Path, "/system/"):
			rest.ServeHTTP(w, r)
		default:
			playback.ServeHTTP(w, r)
		}
	})
}

// front sends people who come to the root to the dashboard, where there is one, and programs to the API's description.
func front(people bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := api.ReferencePath
		if people && strings.Contains(r.Header.Get("Accept"), "text/html") {
			to = dashboard.Path
		}
		w.Header().Set("Vary", "Accept")
		http.Redirect(w, r, to, http.StatusFound)
	})
}

// finishing lets requests of h end by themselves when the service stops, which they do soon. Those that have no end do
// so at once, and so do those of h's neighbours, because players wait for media that does not come any more.
func finishing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if api.EndlessPath(r.URL.Path) {
			h.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
		defer cancel(nil)
		defer context.AfterFunc(r.Context(), func() {
			if cause := context.Cause(r.Context()); !errors.Is(cause, lifecycle.ErrStop) {
				cancel(cause)
			}
		})()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// webServer serves HTTP/1.1 and HTTP/2, in clear text and, with a certificate, over TLS.
type webServer struct {
	name    string
	ln      net.Listener
	cert    *tls.Config // nil: clear text
	mux     http.Handler
	players http.Handler // what of mux is for players
	log     *slog.Logger
	drain   func() time.Duration // how long a stop may take
	unsent  *unsent.Budget       // nil: responses may keep as much as they like
	clients clientaddr.Finder
}

// streams is how many requests one connection of HTTP/2 has at a time: what RFC 9113 recommends as the least.
const streams = 100

// Name implements lifecycle.Service.
func (w *webServer) Name() string { return w.name }

// Run implements lifecycle.Service.
func (w *webServer) Run(ctx context.Context) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(w.cert == nil)
	server := &http.Server{
		Handler:           unsent.Handler(w.unsent, w.clients, places(w.mux)),
		ConnContext:       connContext,
		Protocols:         &protocols,
		TLSConfig:         w.cert,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streams, WriteByteTimeout: unsent.Patience},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       2 * time.Minute,
		WriteTimeout:      5 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnState:         connState,
		ErrorLog:          slog.NewLogLogger(w.log.Handler(), slog.LevelDebug),
		// blocked playlist requests end with the service
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	if w.cert != nil {
		w.http2(server)
	}
	ln := express.Listen(ctx, w.ln, express.Options{
		Handler: w.players, Takes: playback.Owns, Logger: w.log, TLS: w.cert, StallTimeout: unsent.Patience,
	})
	stopped := make(chan error, 1)
	unhook := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.drain())
		defer cancel()
		viewers := make(chan error, 1)
		go func() { viewers <- ln.Shutdown(grace) }()
		err := server.Shutdown(grace)
		if err != nil {
			err = server.Close()
		}
		stopped <- errors.Join(err, <-viewers)
	})
	defer unhook()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		now, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel()
		return errors.Join(fmt.Errorf("serve: %w", err), ln.Shutdown(now))
	}
	return <-stopped
}

// http2 has HTTP/2 over TLS served here, in place of net/http.
func (w *webServer) http2(server *http.Server) {
	own := h2.New(h2.Options{
		Players: unsent.Streams(w.unsent, w.clients, w.players), Takes: playback.Owns, Logger: w.log,
		Streams: streams, HeaderList: server.MaxHeaderBytes, IdleTimeout: server.IdleTimeout,
		ReadTimeout: server.ReadTimeout, WriteTimeout: server.WriteTimeout, StallTimeout: unsent.Patience,
	})
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": own.TLSNextProto}
	server.RegisterOnShutdown(own.Shutdown)
}

// listenUDP opens a UDP socket, as listen does for TCP.
func (n *node) listenUDP(ctx context.Context, what, addr string) (net.PacketConn, error) {
	var lc net.ListenConfig
	c, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s over UDP: %w (millrace doctor says who has the port)", what, addr,
			err)
	}
	n.close = append(n.close, func() error {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("close %s socket: %w", what, err)
		}
		return nil
	})
	n.log.InfoContext(ctx, "listening", "listener", what, "address", c.LocalAddr().String())
	return c, nil
}

// listenBehindProxies is listen for what may stand behind a reverse proxy, which says by the PROXY protocol whom it
// passes on.
func (n *node) listenBehindProxies(
	ctx context.Context, what, addr string, budget *socket.Budget,
) (net.Listener, error) {
	inner, err := n.listen(ctx, what, addr, budget)
	if err != nil {
		return nil, err
	}
	ln := proxyprotocol.Listen(ctx, inner, proxyprotocol.Options{Trusts: n.clients().Trusts, Logger: n.log})
	n.close = append(n.close, func() error { return closed(what, ln) })
	return ln, nil
}

// closed closes a listener that may be closed already.
func closed(what string, ln net.Listener) error {
	if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close %s listener: %w", what, err)
	}
	return nil
}

// listen opens a listener and says where, which matters when the port was left to the system. It is closed with the
// node at the latest. Its connections count against the budget; nil: they are not bounded.
func (n *node) listen(ctx context.Context, what, addr string, budget *socket.Budget) (*socket.Listener, error) {
	var lc net.ListenConfig
	inner, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for %s on %s: %w (millrace doctor says who has the port)", what, addr, err)
	}
	ln := socket.Listen(inner, socket.ListenOptions{Name: what, Budget: budget, Logger: n.log})
	n.close = append(n.close, func() error { return closed(what, ln) })
	n.log.InfoContext(ctx, "listening", "listener", what, "address", ln.Addr().String())
	return ln, nil
}
