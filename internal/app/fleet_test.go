package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/certificate"
	"millrace/internal/internode"
)

// TestReach has a URL that leads to nobody at first: it is called until it leads to the node, and given to others then.
func TestReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		calls := 0
		r := &reach{url: "http://a", every: reachEvery, log: slog.New(slog.NewTextHandler(&log, nil))}
		r.check = func(context.Context, string) error {
			if calls++; calls <= 30 {
				return &internode.Error{Code: internode.Unreachable, URL: "http://a"}
			}
			return nil
		}
		if err := r.first(t.Context()); err != nil || r.URL() != "" {
			t.Errorf("at first: %q, %v", r.URL(), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		time.Sleep(29*reachEvery + time.Second)
		if r.URL() != "" {
			t.Error("advertised before it leads here")
		}
		time.Sleep(reachEvery)
		if r.URL() != "http://a" {
			t.Error("not advertised")
		}
		cancel()
		if err := <-ended; err != nil || calls != 31 {
			t.Errorf("%d calls, %v", calls, err)
		}
		if n := strings.Count(log.String(), "can't reach"); n != 3 ||
			!strings.Contains(log.String(), "other nodes reach this one") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

// TestWrongReach looks which responses end the start.
func TestWrongReach(t *testing.T) {
	t.Parallel()
	for code, ends := range map[internode.Code]bool{
		internode.OtherNode: true, internode.ForeignKey: true, internode.Protocol: true,
		internode.Unproven: true, internode.NotMillrace: false, internode.Unreachable: false,
		internode.Certificate: false,
		internode.Clock:       false, internode.Altered: false, internode.TooMany: false,
	} {
		r := &reach{url: "http://a", log: slog.New(slog.DiscardHandler), check: func(context.Context, string) error {
			return &internode.Error{Code: code}
		}}
		if err := r.first(t.Context()); (err != nil) != ends || r.URL() != "" {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestTrust has nodes speak over TLS, verified by an authority of their own.
func TestTrust(t *testing.T) {
	t.Parallel()
	trusted := func(ca bool) *trust {
		cert, key, pool := selfSigned(t)
		files, err := certificate.NewFiles(certificate.FilesOptions{
			Cert: cert, Key: key, Reload: make(chan os.Signal), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if !ca {
			pool = nil
		}
		return &trust{files: files, ca: pool}
	}
	ours, others := trusted(true), trusted(true)
	without := &trust{files: ours.files}
	self := internode.Greeting{Node: "a", Run: "1", Speaks: internode.Spoken()}
	server := internode.NewServer(internode.ServerOptions{
		Self: self, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	serve := func(tr *trust) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := &nodeServer{
			server: server.HTTP(tr.server()), ln: ln, drain: func() time.Duration { return time.Second },
			ended: make(chan error, 1),
		}
		go func() { s.ended <- s.serve() }()
		t.Cleanup(func() {
			_ = s.server.Close()
			if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
		return "https://" + ln.Addr().String()
	}
	verifies, open := serve(ours), serve(without)
	for name, tt := range map[string]struct {
		tr   *trust
		url  string
		want internode.Code
	}{
		"one authority":                  {ours, verifies, ""},
		"a node of another authority":    {others, verifies, internode.Certificate},
		"no certificate":                 {nil, verifies, internode.Certificate},
		"the system's authorities":       {without, open, internode.Certificate},
		"a caller need not be certified": {ours, open, ""},
	} {
		c := internode.NewClient(internode.ClientOptions{
			Self: self, TLS: tt.tr.client(), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		})
		if err := c.Check(t.Context(), tt.url); internode.CodeOf(err) != tt.want || (err == nil) != (tt.want == "") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
	}
	stranger := ours.client()
	stranger.GetClientCertificate = nil
	c := internode.NewClient(internode.ClientOptions{
		Self: self, TLS: stranger, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	defer c.Close()
	if err := c.Check(t.Context(), verifies); err == nil {
		t.Error("a caller without a certificate is served")
	}
}
