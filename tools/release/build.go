package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// programs are the packages of what is installed.
func programs() []string { return []string{"millrace", "millrace-speech"} }

// goTool is the go command for an architecture. What decides the bytes is said here: neither the environment nor the
// user's settings of Go may.
func (r *release) goTool(ctx context.Context, arch string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0",
		"GOWORK=off", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stderr = os.Stderr
	return cmd
}

// build builds the programs for an architecture and returns their paths.
func (r *release) build(ctx context.Context, arch string) (paths []string, err error) {
	const variable = "millrace/internal/app/cli.release"
	link := strings.Join([]string{
		"-s -w",
		"-X", variable + "=" + r.of.version,
		"-X", variable + "Commit=" + r.of.commit,
		"-X", variable + "Time=" + r.of.time.Format(time.RFC3339),
	}, " ")
	for _, name := range programs() {
		path := filepath.Join(r.work, arch, name)
		cmd := r.goTool(ctx, arch, "build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", path, "./cmd/"+name)
		if err = cmd.Run(); err != nil {
			return nil, fmt.Errorf("build %s for %s: %w", name, arch, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}
