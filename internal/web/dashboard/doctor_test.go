package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/web/dashboard"
)

const healthPage = "/dashboard/settings/health"

// TestHealthPage: what the page says of what was found, and to whom.
func TestHealthPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	fine := dashboard.Finding{Name: "data folder", Level: dashboard.Fine, Text: "/data can be written"}
	odd := dashboard.Finding{
		Name: "clock", Level: dashboard.Warning, Text: "nothing keeps it right", Mend: "Turn it on",
	}
	bad := dashboard.Finding{Name: hostile, Level: dashboard.Problem, Text: hostile, Mend: "Install it."}
	for name, tt := range map[string]struct {
		findings []dashboard.Finding
		err      error
		status   int
		want     []string
		not      string
	}{
		"all well": {
			[]dashboard.Finding{fine},
			nil, 200,
			[]string{"All is well.", "<b>data folder</b>: /data can be written.", "Run again"},
			"needs a look",
		},
		"one to look at": {
			[]dashboard.Finding{fine, odd},
			nil, 200,
			[]string{"It works. One thing needs a look.", "<b>clock</b>: nothing keeps it right.", "Turn it on."},
			"All is well",
		},
		"some to look at": {[]dashboard.Finding{odd, odd}, nil, 200, []string{"2 things need a look."}, "All is well"},
		"a problem": {
			[]dashboard.Finding{odd, bad},
			nil, 200,
			[]string{"There is a problem.", "&lt;script&gt;", `<p class="do">Install it.</p>`},
			"<script>alert",
		},
		"problems": {[]dashboard.Finding{bad, bad}, nil, 200, []string{"There are 2 problems."}, "It works"},
		"late": {
			[]dashboard.Finding{fine},
			fmt.Errorf("check clock: %w", context.DeadlineExceeded), 200,
			[]string{"It took more than a minute", "found until then", "/data can be written"},
			"All is well",
		},
		"no turn": {
			nil, context.DeadlineExceeded, 200, []string{"Somebody else may be running the checks"}, "All is well",
		},
		"ours": {
			[]dashboard.Finding{fine}, errors.New("a secret"), 500, []string{"Something went wrong here"}, "a secret",
		},
		"away": {nil, fault.New(fault.Unavailable, "away"), 503, []string{"waiting for its database"}, "All is well"},
	} {
		s.examine = func(ctx context.Context, tell func(dashboard.Finding)) error {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > time.Minute {
				t.Errorf("%s: it may go on until %v", name, until)
			}
			if audit.Of(ctx).Wanted() {
				t.Errorf("%s: what a check writes would be in the audit log", name)
			}
			for _, f := range tt.findings {
				tell(f)
			}
			return tt.err
		}
		w := s.ask(t, s.cookie, healthPage, url.Values{})
		closedPage(t, w)
		body := w.Body.String()
		for _, want := range tt.want {
			if w.Code != tt.status || !strings.Contains(body, want) || strings.Contains(body, tt.not) {
				t.Errorf("%s: %d, want %q and not %q:\n%s", name, w.Code, want, tt.not, body)
			}
		}
	}
	first := s.ask(t, s.cookie, healthPage, nil)
	if !strings.Contains(first.Body.String(), "Run checks") || strings.Contains(first.Body.String(), "Checked ") {
		t.Errorf("before: %s", first.Body)
	}
	all := s.signIn(t, access.Permissions()...)
	if w := s.ask(t, all, healthPage, url.Values{}); w.Code != http.StatusForbidden {
		t.Errorf("a token may look: %d", w.Code)
	}
}

// TestHealthPageOneAtATime: while somebody looks nobody else does, and who leaves ends their look.
func TestHealthPageOneAtATime(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://example.com")
	entered, ended := make(chan context.Context), make(chan error)
	s.examine = func(ctx context.Context, _ func(dashboard.Finding)) error {
		entered <- ctx
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	look := func(ctx context.Context) <-chan int {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, healthPage, nil)
		r.AddCookie(&http.Cookie{Name: "millrace", Value: s.cookie})
		done := make(chan int)
		go func() {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			done <- w.Body.Len()
		}()
		return done
	}
	first, leave := context.WithCancel(t.Context())
	one := look(first)
	<-entered
	second, leaveToo := context.WithCancel(t.Context())
	two := look(second)
	leaveToo()
	if n := <-two; n != 0 { // it would wait for entered if it had begun
		t.Errorf("who has gone gets %d bytes", n)
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	<-one
	third, leaveLast := context.WithCancel(t.Context())
	three := look(third)
	<-entered
	leaveLast()
	<-ended
	<-three
}
