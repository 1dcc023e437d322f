package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const installFFmpeg = "Install it: apt-get install ffmpeg (Debian, Ubuntu), dnf install ffmpeg (Fedora), brew install ffmpeg (macOS)."

// Tools runs a program and gives what it printed.
type Tools func(ctx context.Context, program string, args ...string) (string, error)

func inPath(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).Output() //nolint:gosec // called with ffmpeg and ffprobe only
	if err != nil {
		return "", fmt.Errorf("run %s: %w", program, err)
	}
	return string(out), nil
}

// Tool checks that a program of ffmpeg is there and new enough.
type Tool struct {
	Program string
	Exec    Tools
}

// Name implements Check.
func (t Tool) Name() string { return t.Program }

var versionLine = regexp.MustCompile(`^\w+ version (\S+)`)

const oldestMajor = 4

// Run implements Check.
func (t Tool) Run(ctx context.Context) Finding {
	out, err := t.Exec(ctx, t.Program, "-hide_banner", "-version")
	if errors.Is(err, exec.ErrNotFound) {
		return problem(installFFmpeg, "%s is not in the PATH", t.Program)
	}
	if err != nil {
		return problem("Install it anew. "+installFFmpeg, "%s is there but does not run: %v", t.Program, err)
	}
	m := versionLine.FindStringSubmatch(out)
	if m == nil {
		return warning("Look at its output with "+t.Program+" -version.", "%s does not tell its version", t.Program)
	}
	digits, _, _ := strings.Cut(strings.TrimPrefix(m[1], "n"), ".")
	if major, err := strconv.Atoi(digits); err == nil && major < oldestMajor {
		return problem("Install version 5 or later.", "version %s is too old", m[1])
	}
	return ok("version %s", m[1])
}

// Encoders checks what ffmpeg was built with.
type Encoders struct {
	Exec Tools
}

// Name implements Check.
func (Encoders) Name() string { return "encoders" }

// Run implements Check.
func (e Encoders) Run(ctx context.Context) Finding {
	out, err := e.Exec(ctx, "ffmpeg", "-hide_banner", "-encoders")
	if err != nil {
		return problem(installFFmpeg, "they cannot be listed: %v", err)
	}
	var have []string
	for line := range strings.Lines(out) { // " V....D libx264   description"
		if f := strings.Fields(line); len(f) > 1 {
			have = append(have, f[1])
		}
	}
	const mend = "Install the full ffmpeg of your distribution; builds named free or minimal leave encoders out."
	switch {
	case !slices.Contains(have, "aac"):
		return problem(mend, "ffmpeg has no AAC encoder, so audio tracks that are not AAC cannot be added")
	case !slices.Contains(have, "libx264"):
		return warning(mend, "ffmpeg has no H.264 encoder (libx264): millrace demo does not work")
	}
	return ok("AAC and H.264")
}
