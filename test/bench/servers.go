package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"millrace/test/bench/proc"
	"millrace/test/bench/viewer"
)

// server is one that takes live streams.
type server interface {
	name() string
	// stream gives a new stream's publish URL and the path of its playlist.
	stream(latency string) (publish, play string, err error)
	addr() string // of HTTP
	process() *proc.Server
	stop()
}

// cores is how many a measured server may use, where the machine has more.
const cores = 2

// pinned gives a command line that keeps to the first cores.
func pinned(name string, args ...string) []string {
	if runtime.NumCPU() <= cores {
		return append([]string{name}, args...)
	}
	return append([]string{"taskset", "-c", fmt.Sprintf("0-%d", cores-1), name}, args...)
}

// free finds a port that nobody listens on.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// listening waits until something accepts at addr.
func listening(p *proc.Server, addr string) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return c.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("server ended at its start:\n%s", p.Output())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("nothing listens on %s:\n%s", addr, p.Output())
}

// --- millrace ---

type millrace struct {
	p               *proc.Server
	http, rtmp, srt string
	https           string // with a certificate only
	metrics         string // where it is asked for them only
	auth, data      string
}

// millrace starts one on empty data and its embedded defaults. The data stays until the end of the run: for minutes
// after many files were deleted, ext4 is slow to make new ones.
func (b *bench) millrace() (*millrace, error) {
	data, err := b.folder()
	if err != nil {
		return nil, err
	}
	return b.serve(data, rand.Text()+rand.Text())
}

// folder makes a data folder.
func (b *bench) folder() (string, error) {
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return "", fmt.Errorf("make data folder: %w", err)
	}
	b.litter = append(b.litter, data)
	return data, nil
}

// serve starts one on a data folder, with a token that has a secret, and more settings.
func (b *bench) serve(data, secret string, more ...string) (m *millrace, err error) {
	const tokenID = "6f1c8a52-0c2e-4a62-9d63-3c1f5b7e9a10"
	m = &millrace{data: data, auth: "Basic " + base64.StdEncoding.EncodeToString([]byte(tokenID+":"+secret))}
	said := make(chan [2]string, 8)
	lines := func(line string) {
		var l struct {
			Msg  string `json:"msg"`
			What string `json:"listener"`
			Addr string `json:"address"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" {
			select {
			case said <- [2]string{l.What, l.Addr}:
			default:
			}
		}
	}
	command := pinned(
		b.binary, "serve", "--data-dir", data, "--http-addr", "127.0.0.1:0", "--rtmp-addr", "127.0.0.1:0", "--srt-addr",
		"127.0.0.1:0",
		"--webrtc-udp-addr", "off", "--webrtc-tcp-addr", "off",
		"--fetch-allow", "127.0.0.0/8", "--log-format", "json", "--max-connections-per-address", "1000",
	)
	command = append(command, more...)
	if b.cert != "" {
		command = append(command, "--tls-cert", b.cert, "--tls-key", b.key, "--https-addr", "127.0.0.1:0",
			"--rtmps-addr", "127.0.0.1:0")
	}
	env := []string{"MILLRACE_TOKEN_ID=" + tokenID, "MILLRACE_TOKEN_SECRET=" + secret}
	if m.p, err = proc.Start(env, lines, command[0], command[1:]...); err != nil {
		return nil, err
	}
	limit := time.After(30 * time.Second)
	for m.http == "" || m.rtmp == "" || m.srt == "" || b.cert != "" && m.https == "" {
		select {
		case a := <-said:
			switch a[0] {
			case "http":
				m.http = a[1]
			case "https":
				m.https = a[1]
			case "metrics": // before the others
				m.metrics = a[1]
			case "rtmp":
				m.rtmp = a[1]
			case "srt":
				m.srt = a[1]
			}
		case <-m.p.Done():
			return nil, fmt.Errorf("millrace ended at its start:\n%s", m.p.Output())
		case <-limit:
			m.stop()
			return nil, fmt.Errorf("millrace did not say where it listens:\n%s", m.p.Output())
		}
	}
	return m, nil
}

func (*millrace) name() string            { return "millrace" }
func (m *millrace) addr() string          { return m.http }
func (m *millrace) process() *proc.Server { return m.p }

func (m *millrace) stop() {
	m.p.Stop(20 * time.Second)
}

// liveStream is what the API says of a live stream, as far as it is needed here.
type liveStream struct {
	StreamKey     string `json:"stream_key"`
	SRTPassphrase string `json:"srt_passphrase"`
	ActiveAssetID string `json:"active_asset_id"`
	playable
}

type playable struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	PlaybackIDs []struct {
		ID string `json:"id"`
	} `json:"playback_ids"`
	Errors struct {
		Messages []string `json:"messages"`
	} `json:"errors"`
}

const createBody = `{"playback_policies":["public"],"latency_mode":%q,"new_asset_settings":{"playback_policies":["public"]}}`

func (m *millrace) client() *viewer.Client {
	c := viewer.NewClient(m.http)
	c.Auth = m.auth
	return c
}

// call sends an API request and decodes what it gives.
func call(c *viewer.Client, method, path, body string, into any) error {
	var b []byte
	if body != "" {
		b = []byte(body)
	}
	r, err := c.Do(method, path, "application/json", b)
	if err != nil {
		return err
	}
	if r.Status > 299 {
		return fmt.Errorf("%s %s: status %d: %s", method, path, r.Status, r.Body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(r.Body, &struct {
		Data any `json:"data"`
	}{into})
}

func (m *millrace) create(latency string) (liveStream, error) {
	c := m.client()
	defer c.Close()
	var s liveStream
	err := call(c, "POST", "/video/v1/live-streams", fmt.Sprintf(createBody, latency), &s)
	if err == nil && (s.StreamKey == "" || len(s.PlaybackIDs) == 0) {
		err = errors.New("live stream without key or playback ID")
	}
	return s, err
}

func (m *millrace) stream(latency string) (publish, play string, err error) {
	s, err := m.create(latency)
	if err != nil {
		return "", "", err
	}
	return "rtmp://" + m.rtmp + "/app/" + s.StreamKey, "/" + s.PlaybackIDs[0].ID + ".m3u8", nil
}

func (m *millrace) call(latency string) (addr, streamID, passphrase, play string, err error) {
	s, err := m.create(latency)
	if err != nil {
		return "", "", "", "", err
	}
	return m.srt, s.StreamKey, s.SRTPassphrase, "/" + s.PlaybackIDs[0].ID + ".m3u8", nil
}

// --- MediaMTX ---

//go:embed mediamtx.yml
var mediamtxConfig string

type mediamtx struct {
	p               *proc.Server
	http, rtmp, srt string
	n               int
}

// peerPassphrase is what the peer's SRT callers encrypt with, all of them.
const peerPassphrase = "a passphrase of the benchmark"

// mediamtx starts the peer with LL-HLS of the given part length, which records as well if it is told to.
func (b *bench) mediamtx(part time.Duration, record bool) (*mediamtx, error) {
	m := &mediamtx{}
	recordings, err := os.MkdirTemp(b.dir, "recordings-")
	if err != nil {
		return nil, fmt.Errorf("make folder for recordings: %w", err)
	}
	b.litter = append(b.litter, recordings)
	if m.http, err = free(); err != nil {
		return nil, err
	}
	if m.rtmp, err = free(); err != nil {
		return nil, err
	}
	if m.srt, err = free(); err != nil {
		return nil, err
	}
	config := strings.NewReplacer(
		"{srt}", m.srt, "{passphrase}", peerPassphrase, "{rtmp}", m.rtmp, "{http}", m.http, "{part}", part.String(),
		"{record}", strconv.FormatBool(record), "{recordings}", recordings,
	).Replace(mediamtxConfig)
	path := filepath.Join(b.dir, "mediamtx.yml")
	if err = os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	command := pinned(b.peer, path)
	if m.p, err = proc.Start(nil, nil, command[0], command[1:]...); err != nil {
		return nil, err
	}
	if err := errors.Join(listening(m.p, m.rtmp), listening(m.p, m.http)); err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

func (*mediamtx) name() string            { return "MediaMTX" }
func (m *mediamtx) addr() string          { return m.http }
func (m *mediamtx) process() *proc.Server { return m.p }
func (m *mediamtx) stop()                 { m.p.Stop(5 * time.Second) }

func (m *mediamtx) stream(string) (publish, play string, err error) {
	m.n++
	return fmt.Sprintf("rtmp://%s/live/s%d", m.rtmp, m.n), fmt.Sprintf("/live/s%d/index.m3u8", m.n), nil
}

func (m *mediamtx) call(string) (addr, streamID, passphrase, play string, err error) { //nolint:unparam // as listener has it
	m.n++
	return m.srt, fmt.Sprintf("publish:live/s%d", m.n), peerPassphrase, fmt.Sprintf("/live/s%d/index.m3u8", m.n), nil
}

// --- nginx ---

//go:embed nginx.conf
var nginxConfig string

type nginx struct {
	p           *proc.Server
	http, https string // https with a certificate only
	root        string
	files       int // that were put there
}

// nginx starts one that serves the files below root.
func (b *bench) startNginx(root string) (*nginx, error) {
	n := &nginx{root: root}
	var err error
	if n.http, err = free(); err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its workers read a folder of ours
	}
	encrypted := ""
	if b.cert != "" {
		if n.https, err = free(); err != nil {
			return nil, err
		}
		encrypted = fmt.Sprintf("listen %s ssl http2 reuseport; ssl_certificate %s; ssl_certificate_key %s; "+
			"http2_max_requests 1000000000;", n.https, b.cert, b.key)
	}
	config := strings.NewReplacer("{user}", user, "{http}", n.http, "{https}", encrypted, "{root}", root, "{dir}",
		b.dir, "{cores}", fmt.Sprint(cores)).Replace(nginxConfig)
	path := filepath.Join(b.dir, "nginx.conf")
	if err = os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	command := pinned(b.nginxBinary, "-p", b.dir, "-e", "stderr", "-c", path)
	if n.p, err = proc.Start(nil, nil, command[0], command[1:]...); err != nil {
		return nil, err
	}
	if err := listening(n.p, n.http); err != nil {
		n.stop()
		return nil, err
	}
	return n, nil
}

func (n *nginx) stop() { n.p.Stop(5 * time.Second) }

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
