package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"millrace/test/bench/proc"
)

// servingTLS compares what viewers mostly speak: HTTP/2 and HTTP/1.1 over TLS, by h2load.
func (b *bench) servingTLS(ctx context.Context) (err error) {
	if b.nginxBinary == "" {
		return errors.New("no nginx to compare with (-nginx)")
	}
	client, err := exec.LookPath("h2load")
	if err != nil {
		return fmt.Errorf("find h2load (nghttp2-client): %w", err)
	}
	if b.cert, b.key, err = certificate(b.dir); err != nil {
		return err
	}
	defer func() { b.cert, b.key = "", "" }()
	clip, err := b.clip(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	root := filepath.Join(b.dir, "www")
	if err = errors.Join(os.RemoveAll(root), os.MkdirAll(root, 0o755)); err != nil {
		return fmt.Errorf("make folder for nginx: %w", err)
	}
	peer, err := b.startNginx(root)
	if err != nil {
		return err
	}
	defer peer.stop()
	publish, play, err := s.stream("low")
	if err != nil {
		return err
	}
	end, err := onAir(ctx, publish, clip)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	live, err := b.liveOffers(ctx, s, play)
	if err != nil {
		return err
	}
	b.out.begin("Serving the same bytes over TLS, 16 connections with 4 requests each at a time", "nginx")
	for _, o := range live {
		if !b.wanted(o.name) || o.gzip {
			continue
		}
		for _, version := range []string{"h2", "http/1.1"} {
			if err := b.contestTLS(ctx, client, s, peer, o, version); err != nil {
				return fmt.Errorf("%s, %s: %w", o.name, version, err)
			}
		}
	}
	return nil
}

// contestTLS lets both serve in turn, as contest does.
func (b *bench) contestTLS(
	ctx context.Context, client string, s *millrace, peer *nginx, o offer, version string,
) error {
	all := make([]turn, turns)
	for n := range all {
		path, err := o.pick()
		if err != nil {
			return err
		}
		copied, _, err := mirror(s, peer, path, o)
		if err != nil {
			return err
		}
		for i, t := range []struct {
			addr, path string
			pid        int
		}{{s.https, path, s.p.PID()}, {peer.https, copied, peer.p.PID()}} {
			before, err1 := proc.Read(t.pid)
			requests, rate, err2 := h2load(ctx, client, "https://"+t.addr+t.path, version)
			after, err3 := proc.Read(t.pid)
			if err := errors.Join(err1, err2, err3); err != nil {
				return err
			}
			all[n].rate[i] = rate
			all[n].cpu[i] = float64((after.CPU - before.CPU).Microseconds()) / requests
		}
	}
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.ratio(), b.ratio()) })
	mid := all[turns/2]
	goal := "at least 0.7"
	switch o.file {
	case "part.m4s":
		goal = "at least 0.8"
	case "segment.m4s":
		goal = "at least 0.95"
	}
	b.out.pair(o.name+", "+version, "req/s", mid.rate[0], mid.rate[1], goal)
	b.out.pair(o.name+", "+version, "µs CPU/req", mid.cpu[0], mid.cpu[1], "")
	return nil
}

var (
	h2loadRate = regexp.MustCompile(`finished in [^,]+, ([0-9.]+) req/s`)
	h2loadDone = regexp.MustCompile(`requests: .* (\d+) succeeded, (\d+) failed`)
)

// h2load asks for one address for a second.
func h2load(ctx context.Context, client, url, version string) (requests, rate float64, err error) {
	parallel := "4"
	if version != "h2" {
		parallel = "1"
	}
	out, err := exec.CommandContext(ctx, client, "-D", "1", "-c", "16", "-m", parallel, "-t", "1",
		"--npn-list="+version, url).CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("run h2load: %w: %s", err, out)
	}
	r, d := h2loadRate.FindSubmatch(out), h2loadDone.FindSubmatch(out)
	if r == nil || d == nil || string(d[2]) != "0" {
		return 0, 0, fmt.Errorf("run h2load: %s", out)
	}
	rate, err1 := strconv.ParseFloat(string(r[1]), 64)
	requests, err2 := strconv.ParseFloat(string(d[1]), 64)
	return requests, rate, errors.Join(err1, err2)
}

// certificate makes a self-signed one for this machine.
func certificate(dir string) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make key: %w", err)
	}
	now := time.Now()
	x := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &private.PublicKey, private)
	if err != nil {
		return "", "", fmt.Errorf("make certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", fmt.Errorf("make key: %w", err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return cert, key, errors.Join(
		os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600),
	)
}
