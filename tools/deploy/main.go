// Command deploy reads the files in deploy as those who run them do, and prints what it read as JSON.
//
//	deploy compose FILE [NAME=VALUE…]   a Compose file, with variables in place of those of .env
//	deploy kubernetes FOLDER            the objects of a kustomization
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "deploy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: deploy compose FILE [NAME=VALUE…], deploy kubernetes FOLDER")
	}
	var text []byte
	var err error
	switch args[0] {
	case "compose":
		text, err = compose(ctx, args[1], args[2:])
	case "kubernetes":
		text, err = kubernetes(args[1])
	default:
		err = fmt.Errorf("there is no %s", args[0])
	}
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// compose reads a Compose file as Docker Compose does: what its schema does not know is an error, and so is a variable
// that has to be set and isn't, or a volume or service that is named and not there.
func compose(ctx context.Context, name string, env []string) ([]byte, error) {
	options, err := cli.NewProjectOptions([]string{name}, cli.WithWorkingDirectory(filepath.Dir(name)),
		cli.WithEnv(env), cli.WithInterpolation(true), cli.WithResolvedPaths(true), cli.WithConsistency(true))
	if err != nil {
		return nil, err
	}
	project, err := cli.ProjectFromOptions(ctx, options)
	if err != nil {
		return nil, err
	}
	return project.MarshalJSON()
}
