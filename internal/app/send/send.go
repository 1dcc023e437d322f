// Package send uploads files to a running service by direct uploads, and resumes uploads that a lost connection or the
// end of an earlier process interrupted. It owns no goroutines.
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
	"path/filepath"
	"strings"
	"time"
)

const (
	// KeptFor is how long the service waits for the file.
	KeptFor     = 24 * time.Hour
	maxResponse = 1 << 20 // bytes
)

// Options is what a Sender needs.
type Options struct {
	Server          string // base URL of the service, without a slash at the end
	TokenID, Secret string // of an access token
	Policy          string // playback policy of the asset: public or signed
	Title           string // of the asset; empty: the name of the file
	// Notes is the folder that remembers unfinished uploads; empty: they are forgotten with the process. Its files hold
	// the URLs of uploads, which are secrets.
	Notes string
	// Progress is told, now and then, how many bytes of how many the service has been sent; nil: nobody wants to know.
	Progress func(sent, size int64)
	// Say is told what happens on the way, in a sentence without a full stop; nil: nobody wants to know.
	Say func(text string)
}

// Result is what became of the file.
type Result struct {
	Upload     string `json:"upload"`
	Asset      string `json:"asset"`
	PlaybackID string `json:"playback_id"`
}

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
	// 308 is "go on", and leads nowhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	return &Sender{opt: o, client: &http.Client{Transport: t, CheckRedirect: stay}, pause: firstPause}
}

// Open opens a file to send. What is not one, or is empty, is an error.
func Open(path string) (*os.File, os.FileInfo, error) {
	f, err := os.Open(path) //nolint:gosec // the file that somebody wants to send
	if err != nil {
		return nil, nil, fmt.Errorf("open file: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("look at file: %w", err)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a file", path)
	case info.Size() == 0:
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		_ = f.Close() // it was only looked at
		return nil, nil, err
	}
	return f, info, nil
}

// File makes an asset of a file. What an earlier process has sent of it is not sent again. A file that was sent is
// remembered until Forget.
func (s *Sender) File(ctx context.Context, path string) (Result, error) {
	f, info, err := Open(path)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	n, err := s.note(path, info)
	if err != nil {
		return Result{}, err
	}
	defer n.close()
	if n.Done != nil {
		s.opt.Say("it was sent before")
		return *n.Done, nil
	}
	if err = s.transfer(ctx, n, path, f, info.Size()); err != nil {
		return Result{}, err
	}
	if now, serr := f.Stat(); serr != nil || now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
		n.forget()
		return Result{}, fmt.Errorf("%s changed while it was sent: delete the asset of upload %s, and send it again",
			path, n.Upload)
	}
	made, err := s.made(ctx, n.Upload)
	if err != nil {
		return Result{}, err
	}
	n.Done = &made
	return made, n.write()
}

// transfer sends what is missing of the file: to the upload that an earlier process began, or to a new one.
func (s *Sender) transfer(ctx context.Context, n *note, path string, f io.ReaderAt, size int64) error {
	resumed := n.Upload != ""
	for {
		if n.Upload == "" {
			if err := s.begin(ctx, n, path); err != nil {
				return err
			}
		}
		err := s.send(ctx, n.URL, f, size, resumed)
		var refused *refusedError
		if resumed && errors.As(err, &refused) && refused.over() {
			s.opt.Say(fmt.Sprintf("the upload that was begun before has ended (%s): the file is sent from its first "+
				"byte",
				refused.text))
			n.Upload, n.URL, resumed = "", "", false
			continue
		}
		if err != nil {
			return fmt.Errorf("send %s: %w", path, err)
		}
		return nil
	}
}

// begin creates an upload, and notes it.
func (s *Sender) begin(ctx context.Context, n *note, path string) error {
	title := s.opt.Title
	if title == "" {
		title = strings.ToValidUTF8(filepath.Base(path), "\uFFFD")
	}
	settings := map[string]any{
		"cors_origin": "*", "timeout": int(KeptFor / time.Second),
		"new_asset_settings": map[string]any{
			"playback_policies": []string{s.opt.Policy}, "meta": map[string]any{"title": title},
		},
	}
	var made struct{ ID, URL string }
	if err := s.call(ctx, http.MethodPost, "/video/v1/uploads", settings, &made); err != nil {
		return fmt.Errorf("create upload: %w", err)
	}
	n.Upload, n.URL = made.ID, made.URL
	return n.write()
}

// made reads what came of an upload whose file is there.
func (s *Sender) made(ctx context.Context, id string) (Result, error) {
	var upload struct {
		Asset string `json:"asset_id"`
	}
	if err := s.call(ctx, http.MethodGet, "/video/v1/uploads/"+id, nil, &upload); err != nil {
		return Result{}, fmt.Errorf("read upload: %w", err)
	}
	var asset struct {
		PlaybackIDs []struct{ ID string } `json:"playback_ids"`
	}
	if err := s.call(ctx, http.MethodGet, "/video/v1/assets/"+upload.Asset, nil, &asset); err != nil {
		return Result{}, fmt.Errorf("read asset: %w", err)
	}
	made := Result{Upload: id, Asset: upload.Asset}
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

// refusedError is a response that says no.
type refusedError struct {
	status int
	text   string
}

func (r *refusedError) Error() string {
	return fmt.Sprintf("the service responds %d: %s", r.status, r.text)
}

// again reports whether the same request may be successful later.
func (r *refusedError) again() bool {
	return r.status >= 500 || r.status == http.StatusTooManyRequests
}

// over reports whether there is no upload at the URL any more that takes a file.
func (r *refusedError) over() bool {
	return r.status == http.StatusNotFound || r.status == http.StatusGone
}

// refusal is what a response says is wrong.
func refusal(resp *http.Response) error {
	var body struct {
		Error struct {
			Messages []string `json:"messages"`
		} `json:"error"`
	}
	text := http.StatusText(resp.StatusCode)
	err := json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(&body)
	if err == nil && len(body.Error.Messages) > 0 {
		text = strings.Join(body.Error.Messages, "; ")
	}
	return &refusedError{resp.StatusCode, text}
}
