package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"millrace/internal/fault"
)

// A multipart upload has pieces of PieceBytes, all but the last, and at most MaxPieces of them. Some storages want all
// of one size; none takes pieces of less than 5 MiB.
const (
	PieceBytes = 8 << 20
	MaxPieces  = 10_000
)

// Multipart is an object that is sent in pieces, by one process after another.
type Multipart struct {
	bucket *Bucket
	key    string
	id     *string
	pieces []types.CompletedPart
	size   int64
}

// Size is how many bytes the pieces have together.
func (m *Multipart) Size() int64 { return m.size }

// Begin begins a multipart upload.
func (b *Bucket) Begin(ctx context.Context, key string) (*Multipart, error) {
	out, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: aws.String(b.prefix + key), ContentType: aws.String(contentType),
	})
	if err != nil {
		return nil, b.unstored(ctx, err, "begin object "+key)
	}
	return &Multipart{bucket: b, key: key, id: out.UploadId}, nil
}

// Continue finds the multipart upload that was begun for key and has the most bytes; nil: there is none. The others are
// taken back.
func (b *Bucket) Continue(ctx context.Context, key string) (*Multipart, error) {
	ids, err := b.begun(ctx, key)
	if err != nil {
		return nil, err
	}
	var best *Multipart
	for _, id := range ids {
		m := &Multipart{bucket: b, key: key, id: id}
		if err = m.list(ctx); err != nil {
			return nil, err
		}
		if best == nil || m.size > best.size {
			best, m = m, best
		}
		if m != nil {
			if err = m.abort(ctx); err != nil {
				return nil, err
			}
		}
	}
	return best, nil
}

// Begun is how many bytes the pieces have that Continue would go on behind; 0: there are none.
func (b *Bucket) Begun(ctx context.Context, key string) (size int64, err error) {
	ids, err := b.begun(ctx, key)
	for _, id := range ids {
		m := &Multipart{bucket: b, key: key, id: id}
		if err = m.list(ctx); codeOf(err) == "NoSuchUpload" { // it has just been completed or aborted
			err = nil
			continue
		}
		if err != nil {
			return 0, err
		}
		size = max(size, m.size)
	}
	return size, err
}

// begun lists the multipart uploads of a key.
func (b *Bucket) begun(ctx context.Context, key string) (ids []*string, err error) {
	for m, err := range b.Multiparts(ctx, key) {
		if err != nil {
			return nil, fmt.Errorf("look for object %s: %w", key, err)
		}
		if m.Key == key {
			ids = append(ids, m.id)
		}
	}
	return ids, nil
}

// Underway is a multipart upload that was begun, by whomever, and neither completed nor aborted.
type Underway struct {
	Key string
	At  time.Time
	id  *string
}

// Multiparts yields the multipart uploads of the keys that begin with prefix, 1000 to a request. Storages may give them
// in any order, and some (MinIO) only those of a prefix that is a key.
func (b *Bucket) Multiparts(ctx context.Context, prefix string) iter.Seq2[Underway, error] {
	return func(yield func(Underway, error) bool) {
		in := &s3.ListMultipartUploadsInput{Bucket: &b.name, Prefix: aws.String(b.prefix + prefix)}
		for {
			out, err := b.client.ListMultipartUploads(ctx, in)
			if err != nil {
				yield(Underway{}, explain(ctx, err, "list multipart uploads"))
				return
			}
			for _, u := range out.Uploads {
				key, ours := strings.CutPrefix(aws.ToString(u.Key), b.prefix)
				if ours && !yield(Underway{Key: key, At: aws.ToTime(u.Initiated), id: u.UploadId}, nil) {
					return
				}
			}
			if !aws.ToBool(out.IsTruncated) || out.NextKeyMarker == nil {
				return
			}
			in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
		}
	}
}

// list reads which pieces there are, up to the first that is missing or short.
func (m *Multipart) list(ctx context.Context) error {
	pages := s3.NewListPartsPaginator(m.bucket.client, &s3.ListPartsInput{
		Bucket:   &m.bucket.name,
		Key:      aws.String(m.bucket.prefix + m.key),
		UploadId: m.id,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return explain(ctx, err, "list the pieces of object "+m.key)
		}
		for _, p := range page.Parts {
			if aws.ToInt32(p.PartNumber) != int32(len(m.pieces)+1) || aws.ToInt64(p.Size) != PieceBytes {
				return nil
			}
			m.pieces = append(m.pieces, types.CompletedPart{ETag: p.ETag, PartNumber: p.PartNumber})
			m.size += PieceBytes
		}
	}
	return nil
}

// Add sends the next piece; one of its number that is there is replaced.
func (m *Multipart) Add(ctx context.Context, r *io.SectionReader) error {
	if len(m.pieces) == MaxPieces {
		return fault.New(fault.TooLarge, "the storage takes at most %d bytes in one object",
			int64(MaxPieces)*PieceBytes)
	}
	number := aws.Int32(int32(len(m.pieces) + 1))
	out, err := m.bucket.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket:        &m.bucket.name,
		Key:           aws.String(m.bucket.prefix + m.key),
		UploadId:      m.id,
		PartNumber:    number,
		Body:          r,
		ContentLength: aws.Int64(r.Size()),
	})
	if err != nil {
		return explain(ctx, err, fmt.Sprintf("store piece %d of object %s", *number, m.key))
	}
	m.pieces = append(m.pieces, types.CompletedPart{ETag: out.ETag, PartNumber: number})
	m.size += r.Size()
	return nil
}

// Complete makes the object of its pieces.
func (m *Multipart) Complete(ctx context.Context) error {
	_, err := m.bucket.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket:          &m.bucket.name,
		Key:             aws.String(m.bucket.prefix + m.key),
		UploadId:        m.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: m.pieces},
	})
	if err != nil {
		return explain(ctx, err, "store object "+m.key)
	}
	return nil
}

// Abort takes back the multipart uploads of a key.
func (b *Bucket) Abort(ctx context.Context, key string) error {
	ids, err := b.begun(ctx, key)
	for _, id := range ids {
		err = errors.Join(err, (&Multipart{bucket: b, key: key, id: id}).abort(ctx))
	}
	return err
}

func (m *Multipart) abort(ctx context.Context) error {
	_, err := m.bucket.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: &m.bucket.name, Key: aws.String(m.bucket.prefix + m.key), UploadId: m.id,
	})
	if err == nil || codeOf(err) == "NoSuchUpload" {
		return nil
	}
	return explain(ctx, err, "give up object "+m.key)
}
