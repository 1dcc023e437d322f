package retention_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/retention"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	day = 24 * time.Hour
	mib = 1 << 20
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fakeStore has one environment.
type fakeStore struct {
	retention.Store
	policy retention.Policy
	all    []retention.Candidate
	stored retention.Stored
	pages  int
	err    error
	at     time.Time // of the database
}

func (f *fakeStore) Now(context.Context) (time.Time, error) { return f.at, nil }

func (f *fakeStore) Policy(context.Context, id.Environment) (retention.Policy, error) {
	return f.policy, nil
}

func (f *fakeStore) Set(_ context.Context, p retention.Policy) error {
	f.policy = p
	return nil
}

func (f *fakeStore) Stored(context.Context, id.Environment) (retention.Stored, error) {
	return f.stored, nil
}

func (f *fakeStore) Candidates(
	_ context.Context, _ id.Environment, behind retention.Place, limit int,
) (some []retention.Candidate, _ error) {
	f.pages++
	for _, c := range f.all {
		if (c.Asset.CreatedAt.After(behind.CreatedAt) || c.Asset.CreatedAt.Equal(behind.CreatedAt) &&
			c.Asset.ID > behind.Asset) && len(some) < limit {
			some = append(some, c)
		}
	}
	return some, f.err
}

// old is an asset of so many days with media of so many MiB that it alone has.
func old(name string, days, size int64, and ...func(*retention.Candidate)) retention.Candidate {
	c := retention.Candidate{
		Asset: asset.Asset{
			ID: id.Asset(name), Status: asset.Ready, Index: "i", CreatedAt: now.Add(-time.Duration(days) * day),
		},
		Media: []retention.Media{{ID: id.Media(name), Bytes: size * mib, Measured: size > 0, Users: 1}},
	}
	for _, change := range and {
		change(&c)
	}
	return c
}

// uses has an asset use the media of another one, as a clip does.
func uses(m id.Media, size int64, users int) func(*retention.Candidate) {
	return func(c *retention.Candidate) {
		c.Media = append(c.Media, retention.Media{ID: m, Bytes: size * mib, Measured: true, Users: users})
	}
}

func shared(users int) func(*retention.Candidate) {
	return func(c *retention.Candidate) { c.Media[0].Users = users }
}

func with(change func(*asset.Asset)) func(*retention.Candidate) {
	return func(c *retention.Candidate) { change(&c.Asset) }
}

func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	limits := func(days, mibs int64) retention.Limits {
		return retention.Limits{MaxAgeDays: days, MaxBytes: mibs * mib}
	}
	exempt := with(func(a *asset.Asset) { a.Exempt = true })
	for name, tt := range map[string]struct {
		limits retention.Limits
		stored int64 // MiB
		all    []retention.Candidate
		want   string
	}{
		"older than allowed": {
			limits(10, 0), 9, []retention.Candidate{old("a", 11, 1), old("b", 10, 1), old("c", 9, 1)}, "a:age b:age",
		},
		"the age of a recording begins with its end": {
			limits(10, 0), 9, []retention.Candidate{
				old("long", 30, 1, with(func(a *asset.Asset) {
					a.Recordings = []asset.Recording{{StartedAt: a.CreatedAt, Duration: 21 * 24 * 3600}}
				})),
				old("b", 29, 1),
			}, "b:age",
		},
		"what is spared": {
			limits(1, 1), 99, []retention.Candidate{
				old("live", 9, 1, with(func(a *asset.Asset) { a.IsLive = true })),
				old("made", 9, 1, with(func(a *asset.Asset) { a.Status = asset.Preparing })),
				old("file", 9, 1, with(func(a *asset.Asset) {
					a.Static.Files = []asset.StaticRendition{{Status: asset.FilePreparing}}
				})),
				old("exempt", 9, 1, exempt),
				old("errored", 9, 1, with(func(a *asset.Asset) { a.Status = asset.Errored })),
			}, "errored:age",
		},
		"the oldest until it is under": {
			limits(0, 5), 8, []retention.Candidate{
				old("a", 4, 2), old("b", 3, 2), old("c", 2, 2), old("d", 1, 2),
			}, "a:size b:size",
		},
		"what is exempt counts, and others go for it": {
			limits(0, 2), 6,
			[]retention.Candidate{old("a", 4, 4, exempt), old("b", 3, 1), old("c", 2, 1)},
			"b:size c:size",
		},
		"nothing while it is under": {limits(0, 9), 9, []retention.Candidate{old("a", 99, 9)}, ""},
		"what clips have of another one is freed with the last of them": {
			limits(0, 4), 11, []retention.Candidate{
				old("one", 9, 1, uses("source", 6, 2)), old("other", 8, 1, uses("source", 6, 2)), old("c", 7, 3),
			}, "one:size other:size",
		},
		"what a clip leaves of another one is measured first": {
			limits(0, 4), 10, []retention.Candidate{
				old("source", 9, 6, shared(2)), old("clip", 8, 1, uses("source", 6, 2)), old("c", 7, 3),
			}, "source:size",
		},
		"what is left with its owner is freed once": {
			limits(10, 4), 12, []retention.Candidate{
				old("clip", 13, 1, uses("source", 6, 2)), old("source", 12, 6, shared(2)),
				old("c", 9, 2), old("d", 8, 3),
			}, "clip:age source:age c:size",
		},
		"what is not measured is not deleted for its size": {
			limits(10, 4), 5,
			[]retention.Candidate{old("a", 11, 0), old("b", 9, 0), old("c", 8, 1), old("d", 7, 4)},
			"a:age c:size",
		},
		"both": {
			limits(10, 4), 9, []retention.Candidate{
				old("a", 20, 1), old("b", 9, 4), old("c", 8, 2), old("d", 7, 2),
			}, "a:age b:size",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeStore{all: tt.all, stored: retention.Stored{Bytes: tt.stored * mib}}
			p := retention.Policy{Limits: tt.limits, StartsAt: now}
			var got []string
			for due, err := range retention.New(f).Due(t.Context(), p, now) {
				if err != nil {
					t.Fatal(err)
				}
				why := map[string]string{retention.ByAge: "age", retention.BySize: "size"}[due.Reason]
				got = append(got, string(due.Asset.ID)+":"+why)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("due is %q, want %q", text, tt.want)
			}
			p.StartsAt = now.Add(time.Millisecond)
			for due, err := range retention.New(f).Due(t.Context(), p, now) {
				t.Errorf("within the grace period %s is due, %v", due.Asset.ID, err)
			}
			p.Limits, p.StartsAt = retention.Limits{}, now
			for due, err := range retention.New(f).Due(t.Context(), p, now) {
				t.Errorf("without a policy %s is due, %v", due.Asset.ID, err)
			}
		})
	}
}

// TestManyAreDue goes over pages, and no further than it has to.
func TestManyAreDue(t *testing.T) {
	t.Parallel()
	f := &fakeStore{at: now}
	for i := range int64(1000) {
		f.all = append(f.all, old(fmt.Sprintf("%04d", i), 1000-i, 1))
	}
	p := retention.Policy{Limits: retention.Limits{MaxAgeDays: 751}}
	n := 0
	for due, err := range retention.New(f).Due(t.Context(), p, now) {
		if err != nil || due.Asset.ID != f.all[n].Asset.ID {
			t.Fatalf("number %d is %s, %v", n, due.Asset.ID, err)
		}
		n++
	}
	if n != 250 || f.pages != 3 {
		t.Errorf("%d are due, of %d pages", n, f.pages)
	}
	f.err = errors.New("away")
	for _, err := range retention.New(f).Due(t.Context(), p, now) {
		if !errors.Is(err, f.err) {
			t.Errorf("got %v", err)
		}
	}
}

// TestPreview: what would be deleted from the end of the grace period on, when, and what that frees; nothing changes.
func TestPreview(t *testing.T) {
	t.Parallel()
	f := &fakeStore{at: now, stored: retention.Stored{Bytes: 300 * mib, Unmeasured: 2}}
	for i := range int64(120) {
		f.all = append(f.all, old(fmt.Sprintf("%03d", i), 200-i, 1))
	}
	f.all = append(f.all, old("soon", 22, 3), old("late", 19, 3))
	s := retention.New(f)
	p, err := s.Preview(t.Context(), "env", retention.Limits{MaxAgeDays: 30}, 48*time.Hour)
	start := now.Add(48 * time.Hour)
	if err != nil || p.Count != 121 || p.Bytes != 123*mib || len(p.First) != retention.MaxListed || p.Partly ||
		!p.Policy.StartsAt.Equal(start) || !p.Until.Equal(start.Add(7*day)) || p.Stored != f.stored ||
		!p.First[0].At.Equal(start) || p.First[0].Bytes != mib || !p.First[0].Measured || f.policy.On() {
		t.Errorf("%d assets, %d bytes, %d named, %+v, until %v; %v", p.Count, p.Bytes, len(p.First), p.Policy, p.Until,
			err)
	}
	f.all = f.all[119:]
	p, err = s.Preview(t.Context(), "env", retention.Limits{MaxAgeDays: 30}, time.Hour)
	if err != nil || len(p.First) != 1 || p.First[0].Asset.ID != "119" {
		t.Errorf("%+v, %v", p.First, err)
	}
	f.all = nil
	for i := range int64(20_500) {
		f.all = append(f.all, old(fmt.Sprintf("%05d", i), 30_000-i, 1))
	}
	p, err = s.Preview(t.Context(), "env", retention.Limits{MaxAgeDays: 30}, 0)
	if err != nil || !p.Partly || p.Count != 20_000 || !p.Policy.StartsAt.Equal(now.Add(retention.DefaultGrace)) {
		t.Errorf("of very many: %d, partly %v; %v", p.Count, p.Partly, err)
	}
	for i := range f.all {
		f.all[i].Asset.Exempt = true
	}
	f.pages = 0
	p, err = s.Preview(t.Context(), "env", retention.Limits{MaxAgeDays: 30}, 0)
	if err != nil || !p.Partly || p.Count != 0 || f.pages != 200 {
		t.Errorf("of very many that are exempt: %d, partly %v, of %d pages; %v", p.Count, p.Partly, f.pages, err)
	}
}

// TestSet refuses what is no policy, and begins a new grace period with each change.
func TestSet(t *testing.T) {
	t.Parallel()
	f := &fakeStore{at: now}
	s := retention.New(f)
	for name, tt := range map[string]struct {
		limits retention.Limits
		grace  time.Duration
		want   string
	}{
		"nothing":       {retention.Limits{}, 0, "must be given"},
		"negative days": {retention.Limits{MaxAgeDays: -1}, 0, "max_age_days must be from 1 to 36500"},
		"many days":     {retention.Limits{MaxAgeDays: 36501}, 0, "max_age_days must be from 1 to 36500"},
		"few bytes":     {retention.Limits{MaxBytes: 500}, 0, "max_bytes must be from 1048576"},
		"minus a byte":  {retention.Limits{MaxBytes: -1}, 0, "max_bytes must be from 1048576"},
		"no grace":      {retention.Limits{MaxAgeDays: 1}, time.Second, "grace_hours must be from 1 to 2160"},
		"much grace":    {retention.Limits{MaxAgeDays: 1}, 91 * day, "grace_hours must be from 1 to 2160"},
	} {
		_, err := s.Set(t.Context(), "env", tt.limits, tt.grace)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.want) || f.policy.On() {
			t.Errorf("%s: %v; %+v", name, err, f.policy)
		}
		if _, err = s.Preview(t.Context(), "env", tt.limits, tt.grace); tt.limits.On() &&
			!fault.Is(err, fault.Invalid) {
			t.Errorf("preview, %s: %v", name, err)
		}
	}
	p, err := s.Set(t.Context(), "env", retention.Limits{MaxAgeDays: 30}, 0)
	if err != nil || f.policy != p || !p.StartsAt.Equal(now.Add(72*time.Hour)) {
		t.Errorf("%+v, %v", f.policy, err)
	}
	later := now.Add(30 * day)
	f.at = later
	v, err := s.Preview(t.Context(), "env", p.Limits, 0)
	if err != nil || v.Policy != p {
		t.Errorf("the preview of what is set: %+v, %v", v.Policy, err)
	}
	p, err = s.Set(t.Context(), "env", retention.Limits{MaxAgeDays: 31}, time.Hour)
	if err != nil || !p.StartsAt.Equal(later.Add(time.Hour)) {
		t.Errorf("when it is changed: %+v, %v", p, err)
	}
	if jobs := []string{retention.Run("env").Key, retention.Measure().Key}; slices.Contains(jobs, "") {
		t.Errorf("jobs that may be there twice: %q", jobs)
	}
}
