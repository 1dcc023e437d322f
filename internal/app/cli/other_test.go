package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestBuiltFrom: the commit, its time and changes since are told where they are known.
func TestBuiltFrom(t *testing.T) {
	t.Parallel()
	by := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for name, tt := range map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"nothing known": {nil, by},
		"a commit": {[]debug.BuildSetting{
			{Key: "-trimpath", Value: "true"},
			{Key: "vcs.revision", Value: "766a4b77"},
			{Key: "vcs.time", Value: "2026-11-30T09:00:00Z"},
			{Key: "vcs.modified", Value: "false"},
		}, "commit 766a4b77, 2026-11-30T09:00:00Z, " + by},
		"changed since": {[]debug.BuildSetting{
			{Key: "vcs.revision", Value: "766a4b77"},
			{Key: "vcs.modified", Value: "true"},
		}, "commit 766a4b77, modified, " + by},
	} {
		if got := builtFrom(&debug.BuildInfo{Settings: tt.settings}); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
	if got := builtFrom(nil); got != by {
		t.Errorf("without any: got %s, want %s", got, by)
	}
}
