package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/retention"
	"millrace/internal/id"
)

// fakeRetention notes what is changed.
type fakeRetention struct {
	policy retention.Policy
	many   bool
	calls  []string
}

func (f *fakeRetention) Policy(context.Context) (retention.Policy, error) { return f.policy, nil }

func (f *fakeRetention) Set(
	_ context.Context, l retention.Limits, grace time.Duration,
) (retention.Policy, error) {
	f.calls = append(f.calls, fmt.Sprint("set ", l, grace))
	return retention.Policy{Limits: l, StartsAt: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}, nil
}

func (f *fakeRetention) TurnOff(context.Context) error {
	f.calls = append(f.calls, "off")
	return nil
}

func (f *fakeRetention) Preview(
	_ context.Context, l retention.Limits, _ time.Duration,
) (retention.Preview, error) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	p := retention.Preview{
		Policy: retention.Policy{Limits: l, StartsAt: at.Add(72 * time.Hour)}, Until: at.Add(240 * time.Hour),
		Stored: retention.Stored{Bytes: 7e9},
	}
	if f.many {
		p.Count, p.Bytes, p.Partly, p.Stored.Unmeasured = 20_000, 5e9, true, 1
		film := asset.Asset{ID: "a", CreatedAt: at, Options: assetopt.Options{Meta: assetopt.Meta{Title: "Fi\x1blm"}}}
		p.First = []retention.Due{
			{Asset: film, At: at.Add(72 * time.Hour), Reason: retention.ByAge, Bytes: 1500, Measured: true},
			{Asset: asset.Asset{ID: "b", CreatedAt: at}, At: at.Add(72 * time.Hour), Reason: retention.BySize},
		}
	}
	return p, nil
}

func (f *fakeRetention) SetExempt(_ context.Context, a id.Asset, exempt bool) error {
	f.calls = append(f.calls, fmt.Sprint("exempt ", a, exempt))
	return nil
}

func TestRetentionCommands(t *testing.T) {
	t.Parallel()
	const nothing = "Policy: assets are kept for 90 days; nothing is deleted before 2026-05-04T12:00:00Z.\n" +
		"Stored: 7.0 GB.\nDeleted by 2026-05-11T12:00:00Z: 0 assets, which frees 0 bytes.\n"
	for name, tt := range map[string]struct {
		args      string
		on, many  bool
		out, call string
		code      int
	}{
		"preview without a policy": {
			"preview", false, false, "Retention is off: nothing is deleted automatically.\n", "", 0,
		},
		"preview of the policy": {"preview", true, false, nothing, "", 0},
		"preview": {
			"preview --max-age=7d --max-bytes=5GB", true, true,
			"Policy: assets are kept for 7 days, all assets may take 5.0 GB; nothing is deleted before " +
				"2026-05-04T12:00:00Z.\nStored: 7.0 GB (1 asset is not measured yet and counts as 0).\n" +
				"Deleted by 2026-05-11T12:00:00Z: at least 20000 assets, which frees at least 5.0 GB.\n" +
				"ASSET  CREATED               DELETED AT            BECAUSE OF    SIZE    TITLE\n" +
				"a      2026-05-01T12:00:00Z  2026-05-04T12:00:00Z  max_age_days  1.5 kB  \"Fi\\x1blm\"\n" +
				"b      2026-05-01T12:00:00Z  2026-05-04T12:00:00Z  max_bytes     -       -\n" +
				"… and at least 19998 more\n", "", 0,
		},
		"on without --yes": {
			"on --max-age=90d", false, false,
			nothing + "Nothing has changed. The same command with --yes sets this policy.\n", "", 0,
		},
		"on": {
			"on --max-age=90 --grace=2h --yes", false, false,
			nothing + "Retention is on. Nothing is deleted before 2026-05-04T12:00:00Z.\n", "set {90 0} 2h0m0s", 0,
		},
		"on without limits": {"on --yes", false, false, "", "", 1},
		"no days":           {"on --max-age=90h --yes", false, false, "", "", 2},
		"no bytes":          {"on --max-bytes=much --yes", false, false, "", "", 2},
		"off":               {"off", true, false, "Retention is off.\n", "off", 0},
		"exempt":            {"exempt a1", true, false, "Asset a1 is exempt.\n", "exempt a1true", 0},
		"include":           {"include a1", true, false, "Asset a1 is not exempt.\n", "exempt a1false", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeRetention{many: tt.many}
			if tt.on {
				f.policy.Limits = retention.Limits{MaxAgeDays: 90}
			}
			var out, bad bytes.Buffer
			closed := 0
			args := append([]string{"retention"}, strings.Fields(tt.args)...)
			code := Run(t.Context(), args, nil, &out, &bad, Actions{
				Retention: func(_ context.Context, _ config.Config, _ id.Environment) (Retention, func() error, error) {
					return f, func() error { closed++; return nil }, nil
				},
			})
			if code != tt.code || out.String() != tt.out || strings.Join(f.calls, ",") != tt.call ||
				code == 0 && closed != 1 ||
				code == 1 && !strings.Contains(bad.String(), "needs --max-age, --max-bytes or both") {
				t.Errorf("code %d, closed %d times, called %q:\n%s%s", code, closed, f.calls, &out, &bad)
			}
		})
	}
}
