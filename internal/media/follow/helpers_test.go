package follow_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"millrace/internal/media/follow/wire"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// listed is the newest playlist of the video.
func listed(ctx context.Context, v playback.Live) (string, error) {
	text, err := v.Playlist(ctx, timeline.MainVideo, playback.Reload{MSN: -1, Part: -1}, false)
	return string(text.Data), err
}

// newest is a part of the video that was published last.
func newest(s *studio) hls.Resource {
	if s.part == 0 {
		return hls.Resource{Init: -1, MSN: int64(s.msn - 1), Part: 3, Ext: "m4s"}
	}
	return hls.Resource{Init: -1, MSN: int64(s.msn), Part: s.part - 1, Ext: "m4s"}
}

// count is how often an owner was asked for something, by what its URL begins with and has in it.
func (n *node) count(what wire.What, within string) (times, urls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for url, k := range n.asked {
		if strings.HasPrefix(url, wire.Prefix+string(what)+"?") && strings.Contains(url, within) {
			times, urls = times+k, urls+1
		}
	}
	return times, urls
}

// breaker is what is wrong with a node; see node.
type breaker func(http.ResponseWriter, *http.Request) bool

func reset(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

func hang(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// lie changes what a node responds when it is asked for something.
func lie(what wire.What, change func(*httptest.ResponseRecorder)) func(n *node) breaker {
	return func(n *node) breaker {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, wire.Prefix+string(what)) {
				return false
			}
			rec := httptest.NewRecorder()
			n.handler.ServeHTTP(rec, r)
			change(rec)
			maps.Copy(w.Header(), rec.Header())
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
			return true
		}
	}
}

// replaced has a response say something else.
func replaced(text string) func(*httptest.ResponseRecorder) {
	return func(r *httptest.ResponseRecorder) {
		r.Body.Reset()
		r.Body.WriteString(text)
		r.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
}
