package upload

import (
	"context"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/change"
	"millrace/internal/control/event"
	"millrace/internal/control/field"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Options configures a Service.
type Options struct {
	Store Store
	// Quota is how many bytes the waiting uploads of an environment may have together; 0: any number.
	Quota int64
	// DRM says which DRM configurations there are; nil: none.
	DRM playbackid.Configurations
	// Recognition says which generated subtitles could not be made; nil is not asked.
	Recognition assetopt.Recognition
}

// Service makes the changes of uploads. It owns no goroutine; all its methods may be called at the same time.
type Service struct{ opt Options }

var (
	_ API  = (*Service)(nil)
	_ Work = (*Service)(nil)
)

// New makes a service; nothing starts.
func New(o Options) *Service { return &Service{o} }

// Create makes a waiting upload. Event created; job JobExpire at the end of its time.
func (s *Service) Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Upload, error) {
	if err := in.check(); err != nil {
		return Upload{}, err
	}
	var err error
	in.Options.AdvancedPolicies, err = s.opt.DRM.Choose(
		ctx, env, "new_asset_settings.advanced_playback_policies", in.Options.AdvancedPolicies)
	if err == nil {
		err = s.opt.DRM.CheckClear(ctx, env, in.Options.Requests(), in.Options.MasterAccess == assetopt.Temporary)
	}
	if err == nil {
		err = s.opt.Recognition.CheckInputs(ctx, env, "new_asset_settings.inputs", in.Options.Inputs)
	}
	if err != nil {
		return Upload{}, err
	}
	now = change.Stamp(now)
	u := Upload{
		ID: id.Upload(id.New()), Environment: env, Status: Waiting, Timeout: DefaultTimeout, CORSOrigin: in.CORSOrigin,
		Options: in.Options.WithQuality(assetopt.ForUpload, in.DefaultQuality), Test: in.Test || in.Options.Test,
		Secret: id.New(), Media: id.Media(id.New()), CreatedAt: now, UpdatedAt: now,
	}
	if in.Timeout != nil {
		u.Timeout = *in.Timeout
	}
	expire := newJob(JobExpire, u.ID)
	expire.At = u.Expires()
	c := Change{Upload: u, Events: tell(u, EventCreated), Jobs: []job.Insert{expire}}
	return u, s.opt.Store.Insert(ctx, c)
}

// Get reads an upload of env as it is now.
func (s *Service) Get(ctx context.Context, env id.Environment, u id.Upload, now time.Time) (Upload, error) {
	v, err := s.opt.Store.Get(ctx, env, u)
	return v.At(now), err
}

// List reads uploads of env, newest first, as they are now.
func (s *Service) List(ctx context.Context, env id.Environment, q ListQuery, now time.Time) ([]Upload, error) {
	var err error
	if q.Page, q.Limit, err = field.Page(q.Page, q.Limit); err != nil {
		return nil, err
	}
	all, err := s.opt.Store.List(ctx, env, q)
	for i := range all {
		all[i] = all[i].At(now)
	}
	return all, err
}

// Cancel ends a waiting upload; see API.
func (s *Service) Cancel(ctx context.Context, env id.Environment, u id.Upload, now time.Time) (Upload, error) {
	return s.change(ctx, func() (Upload, error) { return s.opt.Store.Get(ctx, env, u) }, now, cancel)
}

// Quit cancels an upload of any environment; see Work.
func (s *Service) Quit(ctx context.Context, u id.Upload, now time.Time) error {
	_, err := s.change(ctx, func() (Upload, error) { return s.opt.Store.Find(ctx, u) }, now, cancel)
	return err
}

func cancel(c *Change) error {
	if status := c.Upload.At(c.Upload.UpdatedAt).Status; status != Waiting {
		return fault.New(fault.Denied, "only an upload that is waiting can be cancelled; this one is %s", status)
	}
	c.step(OwnerQuit)
	c.Events = tell(c.Upload, EventCancelled)
	c.Jobs = []job.Insert{newJob(JobClear, c.Upload.ID)}
	return nil
}

// Find reads an upload of any environment as it is stored.
func (s *Service) Find(ctx context.Context, u id.Upload) (Upload, error) {
	return s.opt.Store.Find(ctx, u)
}

// FindSecret reads the upload whose URL has this secret, as it is now.
func (s *Service) FindSecret(ctx context.Context, secret string, now time.Time) (Upload, error) {
	v, err := s.opt.Store.FindSecret(ctx, secret)
	return v.At(now), err
}

// Declare says how many bytes the file has; see Work.
func (s *Service) Declare(ctx context.Context, u id.Upload, length Length) error {
	return s.opt.Store.Declare(ctx, u, length, s.opt.Quota)
}

// Expected are the waiting uploads of whose length something was declared; see Store.
func (s *Service) Expected(ctx context.Context) ([]Expected, error) { return s.opt.Store.Expected(ctx) }

// Completed is the change by which an upload gets its asset; see Work.
func (s *Service) Completed(u Upload, a id.Asset, now time.Time) (Change, error) {
	c := Change{From: u.Status, Upload: u}
	c.Upload.UpdatedAt = change.Stamp(now)
	if u.At(now).Status != Waiting {
		return c, fault.New(fault.Conflict, "the upload is %s", u.At(now).Status)
	}
	c.Upload.Asset, c.Upload.Cleared = a, true
	c.step(FileCame)
	c.Events = tell(c.Upload, EventAssetCreated)
	return c, nil
}

// Overdue are the uploads whose next job is late; see Store.
func (s *Service) Overdue(ctx context.Context, before time.Time, behind Overdue, limit int) ([]Overdue, error) {
	return s.opt.Store.Overdue(ctx, before, behind, limit)
}

// Expecting are those of the media sets whose bytes are not abandoned; see Store.
func (s *Service) Expecting(ctx context.Context, all []id.Media) ([]id.Media, error) {
	return s.opt.Store.Expecting(ctx, all)
}

// Cleared notes that nothing is kept any more of the file of an upload; see Work.
func (s *Service) Cleared(ctx context.Context, u id.Upload) error {
	find := func() (Upload, error) { return s.opt.Store.Find(ctx, u) }
	_, err := s.change(ctx, find, time.Time{}, func(c *Change) error {
		if c.From == Waiting || c.Upload.Cleared {
			return errSame
		}
		c.Upload.Cleared = true
		return nil
	})
	return err
}

// Expire ends a waiting upload whose time has passed; see Work.
func (s *Service) Expire(ctx context.Context, u id.Upload, now time.Time) error {
	_, err := s.change(ctx, func() (Upload, error) { return s.opt.Store.Find(ctx, u) }, now, func(c *Change) error {
		if c.From != Waiting {
			return errSame
		}
		if c.Upload.At(now).Status == Waiting {
			return fault.New(fault.NotReady, "the upload has time until %s", c.Upload.Expires().Format(time.RFC3339))
		}
		c.step(TimePassed)
		c.Jobs = []job.Insert{newJob(JobClear, u)}
		return nil
	})
	return err
}

// Fail says that no asset could be made of the file; see Work. Nothing happens to one that is errored already.
func (s *Service) Fail(ctx context.Context, u id.Upload, e Error, now time.Time) error {
	_, err := s.change(ctx, func() (Upload, error) { return s.opt.Store.Find(ctx, u) }, now, func(c *Change) error {
		if _, ok := Next(c.From, AssetFailed); !ok {
			return errSame
		}
		c.step(AssetFailed)
		c.Upload.Error = &e
		c.Events = tell(c.Upload, EventErrored)
		return nil
	})
	return err
}

// step moves the upload on by a fact that means something in its status.
func (c *Change) step(f Fact) {
	if to, ok := Next(c.Upload.Status, f); ok {
		c.Upload.Status = to
	}
	if c.Upload.Status != Waiting && c.Upload.Status != AssetCreated && c.Upload.Unneeded.IsZero() {
		c.Upload.Unneeded = c.Upload.UpdatedAt
	}
}

func newJob(kind string, u id.Upload) job.Insert { return job.New(kind, string(u), Args{Upload: u}) }

func tell(u Upload, types ...string) []event.Event {
	u = u.WithoutSecrets()
	events := make([]event.Event, 0, len(types))
	for _, t := range types {
		events = append(events, event.New(u.Environment, t, EventObject, string(u.ID), u.UpdatedAt, u))
	}
	return events
}

// errSame is a step's result when there is nothing to write.
var errSame = fault.New(fault.Conflict, "nothing has changed")

// change reads, steps and writes, again when somebody else was faster. With a now of zero it is nothing that its owner
// can see.
func (s *Service) change(
	ctx context.Context, read func() (Upload, error), now time.Time, step func(c *Change) error,
) (Upload, error) {
	var u Upload
	err := change.Retry(func() error {
		old, err := read()
		if err != nil {
			return err
		}
		c := Change{From: old.Status, Upload: old}
		if !now.IsZero() {
			c.Upload.UpdatedAt = change.Stamp(now)
		}
		if err = step(&c); err == errSame { //nolint:errorlint // never wrapped: returned by a step
			u = old
			return nil
		} else if err != nil {
			return change.Final(err)
		}
		u = c.Upload
		u.Revision++
		return s.opt.Store.Save(ctx, c)
	})
	if err != nil {
		return Upload{}, err
	}
	return u, nil
}
