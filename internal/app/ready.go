package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/app/roles"
	"millrace/internal/fault"
	"millrace/internal/storage/blob"
)

// readyNode is where a load balancer asks whether it is to send anybody here. It is a part of /readyz that depends on
// nothing that other nodes could do without, either.
const readyNode = "/readyz/node"

const (
	readyTime = 3 * time.Second // that each of what is asked may take
	readyFor  = time.Second     // how long what was found holds: nobody can keep the storage busy by asking
)

// readiness reports whether what the service stands on responds now: 200 if all of it does, else 503. It is open to
// everybody, and so says no more than which it is; the log says why, once.
type readiness struct {
	needs   []need
	also    func() string // lines on what it can do without
	leaving func() bool   // this node takes nobody any more; nil: it never leaves
	log     *slog.Logger

	mu     sync.Mutex // held while they are asked; a second caller waits for the same result
	until  time.Time
	status int
	text   string
}

// need is something that the service can't do without.
type need struct {
	name string
	ask  func(context.Context) error
	away bool // it did not respond the last time
}

func (n *node) ready() *readiness {
	storage := func(ctx context.Context) error { return reachable(ctx, n.blob) }
	return &readiness{
		needs:   []need{{name: "database", ask: n.db.Ping}, {name: "storage", ask: storage}},
		also:    func() string { return n.schemas.Line() + n.reachability() + roles.Line(n.cfg.Node.Roles) },
		leaving: n.live.Leaving().Draining, log: n.log,
	}
}

// reachable asks a storage for an object that is not there.
func reachable(ctx context.Context, store blob.Store) error {
	_, err := store.Stat(ctx, "ready/none")
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// ServeHTTP implements http.Handler, for /healthz too: that is about the process alone, and 204.
func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	leaving := r.leaving != nil && r.leaving()
	if req.URL.Path == "/healthz" {
		w.Header().Set("Millrace-Version", cli.Version())
		if leaving {
			w.Header().Set(cli.StateHeader, cli.Leaving)
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	status, text := http.StatusOK, ""
	if req.URL.Path != readyNode {
		status, text = r.look(context.WithoutCancel(req.Context()))
	}
	switch {
	case leaving: // at once, whatever was found a moment ago
		status = http.StatusServiceUnavailable
		text += "this node: leaving\n"
	case text == "":
		text = "this node: ok\n"
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) //nolint:gosec // plain text of our own
}

func (r *readiness) look(ctx context.Context) (status int, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.status, r.text
	}
	var lines strings.Builder
	r.status = http.StatusOK
	for i := range r.needs {
		n, state := &r.needs[i], "ok"
		err := inTime(ctx, n.ask)
		if err != nil {
			state, r.status = "does not respond", http.StatusServiceUnavailable
		}
		if err != nil && !n.away {
			r.log.WarnContext(ctx, "not ready", "dependency", n.name, "error", err)
		}
		n.away = err != nil
		_, _ = fmt.Fprintf(&lines, "%s: %s\n", n.name, state)
	}
	if r.also != nil {
		lines.WriteString(r.also())
	}
	r.text, r.until = lines.String(), time.Now().Add(readyFor)
	return r.status, r.text
}

func inTime(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	return ask(ctx)
}
