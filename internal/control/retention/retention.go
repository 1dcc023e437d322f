// Package retention decides which assets of an environment are deleted because of their age or because of what the
// environment stores: the policy, its rules, what it would delete, and the service. It must never know how bytes are
// measured, SQL, HTTP or the clock (`now` is an argument).
package retention

import (
	"context"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// The kinds of jobs.
const (
	JobRun     = "retention.run"     // RunArgs: delete what a policy gives up
	JobMeasure = "retention.measure" // measure what media take
)

// RunArgs are the arguments of JobRun.
type RunArgs struct {
	Environment id.Environment `json:"environment_id"`
}

// Run asks for the deletion of what an environment's policy gives up.
func Run(env id.Environment) job.Insert { return job.New(JobRun, string(env), RunArgs{env}) }

// Measure asks for media to be measured.
func Measure() job.Insert { return job.New(JobMeasure, "all", struct{}{}) }

const (
	// DefaultGrace is how long after a change of the policy nothing is deleted, unless it is said.
	DefaultGrace = 72 * time.Hour
	// MinGrace is the shortest that may be said.
	MinGrace = time.Hour
	// MaxGrace is the longest.
	MaxGrace = 90 * 24 * time.Hour
	// Horizon is how far behind the first deletion a preview looks.
	Horizon = 7 * 24 * time.Hour

	maxDays  = 36500
	maxBytes = 1 << 60
	// MinBytes is the lowest limit of bytes: less is a mistake in the unit.
	MinBytes = 1 << 20
	day      = 24 * time.Hour
)

// Limits are what an environment may keep. Both zero: it keeps everything.
type Limits struct {
	MaxAgeDays int64 // since an asset was created or, for a recording, its broadcast ended; 0: no limit
	MaxBytes   int64 // that all its assets may have together; 0: no limit
}

// On reports whether anything is deleted.
func (l Limits) On() bool { return l != Limits{} }

func (l Limits) maxAge() time.Duration { return time.Duration(l.MaxAgeDays) * day }

// Check says what is wrong with limits that are to be set.
func (l Limits) Check() error {
	var p fault.List
	if !l.On() {
		p.Add("max_age_days, max_bytes or both must be given")
	}
	if l.MaxAgeDays < 0 || l.MaxAgeDays > maxDays {
		p.At("max_age_days", "must be from 1 to %d", maxDays)
	}
	if l.MaxBytes != 0 && (l.MaxBytes < MinBytes || l.MaxBytes > maxBytes) {
		p.At("max_bytes", "must be from %d to %d", MinBytes, int64(maxBytes))
	}
	return p.Err()
}

// Policy is what an environment keeps, and since when.
type Policy struct {
	Environment id.Environment
	Limits

	StartsAt  time.Time // nothing is deleted before
	UpdatedAt time.Time
}

// The reasons for a deletion.
const (
	ByAge  = "max_age_days"
	BySize = "max_bytes"
)

// Due is an asset that a policy deletes.
type Due struct {
	Asset    asset.Asset
	Bytes    int64 // that its own media have; those that others still use stay
	Measured bool  // Bytes is known
	At       time.Time
	Reason   string
}

// Candidate is an asset with the media that it owns and uses.
type Candidate struct {
	Asset asset.Asset
	Media []Media // its own first
}

// Media is a media set.
type Media struct {
	ID       id.Media
	Bytes    int64
	Measured bool
	Users    int // assets that own or use it
}

// Stored is what an environment has.
type Stored struct {
	Bytes      int64 // of the media that are measured
	Unmeasured int   // assets whose media are not
}

// Place is the asset behind which a list goes on, oldest first.
type Place struct {
	CreatedAt time.Time
	Asset     id.Asset
}

// Sized is a media set as it was measured.
type Sized struct {
	Media id.Media
	Bytes int64
	At    time.Time
}

// Store is implemented by storage/db; one call is one transaction.
type Store interface {
	// Now is the time of the database, which is the same for all nodes.
	Now(ctx context.Context) (time.Time, error)
	// Policy is the zero value, but for its environment, when there is none.
	Policy(ctx context.Context, env id.Environment) (Policy, error)
	Policies(ctx context.Context) ([]Policy, error)
	// Set replaces the policy of an environment, or makes it.
	Set(ctx context.Context, p Policy) error
	// Remove is no error where there is none.
	Remove(ctx context.Context, env id.Environment) error
	// Candidates lists assets behind a place, oldest first.
	Candidates(ctx context.Context, env id.Environment, behind Place, limit int) ([]Candidate, error)
	Stored(ctx context.Context, env id.Environment) (Stored, error)
	// Unmeasured lists media that were never measured, have changed since, or were measured before a time; media of
	// what is just being made are left out. They are in the order of their ids, and come behind one.
	Unmeasured(ctx context.Context, before time.Time, behind id.Media, limit int) ([]id.Media, error)
	SetSizes(ctx context.Context, all []Sized) error
	// ForgetSize has media measured again.
	ForgetSize(ctx context.Context, m id.Media) error
	// ForgetSizes removes at most limit sizes of media that no asset owns or uses any more.
	ForgetSizes(ctx context.Context, limit int) error
}

// Preview is what a policy would delete up to a time.
type Preview struct {
	Policy Policy
	Stored Stored
	Until  time.Time
	Count  int   // of all assets that would be deleted
	Bytes  int64 // that this would free
	First  []Due // the first of them, in the order of their deletion
	Partly bool  // there are more assets than a preview counts
}

// API is what the REST side, the dashboard and the command line call.
type API interface {
	Policy(ctx context.Context, env id.Environment) (Policy, error)
	// Set has assets of the environment deleted that are beyond limits, from grace after now on; 0: DefaultGrace. Each
	// change begins a new grace period. Now is the time of the database, here and below.
	Set(ctx context.Context, env id.Environment, l Limits, grace time.Duration) (Policy, error)
	TurnOff(ctx context.Context, env id.Environment) error
	// Preview says what Set would lead to, and changes nothing; its list has at most MaxListed. For the limits of the
	// policy that there is, it says what that will delete; when there is none, that is nothing.
	Preview(ctx context.Context, env id.Environment, l Limits, grace time.Duration) (Preview, error)
}

// Actor is who deletes, for the audit log.
func Actor() audit.Actor { return audit.Actor{Type: audit.Retention} }

// Spared reports whether a policy leaves an asset alone whatever its limits are: it is exempt, live, or being made.
func Spared(a *asset.Asset, now time.Time) bool {
	return a.Exempt || a.IsLive || a.Status == asset.Preparing || len(a.Left(now)) > 0
}

// since is when the age of an asset begins.
func since(a *asset.Asset) time.Time {
	t := a.CreatedAt
	for _, r := range a.Recordings {
		if end := r.StartedAt.Add(time.Duration(r.Duration * float64(time.Second))); end.After(t) {
			t = end
		}
	}
	return t
}
