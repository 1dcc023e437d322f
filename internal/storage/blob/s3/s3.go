// Package s3 is the one place that speaks to S3-compatible storage: it opens a bucket and maps its errors to fault
// kinds, in plain values, so that package blob can put its contract on top.
//
// It must never know what a key means. Goroutines belong to the SDK and end with the call that started them; idle
// connections end with Close. Credentials are in no error.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"millrace/internal/fault"
)

const (
	smallBytes     = 8 << 20 // up to here a sized object goes in one request, without the upload manager
	maxConnections = 64
	dialTime       = 5 * time.Second
	handshakeTime  = 10 * time.Second
	answerTime     = 60 * time.Second // from the end of a request to the head of its answer
	idleTime       = 90 * time.Second
	graceTime      = 10 * time.Second           // for taking back the parts of an upload that was given up
	contentType    = "application/octet-stream" // what a thing is follows from its key, at serving
)

// Options names a bucket and who may use it.
type Options struct {
	Bucket          string
	Endpoint        string // http(s)://host[:port]; empty for AWS itself
	Region          string // empty is us-east-1, which most compatible servers expect
	AccessKeyID     string
	SecretAccessKey string
	SessionToken    string // of temporary credentials
	Prefix          string // before every key; a slash is added when it doesn't end in one
	PathStyle       bool   // http://host/bucket/key, as most compatible servers need, instead of http://bucket.host/key
	Create          bool   // make the bucket when it isn't there

	stall time.Duration // 0: stallTime
}

// Bucket is an open bucket.
type Bucket struct {
	name, prefix string
	client       *s3.Client
	bucket       *blob.Bucket
	transport    *http.Transport
	conditions   conditions
}

// Open checks the options and connects to nothing, except to make the bucket when o.Create is set.
func Open(ctx context.Context, o Options) (*Bucket, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.stall == 0 {
		o.stall = stallTime
	}
	b := &Bucket{name: o.Bucket, prefix: strings.Trim(o.Prefix, "/"), transport: newTransport(o.stall)}
	if b.prefix != "" {
		b.prefix += "/"
	}
	b.client = s3.New(s3.Options{
		Region:      orElse(o.Region, "us-east-1"),
		Credentials: credentials.NewStaticCredentialsProvider(o.AccessKeyID, o.SecretAccessKey, o.SessionToken),
		HTTPClient: &http.Client{
			Transport:     patient{b.transport, o.stall},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		UsePathStyle: o.PathStyle,
		// Compatible servers refuse the checksums that newer SDKs add of their own accord.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, func(c *s3.Options) {
		if o.Endpoint != "" {
			c.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	if o.Create {
		if err := b.create(ctx, location(o.Region)); err != nil {
			b.transport.CloseIdleConnections()
			return nil, err
		}
	}
	var err error
	b.bucket, err = s3blob.OpenBucket(ctx, b.client, o.Bucket, &s3blob.Options{
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", o.Bucket, err)
	}
	return b, nil
}

// location is the place a bucket is made at: AWS wants none for its oldest region.
func location(region string) *types.CreateBucketConfiguration {
	if region == "" || region == "us-east-1" {
		return nil
	}
	return &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
}

func (o Options) check() error {
	var errs fault.List
	if o.Bucket == "" || strings.ContainsAny(o.Bucket, "/ ") {
		errs.Add("S3 storage: bucket must be a name")
	}
	if o.AccessKeyID == "" || o.SecretAccessKey == "" {
		errs.Add("S3 storage: access_key_id and secret_access_key are needed")
	}
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			errs.Add("S3 storage: endpoint must be http://host:port or https://host:port, without credentials")
		}
	}
	return errs.Err()
}

func newTransport(stall time.Duration) *http.Transport {
	d := &dialer{net.Dialer{Timeout: dialTime}, stall}
	return &http.Transport{
		DialContext:           d.dial,
		TLSHandshakeTimeout:   handshakeTime,
		ResponseHeaderTimeout: answerTime,
		MaxIdleConns:          maxConnections,
		MaxIdleConnsPerHost:   maxConnections,
		IdleConnTimeout:       idleTime,
		DisableCompression:    true,
	}
}

func (b *Bucket) create(ctx context.Context, where *types.CreateBucketConfiguration) error {
	_, err := b.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &b.name, CreateBucketConfiguration: where})
	var owned *types.BucketAlreadyOwnedByYou
	var exists *types.BucketAlreadyExists
	if err == nil || errors.As(err, &owned) || errors.As(err, &exists) {
		return nil
	}
	return explain(ctx, err, "create bucket "+b.name)
}

// Upload stores r under key. Of an r of unknown or great length, parts of 8 MiB are held in memory, five at most.
func (b *Bucket) Upload(ctx context.Context, key string, r io.Reader) error {
	var err error
	if body, ok := small(r); ok {
		_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &b.name, Key: aws.String(b.prefix + key), Body: body, ContentType: aws.String(contentType),
		})
	} else {
		err = b.uploadParts(ctx, b.prefix+key, r)
	}
	if err != nil {
		return explain(ctx, err, "store object "+key)
	}
	return nil
}

// uploadParts ends at the next read after ctx has, and its requests only some time later: the upload manager takes
// back the parts that it sent under the same context, and the storage would bill them for ever.
func (b *Bucket) uploadParts(ctx context.Context, key string, r io.Reader) error {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	grace := time.AfterFunc(time.Hour, cancel)
	grace.Stop()
	defer grace.Stop()
	defer context.AfterFunc(ctx, func() { grace.Reset(graceTime) })()
	return b.bucket.Upload(lasting, key, &endingReader{ctx: ctx, r: r}, &blob.WriterOptions{ContentType: contentType})
}

// endingReader ends with the error of its context.
type endingReader struct {
	ctx context.Context
	r   io.Reader
}

func (e *endingReader) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := e.r.Read(p)
	if cause := e.ctx.Err(); cause != nil && err != nil {
		err = cause // also instead of the end, after which the object would be stored
	}
	return n, err
}

// small recognises a reader of memory (bytes.Reader, strings.Reader) or of a file (io.SectionReader) that the SDK can send, and send again.
func small(r io.Reader) (io.ReadSeeker, bool) {
	body, ok := r.(io.ReadSeeker)
	if !ok {
		return nil, false
	}
	if part, isFile := r.(*io.SectionReader); isFile {
		return body, part.Size() <= smallBytes
	}
	sized, ok := r.(interface{ Len() int })
	return body, ok && sized.Len() <= smallBytes
}

// Object is what is known of one.
type Object struct {
	Size    int64
	ModTime time.Time
}

// Read opens n bytes from off, or all to the end when n < 0, in one request.
func (b *Bucket) Read(ctx context.Context, key string, off, n int64) (io.ReadCloser, Object, error) {
	r, err := b.bucket.NewRangeReader(ctx, b.prefix+key, off, n, nil)
	if err != nil {
		return nil, Object{}, explain(ctx, err, "read object "+key)
	}
	return &body{ReadCloser: r, ctx: ctx, key: key}, Object{Size: r.Size(), ModTime: r.ModTime()}, nil
}

// body marks errors that come in the middle of an object.
type body struct {
	io.ReadCloser
	ctx context.Context
	key string
}

func (r *body) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF is never wrapped by a reader
		err = explain(r.ctx, err, "read object "+r.key)
	}
	return n, err
}

// Stat asks for size and age.
func (b *Bucket) Stat(ctx context.Context, key string) (Object, error) {
	attrs, err := b.bucket.Attributes(ctx, b.prefix+key)
	if err != nil {
		return Object{}, explain(ctx, err, "look up object "+key)
	}
	return Object{Size: attrs.Size, ModTime: attrs.ModTime}, nil
}

// List yields keys in the order of the storage, 1000 to a request.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		it := b.bucket.List(&blob.ListOptions{Prefix: b.prefix + prefix})
		for {
			object, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", explain(ctx, err, "list objects"))
				return
			}
			if !yield(strings.TrimPrefix(object.Key, b.prefix), nil) {
				return
			}
		}
	}
}

// Delete removes one object, absent or not, in one request.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if err == nil {
		return nil
	}
	err = explain(ctx, err, "delete object "+key)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// Close ends idle connections.
func (b *Bucket) Close() error {
	err := b.bucket.Close()
	b.transport.CloseIdleConnections()
	return err
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
