// Package s3 is the only package that talks to S3-compatible storage: it opens a bucket and maps its errors to kinds of
// faults, in plain values, on which package blob builds its contract.
//
// It must never know what a key means. Goroutines belong to the SDK and end with the call that started them; idle
// connections end with Close. Errors never contain credentials. Where the options have none, the SDK finds them where
// all AWS tools look (see findCredentials), and renews them.
package s3

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"millrace/internal/fault"
)

const (
	// up to here a sized object goes in one request, without the upload manager; and the bytes of its parts.
	smallBytes      = 8 << 20
	defaultRegion   = "us-east-1"
	maxConnections  = 64
	dialTime        = 5 * time.Second
	handshakeTime   = 10 * time.Second
	responseTimeout = 60 * time.Second // until the head of a response comes, see patient
	idleTime        = 90 * time.Second
	createTime      = time.Second // that a start waits for its bucket
	// for taking back the parts of an upload that was given up: the storage bills them for ever.
	graceTime   = 10 * time.Second
	contentType = "application/octet-stream" // what a thing is follows from its key, at serving
)

// Options names a bucket and who may use it.
type Options struct {
	Bucket          string
	Endpoint        string // http(s)://host[:port]; empty for AWS itself
	Region          string // empty: what the AWS tools are set to, else us-east-1, which most compatible servers expect
	AccessKeyID     string // empty: see findCredentials
	SecretAccessKey string
	SessionToken    string // of temporary credentials
	Prefix          string // before every key; a slash is added when it doesn't end in one
	PathStyle       bool   // http://host/bucket/key, as most compatible servers need, instead of http://bucket.host/key
	// Create makes the bucket when it isn't there: when it is opened or, where the storage is away then, with the first
	// object that is stored.
	Create bool

	stall time.Duration     // 0: stallTime
	base  http.RoundTripper // nil: the network
}

// Bucket is an open bucket.
type Bucket struct {
	name, prefix string
	client       *s3.Client
	uploads      *transfermanager.Client
	transport    *http.Transport
	conditions   conditions
	makes        bool // makes itself where it is missing
	where        *types.CreateBucketConfiguration
}

// Open checks the options and connects to nothing, except to make the bucket when o.Create is set. It succeeds while
// the storage is away.
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
	if o.base == nil {
		o.base = b.transport
	}
	client := &http.Client{
		Transport:     patient{o.base, o.stall},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	keys, region, err := credentialsOf(ctx, o)
	if err != nil {
		return nil, err
	}
	settings := s3.Options{
		Region:       cmp.Or(o.Region, region, defaultRegion),
		Credentials:  keys,
		HTTPClient:   client,
		Retryer:      newRetryer(),
		UsePathStyle: o.PathStyle,
		// Compatible servers refuse the checksums that newer SDKs add of their own accord.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if o.Endpoint != "" {
		settings.BaseEndpoint = aws.String(o.Endpoint)
	}
	b.client = s3.New(settings)
	settings.Retryer = retry.NewStandard() // else all of a large object would be sent again for one piece
	b.uploads = transfermanager.New(s3.New(settings), func(t *transfermanager.Options) {
		t.PartSizeBytes, t.MultipartUploadThreshold = smallBytes, smallBytes
		t.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		t.FailTimeout = graceTime
	})
	if b.makes, b.where = o.Create, location(settings.Region); b.makes {
		soon, cancel := context.WithTimeout(ctx, createTime)
		defer cancel()
		if err := b.create(soon); err != nil && (ctx.Err() != nil || !passes(err)) {
			b.transport.CloseIdleConnections()
			return nil, err
		}
	}
	return b, nil
}

// passes reports whether an error of the storage may pass without anybody mending something.
func passes(err error) bool {
	return fault.Is(err, fault.Unavailable) && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrNoCredentials)
}

// location is the place a bucket is made at: AWS wants none for its oldest region.
func location(region string) *types.CreateBucketConfiguration {
	if region == defaultRegion {
		return nil
	}
	return &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
}

func (o Options) check() error {
	var errs fault.List
	if o.Bucket == "" || strings.ContainsAny(o.Bucket, "/ ") {
		errs.Add("S3 storage: bucket must be a name")
	}
	if (o.AccessKeyID == "") != (o.SecretAccessKey == "") {
		errs.Add("S3 storage: access_key_id and secret_access_key belong together")
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
	d := &dialer{net.Dialer{Timeout: dialTime, Control: keepFewUnsent}, stall}
	return &http.Transport{
		DialContext:         d.dial,
		TLSHandshakeTimeout: handshakeTime,
		MaxIdleConns:        maxConnections,
		MaxIdleConnsPerHost: maxConnections,
		IdleConnTimeout:     idleTime,
		DisableCompression:  true,
	}
}

// newRetryer has the SDK send a request three times, with pauses of at most six seconds together, when the response is
// an error or the connection is refused or lost. What was waited for in vain is not waited for again: whoever asked is
// to know, and asks again in its own time. Pieces of large objects, for which nobody waits, are.
func newRetryer() aws.Retryer {
	waited := retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
		late, is := errors.AsType[net.Error](err)
		if is && late.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) { // what url.Error wraps it does not ask
			return aws.FalseTernary
		}
		return aws.UnknownTernary
	})
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.Retryables = append([]retry.IsErrorRetryable{waited}, o.Retryables...)
	})
}

func (b *Bucket) create(ctx context.Context) error {
	_, err := b.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &b.name, CreateBucketConfiguration: b.where})
	var owned *types.BucketAlreadyOwnedByYou
	var exists *types.BucketAlreadyExists
	if err == nil || errors.As(err, &owned) || errors.As(err, &exists) {
		return nil
	}
	return explain(ctx, err, "create bucket "+b.name)
}

// unstored is the error of an object that was not stored. A missing bucket is made for the next attempt, if it may be.
func (b *Bucket) unstored(ctx context.Context, err error, doing string) error {
	if b.makes && codeOf(err) == noSuchBucket {
		if failed := b.create(ctx); failed != nil {
			return failed
		}
	}
	return explain(ctx, err, doing)
}

// Close ends idle connections.
func (b *Bucket) Close() error {
	b.transport.CloseIdleConnections()
	return nil
}
