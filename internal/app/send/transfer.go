package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// calm is how long nothing of the file may go out before the connection counts as lost, or the response may take.
	calm = time.Minute
	// patience is how long it is tried again while nothing more of the file is kept.
	patience            = 10 * time.Minute
	firstPause, longest = time.Second, 30 * time.Second
	// reports is how often Progress is told.
	reports = 200 * time.Millisecond
)

// send sends the file until the service has all of it. Where an earlier process has sent some, it asks first how much
// the service has.
func (s *Sender) send(ctx context.Context, url string, f io.ReaderAt, size int64, resumed bool) error {
	kept, pause, since := int64(0), s.pause, time.Now()
	attempt := func() (int64, bool, error) { return s.attempt(ctx, url, f, kept, size) }
	if resumed {
		attempt = func() (int64, bool, error) { return s.kept(ctx, url, size) }
	}
	for {
		now, done, err := attempt()
		for err != nil && !done {
			var refused *refusedError
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.As(err, &refused) && !refused.again():
				return err
			case time.Since(since) > patience:
				return fmt.Errorf("nothing more was kept for %v: %w", patience, err)
			}
			s.opt.Say(fmt.Sprintf("%v; it goes on in %v", bare(err), pause))
			if err = wait(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, longest)
			now, done, err = s.kept(ctx, url, size)
		}
		if done {
			return nil
		}
		if resumed {
			s.opt.Say(fmt.Sprintf("%d %% of it was sent before", 100*now/size))
		}
		if now > kept {
			pause, since = s.pause, time.Now()
		}
		kept, resumed = now, false
		attempt = func() (int64, bool, error) { return s.attempt(ctx, url, f, kept, size) }
	}
}

// bare is an error without the URL, which is a secret.
func bare(err error) error {
	if with, ok := errors.AsType[*neturl.Error](err); ok {
		return with.Err
	}
	return err
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
func (s *Sender) attempt(ctx context.Context, url string, f io.ReaderAt, from, size int64) (int64, bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := time.AfterFunc(calm, func() { cancel(errors.New("nothing of the file goes out any more")) })
	defer lost.Stop()
	rest := io.NewSectionReader(f, from, size-from)
	b := &body{Reader: rest, sent: from, size: size, tell: s.opt.Progress, lost: lost}
	return s.put(ctx, url, fmt.Sprintf("bytes %d-%d/%d", from, size-1, size), b, size-from)
}

// kept asks how much of the file the service has.
func (s *Sender) kept(ctx context.Context, url string, size int64) (kept int64, done bool, err error) {
	return s.put(ctx, url, fmt.Sprintf("bytes */%d", size), http.NoBody, 0)
}

// put is one PUT with a Content-Range; the response says how much of the file is kept, or that all is.
func (s *Sender) put(ctx context.Context, url, contentRange string, b io.Reader, length int64) (int64, bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url, b)
	if err != nil {
		return 0, false, err
	}
	r.ContentLength = length
	r.Header.Set("Content-Range", contentRange)
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, false, bare(err)
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
	if now := time.Now(); now.Sub(b.reported) > reports || b.sent == b.size && n > 0 {
		b.reported = now
		b.tell(b.sent, b.size)
	}
	return n, err
}
