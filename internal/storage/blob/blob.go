// Package blob keeps immutable objects (segments, init segments, uploads, images, captions, indexes) in a folder or in
// an S3-compatible bucket, behind one small interface with one conformance suite (blobtest).
//
// It must never know what an object means, who may read it, or its content type, which follows from the key's
// extension where it is served. It starts no goroutine that outlives the call that needed it.
package blob

import (
	"context"
	"io"
	"iter"
	"os"
	"time"

	"millrace/internal/storage/blob/s3"
)

// What the owner of an S3 bucket has to mend.
var (
	ErrRefused       = s3.ErrRefused
	ErrNoBucket      = s3.ErrNoBucket
	ErrNoCredentials = s3.ErrNoCredentials
)

// Store keeps immutable objects under slash-separated keys (see CheckKey for what a key may look like; every method
// refuses a bad one with fault.Invalid). No key may be the folder of another: with "a/b" stored, "a" is not a key. All
// methods may be called at the same time, also for the same key. A storage that can't be reached, or says that it is
// overloaded, or refuses the credentials (ErrRefused), or has no such bucket (ErrNoBucket), or that there are no
// credentials for (ErrNoCredentials), is fault.Unavailable; the end of ctx is ctx's own error. No error but that about
// a bad key is fault.Permanent: whose file can't be stored is not to blame for it.
type Store interface {
	// Put stores what r gives under key, replacing what was there. It is atomic: a reader sees the old object or the
	// whole new one. When r fails, ctx ends or the write fails, the old object stays, or nothing does. When Put has
	// returned nil the object survives the end of the process, and for a folder (see Options.NoSync) a loss of power.
	Put(ctx context.Context, key string, r io.Reader) error

	// PutNew stores data under key unless there is an object already: of several that do so at once, in this process or
	// any other, one does. created says that it was this one; false, that there is an object, which stays (and may even
	// be this one's own, where a connection was lost between the storage and its response). Else it is like Put. An S3
	// storage that does not know If-None-Match is asked before: there two within the same milliseconds may both be told
	// that they created it, and the later one's stays.
	PutNew(ctx context.Context, key string, data []byte) (created bool, err error)

	// Get reads n bytes from offset off, and to the end when n < 0; an n past the end is cut short. An off that is
	// neither 0 nor inside the object is fault.Invalid, an absent object fault.NotFound. It costs one request to the
	// storage. ctx must live until the reader is closed, and the caller closes it.
	Get(ctx context.Context, key string, off, n int64) (*Reader, error)

	// Stat tells size and age of an object; fault.NotFound when it is absent.
	Stat(ctx context.Context, key string) (Info, error)

	// List gives every key that begins with prefix (any string a key may begin with, "" for all), in the order of its
	// bytes. It asks the storage page by page while the caller goes on; what is put or deleted meanwhile may be seen or
	// missed. After an error it ends.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Delete removes objects, several at a time. An absent one is no error. After an error the others are still tried.
	Delete(ctx context.Context, keys ...string) error

	// Adopt takes over the local file at path as the object at key, replacing what was there, as atomically as Put.
	// Afterwards path is gone; when Adopt fails the file is still there. Within one filesystem a folder only renames
	// it.
	Adopt(ctx context.Context, key, path string) error

	// Link stores the file f, all of it, as the object at key, replacing what was there, as atomically as Put. The file
	// stays where it is, under its own name, and must not be written to any more. Within one filesystem a folder only
	// gives it a second name.
	Link(ctx context.Context, key string, f *os.File) error

	// Grow goes on with the object at key, which comes bit by bit, behind what earlier calls have kept of it, those of
	// other processes too. There is no object before Finish. One at a time may grow a key: a folder refuses a second
	// one with fault.Conflict, in a bucket it is the callers' business.
	Grow(ctx context.Context, key string) (Growing, error)

	// Kept tells how much Grow would go on behind, and when the last of it came, zero where the storage does not tell;
	// fault.NotFound where there is nothing. It may be asked while the object grows: a bucket knows of whole pieces
	// then.
	Kept(ctx context.Context, key string) (Info, error)

	// Drop removes what Grow has kept of an object that will not be finished. Where there is nothing, it is no error.
	Drop(ctx context.Context, key string) error

	// Unfinished gives, in the order of their keys' bytes, the objects whose keys begin with prefix and of which there
	// is something that may still become one: what Grow has kept and, in a bucket, what a process that died has left of
	// a Put. Drop removes both. After an error it ends.
	Unfinished(ctx context.Context, prefix string) iter.Seq2[Unfinished, error]

	// Close lets go of connections. Readers that are open stay the business of their owners.
	Close() error
}

// Growing is an object that comes bit by bit. It is for one goroutine. A disk that is full is fault.Unavailable.
type Growing interface {
	// Size is how many bytes there are, in the order in which they were appended.
	Size() int64
	// Append adds p. After an error, what there is has to be asked of another Grow.
	Append(ctx context.Context, p []byte) error
	// Sync keeps what was appended: it survives what an object that was Put survives, and any process that shares the
	// storage goes on behind it.
	Sync(ctx context.Context) error
	// Finish makes it the object at its key, as atomically as Put, and closes it.
	Finish(ctx context.Context) error
	// Close releases it. What was not kept may be lost.
	Close() error
}

// Local is the further ability of a store whose objects are files of this machine.
type Local interface {
	// Path names the file that holds key, so that it can be served by sendfile or handed to a program without a copy.
	// It does not say that the object exists; it is false for a bad key. The file must not be written to.
	Path(key string) (string, bool)
}

// Limited is the further ability of a store whose objects that come bit by bit may not be of any size.
type Limited interface {
	// MaxGrown is how many bytes such an object may have.
	MaxGrown() int64
}

// Info describes an object.
type Info struct {
	Size    int64 // bytes
	ModTime time.Time
}

// Unfinished is an object that has come in part.
type Unfinished struct {
	Key string
	// ModTime is when the last of it came or, of pieces in a bucket, when the last attempt to send some was begun.
	ModTime time.Time
}

// Reader reads an object, or the part of it that was asked for. Of a local file its ReadCloser is an *openfile.Section.
type Reader struct {
	io.ReadCloser
	Size    int64 // bytes of the whole object, whatever part is read
	ModTime time.Time
}
