package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/test/rig"
)

// shown gives the certificate that an address over TLS shows; with roots it is verified for name.
func shown(t *testing.T, addr, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	t.Helper()
	_, addr, _ = strings.Cut(addr, "://")
	d := tls.Dialer{
		NetDialer: &net.Dialer{Timeout: patience},
		Config:    &tls.Config{ServerName: name, RootCAs: roots, InsecureSkipVerify: roots == nil},
	}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// TestCertificateFromAnAuthority gets one from Pebble over ACME, and publishes and plays with it.
func TestCertificateFromAnAuthority(t *testing.T) {
	rig.Parallel(t)
	const domain = "video.example.org"
	a := rig.StartAuthority(t)
	s := rig.Start(t, rig.Options{
		Args: []string{"--acme-domain", domain, "--acme-directory", a.Directory},
		Env:  []string{"SSL_CERT_FILE=" + a.TrustFile},
	})
	t.Cleanup(func() { noSecrets(t, s) })
	a.Web.To(strings.TrimPrefix(s.HTTP, "http://"))
	a.Secure.To(strings.TrimPrefix(s.HTTPS, "https://"))
	s.AwaitLog(t, patience, "certificate loaded", domain)
	for _, addr := range []string{s.HTTPS, s.RTMPS} {
		if _, err := shown(t, addr, domain, a.Issued); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	stream := s.CreateLive(t, "low", nil)
	e := rig.PublishTo(t, s.RTMPS+"/app/"+stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	id := stream.Text("playback_ids.0.id")
	s.AwaitPlayable(t, s.PlayURL(id), patience)
	client := &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: a.Issued, ServerName: domain},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.HTTPS+"/"+id+".m3u8", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Errorf("over HTTPS: %s %s", res.Proto, res.Status)
	}
	e.Stop()
	s.AwaitLog(t, patience, "encoder connected", `"protocol":"rtmps"`)
}

// ownCertificate writes a self-signed one and its key into a folder.
func ownCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"video.example.org"},
		NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// TestCertificateIsRenewed replaces the files under a running service: connections go on, new ones see the new
// certificate.
func TestCertificateIsRenewed(t *testing.T) {
	rig.Parallel(t)
	dir := t.TempDir()
	certFile, keyFile := ownCertificate(t, dir, 1)
	renew := func(serial int64) {
		t.Helper()
		ownCertificate(t, dir, serial)
	}
	s := rig.Start(t, rig.Options{Args: []string{"--tls-cert", certFile, "--tls-key", keyFile}})
	stream := s.CreateLive(t, "low", nil)
	e := rig.PublishTo(t, s.RTMPS+"/app/"+stream.Text("stream_key"), rig.Clip{Size: "320x180", Kbit: 300, GOP: 1})
	s.AwaitPlayable(t, s.PlayURL(stream.Text("playback_ids.0.id")), patience)
	await := func(serial int64, limit time.Duration) {
		t.Helper()
		for end := time.Now().Add(limit); ; rig.Pause(50 * time.Millisecond) {
			web, err := shown(t, s.HTTPS, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			encoders, err := shown(t, s.RTMPS, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if web.SerialNumber.Int64() == serial && encoders.SerialNumber.Int64() == serial {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("certificates %v and %v are shown, want %d", web.SerialNumber, encoders.SerialNumber, serial)
			}
		}
	}
	await(1, 0)
	renew(2)
	await(2, patience) // by itself
	renew(3)
	s.Signal(t, syscall.SIGHUP)
	await(3, patience)
	live := s.AwaitLive(t, stream.Text("id"), "active", patience, func(o rig.Object) bool {
		return o.Text("status") == "active"
	})
	if connected := s.LogLines("encoder connected"); away(live) || len(connected) > 1 {
		t.Errorf("the stream is %v, with %d publications", live, len(connected))
	}
	e.Stop()
	if out, err := e.Wait(t, time.Second); strings.Contains(out, "rror") {
		t.Errorf("the encoder was disturbed: %v: %s", err, out)
	}
}
