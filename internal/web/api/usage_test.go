package api

import (
	"context"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/usage"
	"millrace/internal/id"
)

// fakeUsage has a report of each kind.
type fakeUsage struct{ notes *notebook }

func (f *fakeUsage) List(
	_ context.Context, _ id.Environment, q usage.Query, now time.Time,
) ([]usage.Report, int, usage.Query, error) {
	f.notes.note("usage.List", q)
	if err := outcome(string(q.Asset)); err != nil {
		return nil, 0, q, err
	}
	hd := asset.Facts{Duration: 61.5, Width: 1920, Height: 1080, HasVideo: true}
	return []usage.Report{
		{
			Asset: asset.Asset{
				ID: "recording", LiveStream: "live1", Status: asset.Ready, CreatedAt: noon, Facts: hd,
				Options: assetopt.Options{Passthrough: "p"},
			},
			Seconds: usage.Seconds{Tier720: 10.1, Tier1080: 0.2, Tier1440: 1, Tier2160: 2, AudioOnly: 3},
		},
		{
			Asset: asset.Asset{
				ID: "gone", CreatedAt: noon, Facts: hd, Options: assetopt.Options{VideoQuality: "premium"},
			},
			Deleted: true, DeletedAt: noon.Add(time.Hour), Seconds: usage.Seconds{Tier720: 0.3},
		},
		{Asset: asset.Asset{ID: "forgotten", CreatedAt: noon}, Deleted: true, Seconds: usage.Seconds{AudioOnly: 0.2}},
		{
			Asset:   asset.Asset{ID: "broken", Status: asset.Errored, CreatedAt: noon, Facts: hd},
			Seconds: usage.Seconds{Tier720: 0.1},
		},
	}, 7, q.Hours(now), nil
}

func TestDeliveryUsage(t *testing.T) {
	t.Parallel()
	const base = "/video/v1/delivery-usage"
	runScenarios(t, "delivery_usage.txt", []scenario{
		{name: "of the hour before half a day ago", method: "GET", path: base, status: 200},
		{name: "of an asset", method: "GET", path: base + "?asset_id=a1&page=2&limit=3", status: 200},
		{name: "of a live stream", method: "GET", path: base + "?live_stream_id=live1", status: 200},
		{name: "of a time", method: "GET", path: base + "?timeframe[]=1767225600&timeframe[]=1767232801", status: 200},
		{
			name: "of a time, with escaped brackets", method: "GET",
			path: base + "?timeframe%5B%5D=1767225600&timeframe%5B%5D=1767232800", status: 200,
		},
		{name: "a time with one end", method: "GET", path: base + "?timeframe[]=1767225600", status: 400},
		{
			name: "times that are none", method: "GET",
			path: base + "?timeframe[]=today&timeframe[]=-1&page=0&limit=101", status: 400,
		},
		{name: "a rule is broken", method: "GET", path: base + "?asset_id=many", status: 400},
	})
}
