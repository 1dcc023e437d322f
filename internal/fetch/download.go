package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"millrace/internal/fault"
)

const (
	copyBytes     = 256 << 10
	progressEvery = 250 * time.Millisecond
	defaultIdle   = 30 * time.Second
	defaultRate   = 16 << 10    // bytes a second: 128 kbit/s
	rateGrace     = time.Minute // that a response may take to get as fast
	maxFieldBytes = 512
)

// Limits of one download.
type Limits struct {
	MaxBytes int64         // above 0
	Total    time.Duration // for all attempts and waits together; 0 leaves it to the context
	Idle     time.Duration // without a byte, after which an attempt is given up; 0 is 30 s
	// bytes a second that a server must send in the mean of a response, after its first minute; 0 is 16 KiB
	Rate int64
}

// Info is what the server said of a file.
type Info struct {
	Size int64 `json:"-"` // bytes received
	// As sent with the first byte, 512 bytes at most, and not to be trusted.
	ContentType  string `json:"content_type,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// Download streams rawURL into the file path. What has come is kept in path.part while it is under way; after a break
// it goes on from there with Range and If-Range, within this call (Options.Retry) and in a later one with the same
// URL and path, also in another process. A file that has changed meanwhile, or whose server can't continue, is fetched
// from its start. progress (may be nil) hears of the bytes so far and in total (-1 when unknown) a few times a second,
// and at the end. Two downloads must not share a path.
//
// Errors: fault.Invalid for a URL, address, name, certificate or response (4xx) that trying again won't change,
// fault.TooLarge above limits.MaxBytes, fault.Unavailable for 5xx, timeouts and breaks, the context's own error. After
// Invalid and TooLarge nothing is left; after the others the bytes wait for the next call, or for Discard. A disk that
// has no room for the file is fault.Unavailable too, and nothing is left then either.
func (c *Client) Download(
	ctx context.Context, rawURL, path string, limits Limits, progress func(done, total int64),
) (info Info, err error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return Info{}, err
	}
	if limits.MaxBytes <= 0 {
		return Info{}, errors.New("download without a limit of bytes")
	}
	limits.Idle, limits.Rate = orElse(limits.Idle, defaultIdle), orElse(limits.Rate, defaultRate)
	if limits.Total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limits.Total, errTotal)
		defer cancel()
	}
	ctx, span := begin(ctx, u)
	defer func() { end(span, info, err) }()
	if progress == nil {
		progress = func(int64, int64) {}
	}
	part, err := openPartial(path, rawURL)
	if err != nil {
		return Info{}, err
	}
	d := &download{client: c, url: u, part: part, limits: limits, progress: progress, buf: make([]byte, copyBytes)}
	err = c.again(ctx, u, func() int64 { return d.furthest }, func() error { return d.attempt(ctx) })
	if err == nil {
		err = part.finish()
		progress(part.size, part.size)
		info = part.note.Info
		info.Size = part.size
		return info, err
	}
	_ = part.file.Close()                                   // nothing is lost that would be used
	if fault.Permanent(err) || errors.Is(err, errNoSpace) { // what has no room makes room
		err = errors.Join(err, discardParts(path))
	}
	return Info{}, err
}

func discardParts(path string) error {
	return errors.Join(ignoreAbsent(os.Remove(partName(path))), ignoreAbsent(os.Remove(noteName(path))))
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

type download struct {
	client     *Client
	url        *url.URL
	part       *partial
	limits     Limits
	progress   func(done, total int64)
	lastReport time.Time
	furthest   int64 // most bytes that any attempt has reached
	looked     int64 // bytes in the file when it was last asked whether the disk has room
	buf        []byte
}

// attempt sends one request and writes its response.
func (d *download) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{}
	from := d.part.size
	if from > 0 {
		if d.part.note.Validator == "" {
			from = 0
		} else {
			header.Set("Range", fmt.Sprintf("bytes=%d-", from))
			header.Set("If-Range", d.part.note.Validator)
		}
	}
	resp, err := d.client.open(ctx, d.url, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	complete, err := d.begin(resp, from)
	if err != nil || complete {
		return err
	}
	if err := d.checkSpace(d.part.note.Total - d.part.size); err != nil {
		return err
	}
	if err := d.copy(ctx, cancel, resp.Body); err != nil {
		return err
	}
	return d.verify()
}

// begin makes the file fit the response; complete says that nothing is missing.
func (d *download) begin(resp *http.Response, from int64) (complete bool, err error) {
	switch {
	case resp.StatusCode == http.StatusOK:
		if resp.ContentLength > d.limits.MaxBytes {
			return false, tooLarge(d.url, d.limits.MaxBytes)
		}
		return false, d.part.restart(note{
			URL: d.part.note.URL, Validator: validator(resp.Header), Total: resp.ContentLength, Info: infoOf(resp, 0),
		})
	case from == 0:
		return false, fault.New(fault.Invalid, "%s: %s though the whole was asked for", show(d.url),
			describeStatus(resp))
	case resp.StatusCode == http.StatusPartialContent:
		start, total, ok := contentRange(resp.Header.Get("Content-Range"))
		// or the end of this response could be taken for the end of the file
		known := total >= 0 || d.part.note.Total >= 0
		if !ok || !known || start != from || d.otherVersion(resp, total) {
			return false, d.startOver("the server continues with something else")
		}
		if total > d.limits.MaxBytes {
			return false, tooLarge(d.url, d.limits.MaxBytes)
		}
		d.part.note.Total = max(d.part.note.Total, total)
		return false, nil
	}
	// 416: all of it was there already, or it has become shorter.
	if _, total, ok := contentRange(resp.Header.Get("Content-Range")); ok && total == from &&
		!d.otherVersion(resp, total) {
		return true, nil
	}
	return false, d.startOver("the server has nothing to continue with")
}

// otherVersion reports whether the response is openly not about the bytes we have.
func (d *download) otherVersion(resp *http.Response, total int64) bool {
	n := d.part.note
	if n.Total >= 0 && total >= 0 && n.Total != total {
		return true
	}
	tag := resp.Header.Get("ETag")
	return tag != "" && strings.HasPrefix(n.Validator, `"`) && tag != n.Validator
}

// startOver drops what we have; the next attempt asks for the whole.
func (d *download) startOver(why string) error {
	if err := d.part.restart(note{URL: d.part.note.URL, Total: -1}); err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "%s: %s", show(d.url), why)
}

// errSlow is final for one call: a later call goes on, and others get the place meanwhile.
var errSlow = errors.New("it sends too slowly")

// pace is errSlow when a response of so many bytes has taken too long to come.
func (d *download) pace(n int64, took time.Duration) error {
	if took <= rateGrace || float64(n) >= float64(d.limits.Rate)*took.Seconds() {
		return nil
	}
	return remote(fault.Wrap(fault.Unavailable, errSlow,
		"%s: the server sent %.0f bytes a second; at least %d are needed",
		show(d.url), float64(n)/took.Seconds(), d.limits.Rate))
}

// copy writes the body until its end, a limit, a pause of more than limits.Idle, or a mean rate below limits.Rate.
func (d *download) copy(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader) error {
	idle := time.AfterFunc(d.limits.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	var came int64
	var took time.Duration // to come; not to be written
	for {
		asked := time.Now()
		n, err := body.Read(d.buf)
		came, took = came+int64(n), took+time.Since(asked)
		if n > 0 {
			idle.Reset(d.limits.Idle)
			if d.part.size+int64(n) > d.limits.MaxBytes {
				return tooLarge(d.url, d.limits.MaxBytes)
			}
			if werr := d.write(d.buf[:n]); werr != nil {
				return werr
			}
			d.furthest = max(d.furthest, d.part.size)
			if now := time.Now(); now.Sub(d.lastReport) >= progressEvery {
				d.lastReport = now
				d.progress(d.part.size, d.part.note.Total)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return explain(ctx, d.url, err)
		}
		if err := d.pace(came, took); err != nil {
			return err
		}
	}
}

// verify compares what came with what was announced; where nothing was, the end of the response is the end of the file.
func (d *download) verify() error {
	if total := d.part.note.Total; total >= 0 && d.part.size != total {
		if d.part.size > total {
			return d.startOver("the server sent more than it announced")
		}
		return fault.New(fault.Unavailable, "%s ended after %d of %d bytes", show(d.url), d.part.size, total)
	}
	return nil
}

func infoOf(resp *http.Response, size int64) Info {
	get := func(name string) string {
		v := resp.Header.Get(name)
		return v[:min(len(v), maxFieldBytes)]
	}
	return Info{Size: size, ContentType: get("Content-Type"), ETag: get("ETag"), LastModified: get("Last-Modified")}
}

// contentRange reads "bytes 5-9/10", "bytes 5-9/*" (total -1) and "bytes */10" (start -1), RFC 9110 14.4.
func contentRange(s string) (start, total int64, ok bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, 0, false
	}
	bounds, size, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, 0, false
	}
	total, ok = natural(size, size == "*")
	if !ok {
		return 0, 0, false
	}
	if bounds == "*" {
		return -1, total, true
	}
	first, last, ok := strings.Cut(bounds, "-")
	if !ok {
		return 0, 0, false
	}
	start, okStart := natural(first, false)
	end, okEnd := natural(last, false)
	if !okStart || !okEnd || end < start || total >= 0 && end >= total {
		return 0, 0, false
	}
	return start, total, true
}

func natural(s string, unknown bool) (int64, bool) {
	if unknown {
		return -1, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}
