package s3

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Upload stores r under key. Of an r of unknown or great length, parts of 8 MiB are held in memory, six at most. When
// it fails, or ctx ends, the parts that were sent are taken back.
func (b *Bucket) Upload(ctx context.Context, key string, r io.Reader) error {
	var err error
	if body, ok := small(r); ok {
		_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &b.name, Key: aws.String(b.prefix + key), Body: body, ContentType: aws.String(contentType),
		})
	} else {
		_, err = b.uploads.UploadObject(ctx, &transfermanager.UploadObjectInput{
			Bucket:      &b.name,
			Key:         aws.String(b.prefix + key),
			Body:        &endingReader{ctx: ctx, r: r},
			ContentType: aws.String(contentType),
		})
	}
	if err != nil {
		return b.unstored(ctx, err, "store object "+key)
	}
	return nil
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

// small recognises a reader of memory (bytes.Reader, strings.Reader) or of a file (io.SectionReader) that the SDK can
// send, and send again.
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
