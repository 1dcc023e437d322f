package handover_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/handover"
	"millrace/internal/id"
	"millrace/internal/media/follow"
)

// leads hands over what it is asked for, unless an error says otherwise.
type leads struct {
	err   error
	lost  time.Duration
	asked []live.Writer
}

func (l *leads) HandOver(_ context.Context, _ id.LiveStream, w live.Writer) (time.Duration, error) {
	l.asked = append(l.asked, w)
	return l.lost, l.err
}

// peer is the fleet of one who asks: a node named as its owner says, behind the real handler.
type peer struct {
	node    id.Node // that the directory knows
	handler http.Handler
	away    error
	lost    int
	sent    int
}

// errBroken is the error of a connection that ended with the process at its other end, which takes none since.
var errBroken = errors.New("connection broken")

func (p *peer) Owner(context.Context, id.LiveStream) (follow.Owner, error) {
	return follow.Owner{Node: follow.Node{ID: p.node}}, nil
}

func (p *peer) Lost(id.LiveStream) { p.lost++ }

func (p *peer) Do(ctx context.Context, _ follow.Node, r *http.Request) (*http.Response, error) {
	p.sent++
	switch {
	case errors.Is(p.away, errBroken) && p.sent > 1:
		return nil, fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	case p.away != nil:
		return nil, p.away
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r.Clone(ctx))
	return w.Result(), nil
}

// TestAsk asks another node for a broadcast: what reaches it, and what comes back.
func TestAsk(t *testing.T) {
	t.Parallel()
	writer := live.Writer{Epoch: 3, Generation: 2, Owner: live.Owner{Node: "there", Run: "run"}}
	for name, tt := range map[string]struct {
		self     live.Owner    // of the node that is asked
		node     id.Node       // that the directory names
		err      error         // of its broadcast
		lost     time.Duration // of it
		away     error
		asked    int
		want     fault.Kind // of the error, where there is one
		wantFail bool
		refused  bool // it is live.ErrRefused
		sent     int  // how often it is tried; 0: it does not matter
	}{
		"it is handed over":             {self: writer.Owner, node: "there", asked: 1},
		"it is handed over with a loss": {self: writer.Owner, node: "there", lost: 3500 * time.Millisecond, asked: 1},
		"its encoder is there": {
			self: writer.Owner, node: "there", err: fault.New(fault.Conflict, "live"), asked: 1,
			want: fault.Conflict, wantFail: true,
		},
		"it was started again":       {self: live.Owner{Node: "there", Run: "another"}, node: "there"},
		"another node has it by now": {self: writer.Owner, node: "third"},
		"its process has ended": {
			self: writer.Owner, node: "there", away: fmt.Errorf("dial: %w", syscall.ECONNREFUSED), sent: 1,
			want: fault.Internal, wantFail: true, refused: true,
		},
		"its process has just ended": {
			self: writer.Owner, node: "there", away: errBroken, sent: 2,
			want: fault.Internal, wantFail: true, refused: true,
		},
		"it can't be reached": {
			self: writer.Owner, node: "there", away: fault.New(fault.Unavailable, "no route"), want: fault.Unavailable,
			wantFail: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := &leads{err: tt.err, lost: tt.lost}
			p := &peer{node: tt.node, handler: handover.Handler{Own: own, Self: tt.self}, away: tt.away}
			lost, err := handover.Client{Owners: p, Peer: p}.Ask(t.Context(), "stream", writer)
			if lost != tt.lost {
				t.Errorf("%v are lost, want %v", lost, tt.lost)
			}
			if (err != nil) != tt.wantFail || err != nil && fault.KindOf(err) != tt.want {
				t.Errorf("ask: %v", err)
			}
			if errors.Is(err, live.ErrRefused) != tt.refused || tt.sent > 0 && p.sent != tt.sent {
				t.Errorf("sent %d times: %v", p.sent, err)
			}
			if len(own.asked) != tt.asked || tt.asked > 0 && own.asked[0] != writer {
				t.Errorf("the node was asked for %+v", own.asked)
			}
			if p.lost != 1 {
				t.Errorf("what the directory knew was dropped %d times, want once before it is asked", p.lost)
			}
		})
	}
}

func TestHandlerRefuses(t *testing.T) {
	t.Parallel()
	own := &leads{}
	h := handover.Handler{Own: own, Self: live.Owner{Node: "there", Run: "run"}}
	for _, query := range []string{"", "?epoch=x&generation=1&run=run", "?epoch=1&generation=&run=run"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, handover.Path+query, nil))
		if w.Code != http.StatusBadRequest || len(own.asked) != 0 {
			t.Errorf("%q returns %d, asked %v", query, w.Code, own.asked)
		}
	}
}
