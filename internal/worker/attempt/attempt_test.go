package attempt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/worker/attempt"
)

// TestEnding: how often what is tried, by whose fault it fails.
func TestEnding(t *testing.T) {
	t.Parallel()
	const tries = 8
	host := &fault.Error{Kind: fault.Unavailable, Messages: []fault.Message{{Text: "the host is away"}}, Remote: true}
	for name, tt := range map[string]struct {
		err     error
		outside int
		tries   int
		typ     string
	}{
		"the file":            {fault.New(fault.Invalid, "it is damaged"), 5, 1, "invalid_input"},
		"its host":            {host, 5, 5, "invalid_input"},
		"its host, wrapped":   {fault.Wrap(fault.Unavailable, host, "inputs[1]"), 5, 5, "invalid_input"},
		"as often as all":     {host, 0, 8, "invalid_input"},
		"a busy machine":      {fault.New(fault.Unavailable, "it was too busy"), 5, 8, "internal_error"},
		"something else":      {errors.New("no such table"), 5, 8, "internal_error"},
		"the service's store": {fault.Ours(fault.New(fault.NotFound, "no such object")), 5, 8, "internal_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed error
			end := attempt.Ending{
				Outside: tt.outside,
				Gone:    func(context.Context) (bool, error) { return false, nil },
				Fail: func(_ context.Context, why error) error {
					failed = why
					return nil
				},
			}
			j := job.Job{Attempt: 1, MaxAttempts: tries}
			err := end.Of(t.Context(), j, tt.err)
			for failed == nil && j.Attempt < j.MaxAttempts {
				j.Attempt++
				err = end.Of(t.Context(), j, tt.err)
			}
			if j.Attempt != tt.tries || !errors.Is(failed, tt.err) || attempt.Type(failed) != tt.typ {
				t.Errorf("tried %d times, then %v of the type %s", j.Attempt, failed, attempt.Type(failed))
			}
			if !fault.Permanent(err) && !j.Last() || !errors.Is(err, tt.err) {
				t.Errorf("it comes again after %v", err)
			}
		})
	}
}

// TestStorageAway: nothing has failed for good because the service's storage was away, however often that was. After a
// week it is only another failure.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	away := fault.Ours(fault.New(fault.Unavailable, "the storage is away"))
	for age, fails := range map[time.Duration]bool{0: false, 6 * 24 * time.Hour: false, 8 * 24 * time.Hour: true} {
		failed := false
		end := attempt.Ending{
			Gone: func(context.Context) (bool, error) { return false, nil },
			Fail: func(context.Context, error) error {
				failed = true
				return nil
			},
		}
		err := end.Of(t.Context(), job.Job{Attempt: 8, MaxAttempts: 8, Age: age}, away)
		if !errors.Is(err, away) || failed != fails {
			t.Errorf("at the age of %s: failed %t, %v", age, failed, err)
		}
	}
}
