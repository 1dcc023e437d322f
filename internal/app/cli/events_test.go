package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/event"
)

// fakeEvents grow by one a second.
type fakeEvents struct {
	began  time.Time
	asked  event.Query
	closed int
}

func (f *fakeEvents) ListEvents(_ context.Context, q event.Query) (out []event.Event, _ error) {
	f.asked = q
	for n := q.After + 1; n <= int64(time.Since(f.began)/time.Second); n++ {
		out = append(out, event.Event{Type: "video.asset.ready", ObjectID: "a1", Sequence: n, At: f.began})
	}
	return out, nil
}

func (f *fakeEvents) LastEvent(context.Context) (int64, error) { return 2, nil }

func (f *fakeEvents) Show(_ context.Context, e event.Event) (any, error) {
	return map[string]int64{"sequence": e.Sequence}, nil
}

func TestTail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"from now": {
			nil, "2000-01-01T00:00:00Z 3 video.asset.ready a1\n2000-01-01T00:00:00Z 4 video.asset.ready a1\n",
		},
		"all, as JSON": {
			[]string{"--json", "--after", "0", "--type", "a,b", "--object", "x"},
			"{\"sequence\":1}\n{\"sequence\":2}\n{\"sequence\":3}\n{\"sequence\":4}\n",
		},
		"not a sequence":  {[]string{"--after", "x"}, ""},
		"before all time": {[]string{"--after", "-2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeEvents{began: time.Now()}
				ctx, cancel := context.WithTimeout(t.Context(), 4700*time.Millisecond)
				defer cancel()
				var out, problems bytes.Buffer
				code := Run(ctx, append([]string{"events", "tail"}, tt.args...), nil, &out, &problems, Actions{
					Events: func(context.Context, config.Config) (Events, func() error, error) {
						return f, func() error { f.closed++; return nil }, nil
					},
				})
				want := map[bool]int{true: ExitUsage, false: ExitOK}[tt.want == ""]
				if code != want || out.String() != tt.want {
					t.Errorf("code %d:\n%s%s", code, out.String(), problems.String())
				}
				if tt.want != "" && f.closed != 1 {
					t.Errorf("closed %d times", f.closed)
				}
				if name == "all, as JSON" && (strings.Join(f.asked.Types, " ") != "a b" || f.asked.Object != "x") {
					t.Errorf("asked for %+v", f.asked)
				}
			})
		})
	}
}
