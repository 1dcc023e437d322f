package delivery

import (
	"testing"
	"time"

	"millrace/internal/control/webhook"
)

// TestEarlierWhileSending: an earlier event that comes to be replayed while a later one of its resource is being sent
// makes no second one of that when the store is read again.
func TestEarlierWhileSending(t *testing.T) {
	t.Parallel()
	e := newEndpoint()
	five, seven := webhook.Pending{Sequence: 5, Resource: "x"}, webhook.Pending{Sequence: 7, Resource: "x"}
	e.add(five)
	e.add(seven)
	if l := e.due(time.Now()); l == nil || l.waiting[0].sequence != 5 {
		t.Fatalf("due is %+v", l)
	}
	three := webhook.Pending{Sequence: 3, Resource: "x"}
	for range 2 {
		all := []webhook.Pending{three, five, seven}
		e.keep(all)
		for _, p := range all {
			e.add(p)
		}
	}
	var order []int64
	for _, i := range e.lines["x"].waiting {
		order = append(order, i.sequence)
	}
	if len(order) != 3 || order[0] != 5 || order[1] != 3 || order[2] != 7 || e.waiting != 3 {
		t.Errorf("in the line are %v, %d wait", order, e.waiting)
	}
}
