// Command release makes what is published of a version: archives and packages for each architecture, a list of what is
// in them (SBOM), the licences of all that is linked, and checksums.
//
// The same sources, version, commit and time give the same bytes, whatever the folder: nothing is asked of a clock, a
// host name or, if all three are given, a repository.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is made.
type release struct {
	root, out string // the sources, and the folder for what is made of them
	work      string // a folder for what lies between
	arch      []string
	of        origin
	show      bool // what it is of, and make nothing
}

func run(ctx context.Context, args []string) (err error) {
	r, err := parse(ctx, args)
	if err != nil {
		return err
	}
	if r.show {
		fmt.Println(r.of.version, r.of.commit, r.of.time.Format(time.RFC3339))
		return nil
	}
	if err = os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if r.work, err = os.MkdirTemp(r.out, ".making-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	made, err := r.make(ctx)
	if err != nil {
		return err
	}
	return r.publish(made)
}

func parse(ctx context.Context, args []string) (*release, error) {
	r := &release{}
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	f.StringVar(&r.root, "root", ".", "folder of the sources")
	f.StringVar(&r.out, "out", "dist", "folder for what is made; its files of an earlier run are replaced")
	arch := f.String("arch", "amd64,arm64", "architectures, as Go names them")
	f.StringVar(&r.of.version, "version", "", "version; without it that of the changelog and the repository")
	f.StringVar(&r.of.commit, "commit", "", "commit that the sources are of; goes with -version")
	f.BoolVar(&r.show, "show", false, "print version, commit and time, and make nothing")
	seconds := f.Int64("time", 0, "its time, in seconds since 1970; goes with -version")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	r.arch = strings.Split(*arch, ",")
	r.of.time = time.Unix(*seconds, 0).UTC()
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return nil, err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return nil, err
	}
	if r.of.version == "" {
		r.of, err = asked(ctx, r.root)
	}
	return r, err
}

// artefact is a file that is published, as it lies in the folder of the work.
type artefact string

// make makes all artefacts but the checksums.
func (r *release) make(ctx context.Context) (made []artefact, err error) {
	parts := map[string]*inventory{}
	for _, arch := range r.arch {
		if parts[arch], err = r.inventory(ctx, arch); err != nil {
			return nil, err
		}
	}
	licences, err := r.licences(parts)
	if err != nil {
		return nil, err
	}
	for _, arch := range r.arch {
		programs, err := r.build(ctx, arch)
		if err != nil {
			return nil, err
		}
		list, err := r.installed(arch, programs, licences)
		if err != nil {
			return nil, err
		}
		for _, step := range []func() (artefact, error){
			func() (artefact, error) { return r.archive(arch, list) },
			func() (artefact, error) { return r.pack("deb", arch, list) },
			func() (artefact, error) { return r.pack("rpm", arch, list) },
			func() (artefact, error) { return r.sbom(arch, parts[arch]) },
		} {
			a, err := step()
			if err != nil {
				return nil, err
			}
			made = append(made, a)
		}
	}
	return made, nil
}

// publish moves the artefacts to where they are wanted, and writes their checksums.
func (r *release) publish(made []artefact) error {
	var sums bytes.Buffer
	slices.SortFunc(made, func(a, b artefact) int {
		return strings.Compare(filepath.Base(string(a)), filepath.Base(string(b)))
	})
	for _, a := range made {
		content, err := os.ReadFile(string(a))
		if err != nil {
			return fmt.Errorf("read artefact: %w", err)
		}
		name := filepath.Base(string(a))
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
		if err = os.Rename(string(a), filepath.Join(r.out, name)); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		fmt.Printf("%9d  %s\n", len(content), filepath.Join(r.out, name))
	}
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), sums.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	return nil
}
