package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// What a release was built from: its version, the commit, and the commit's time. tools/release has the linker set them,
// as a release is built without asking a repository: elsewhere the same sources give the same bytes.
//
//nolint:gochecknoglobals // the linker sets variables alone
var release, releaseCommit, releaseTime string

// built is what a program was built from, as far as that is known.
type built struct {
	version, commit, time string
	modified              bool // since the commit
}

// Version is the release's, or the module's version, or the commit it was built from, or dev.
func Version() string { return origin().version }

// origin is what this program was built from.
func origin() built {
	if release != "" {
		return built{version: release, commit: releaseCommit, time: releaseTime}
	}
	info, _ := debug.ReadBuildInfo()
	return noted(info)
}

// noted is what go build has noted in a program.
func noted(info *debug.BuildInfo) built {
	b := built{version: "dev"}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		}
	}
	switch v := info.Main.Version; {
	case v != "" && v != "(devel)":
		b.version = strings.TrimPrefix(v, "v") // as a release has it
	case len(b.commit) >= 12:
		b.version = b.commit[:12]
	}
	return b
}

// builtFrom says it, and by what for which platform.
func builtFrom(b built) string {
	var parts []string
	if b.commit != "" {
		parts = append(parts, "commit "+b.commit)
	}
	if b.time != "" {
		parts = append(parts, b.time)
	}
	if b.modified {
		parts = append(parts, "modified")
	}
	return strings.Join(append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), ", ")
}
