package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
)

func otherCommands() []command {
	return []command{
		of("config check", "check the settings and show where each value comes from",
			"Reads flags, environment and file as serve does, and prints each value with its origin. Secrets are "+
				"masked.", simply(func(_ context.Context, r *request) error { return r.cfg.Print(r.out) }), warning),
		of("version", "print the version",
			"Prints the version, the commit and its time, the version of Go and the platform.",
			simply(func(_ context.Context, r *request) error {
				info, _ := debug.ReadBuildInfo()
				return r.say("millrace %s (%s)", Version(), builtFrom(info))
			}), alone),
		// is explained before it would be run
		of("help", "explain a command", "Explains a command: millrace help serve.", simply(nil), alone),
	}
}

// builtFrom says what a program was built from, as far as that is known, and by what for which platform.
func builtFrom(info *debug.BuildInfo) string {
	var parts []string
	if info != nil {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				parts = append(parts, "commit "+s.Value)
			case s.Key == "vcs.time":
				parts = append(parts, s.Value)
			case s.Key == "vcs.modified" && s.Value == "true":
				parts = append(parts, "modified")
			}
		}
	}
	return strings.Join(append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), ", ")
}
