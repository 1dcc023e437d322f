// Package send sends a file to a running service over a direct upload, and goes on where a lost connection has broken it off.
// It owns no goroutines.
package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// keptFor is how long the service waits for the file, in seconds.
	keptFor = 86400
	// calm is how long nothing of the file may go out before the connection counts as lost, or the response may take.
	calm = time.Minute
	// patience is how long it is tried again while nothing more of the file is kept.
	patience            = 10 * time.Minute
	firstPause, longest = time.Second, 30 * time.Second
	maxResponse         = 1 << 20 // bytes
)

// Options is what a Sender needs.
type Options struct {
	Server          string // base URL of the service, without a slash at the end
	TokenID, Secret string // of an access token
	Policy          string // playback policy of the asset: public or signed
	// Progress is told, now and then, how many bytes of how many the service has been sent; nil: nobody wants to know.
	Progress func(sent, size int64)
}

// Result is what became of the file.
type Result struct{ Upload, Asset, PlaybackID string }

// Sender sends files.
type Sender struct {
	opt    Options
	client *http.Client
	pause  time.Duration // before the first further attempt
}

// New returns a Sender.
func New(o Options) *Sender {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	t.ResponseHeaderTimeout = calm
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // 308 is "go on", and leads nowhere
	return &Sender{opt: o, client: &http.Client{Transport: t, CheckRedirect: stay}, pause: firstPause}
}

// File makes an asset of a file.
func (s *Sender) File(ctx context.Context, path string) (Result, error) {
	f, err := os.Open(path) //nolint:gosec // the file that somebody wants to send
	if err != nil {
		return Result{}, fmt.Errorf("open file: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("look at file: %w", err)
	case !info.Mode().IsRegular():
		return Result{}, fmt.Errorf("%s is not a file", path)
	case info.Size() == 0:
		return Result{}, fmt.Errorf("%s is empty", path)
	}
	var upload struct {
		ID, URL string
		Asset   string `json:"asset_id"`
	}
	settings := map[string]any{"cors_origin": "*", "timeout": keptFor, "new_asset_settings": map[string]any{"playback_policies": []string{s.opt.Policy}}}
	if err = s.call(ctx, http.MethodPost, "/video/v1/uploads", settings, &upload); err != nil {
		return Result{}, fmt.Errorf("create upload: %w", err)
	}
	if err = s.send(ctx, upload.URL, f, info.Size()); err != nil {
		return Result{}, fmt.Errorf("send %s: %w", path, err)
	}
	if err = s.call(ctx, http.MethodGet, "/video/v1/uploads/"+upload.ID, nil, &upload); err != nil {
		return Result{}, fmt.Errorf("read upload: %w", err)
	}
	var asset struct {
		PlaybackIDs []struct{ ID string } `json:"playback_ids"`
	}
	if err = s.call(ctx, http.MethodGet, "/video/v1/assets/"+upload.Asset, nil, &asset); err != nil {
		return Result{}, fmt.Errorf("read asset: %w", err)
	}
	made := Result{Upload: upload.ID, Asset: upload.Asset}
	if len(asset.PlaybackIDs) > 0 {
		made.PlaybackID = asset.PlaybackIDs[0].ID
	}
	return made, nil
}

// call sends a request to the API and reads data of the response.
func (s *Sender) call(ctx context.Context, method, path string, body, data any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.opt.Server+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.SetBasicAuth(s.opt.TokenID, s.opt.Secret)
	r.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	if resp.StatusCode > 299 {
		return refusal(resp)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(&struct {
		Data any `json:"data"`
	}{data})
}

// errRefused is a response that asking again does not change.
type errRefused struct {
	status int
	text   string
}

func (e *errRefused) Error() string {
	return fmt.Sprintf("the service responds %d: %s", e.status, e.text)
}

// again reports whether the same request may be successful later.
func (e *errRefused) again() bool { return e.status >= 500 || e.status == http.StatusTooManyRequests }

// refusal is what a response says is wrong.
func refusal(resp *http.Response) error {
	var body struct {
		Error struct {
			Messages []string `json:"messages"`
		} `json:"error"`
	}
	text := http.StatusText(resp.StatusCode)
	if json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(&body) == nil && len(body.Error.Messages) > 0 {
		text = strings.Join(body.Error.Messages, "; ")
	}
	return &errRefused{resp.StatusCode, text}
}

// send sends the file until the service has all of it.
func (s *Sender) send(ctx context.Context, url string, f io.ReaderAt, size int64) error {
	kept, pause, since := int64(0), s.pause, time.Now()
	for {
		now, done, err := s.attempt(ctx, url, f, kept, size)
		if done {
			return nil
		}
		for err != nil {
			var refused *errRefused
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.As(err, &refused) && !refused.again():
				return err
			case time.Since(since) > patience:
				return fmt.Errorf("nothing more was kept for %v: %w", patience, err)
			}
			if err = wait(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, longest)
			if now, done, err = s.kept(ctx, url, size); done {
				return nil
			}
		}
		if now > kept {
			pause, since = s.pause, time.Now()
		}
		kept = now
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// attempt sends what is behind the first bytes.
func (s *Sender) attempt(ctx context.Context, url string, f io.ReaderAt, from, size int64) (kept int64, done bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := time.AfterFunc(calm, func() { cancel(errors.New("nothing of the file goes out any more")) })
	defer lost.Stop()
	b := &body{Reader: io.NewSectionReader(f, from, size-from), sent: from, size: size, tell: s.opt.Progress, lost: lost}
	return s.put(ctx, url, fmt.Sprintf("bytes %d-%d/%d", from, size-1, size), b, size-from)
}

// kept asks how much of the file the service has.
func (s *Sender) kept(ctx context.Context, url string, size int64) (kept int64, done bool, err error) {
	return s.put(ctx, url, fmt.Sprintf("bytes */%d", size), http.NoBody, 0)
}

// put is one PUT with a Content-Range; the response says how much of the file is kept.
func (s *Sender) put(ctx context.Context, url, contentRange string, b io.Reader, length int64) (kept int64, done bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, b)
	if err != nil {
		return 0, false, err
	}
	r.ContentLength = length
	r.Header.Set("Content-Range", contentRange)
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return 0, true, nil
	case http.StatusPermanentRedirect, http.StatusRequestedRangeNotSatisfiable:
		last, isRange := strings.CutPrefix(resp.Header.Get("Range"), "bytes=0-")
		if !isRange {
			return 0, false, nil
		}
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return 0, false, fmt.Errorf("the service says that it has %q", resp.Header.Get("Range"))
		}
		return n + 1, false, nil
	}
	return 0, false, refusal(resp)
}

// body is the rest of a file, on its way.
type body struct {
	io.Reader
	sent, size int64
	reported   time.Time
	tell       func(sent, size int64)
	lost       *time.Timer
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.lost.Reset(calm)
	b.sent += int64(n)
	if now := time.Now(); b.tell != nil && (now.Sub(b.reported) > time.Second || b.sent == b.size) {
		b.reported = now
		b.tell(b.sent, b.size)
	}
	return n, err
}
