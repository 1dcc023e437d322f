package cli

import (
	"context"
	"runtime"
)

func otherCommands() []command {
	return []command{
		of("config check", "check the settings and show where each value comes from",
			"Reads flags, environment and file as serve does, and prints each value with its origin. Secrets are "+
				"masked.", simply(func(_ context.Context, r *request) error { return r.cfg.Print(r.out) }), warning),
		of("version", "print the version",
			"Prints the version.",
			simply(func(_ context.Context, r *request) error {
				return r.say("millrace %s (%s, %s/%s)", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			}), alone),
		// is explained before it would be run
		of("help", "explain a command", "Explains a command: millrace help serve.", simply(nil), alone),
	}
}
