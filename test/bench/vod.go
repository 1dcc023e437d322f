package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"millrace/test/bench/viewer"
)

// vod measures how soon a file of 60 minutes plays: the job fetches it from this process over loopback, so the moment
// when it is on local disk is when its last byte has left here.
func (b *bench) vod(ctx context.Context) error {
	path, err := b.hour(ctx)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at file: %w", err)
	}
	o, s, stop, err := b.offering(ctx, path)
	if err != nil {
		return err
	}
	defer stop()
	var after, whole []float64
	for range max(3, b.rounds) {
		o.done.Store(0)
		start := time.Now()
		got, err := s.firstSegment(ctx, o.url)
		if err != nil {
			return err
		}
		whole = append(whole, milliseconds(got.Sub(start)))
		after = append(after, milliseconds(got.Sub(time.Unix(0, o.done.Load()))))
	}
	b.out.begin(fmt.Sprintf("On demand: MP4 of 60 minutes, %d MB, fetched over loopback", info.Size()/1e6), "-")
	b.out.alone("whole file received to first segment served, median", "ms", median(after), "under 1000")
	b.out.alone("API request to first segment served, median", "ms", median(whole), "")
	b.out.alone("whole file received to first segment served, worst", "ms", percentile(after, 1), "")
	return nil
}

// offering serves a file, and runs a service that may fetch it.
func (b *bench) offering(ctx context.Context, path string) (o *origin, s *millrace, stop func(), err error) {
	if o, err = serveFile(ctx, path); err != nil {
		return nil, nil, nil, err
	}
	if s, err = b.millrace(); err != nil {
		o.stop()
		return nil, nil, nil, err
	}
	return o, s, func() { s.stop(); o.stop() }, nil
}

// origin serves one file and remembers when its last byte was sent.
type origin struct {
	url  string
	done atomic.Int64 // Unix nanoseconds
	stop func()
}

func serveFile(ctx context.Context, path string) (*origin, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the file: %w", err)
	}
	o := &origin{url: "http://" + ln.Addr().String() + "/hour.mp4"}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, path)
			if r.Method == http.MethodGet {
				o.done.Store(time.Now().UnixNano())
			}
		}),
	}
	go func() { _ = server.Serve(ln) }()
	o.stop = func() { _ = server.Close() }
	return o, nil
}

// firstSegment creates an asset and plays it as soon as it can.
func (m *millrace) firstSegment(ctx context.Context, url string) (time.Time, error) {
	video, _, err := m.asset(ctx, assetBody(url))
	if err != nil {
		return time.Time{}, err
	}
	defer video.Close()
	_, err = video.Fetch(video.Playlist().Segments[0].URI)
	return time.Now(), err
}

// assetBody asks for an asset of what is at url.
func assetBody(url string) string {
	return fmt.Sprintf(`{"inputs":[{"url":%q}],"playback_policies":["public"]}`, url)
}

// asset makes an asset and waits until it can be played; it gives its video.
func (m *millrace) asset(ctx context.Context, body string) (video *viewer.Stream, id string, err error) {
	c := m.client()
	defer c.Close()
	var a playable
	if err = call(c, "POST", "/video/v1/assets", body, &a); err != nil {
		return nil, "", err
	}
	video, err = m.tune(ctx, a)
	return video, a.ID, err
}

// tune waits until an asset can be played, and gives its video.
func (m *millrace) tune(ctx context.Context, a playable) (*viewer.Stream, error) {
	if len(a.PlaybackIDs) == 0 {
		return nil, errors.New("asset without playback ID")
	}
	c := m.client()
	defer c.Close()
	tuned, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	streams, err := viewer.Tune(tuned, m.http, "/"+a.PlaybackIDs[0].ID+".m3u8", 10*time.Millisecond)
	if err != nil {
		if e := call(c, "GET", "/video/v1/assets/"+a.ID, "", &a); e == nil {
			err = fmt.Errorf("asset is %s %v: %w", a.Status, a.Errors.Messages, err)
		}
		return nil, err
	}
	for _, x := range streams[1:] {
		x.Close()
	}
	return streams[0], nil
}
