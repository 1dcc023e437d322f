package rtmp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// ownCertificate is a self-signed one for the loopback address.
func ownCertificate(t *testing.T) *tls.Config {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: priv}}}
}

func startSecure(t *testing.T, o Options) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, o, ln, ownCertificate(t))
}

func TestRTMPS(t *testing.T) {
	t.Parallel()
	for name, publish := range map[string]func(t *testing.T, url string) (string, error){
		"ffmpeg": func(t *testing.T, url string) (string, error) {
			return ffmpeg(t, url, join(picture, tone, x264, aacEnc)...)
		},
		"rtmp2sink": func(t *testing.T, url string) (string, error) {
			needElements(t, "rtmp2sink", "flvmux")
			file := filepath.Join(t.TempDir(), "in.flv")
			if out, err := ffmpeg(t, file, join(picture, tone, x264, aacEnc)...); err != nil {
				t.Fatalf("ffmpeg: %v\n%s", err, out)
			}
			return gstreamer(t, file, "rtmp2sink", url, "tls-validation-flags=0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startSecure(t, Options{Gate: ingesttest.Admit(key, sink)})
			if out, err := publish(t, "rtmps://"+s.addr+"/app/"+key); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, s.log)
			}
			if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) || len(sink.Of(frame.Audio)) < 90 ||
				len(sink.Of(frame.Video)) != 60 {
				t.Errorf("cause %v, %d and %d frames", cause, len(sink.Of(frame.Video)), len(sink.Of(frame.Audio)))
			}
			s.stop()
			if !strings.Contains(s.log.String(), "protocol=rtmps") || strings.Contains(s.log.String(), key) {
				t.Errorf("log:\n%s", s.log)
			}
		})
	}
}

// TestOneServerOnTwoListeners counts the connections of both together.
func TestOneServerOnTwoListeners(t *testing.T) {
	t.Parallel()
	plain, secure := newPipeListener(), newPipeListener()
	server := New(Options{Gate: ingesttest.Admit(key, ingesttest.NewRecorder()), Logger: quiet, MaxConnsPerIP: 1})
	done := make(chan error, 2)
	go func() { done <- server.Serve(t.Context(), plain, nil) }()
	go func() { done <- server.Serve(t.Context(), secure, ownCertificate(t)) }()
	first, _ := secure.dial()
	second, closed := plain.dial()
	<-closed // over the limit while the first one is there
	_, _ = first.Close(), second.Close()
	_, _ = plain.Close(), secure.Close()
	for range 2 {
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestHandshakeWithinTime drops who is too slow with TLS as with RTMP, and says of both mistakes what they are.
func TestTLSWhereItIsNot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secure bool
		speak  func(t *testing.T, c net.Conn)
		limit  time.Duration // 0: enough for what is said at once
		want   string
	}{
		"RTMP on the port of RTMPS": {
			true, func(_ *testing.T, c net.Conn) { _, _ = c.Write(opened()) }, 0,
			"it speaks RTMP without TLS on the port of RTMPS",
		},
		"RTMPS on the port of RTMP": {false, func(t *testing.T, c net.Conn) {
			if err := tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()); err == nil {
				t.Error("TLS where there is none")
			}
		}, 0, "it speaks TLS on the port of plain RTMP"},
		"garbage": {
			true, func(_ *testing.T, c net.Conn) { _, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, 0,
			"TLS handshake",
		},
		"silence": {true, func(*testing.T, net.Conn) {}, 300 * time.Millisecond, "no publish within 300ms"},
		"half a hello": {
			true, func(_ *testing.T, c net.Conn) { _, _ = c.Write([]byte{0x16, 3, 1, 2, 0, 1}) },
			300 * time.Millisecond, "no publish within 300ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Gate: ingesttest.Admit(key, ingesttest.NewRecorder()), HandshakeTimeout: tt.limit}
			var s *server
			if tt.secure {
				s = startSecure(t, o)
			} else {
				s = startServer(t, o)
			}
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			tt.speak(t, c)
			_, _ = io.Copy(io.Discard, c) // up to its end
			s.stop()
			if !strings.Contains(s.log.String(), tt.want) {
				t.Errorf("log:\n%s", s.log)
			}
		})
	}
}
