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
func (s *encoderServer) Name() string { return s.name }

// Run implements lifecycle.Service.
func (s *encoderServer) Run(ctx context.Context) error { return s.server.Serve(ctx, s.ln, s.secure) }

// callerServer is the SRT listener as a service.
type callerServer struct{ *srt.Server }

// Name implements lifecycle.Service.
func (callerServer) Name() string { return "srt" }

// Run implements lifecycle.Service.
func (s callerServer) Run(ctx context.Context) error { return s.Serve(ctx) }
