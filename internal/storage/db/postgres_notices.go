package db

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// notices is what this process has committed and the others are not notified of: that there are events, and jobs in
// which queues. A transaction must not do that itself: PostgreSQL has those that notify commit one after the other, in
// all of its databases. The zero value has none.
type notices struct {
	mu     sync.Mutex
	events bool
	queues map[string]bool
	wake   context.CancelFunc // ends the wait of who sends them; nil: it does not wait
}

// add notes what a transaction has committed, and wakes who sends it. It never waits.
func (n *notices) add(events bool, queues map[string]bool) {
	if !events && len(queues) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = n.events || events
	if n.queues == nil {
		n.queues = map[string]bool{}
	}
	maps.Copy(n.queues, queues)
	if n.wake != nil {
		n.wake()
	}
}

// await has wake called once there is something, and at once if there is.
func (n *notices) await(wake context.CancelFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wake = wake; n.some() {
		wake()
	}
}

// pending reports whether there is something, and ends await.
func (n *notices) pending() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wake = nil
	return n.some()
}

func (n *notices) some() bool { return n.events || len(n.queues) > 0 }

// take empties it.
func (n *notices) take() (events bool, queues []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	events, queues = n.events, slices.Sorted(maps.Keys(n.queues))
	n.events, n.queues = false, nil
	return events, queues
}

// sendNotices is one statement for all that is to be said. River's channel has the name of its schema before it, and a
// text of JSON in each notification, as River's own inserts have.
const sendNotices = `SELECT pg_notify($1, '') WHERE $2
UNION ALL
SELECT pg_notify(current_schema() || '.river_insert', json_build_object('queue', queue)::text)
FROM unnest($3::text[]) AS queue`

// send notifies the other processes.
func send(ctx context.Context, conn *pgx.Conn, events bool, queues []string) error {
	if _, err := conn.Exec(ctx, sendNotices, eventChannel, events, queues); err != nil {
		return fmt.Errorf("notify of events and jobs: %w", err)
	}
	return nil
}

// silentDriver is River's driver for inserting jobs, without the notification in the transaction of each.
type silentDriver struct{ *riverpgxv5.Driver }

// SupportsListenNotify implements riverdriver.Driver.
func (silentDriver) SupportsListenNotify() bool { return false }
