package s3

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"millrace/internal/fault"
)

// conditions is what is known of a storage: whether it heeds If-None-Match. Some refuse it, and some store what they
// should not.
type conditions struct{ atomic.Int32 }

const (
	unknown int32 = iota
	heeded
	ignored
)

// Create stores an object, in one request, unless there is one. A large one, which would be sent in vain, is asked for
// before, and so is any while it is not known that the storage heeds the condition; the first object that is created is
// then sent a second time, which the storage has to refuse: where it does not, nothing has changed by it.
func (b *Bucket) Create(ctx context.Context, key string, data []byte) (created bool, err error) {
	known := b.conditions.Load()
	if known != heeded || len(data) > smallBytes {
		if _, err = b.Stat(ctx, key); !fault.Is(err, fault.NotFound) {
			return false, err
		}
	}
	created, err = b.put(ctx, key, data, known != ignored)
	if known == unknown && statusOf(err) == http.StatusNotImplemented {
		known = ignored
		b.conditions.Store(ignored)
		created, err = b.put(ctx, key, data, false)
	}
	if isNetwork(err) { // who refuses may end the connection while the object is still being sent
		if _, missing := b.Stat(ctx, key); missing == nil {
			return false, nil
		}
	}
	if err != nil {
		return false, b.unstored(ctx, err, "store object "+key)
	}
	if created && known == unknown {
		if again, err := b.put(ctx, key, data, true); err == nil { // else it will be found out with the next one
			b.conditions.Store(heeded)
			if again {
				b.conditions.Store(ignored)
			}
		}
	}
	return created, nil
}

// How often, and after what growing pause, an object is sent again while the storage says that another one is just
// being stored at its key.
const (
	conflicts     = 5
	conflictPause = 50 * time.Millisecond
)

// put stores an object; on condition that there is none, created reports whether it did.
func (b *Bucket) put(ctx context.Context, key string, data []byte, condition bool) (created bool, err error) {
	in := &s3.PutObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + key), ContentType: aws.String(contentType)}
	if condition {
		in.IfNoneMatch = aws.String("*")
	}
	pause := conflictPause
	for n := 1; ; n++ {
		in.Body = bytes.NewReader(data)
		_, err = b.client.PutObject(ctx, in)
		switch {
		case err == nil:
			return true, nil
		case condition && statusOf(err) == http.StatusPreconditionFailed:
			return false, nil
		case !condition || codeOf(err) != "ConditionalRequestConflict" || n > conflicts:
			return false, err
		}
		t := time.NewTimer(pause)
		pause *= 2
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return false, err
		}
	}
}

// statusOf is the status of the response that an error came with; 0: of none.
func statusOf(err error) int {
	if re, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return re.HTTPStatusCode()
	}
	return 0
}
