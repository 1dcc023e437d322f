package upload

import (
	"context"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/id"
)

// The kinds of jobs that uploads ask for; the arguments of both are Args.
const (
	JobExpire = "upload.expire" // at the end of its time
	JobClear  = "upload.clear"  // remove what has come of a file that nobody wants any more
)

// Args are the arguments of these jobs.
type Args struct {
	Upload id.Upload `json:"upload_id"`
}

// The events of an upload. There is none for one that has timed out.
const (
	EventCreated      = "video.upload.created"
	EventAssetCreated = "video.upload.asset_created"
	EventCancelled    = "video.upload.cancelled"
	EventErrored      = "video.upload.errored"

	// EventObject is the kind of object of these events.
	EventObject = "upload"
)

// CreateInput is a request to create.
type CreateInput struct {
	Timeout        *int // seconds; nil: DefaultTimeout
	CORSOrigin     string
	Options        assetopt.Options
	Test           bool
	DefaultQuality string // video_quality of the environment; empty: the service's
}

// ListQuery selects uploads, newest first.
type ListQuery struct {
	Page  int // from 1
	Limit int // 1–100
}

// Expected is a waiting upload whose file has, or may have so far, so many bytes.
type Expected struct {
	ID          id.Upload
	Environment id.Environment
	Media       id.Media
	Size        int64
}

// Overdue is an upload whose next job is late: it was lost, or has used up its attempts.
type Overdue struct {
	ID     id.Upload
	Media  id.Media
	Status Status
	Due    time.Time
}

// Job is what it waits for.
func (o Overdue) Job() job.Insert {
	if o.Status == Waiting {
		return newJob(JobExpire, o.ID)
	}
	return newJob(JobClear, o.ID)
}

// Change is one atomic step. The store compares-and-sets on From and Upload.Revision as it was read, counts the
// revision up, writes the row and stores events and jobs, all or nothing. A row that has moved on is fault.Conflict;
// one that is not there fault.NotFound.
type Change struct {
	From   Status
	Upload Upload
	Events []event.Event
	Jobs   []job.Insert
}

// Store is implemented by storage/db; one call is one transaction. Absent or other environments' rows are
// fault.NotFound.
type Store interface {
	Insert(ctx context.Context, c Change) error
	Get(ctx context.Context, env id.Environment, u id.Upload) (Upload, error)
	Find(ctx context.Context, u id.Upload) (Upload, error) // of any environment
	FindSecret(ctx context.Context, secret string) (Upload, error)
	List(ctx context.Context, env id.Environment, q ListQuery) ([]Upload, error)
	Save(ctx context.Context, c Change) error
	// Declare writes the Length of a waiting upload. With a quota of more than 0, the sizes of the environment's
	// waiting uploads may not be more than that together: fault.Unavailable with ErrQuota, or fault.TooLarge where one
	// alone has more.
	Declare(ctx context.Context, u id.Upload, length Length, quota int64) error
	// Expected are the waiting uploads of all environments of whose length something was declared.
	Expected(ctx context.Context) ([]Expected, error)
	// Overdue are the uploads of all environments that were Due before a time, in the order of that, at most limit of
	// them, behind one.
	Overdue(ctx context.Context, before time.Time, behind Overdue, limit int) ([]Overdue, error)
	// Expecting are those of the media sets whose uploads are not Cleared: they wait for more bytes, or a job will
	// remove what there is.
	Expecting(ctx context.Context, all []id.Media) ([]id.Media, error)
}

// API is what the REST side calls; bound to one environment.
type API interface {
	Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Upload, error)
	Get(ctx context.Context, env id.Environment, u id.Upload, now time.Time) (Upload, error)
	List(ctx context.Context, env id.Environment, q ListQuery, now time.Time) ([]Upload, error)
	// Cancel ends a waiting upload; fault.Denied for any other. Event cancelled; job JobClear.
	Cancel(ctx context.Context, env id.Environment, u id.Upload, now time.Time) (Upload, error)
}

// Work is what takes the bytes and what clears up after them.
type Work interface {
	Find(ctx context.Context, u id.Upload) (Upload, error)
	FindSecret(ctx context.Context, secret string, now time.Time) (Upload, error)
	// Declare says how many bytes the file has, or may have so far; see Store.
	Declare(ctx context.Context, u id.Upload, length Length) error
	// Expected are the waiting uploads of whose length something was declared; see Store.
	Expected(ctx context.Context) ([]Expected, error)
	// Completed is the change by which an upload gets its asset, once its file is whole and nothing is kept beside it;
	// fault.Conflict for one that does not wait for it.
	Completed(u Upload, a id.Asset, now time.Time) (Change, error)
	// Quit cancels a waiting upload, of any environment; see API.Cancel.
	Quit(ctx context.Context, u id.Upload, now time.Time) error
	// Overdue are the uploads whose next job is late; see Store.
	Overdue(ctx context.Context, before time.Time, behind Overdue, limit int) ([]Overdue, error)
	// Expecting are those of the media sets whose bytes are not abandoned; see Store.
	Expecting(ctx context.Context, all []id.Media) ([]id.Media, error)
	// Cleared notes that nothing is kept any more of the file of an upload that is over. No event. Nothing happens to
	// one that waits.
	Cleared(ctx context.Context, u id.Upload) error
	// Expire ends a waiting upload whose time has passed. No event; job JobClear. Nothing happens to others.
	Expire(ctx context.Context, u id.Upload, now time.Time) error
	// Fail says that no asset could be made of the file. Event errored.
	Fail(ctx context.Context, u id.Upload, e Error, now time.Time) error
}
