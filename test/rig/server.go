// Package rig runs the real millrace binary for end-to-end tests: on either pair of database and storage, on ports of
// its own, with encoders that publish to it and a client for its REST API. It knows the service from outside only:
// flags, environment, log lines, HTTP and RTMP. The goroutines it starts read the children's output and end with them.
package rig

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Pair is a database with a storage.
type Pair string

// The pairs that end-to-end tests run on.
const (
	Embedded Pair = "sqlite+folder"
	Scaled   Pair = "postgres+s3"
)

// Pairs runs test on both pairs; the scaled one is skipped where its servers are missing, unless MILLRACE_TEST_REQUIRE
// is set.
func Pairs(t *testing.T, test func(t *testing.T, p Pair)) {
	t.Helper()
	for _, p := range []Pair{Embedded, Scaled} {
		p.Run(t, test)
	}
}

// On runs test on the pair that matters more, where the other would hardly show what the conformance suites of stores
// do not; on both with MILLRACE_TEST_PAIRS=all.
func On(t *testing.T, p Pair, test func(t *testing.T, p Pair)) {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_PAIRS") == "all" {
		Pairs(t, test)
		return
	}
	p.Run(t, test)
}

// Run runs test on this pair alone: on what the other one does not have, as buckets and fleets.
func (p Pair) Run(t *testing.T, test func(t *testing.T, p Pair)) {
	t.Helper()
	t.Run(string(p), func(t *testing.T) {
		p.need(t)
		test(t, p)
	})
}

// need skips the test where the pair's servers are missing.
func (p Pair) need(t testing.TB) {
	t.Helper()
	if p == Scaled && (os.Getenv("MILLRACE_TEST_POSTGRES") == "" || os.Getenv("MILLRACE_TEST_S3") == "") {
		Missing(t, "MILLRACE_TEST_POSTGRES and MILLRACE_TEST_S3 are not set")
	}
}

// Empty is the environment of a server with an empty database and storage of the pair, wherever its data folder is.
func (p Pair) Empty(t testing.TB) (env []string) {
	t.Helper()
	p.need(t)
	if p == Scaled {
		return []string{
			"MILLRACE_DATABASE_URL=" + database(t),
			"MILLRACE_STORAGE_URL=" + os.Getenv("MILLRACE_TEST_S3") + "&prefix=e2e-" +
				strings.ToLower(rand.Text()[:12]),
		}
	}
	dir := t.TempDir()
	return []string{"MILLRACE_DATABASE_URL=sqlite://" + dir + "/millrace.db", "MILLRACE_STORAGE_URL=" + dir +
		"/storage"}
}

// Missing skips the test for the given reason, or fails it when nothing may be skipped.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Options say how a server is started.
type Options struct {
	Pair Pair
	Args []string // more flags of serve
	Env  []string // more environment, NAME=value
	// Beside is a server whose database, storage and token this one shares: another node of its fleet.
	Beside *Server
	// Database is the URL of an empty PostgreSQL database of the test's own, for Scaled; empty: one is made.
	Database string
	// Storage is the URL of an empty storage of the test's own, for Scaled; empty: one is made.
	Storage string
	// OpenFiles is how many descriptors the server may have; 0: as many as the test.
	OpenFiles int
	// Closed leaves downloads as they are by default: from public addresses only, not from this machine.
	Closed bool
}

// Server is a running millrace with its data. It ends with the test, its data with it.
type Server struct {
	HTTP string // base URL: http://127.0.0.1:port
	RTMP string // rtmp://127.0.0.1:port
	SRT  string // 127.0.0.1:port, UDP
	Dir  string // data folder

	HTTPS, RTMPS string // the same over TLS; empty without a certificate

	o           Options
	program     string // of the next Run; empty: Binary
	env         []string
	tokenID     string
	tokenSecret string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and its output is read
	log  *journal
}

// startWait bounds the time until both addresses are logged; stopWait the drain after SIGTERM.
const (
	startWait = 3 * time.Minute
	stopWait  = 45 * time.Second
)

// Start builds the binary if need be and starts it on empty data.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Pair == "" {
		o.Pair = Embedded
	}
	s := &Server{
		o: o, Dir: t.TempDir(), tokenID: "e2e-" + strings.ToLower(rand.Text()[:12]),
		tokenSecret: rand.Text() + rand.Text(), log: &journal{},
	}
	if o.Beside != nil {
		s.tokenID, s.tokenSecret = o.Beside.tokenID, o.Beside.tokenSecret
	}
	s.env = append(s.env, "MILLRACE_TOKEN_ID="+s.tokenID, "MILLRACE_TOKEN_SECRET="+s.tokenSecret)
	switch {
	case o.Beside != nil:
		s.env = append(s.env, "MILLRACE_DATABASE_URL="+o.Beside.Setting("MILLRACE_DATABASE_URL"),
			"MILLRACE_STORAGE_URL="+o.Beside.Setting("MILLRACE_STORAGE_URL"),
			"MILLRACE_MASTER_KEY="+o.Beside.Setting("MILLRACE_MASTER_KEY"))
	case o.Pair == Scaled:
		empty := o.Pair.Empty(t)
		if o.Database != "" {
			empty[0] = "MILLRACE_DATABASE_URL=" + o.Database
		}
		if o.Storage != "" {
			empty[1] = "MILLRACE_STORAGE_URL=" + o.Storage
		}
		s.env = append(s.env, empty...)
		s.env = append(s.env, "MILLRACE_MASTER_KEY="+hex.EncodeToString([]byte(rand.Text() + rand.Text())[:32]))
	}
	s.env = append(s.env, o.Env...)
	t.Cleanup(func() {
		if s.cmd != nil {
			s.end(syscall.SIGKILL, stopWait)
		}
		if t.Failed() {
			t.Logf("server log (end):\n%s", s.log.tail(200))
		}
	})
	s.Run(t)
	return s
}

// anyPorts are the flags with which a server that is given args listens on free ports of this machine alone: tests run
// beside others. It takes addresses for TLS only with a certificate.
func anyPorts(args []string) (flags []string) {
	listeners := []string{"http", "rtmp", "srt", "webrtc-udp", "webrtc-tcp"}
	if slices.Contains(args, "--tls-cert") || slices.Contains(args, "--acme-domain") {
		listeners = append(listeners, "https", "rtmps")
	}
	for _, l := range listeners {
		flags = append(flags, "--"+l+"-addr", "127.0.0.1:0")
	}
	return flags
}

// takesEncoders reports whether a server that is given args listens for encoders.
func takesEncoders(args []string) bool {
	i := slices.Index(args, "--roles")
	return i < 0 || args[i+1] == "all" || strings.Contains(args[i+1], "ingest")
}

// Upgrade has the next Run start another program, as BinaryWith makes it; empty: Binary.
func (s *Server) Upgrade(program string) { s.program = program }

// Run starts the server's process again after Stop or Kill, on the same data but new ports.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	args := append([]string{"serve", "--data-dir", s.Dir, "--log-format", "json"}, anyPorts(s.o.Args)...)
	if !s.o.Closed {
		args = append(args, "--fetch-allow", "127.0.0.0/8,::1/128")
	}
	args = append(args, s.o.Args...)
	program := s.program
	if program == "" {
		program = Binary(t)
	}
	if s.o.OpenFiles > 0 {
		args = append([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(s.o.OpenFiles), program}, args...)
		program = "/bin/sh"
	}
	s.cmd = exec.Command(program, args...) //nolint:noctx // ended by Stop, Kill or the test's cleanup
	s.cmd.Env = append(s.cmd.Environ(), s.env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatalf("start server: %v", err)
	}
	s.cmd.Stdout, s.cmd.Stderr = write, write
	if err = s.cmd.Start(); err != nil {
		t.Fatalf("start server: %v", err)
	}
	_ = write.Close()
	s.done = make(chan struct{})
	addresses := make(chan [2]string, 8)
	go func() {
		defer close(s.done)
		s.log.read(read, addresses)
		_ = read.Close()
		_ = s.cmd.Wait()
	}()
	s.HTTP, s.RTMP, s.SRT, s.HTTPS, s.RTMPS = "", "", "", "", ""
	limit := time.After(startWait)
	for s.HTTP == "" || takesEncoders(s.o.Args) && (s.RTMP == "" || s.SRT == "") {
		select {
		case a := <-addresses:
			switch a[0] {
			case "http":
				s.HTTP = "http://" + a[1]
			case "rtmp": // after those over TLS
				s.RTMP = "rtmp://" + a[1]
			case "srt":
				s.SRT = a[1]
			case "https":
				s.HTTPS = "https://" + a[1]
			case "rtmps":
				s.RTMPS = "rtmps://" + a[1]
			}
		case <-s.done:
			t.Fatalf("server ended at its start:\n%s", s.log.tail(50))
		case <-limit:
			t.Fatalf("server did not say where it listens within %v:\n%s", startWait, s.log.tail(50))
		}
	}
}

// Stop asks the server to drain and waits for its end; it fails the test when that takes too long or ends badly.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if !s.end(syscall.SIGTERM, stopWait) {
		t.Fatalf("server did not drain within %v:\n%s", stopWait, s.log.tail(50))
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("server ended with code %d:\n%s", code, s.log.tail(50))
	}
}

// Kill ends the server as a power cut would, its children too.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.end(syscall.SIGKILL, stopWait)
}

// PID is the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Signal sends the server's process a signal and does not wait.
func (s *Server) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal server: %v", err)
	}
}

// Ended waits for the server's process to end and gives how it did; nil when it goes on after limit.
func (s *Server) Ended(limit time.Duration) *os.ProcessState {
	select {
	case <-s.done:
		return s.cmd.ProcessState
	case <-time.After(limit):
		return nil
	}
}

// end signals the process and reports whether it ended by that; what is left of its group is killed.
func (s *Server) end(sig syscall.Signal, wait time.Duration) bool {
	if sig == syscall.SIGKILL {
		_ = syscall.Kill(-s.cmd.Process.Pid, sig)
	} else {
		_ = s.cmd.Process.Signal(sig)
	}
	ok := true
	select {
	case <-s.done:
	case <-time.After(wait):
		ok = false
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.done
	return ok
}

// AwaitLog waits until a log line contains all the given texts, and fails the test when none does within limit.
// Waiting is part of it: the line may be written after what it tells of can be seen.
func (s *Server) AwaitLog(t testing.TB, limit time.Duration, texts ...string) {
	t.Helper()
	for end := time.Now().Add(limit); !s.log.has(texts); Pause(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no line of the log has %q", texts)
		}
	}
}

// Log is everything the server has written.
func (s *Server) Log() string { return s.log.tail(1 << 30) }

// Setting is the value of a variable that the server was started with; "" when it has none.
func (s *Server) Setting(name string) string {
	for _, e := range s.env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// Environment is what the server was started with besides the environment of the test.
func (s *Server) Environment() []string { return slices.Clone(s.env) }

// Secrets are texts that must never appear in the log.
func (s *Server) Secrets() []string { return []string{s.tokenSecret} }

// Token is the access token of the server, and its secret.
func (s *Server) Token() (id, secret string) { return s.tokenID, s.tokenSecret }

// Authorization is the header field of this name that the REST API wants.
func (s *Server) Authorization() string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(s.tokenID, s.tokenSecret)
	return r.Header.Get("Authorization")
}

// WatchURL is the page of a playback ID, PlayURL its playlist.
func (s *Server) WatchURL(playbackID string) string { return s.HTTP + "/watch/" + playbackID }

// PlayURL is the multivariant playlist of a playback ID.
func (s *Server) PlayURL(playbackID string) string { return s.HTTP + "/" + playbackID + ".m3u8" }

// journal keeps the log lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

// read keeps every line and passes on the addresses that "listening" lines name.
func (j *journal) read(in io.Reader, addresses chan<- [2]string) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			j.mu.Lock()
			j.lines = append(j.lines, strings.TrimRight(line, "\n"))
			j.mu.Unlock()
			var l struct {
				Msg  string `json:"msg"`
				What string `json:"listener"`
				Addr string `json:"address"`
			}
			if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "listening" {
				select {
				case addresses <- [2]string{l.What, l.Addr}:
				default: // nobody waits any more
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (j *journal) tail(n int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines[max(0, len(j.lines)-n):], "\n")
}

func (j *journal) has(texts []string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
lines:
	for _, l := range j.lines {
		for _, text := range texts {
			if !strings.Contains(l, text) {
				continue lines
			}
		}
		return true
	}
	return false
}

// Command runs the binary with the server's data folder, database and token, as its operator does at a shell, and gives
// what it prints.
func (s *Server) Command(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(t), append(args, "--data-dir", s.Dir)...)
	cmd.Env = append(cmd.Environ(), s.env...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("millrace %s: %v: %s", strings.Join(args, " "), err, problem.String())
	}
	return strings.TrimSpace(string(out))
}

// database makes an empty database that is dropped with the test, and gives its URL.
func database(t testing.TB) string {
	t.Helper()
	admin := os.Getenv("MILLRACE_TEST_POSTGRES")
	name := "e2e_" + strings.ToLower(rand.Text()[:16])
	sql := func(command string) {
		if out, err := exec.CommandContext(context.Background(), "psql", "-XAtqc", command,
			admin).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
	sql("CREATE DATABASE " + name)
	t.Cleanup(func() { sql("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") })
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("read MILLRACE_TEST_POSTGRES: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}
