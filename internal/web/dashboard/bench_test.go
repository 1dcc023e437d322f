package dashboard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
)

// BenchmarkOpenDashboards is what open dashboards cost while ten events a second tell of live streams of their lists:
// the processor time of the service, of what makes the events and of the browsers' side, in percent of a core. What
// there is with no dashboard open is to be subtracted. An operation is an event, a tenth of a second.
func BenchmarkOpenDashboards(b *testing.B) {
	for _, tt := range []struct {
		pages int
		query string
	}{{0, ""}, {100, ""}, {100, "?q=nothing"}} {
		b.Run(fmt.Sprintf("%d%s", tt.pages, tt.query), func(b *testing.B) {
			s := newSite(b, "http://example.com")
			var streams []live.Stream
			for n := range 20 {
				s.now = s.now.Add(time.Second)
				streams = append(streams, s.stream(b, fmt.Sprint("Stream ", n), n%2 == 0, playbackid.Public))
			}
			server := httptest.NewServer(s)
			b.Cleanup(server.Close)
			for n := range tt.pages {
				if n%25 == 0 { // one person keeps 32 up to date
					w := s.ask(b, "", "/dashboard/sign-in", url.Values{"password": {password}})
					s.cookie = w.Result().Cookies()[0].Value
				}
				s.browse(b, server, s.followed(b, s.cookie, "/dashboard/live"+tt.query))
			}
			every := time.NewTicker(100 * time.Millisecond)
			defer every.Stop()
			begin, used, n := time.Now(), processor(b), 0
			for b.Loop() {
				<-every.C
				s.renamed(b, streams[n%len(streams)], fmt.Sprint("Name ", n))
				n++
			}
			b.ReportMetric(100*(processor(b)-used).Seconds()/time.Since(begin).Seconds(), "%core")
		})
	}
}

// browse keeps a page open that takes whatever is sent.
func (s *site) browse(b *testing.B, server *httptest.Server, path string) {
	b.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.AddCookie(&http.Cookie{Name: "millrace", Value: s.cookie})
	if err = r.Write(conn); err != nil {
		b.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for line := ""; line != "event: page\n"; { // the page as it is
		if line, err = in.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, in) }() // ends with the connection
}

// processor is the processor time of this process so far.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
