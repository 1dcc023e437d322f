package cli

import "context"

func otherCommands() []command {
	return []command{
		of("config check", "check the settings and show where each value comes from",
			"Reads flags, environment and file as serve does, and prints each value with its origin. Secrets are "+
				"masked.", simply(func(_ context.Context, r *request) error { return r.cfg.Print(r.out) }), warning),
		of("version", "print the version",
			"Prints the version, the commit and its time, the version of Go and the platform.",
			simply(func(_ context.Context, r *request) error {
				return r.say("millrace %s (%s)", Version(), builtFrom(origin()))
			}), alone),
		// is explained before it would be run
		of("help", "explain a command", "Explains a command: millrace help serve.", simply(nil), alone),
	}
}
