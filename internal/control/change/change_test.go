package change_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/fault"
)

// TestRetry: a change is made again as long as somebody else was faster, and that may be for long.
func TestRetry(t *testing.T) {
	t.Parallel()
	lost, broken := fault.New(fault.Conflict, "somebody else was faster"), errors.New("the database is away")
	for name, tt := range map[string]struct {
		ends  []error // of one try after the other; the last one of all that follow
		want  error
		tries int
	}{
		"at once":         {[]error{nil}, nil, 1},
		"after others":    {[]error{lost, lost, nil}, nil, 3},
		"another error":   {[]error{lost, broken}, broken, 2},
		"of no use":       {[]error{lost, change.Final(lost)}, lost, 2},
		"again and again": {[]error{lost}, lost, 100},
	} {
		n := 0
		got := change.Retry(func() error {
			n++
			return tt.ends[min(n, len(tt.ends))-1]
		})
		if got != tt.want || n != tt.tries { //nolint:errorlint // exactly this value
			t.Errorf("%s: %v after %d tries, want %v after %d", name, got, n, tt.want, tt.tries)
		}
	}
}

// TestFinal: what is marked stays what it was for who looks for its kind.
func TestFinal(t *testing.T) {
	t.Parallel()
	err := change.Final(fault.New(fault.Conflict, "taken"))
	if !fault.Is(err, fault.Conflict) || err.Error() != "taken" {
		t.Errorf("%v", err)
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 13, 0, 0, 123_999_999, time.FixedZone("", 3600))
	if got, want := change.Stamp(at), time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
