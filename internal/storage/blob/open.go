package blob

import (
	"context"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/storage/blob/s3"
)

// Options says where objects are kept: in Dir, or in the bucket of S3. Exactly one of them is set.
type Options struct {
	// Dir is a folder; it is made when it is not there.
	Dir string
	// NoSync leaves it to the operating system when a folder's files reach the disk: faster, and a loss of power may
	// take objects that were reported as stored. The end of the process takes nothing either way.
	NoSync bool
	// S3 is a bucket. Credentials are plain values here, wherever the caller has them from.
	S3 s3.Options
	// Scratch is where a bucket's pieces of 8 MiB gather, one for each object that comes bit by bit; empty: the
	// system's folder for such files.
	Scratch string
}

// Open opens the storage. A folder is made and tried for writing; a bucket is only asked for when S3.Create is set,
// so that a start does not depend on it.
func Open(ctx context.Context, o Options) (Store, error) {
	switch {
	case o.Dir != "" && o.S3.Bucket != "":
		return nil, fault.New(fault.Invalid, "storage is a folder or a bucket, not both")
	case o.Dir != "":
		return openFolder(o.Dir, o.NoSync)
	case o.S3.Bucket != "":
		bucket, err := s3.Open(ctx, o.S3)
		if err != nil {
			return nil, err
		}
		return &remote{bucket: bucket, scratch: o.Scratch}, nil
	}
	return nil, fault.New(fault.Invalid, "storage has neither a folder nor a bucket")
}

// OpenURL opens what ParseURL makes of rawURL.
func OpenURL(ctx context.Context, rawURL string) (Store, error) {
	o, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Open(ctx, o)
}

// ParseURL reads a storage address: a plain path or file:///dir (with ?sync=false for Options.NoSync), or
// s3://bucket?endpoint=&region=&access_key_id=&secret_access_key=&session_token=&path_style=&prefix=&create=.
// Its errors never repeat the address, which may hold a secret.
func ParseURL(rawURL string) (Options, error) {
	scheme, _, ok := strings.Cut(rawURL, "://")
	if !ok {
		if rawURL == "" || strings.ContainsRune(rawURL, 0) {
			return Options{}, fault.New(fault.Invalid, "storage path is empty or has a zero byte")
		}
		return Options{Dir: filepath.Clean(rawURL)}, nil
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return Options{}, fault.New(fault.Invalid,
			"storage URL can't be read: it has a character that must be percent-encoded")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Options{}, fault.New(fault.Invalid, "storage URL has parameters that can't be read: percent-encode them")
	}
	p := &params{values: q}
	var o Options
	switch scheme {
	case "file":
		o = parseFolder(u, p)
	case "s3":
		o = parseBucket(u, p)
	default:
		return Options{}, fault.New(fault.Invalid, "storage URL begins with %q: a path, file:// or s3:// is allowed",
			scheme+"://")
	}
	return o, p.done()
}

func parseFolder(u *url.URL, p *params) Options {
	o := Options{Dir: filepath.Clean(u.Path), NoSync: !p.flag("sync", true)}
	if u.Host != "" || u.Path == "" {
		p.errs.Add("storage URL names a host or no folder: write file:///folder with three slashes")
	}
	return o
}

func parseBucket(u *url.URL, p *params) Options {
	o := s3.Options{
		Bucket:          u.Host,
		Endpoint:        p.text("endpoint"),
		Region:          p.text("region"),
		AccessKeyID:     p.text("access_key_id"),
		SecretAccessKey: p.text("secret_access_key"),
		SessionToken:    p.text("session_token"),
		Prefix:          p.text("prefix"),
		PathStyle:       p.flag("path_style", false),
		Create:          p.flag("create", false),
	}
	if o.Bucket == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		p.errs.Add("storage URL is s3://bucket?parameters: a path goes into prefix=, credentials into access_key_id= " +
			"and secret_access_key=")
	}
	return Options{S3: o}
}

// params reads query parameters and complains about those that nobody asked for.
type params struct {
	values url.Values
	errs   fault.List
}

func (p *params) text(name string) string {
	v := p.values.Get(name)
	p.values.Del(name)
	return v
}

func (p *params) flag(name string, otherwise bool) bool {
	v := p.text(name)
	if v == "" {
		return otherwise
	}
	on, err := strconv.ParseBool(v)
	if err != nil {
		p.errs.Add("storage URL: %s must be true or false", name)
	}
	return on
}

func (p *params) done() error {
	for name := range p.values {
		p.errs.Add("storage URL: unknown parameter %q", name)
	}
	return p.errs.Err()
}
