package s3

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/internal/fault"
)

// Object is what is known of one.
type Object struct {
	Size    int64
	ModTime time.Time
}

// Read opens n bytes from off, n not 0, or all to the end when n < 0, in one request.
func (b *Bucket) Read(ctx context.Context, key string, off, n int64) (io.ReadCloser, Object, error) {
	in := &s3.GetObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)}
	switch {
	case n > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	case off > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", off))
	}
	out, err := b.client.GetObject(ctx, in)
	if err != nil {
		return nil, Object{}, explain(ctx, err, "read object "+key)
	}
	size, err := sizeOf(out)
	if err != nil {
		_ = out.Body.Close()
		return nil, Object{}, fmt.Errorf("read object %s: %w", key, err)
	}
	return &body{ReadCloser: out.Body, ctx: ctx, key: key}, Object{
		Size:    size,
		ModTime: aws.ToTime(out.LastModified),
	}, nil
}

// sizeOf is how many bytes the whole object has that a part was asked of: what stands behind the slash of "bytes
// 10-14/27".
func sizeOf(out *s3.GetObjectOutput) (int64, error) {
	if out.ContentRange == nil {
		return aws.ToInt64(out.ContentLength), nil
	}
	_, whole, _ := strings.Cut(*out.ContentRange, "/")
	size, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the storage responds with the range %q", *out.ContentRange)
	}
	return size, nil
}

// body marks errors that come in the middle of an object.
type body struct {
	io.ReadCloser
	ctx context.Context
	key string
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // io.EOF is never wrapped by a reader
		err = explain(b.ctx, err, "read object "+b.key)
	}
	return n, err
}

// Stat asks for size and age.
func (b *Bucket) Stat(ctx context.Context, key string) (Object, error) {
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key)})
	if err != nil {
		return Object{}, explain(ctx, err, "look up object "+key)
	}
	return Object{Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified)}, nil
}

// Listed is an object of a list.
type Listed struct {
	Key string
	Object
}

// Objects yields the objects whose keys begin with prefix, in the order of the storage, 1000 to a request.
func (b *Bucket) Objects(ctx context.Context, prefix string) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{
			Bucket: &b.name,
			Prefix: aws.String(b.prefix + prefix),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Listed{}, explain(ctx, err, "list objects"))
				return
			}
			for _, o := range page.Contents {
				key := strings.TrimPrefix(aws.ToString(o.Key), b.prefix)
				if !yield(Listed{key, Object{Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified)}}, nil) {
					return
				}
			}
		}
	}
}

// List yields keys as Objects does.
func (b *Bucket) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for o, err := range b.Objects(ctx, prefix) {
			if !yield(o.Key, err) {
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
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}
