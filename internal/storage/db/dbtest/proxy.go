package dbtest

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// At gives a PostgreSQL database's URL with another address of its server: that of a Proxy.
func At(t testing.TB, database, addr string) string {
	t.Helper()
	u := parsed(t, database)
	u.Host = addr
	return u.String()
}

// Proxy passes connections on to the server of a PostgreSQL database, until the test ends. When it lingers, the server
// is not told before that a connection has ended.
func Proxy(t *testing.T, ln net.Listener, database string, lingers bool) {
	t.Helper()
	server := parsed(t, database).Host
	var open sync.WaitGroup
	t.Cleanup(func() { _ = ln.Close(); open.Wait() })
	open.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			open.Go(func() {
				if lingers {
					_, _ = io.Copy(endless{far}, near)
					<-t.Context().Done()
				} else {
					_, _ = io.Copy(far, near)
				}
				_ = far.Close()
			})
			open.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
}

// endless leaves out a client's last word (PostgreSQL's protocol, message Terminate).
type endless struct{ io.Writer }

func (e endless) Write(b []byte) (int, error) {
	_, err := e.Writer.Write(bytes.TrimSuffix(b, []byte("X\x00\x00\x00\x04")))
	return len(b), err
}

func parsed(t testing.TB, database string) *url.URL {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal("the database's URL can't be read") // it has a password
	}
	return u
}
