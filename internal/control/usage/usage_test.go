package usage

import (
	"context"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
)

// noted remembers what it was asked for.
type noted struct {
	Store
	hour, before time.Time
	query        Query
}

func (n *noted) Add(_ context.Context, hour time.Time, _ []Delivered) error {
	n.hour = hour
	return nil
}

func (n *noted) Reports(_ context.Context, _ id.Environment, q Query) ([]Report, int, error) {
	n.query = q
	return nil, 0, nil
}

func (n *noted) Forget(_ context.Context, before time.Time, _ int) (bool, error) {
	n.before = before
	return false, nil
}

func TestHours(t *testing.T) {
	t.Parallel()
	at := func(clock string) time.Time {
		v, err := time.Parse("15:04:05", clock)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 3, 2, v.Hour(), v.Minute(), v.Second(), 0, time.UTC)
	}
	for _, tt := range []struct {
		name             string
		from, to         time.Time
		wantFrom, wantTo time.Time
	}{
		{"unsaid: from the thirteenth hour to the twelfth", time.Time{}, time.Time{}, at("02:00:00"), at("03:00:00")},
		{"whole hours", at("01:00:00"), at("03:00:00"), at("01:00:00"), at("03:00:00")},
		{"wider", at("01:59:59"), at("03:00:01"), at("01:00:00"), at("04:00:00")},
		{"another zone", at("01:30:00").In(time.FixedZone("", 5400)), at("02:00:00"), at("01:00:00"), at("02:00:00")},
	} {
		var n noted
		_, _, understood, err := New(&n).List(t.Context(), "env", Query{From: tt.from, To: tt.to}, at("15:04:05"))
		if err != nil || !n.query.From.Equal(tt.wantFrom) || !n.query.To.Equal(tt.wantTo) || understood != n.query {
			t.Errorf("%s: %v to %v (%v), want %v to %v", tt.name, n.query.From, n.query.To, err, tt.wantFrom, tt.wantTo)
		}
	}
	var n noted
	if err := New(&n).Add(t.Context(), nil, at("15:04:05")); err != nil || !n.hour.Equal(at("15:00:00")) {
		t.Errorf("%v, %v", n.hour, err)
	}
	if _, err := New(&n).Forget(t.Context(), at("15:04:05")); err != nil || !n.before.Equal(at("00:00:00").AddDate(0, 0,
		-90)) {
		t.Errorf("%v, %v", n.before, err)
	}
}

func TestQueryRefused(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]Query{
		"asset_id and live_stream_id must not be used together": {Asset: "a", LiveStream: "s"},
		"timeframe[1] must not be before timeframe[0]":          {From: time.Unix(7200, 0), To: time.Unix(3600, 0)},
	} {
		_, _, _, err := New(&noted{}).List(t.Context(), "env", q, time.Unix(9000, 0))
		if m := fault.Messages(err); fault.KindOf(err) != fault.Invalid || len(m) != 1 || m[0] != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
