package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stage is what the last stage of a Dockerfile says.
type stage struct {
	copies []copied
	config v1.Config
}

// copied is a COPY from another stage.
type copied struct {
	sources  []string
	to       string
	uid, gid int
	text     string // as it stands in the Dockerfile
}

// read reads a Dockerfile as BuildKit does.
func read(name string) (*stage, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parsed, err := parser.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		return nil, fmt.Errorf("the last stage of %s is from %s, not from scratch", name, last.BaseName)
	}
	s := &stage{config: v1.Config{
		Labels: map[string]string{}, ExposedPorts: map[string]struct{}{}, Volumes: map[string]struct{}{},
	}}
	for _, c := range last.Commands {
		if err = s.add(c); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, c, err)
		}
	}
	return s, nil
}

// add adds an instruction. One that needs more than is done here is refused.
func (s *stage) add(command instructions.Command) error {
	switch c := command.(type) {
	case *instructions.CopyCommand:
		if c.From == "" || c.Chmod != "" || c.Parents || len(c.ExcludePatterns) > 0 || len(c.SourceContents) > 0 {
			return fmt.Errorf("only COPY --from with --chown is known here")
		}
		add := copied{sources: c.SourcePaths, to: c.DestPath, text: c.String()}
		if uid, gid, ok := strings.Cut(c.Chown, ":"); ok {
			var err error
			if add.uid, err = strconv.Atoi(uid); err != nil {
				return err
			}
			if add.gid, err = strconv.Atoi(gid); err != nil {
				return err
			}
		} else if c.Chown != "" {
			return fmt.Errorf("--chown without numbers of a user and a group")
		}
		s.copies = append(s.copies, add)
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			s.config.Env = append(s.config.Env, e.String())
		}
	case *instructions.LabelCommand:
		for _, l := range c.Labels {
			s.config.Labels[unquoted(l.Key)] = unquoted(l.Value)
		}
	case *instructions.ExposeCommand:
		for _, port := range c.Ports {
			if !strings.Contains(port, "/") {
				port += "/tcp"
			}
			s.config.ExposedPorts[port] = struct{}{}
		}
	case *instructions.VolumeCommand:
		for _, v := range c.Volumes {
			s.config.Volumes[v] = struct{}{}
		}
	case *instructions.UserCommand:
		s.config.User = c.User
	case *instructions.StopSignalCommand:
		s.config.StopSignal = c.Signal
	case *instructions.HealthCheckCommand:
		s.config.Healthcheck = &v1.HealthConfig{
			Test: c.Health.Test, Interval: c.Health.Interval, Timeout: c.Health.Timeout,
			StartPeriod: c.Health.StartPeriod, Retries: c.Health.Retries,
		}
	case *instructions.EntrypointCommand:
		s.config.Entrypoint = c.CmdLine
		return noShell(c.PrependShell)
	case *instructions.CmdCommand:
		s.config.Cmd = c.CmdLine
		return noShell(c.PrependShell)
	default:
		return fmt.Errorf("%s is not known here", command.Name())
	}
	return nil
}

// unquoted is a word of the Dockerfile without its quotes.
func unquoted(word string) string {
	if text, err := strconv.Unquote(word); err == nil {
		return text
	}
	return word
}

func noShell(shell bool) error {
	if shell {
		return fmt.Errorf("the image has no shell: write the command as [\"…\"]")
	}
	return nil
}
