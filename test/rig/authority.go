package rig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Authority is Pebble, Let's Encrypt's ACME server for tests. Every name leads to this machine for it, and its port 80
// and 443 to where Web and Secure say. It ends with the test.
type Authority struct {
	Directory string         // URL
	TrustFile string         // PEM file that SSL_CERT_FILE has to name for its clients
	Issued    *x509.CertPool // what its certificates are verified with

	Web, Secure *Forward
}

// Forward is a port of 127.0.0.1 that leads to another one, which may be told later: connections wait for that.
type Forward struct {
	Port      int
	announced chan struct{}
	once      sync.Once
	to        atomic.Pointer[string]
}

// Nowhere is an address that nothing listens on.
const Nowhere = "127.0.0.1:1"

// To sets where new connections lead: host:port.
func (f *Forward) To(addr string) {
	f.to.Store(&addr)
	f.once.Do(func() { close(f.announced) })
}

// NewForward opens one.
func NewForward(t testing.TB) *Forward {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &Forward{Port: ln.Addr().(*net.TCPAddr).Port, announced: make(chan struct{})}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() { f.carry(from) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		f.To(Nowhere)
		running.Wait()
	})
	return f
}

func (f *Forward) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	<-f.announced
	to, err := net.DialTimeout("tcp", *f.to.Load(), 10*time.Second)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	end := time.Now().Add(time.Minute)
	_, _ = from.SetDeadline(end), to.SetDeadline(end)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
}

// StartAuthority starts Pebble.
func StartAuthority(t testing.TB) *Authority {
	t.Helper()
	bin, err := exec.LookPath("pebble")
	if err != nil {
		Missing(t, "pebble is not installed")
	}
	dir := t.TempDir()
	a := &Authority{Web: NewForward(t), Secure: NewForward(t), TrustFile: filepath.Join(dir, "cert.pem")}
	keyFile := filepath.Join(dir, "key.pem")
	serverIdentity(t, a.TrustFile, keyFile)
	for try := 0; ; try++ {
		listen, manage := freePort(t), freePort(t)
		config := filepath.Join(dir, "config.json")
		text, err := json.Marshal(map[string]any{"pebble": map[string]any{
			"listenAddress": listen, "managementListenAddress": manage, "certificate": a.TrustFile,
			"privateKey": keyFile,
			"httpPort":   a.Web.Port, "tlsPort": a.Secure.Port, "ocspResponderURL": "",
			"externalAccountBindingRequired": false,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if a.start(t, bin, config, listen, manage) {
			return a
		}
		if try == 3 {
			t.Fatal("pebble does not start")
		}
	}
}

// start runs Pebble and reports whether it responds; a port may have been taken in between.
func (a *Authority) start(t testing.TB, bin, config, listen, manage string) bool {
	t.Helper()
	cmd := exec.Command(bin, "-config", config, "-dnsserver", everyNameIsHere(t)) //nolint:noctx // ended by the test's cleanup
	cmd.Env = append(cmd.Environ(), "PEBBLE_VA_NOSLEEP=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start pebble: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("pebble:\n%s", out.String())
		}
	})
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	for end := time.Now().Add(startWait); time.Now().Before(end); Pause(50 * time.Millisecond) {
		select {
		case <-ended:
			return false
		default:
		}
		root, err := fetchAll(client, "https://"+manage+"/roots/0")
		if err != nil {
			continue
		}
		a.Issued = x509.NewCertPool()
		if !a.Issued.AppendCertsFromPEM(root) {
			t.Fatalf("pebble's root is %q", root)
		}
		a.Directory = "https://" + listen + "/dir"
		return true
	}
	return false
}

func fetchAll(c *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, 1<<20))
}

// freePort is an address that nobody listened on a moment ago.
func freePort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// serverIdentity writes the certificate that the authority itself shows.
func serverIdentity(t testing.TB, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// everyNameIsHere is a name server for which every name is 127.0.0.1; it gives its address.
func everyNameIsHere(t testing.TB) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if response, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(response, from)
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return conn.LocalAddr().String()
}
