package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"millrace/internal/leaktest"
)

// autocert takes back what it has asked an authority for and does not need on a goroutine of its own, which nobody can
// end or wait for.
func TestMain(m *testing.M) {
	leaktest.Main(m, goleak.IgnoreAnyFunction("golang.org/x/crypto/acme/autocert.(*Manager).deactivatePendingAuthz"))
}

// issue makes a self-signed certificate that is told by its serial number.
func issue(t *testing.T, serial int64, until time.Time) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{"video.example.org"},
		NotBefore: until.Add(-90 * 24 * time.Hour), NotAfter: until,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{
		Type: "PRIVATE KEY", Bytes: keyDER,
	})
}

// place writes a file as tools that renew do: beside it, then in its place. at is its time of change.
func place(t *testing.T, name string, data []byte, at time.Time) {
	t.Helper()
	next := name + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(next, at, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
}

// journal keeps a log.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func served(t *testing.T, f *Files) int64 {
	t.Helper()
	pair, err := f.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.Int64()
}

// TestFilesAreReadAgain goes through what tools that renew certificates do to the files.
func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		put := func(serial int64) {
			cert, key := issue(t, serial, begin.Add(8*24*time.Hour))
			place(t, certFile, cert, time.Now())
			place(t, keyFile, key, time.Now())
		}
		put(1)
		reload := make(chan os.Signal, 1)
		log := &journal{}
		f, err := NewFiles(FilesOptions{
			Cert: certFile, Key: keyFile, Reload: reload, Now: time.Now, Logger: log.logger(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		want := func(serial int64, when string) {
			t.Helper()
			synctest.Wait()
			if got := served(t, f); got != serial {
				t.Errorf("%s: certificate %d is served, want %d\n%s", when, got, serial, log)
			}
		}
		want(1, "start")
		time.Sleep(time.Second)
		put(2)
		time.Sleep(lookEvery)
		want(2, "both files new")
		cert, key := issue(t, 3, begin.Add(8*24*time.Hour))
		place(t, certFile, cert, time.Now())
		time.Sleep(lookEvery)
		want(2, "only one half is there")
		place(t, keyFile, key, time.Now())
		time.Sleep(lookEvery)
		want(3, "the other half, too")
		place(t, certFile, []byte("no PEM"), time.Now())
		time.Sleep(3 * lookEvery)
		want(3, "garbage")
		if err := os.Remove(keyFile); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookEvery)
		want(3, "nothing")
		put(4)
		reload <- os.Interrupt
		want(4, "signal")
		if n := strings.Count(log.String(), "is not taken"); n != 3 {
			t.Errorf("%d complaints, want one per change:\n%s", n, log)
		}
		if strings.Contains(log.String(), "ends soon") {
			t.Errorf("too early:\n%s", log)
		}
		time.Sleep(3*24*time.Hour + time.Hour)
		if n := strings.Count(log.String(), "ends soon"); n < 2 || n > 4 {
			t.Errorf("%d warnings in the last days:\n%s", n, log)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestFilesMustBeThereAtTheStart(t *testing.T) {
	t.Parallel()
	if _, err := NewFiles(FilesOptions{
		Cert: "none.pem", Key: "none.pem", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	}); err == nil || !strings.Contains(err.Error(), "load certificate: open none.pem") {
		t.Errorf("got %v", err)
	}
}
