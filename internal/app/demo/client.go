package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// client speaks the REST API, as any program would.
type client struct {
	base, id, secret string
	http             *http.Client
}

// liveStream is what the demo reads of a live stream.
type liveStream struct {
	ID             string     `json:"id"`
	StreamKey      string     `json:"stream_key"`
	PlaybackIDs    []playback `json:"playback_ids"`
	ActiveAssetID  string     `json:"active_asset_id"`
	RecentAssetIDs []string   `json:"recent_asset_ids"`
}

type playback struct {
	ID string `json:"id"`
}

// recording is what the demo reads of an asset.
type recording struct {
	ID          string     `json:"id"`
	Status      string     `json:"status"`
	IsLive      bool       `json:"is_live"`  // more is coming
	Duration    float64    `json:"duration"` // seconds
	PlaybackIDs []playback `json:"playback_ids"`
	Tracks      []track    `json:"tracks"`
	Errors      reasons    `json:"errors"`
}

type track struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Type   string  `json:"type"`
	Status string  `json:"status"`
	Error  reasons `json:"error"`
}

type reasons struct {
	Messages []string `json:"messages"`
}

// trackInput is the body that adds a track.
type trackInput struct {
	URL      string `json:"url"`
	Type     string `json:"type"`
	TextType string `json:"text_type,omitempty"`
	Language string `json:"language_code"`
	Name     string `json:"name"`
}

const maxResponse = 4 << 20 // bytes

// call sends a request and reads {"data": …} into into. body and into may be nil.
func (c *client) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write request %s %s: %w", method, path, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	req.SetBasicAuth(c.id, c.secret)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("read response to %s %s: %w", method, path, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, &struct {
		Data any `json:"data"`
	}{into}); err != nil {
		return fmt.Errorf("read response to %s %s: %w", method, path, err)
	}
	return nil
}

// createStream makes a low-latency stream that everybody may watch, live and afterwards.
func (c *client) createStream(ctx context.Context) (s liveStream, err error) {
	public := []string{"public"}
	err = c.call(ctx, http.MethodPost, "/video/v1/live-streams", map[string]any{
		"playback_policies": public,
		"latency_mode":      "low",
		"meta":              map[string]any{"title": "Demo: test picture"},
		"new_asset_settings": map[string]any{
			"playback_policies": public, "meta": map[string]any{"title": "Demo: recording"},
		},
	}, &s)
	if err == nil && (s.ID == "" || s.StreamKey == "" || len(s.PlaybackIDs) == 0) {
		err = errors.New("POST /video/v1/live-streams: the response has no id, stream_key or playback ID")
	}
	return s, err
}

// plays reports whether a playback ID can be played now; 412 and 404 are "not yet".
func (c *client) plays(ctx context.Context, id string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/"+id+".m3u8", nil)
	if err != nil {
		return false, fmt.Errorf("ask for playlist: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false, fmt.Errorf("ask for playlist: %w", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponse))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return false, fmt.Errorf("read playlist: %w", err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return true, nil
	case http.StatusPreconditionFailed, http.StatusNotFound:
		return false, nil
	}
	return false, fmt.Errorf("ask for playlist: %s", resp.Status)
}

// assetOf waits for the asset of the stream's broadcast.
func (c *client) assetOf(ctx context.Context, streamID string) (assetID string, err error) {
	err = poll(ctx, 30*time.Second, "the stream has no recording", func() (bool, error) {
		var s liveStream
		if failed := c.call(ctx, http.MethodGet, "/video/v1/live-streams/"+streamID, nil, &s); failed != nil {
			return false, failed
		}
		assetID = s.ActiveAssetID
		if n := len(s.RecentAssetIDs); assetID == "" && n > 0 {
			assetID = s.RecentAssetIDs[n-1]
		}
		return assetID != "", nil
	})
	return assetID, err
}

// ready waits until the asset is ready as a whole, and each of its tracks.
func (c *client) ready(ctx context.Context, assetID string, limit time.Duration) (a recording, err error) {
	err = poll(ctx, limit, "the recording does not get ready", func() (bool, error) {
		a = recording{}
		if failed := c.call(ctx, http.MethodGet, "/video/v1/assets/"+assetID, nil, &a); failed != nil {
			return false, failed
		}
		if a.Status == "errored" {
			return false, fmt.Errorf("the recording is errored: %s", strings.Join(a.Errors.Messages, "; "))
		}
		done := a.Status == "ready" && !a.IsLive
		for _, t := range a.Tracks {
			if t.Status == "errored" {
				return false, fmt.Errorf("the %s track %q is errored: %s", t.Type, t.Name,
					strings.Join(t.Error.Messages, "; "))
			}
			done = done && t.Status != "preparing"
		}
		return done, nil
	})
	return a, err
}

const pollEvery = 250 * time.Millisecond

// poll asks until the response is yes, an error, or limit has passed.
func poll(ctx context.Context, limit time.Duration, late string, ask func() (bool, error)) error {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		yes, err := ask()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("%s, after %s", late, limit)
		case <-tick.C:
		}
	}
}
