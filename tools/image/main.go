// Command image makes the container image without Docker: an OCI archive of the last stage of the Dockerfile, from a
// release's archive and the folder that deploy/image/root.sh makes. The same files give the same bytes.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// maker makes one image.
type maker struct {
	dockerfile, debian, release string
	out, work                   string
	arch, version, commit       string
	time                        time.Time
}

func run(args []string) (err error) {
	m := &maker{}
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.StringVar(&m.dockerfile, "dockerfile", "Dockerfile", "the Dockerfile")
	f.StringVar(&m.debian, "debian", "", "folder with what the image has of Debian")
	f.StringVar(&m.release, "release", "", "archive of the release: millrace-VERSION-linux-ARCH.tar.gz")
	f.StringVar(&m.out, "out", "dist", "folder for the archive of the image; its SHA256SUMS gets a line for it")
	f.StringVar(&m.arch, "arch", "", "architecture, as Go names it")
	f.StringVar(&m.version, "version", "", "version")
	f.StringVar(&m.commit, "commit", "", "commit")
	created := f.String("time", "", "the commit's time, as 2026-12-24T12:00:00Z")
	if err = f.Parse(args); err != nil {
		return err
	}
	if m.time, err = time.Parse(time.RFC3339, *created); err != nil {
		return fmt.Errorf("read time: %w", err)
	}
	if m.work, err = os.MkdirTemp(m.out, ".making-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.work)) }()
	if err = m.unpack(); err != nil {
		return fmt.Errorf("unpack %s: %w", m.release, err)
	}
	image, err := m.image()
	if err != nil {
		return err
	}
	return m.publish(image)
}

// programs is the folder that the release is unpacked to.
func (m *maker) programs() string { return filepath.Join(m.work, "millrace") }

// unpack unpacks the release, without the folder that its files are in.
func (m *maker) unpack() error {
	file, err := os.Open(m.release)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		_, name, ok := strings.Cut(head.Name, "/")
		if !ok || !filepath.IsLocal(name) || head.Typeflag != tar.TypeReg {
			return fmt.Errorf("%s is not a file of a release", head.Name)
		}
		to := filepath.Join(m.programs(), name)
		if err = os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err = written(to, t, head.FileInfo().Mode().Perm()); err != nil {
			return err
		}
		if err = os.Chtimes(to, head.ModTime, head.ModTime); err != nil {
			return err
		}
	}
}

func written(name string, from io.Reader, mode fs.FileMode) error {
	to, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Chmod(mode), to.Close())
}

// image is the last stage of the Dockerfile.
func (m *maker) image() (v1.Image, error) {
	s, err := read(m.dockerfile)
	if err != nil {
		return nil, err
	}
	// Where the stages before it have what it copies.
	from := map[string]string{"/debian": m.debian, "/millrace": m.programs(), "/data": filepath.Join(m.work, "data")}
	if err = os.MkdirAll(filepath.Join(from["/data"], "millrace"), 0o755); err != nil {
		return nil, err
	}
	if err = os.Chtimes(filepath.Join(from["/data"], "millrace"), m.time, m.time); err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for i, c := range s.copies {
		layer, err := m.layer(i, c, from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.text, err)
		}
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: m.time}, CreatedBy: c.text},
		}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", m.arch, v1.Time{Time: m.time}
	config.Config = s.config
	for label, value := range map[string]string{
		"version": m.version, "revision": m.commit, "created": m.time.Format(time.RFC3339),
	} {
		config.Config.Labels["org.opencontainers.image."+label] = value
	}
	return mutate.ConfigFile(image, config)
}

// publish writes the archive, and its line into the checksums.
func (m *maker) publish(image v1.Image) error {
	name := fmt.Sprintf("millrace-%s-linux-%s.oci.tar", m.version, m.arch)
	made := filepath.Join(m.work, name)
	if err := m.archive(image, made); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	file, err := os.Open(made)
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha256.New()
	size, err := io.Copy(h, file)
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	sums := filepath.Join(m.out, "SHA256SUMS")
	text, err := os.ReadFile(sums)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read checksums: %w", err)
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(text), "\n"), func(line string) bool {
		return line == "" || strings.HasSuffix(line, "  "+name+"\n")
	})
	lines = append(lines, fmt.Sprintf("%x  %s\n", h.Sum(nil), name))
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	if err = os.Rename(made, filepath.Join(m.out, name)); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if err = os.WriteFile(sums, []byte(strings.Join(lines, "")), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%9d  %s\n           %s\n", size, path.Join(m.out, name), digest)
	return nil
}
