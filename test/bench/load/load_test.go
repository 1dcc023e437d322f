package load_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/test/bench/load"
)

// TestLengths: what is sent in several lengths is told from what is always the same.
func TestLengths(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	mux := http.NewServeMux()
	body := func(length int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("a"), length)) // the client may have left
		}
	}
	mux.HandleFunc("/even", body(1000))
	mux.HandleFunc("/uneven", func(w http.ResponseWriter, r *http.Request) {
		body(500+int(n.Add(1)%2)*100)(w, r)
	})
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	server := httptest.NewServer(mux)
	defer server.Close()
	ask := func(path string) (load.Result, error) {
		addr := strings.TrimPrefix(server.URL, "http://")
		return load.Run(load.Target{Addr: addr, Path: path, Conns: 2}, 20*time.Millisecond)
	}
	r, err := ask("/even")
	if err != nil || r.Shortest != 1000 || r.Longest != 1000 || r.Bytes != 1000*r.Requests {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = ask("/uneven")
	if err != nil || r.Shortest != 500 || r.Longest != 600 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err = ask("/none"); err == nil {
		t.Error("a 404 was taken for a response")
	}
}
