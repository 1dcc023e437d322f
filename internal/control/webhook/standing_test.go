package webhook_test

import (
	"slices"
	"testing"

	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// TestStandings: what waits is told apart from what no endpoint wants, and from what none was sent.
func TestStandings(t *testing.T) {
	t.Parallel()
	const waits, sent, failed = webhook.Waiting, webhook.Delivered, webhook.Failed
	reader := func(key id.Webhook, position int64, on bool, types ...string) webhook.Reader {
		w := webhook.Webhook{ID: key, Environment: "env", Enabled: on, Types: types}
		return webhook.Reader{Webhook: w, Position: position}
	}
	type readers = []webhook.Reader
	type standings = []webhook.Standing
	for name, tt := range map[string]struct {
		typ, object  string
		all          readers
		queued, want standings
	}{
		"no endpoint":  {"a", "", nil, nil, nil},
		"another type": {"a", "", readers{reader("w", 0, true, "b")}, nil, nil},
		"disabled":     {"a", "", readers{reader("w", 0, false)}, nil, nil},
		"not queued yet": {
			"a", "",
			readers{reader("w", 4, true, "a")},
			nil,
			standings{{Webhook: "w", State: waits}},
		},
		"made behind it":      {"a", "", readers{reader("w", 5, true)}, nil, standings{{Webhook: "w"}}},
		"test of another one": {webhook.EventTest, "x", readers{reader("w", 0, true)}, nil, nil},
		"queued": {
			"a", "",
			readers{reader("w", 5, true)},
			standings{{Webhook: "w", State: waits, Tried: true}},
			standings{{Webhook: "w", State: waits, Tried: true}},
		},
		"wants it no more": {
			"a", "",
			readers{reader("w", 5, false, "b")},
			standings{{Webhook: "w", State: failed}},
			standings{{Webhook: "w", State: failed}},
		},
		"of one that is deleted": {
			"a", "", nil,
			standings{{Webhook: "x", State: waits}, {Webhook: "y", State: sent}},
			standings{{Webhook: "y", State: sent}},
		},
		"is sent again": {
			"a", "",
			readers{reader("w", 4, true)},
			standings{{Webhook: "w", State: sent}},
			standings{{Webhook: "w", State: waits}},
		},
		"one of two": {
			"a", "",
			readers{reader("v", 4, true), reader("w", 5, true)},
			standings{{Webhook: "w", State: sent}},
			standings{{Webhook: "w", State: sent}, {Webhook: "v", State: waits}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := event.Event{Environment: "env", Type: tt.typ, ObjectID: tt.object, Sequence: 5}
			got := webhook.Standings([]event.Event{e}, tt.all, map[int64]standings{5: tt.queued})
			if !slices.Equal(got[5], tt.want) {
				t.Errorf("got %+v, want %+v", got[5], tt.want)
			}
		})
	}
}
