package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// uploadPlay measures how soon an MP4 of 60 minutes, with moov in front, plays once its last byte was uploaded.
func (b *bench) uploadPlay(ctx context.Context) error {
	path, err := b.hour(ctx)
	if err != nil {
		return err
	}
	s, err := b.millrace()
	if err != nil {
		return err
	}
	defer s.stop()
	var after, kept []float64
	var size int64
	for range max(3, b.rounds) {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("open file: %w", err)
		}
		last, responded, played, err := s.uploadAndPlay(ctx, f)
		info, failed := f.Stat()
		if err = errors.Join(err, failed, f.Close()); err != nil {
			return err
		}
		size = info.Size()
		kept = append(kept, milliseconds(responded.Sub(last)))
		after = append(after, milliseconds(played.Sub(last)))
	}
	b.out.begin(fmt.Sprintf("Uploading an MP4 of 60 minutes, %d MB, moov in front, by one PUT", size/1e6), "-")
	b.out.alone("last byte sent to first segment served, median", "ms", median(after), "under 1000")
	b.out.alone("last byte sent to first segment served, worst", "ms", percentile(after, 1), "under 1000")
	b.out.alone("last byte sent to response, median", "ms", median(kept), "")
	return nil
}

// uploadAndPlay uploads a file, and plays its asset as soon as it can. It tells when the last byte was sent, when the
// response came, and when the first segment was there.
func (m *millrace) uploadAndPlay(ctx context.Context, f *os.File) (last, responded, played time.Time, err error) {
	c := m.client()
	defer c.Close()
	info, err := f.Stat()
	if err != nil {
		return last, responded, played, fmt.Errorf("look at file: %w", err)
	}
	var made struct {
		ID    string `json:"id"`
		URL   string `json:"url"`
		Asset string `json:"asset_id"`
	}
	body := `{"cors_origin":"*","new_asset_settings":{"playback_policies":["public"]}}`
	if err = call(c, "POST", "/video/v1/uploads", body, &made); err != nil {
		return last, responded, played, err
	}
	sent := &ending{Reader: f}
	if err = put(ctx, made.URL, sent, info.Size()); err != nil {
		return last, responded, played, err
	}
	last, responded = sent.at, time.Now()
	if err = call(c, "GET", "/video/v1/uploads/"+made.ID, "", &made); err != nil {
		return last, responded, played, err
	}
	var a playable
	if err = call(c, "GET", "/video/v1/assets/"+made.Asset, "", &a); err != nil {
		return last, responded, played, err
	}
	video, err := m.tune(ctx, a)
	if err != nil {
		return last, responded, played, err
	}
	defer video.Close()
	_, err = video.Fetch(video.Playlist().Segments[0].URI)
	return last, responded, time.Now(), err
}

// ending remembers when its last bytes were taken.
type ending struct {
	io.Reader
	at time.Time
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if n > 0 {
		e.at = time.Now()
	}
	return n, err
}
