package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestBuiltFrom: the version, the commit, its time and changes since are told where they are known.
func TestBuiltFrom(t *testing.T) {
	t.Parallel()
	by := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for name, tt := range map[string]struct {
		info          *debug.BuildInfo
		version, want string
	}{
		"no information": {nil, "dev", by},
		"nothing known":  {&debug.BuildInfo{}, "dev", by},
		"no version":     {&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "dev", by},
		"a version":      {&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "1.2.3", by},
		"a commit": {&debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "-trimpath", Value: "true"},
			{Key: "vcs.revision", Value: "766a4b77766a4b77"},
			{Key: "vcs.time", Value: "2026-11-30T09:00:00Z"},
			{Key: "vcs.modified", Value: "false"},
		}}, "766a4b77766a", "commit 766a4b77766a4b77, 2026-11-30T09:00:00Z, " + by},
		"changed since": {&debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "766a4b77"},
			{Key: "vcs.modified", Value: "true"},
		}}, "dev", "commit 766a4b77, modified, " + by},
	} {
		b := noted(tt.info)
		if got := builtFrom(b); b.version != tt.version || got != tt.want {
			t.Errorf("%s: got %s, built from %s; want %s, %s", name, b.version, got, tt.version, tt.want)
		}
	}
}
