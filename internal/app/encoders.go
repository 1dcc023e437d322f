package app

import (
	"context"
	"crypto/tls"
	"net"

	"millrace/internal/media/ingest/rtmp"
	"millrace/internal/media/ingest/srt"
)

// encoderServer is an RTMP listener as a service.
type encoderServer struct {
	name   string
	ln     net.Listener
	secure *tls.Config // nil: without TLS
	server *rtmp.Server
}

// Name implements lifecycle.Service.
func (e *encoderServer) Name() string { return e.name }

// Run implements lifecycle.Service.
func (e *encoderServer) Run(ctx context.Context) error { return e.server.Serve(ctx, e.ln, e.secure) }

// callerServer is the SRT listener as a service.
type callerServer struct{ *srt.Server }

// Name implements lifecycle.Service.
func (callerServer) Name() string { return "srt" }

// Run implements lifecycle.Service.
func (c callerServer) Run(ctx context.Context) error { return c.Serve(ctx) }
