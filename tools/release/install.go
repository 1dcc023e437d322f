package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// installed is a file as it is installed, and where it stands in the archive.
type installed struct {
	source   string
	path     string // on a machine; empty: not by a package
	archived string // in the archive; empty: not in it
	mode     fs.FileMode
	group    string // root's unless given
	settings bool   // changed by the administrator, and kept
	only     string // packager; empty: all
}

// unitFile is where the unit stands, of which the packages have a copy: it names the program's place.
const unitFile = "deploy/systemd/millrace.service"

// installed lists what the programs come with.
func (r *release) installed(arch string, programs []string, licences string) ([]installed, error) {
	unit, err := r.unit()
	if err != nil {
		return nil, err
	}
	page, err := r.page()
	if err != nil {
		return nil, err
	}
	in := func(path string) string { return filepath.Join(r.root, path) }
	completion := func(shell string) string { return in("internal/app/cli/completion/millrace." + shell) }
	const doc = "/usr/share/doc/millrace/"
	list := []installed{
		{source: in("LICENSE"), path: doc + "LICENSE", archived: "LICENSE"},
		{source: licences, path: doc + "copyright", archived: "LICENCES"},
		{source: in("CHANGELOG.md"), path: doc + "CHANGELOG.md", archived: "CHANGELOG.md"},
		{
			source: in("deploy/millrace.yaml"), path: "/etc/millrace.yaml", archived: "millrace.yaml",
			mode: 0o640, group: "millrace", settings: true,
		},
		{source: unit, path: "/usr/lib/systemd/system/millrace.service"},
		{source: in(unitFile), archived: "millrace.service"},
		{source: page, path: "/usr/share/man/man1/millrace.1.gz"},
		{source: in("deploy/millrace.1"), archived: "millrace.1"},
		{source: completion("bash"), path: "/usr/share/bash-completion/completions/millrace"},
		{source: completion("bash"), archived: "completion/millrace.bash"},
		{source: completion("fish"), path: "/usr/share/fish/vendor_completions.d/millrace.fish"},
		{source: completion("fish"), archived: "completion/millrace.fish"},
		{source: completion("zsh"), path: "/usr/share/zsh/vendor-completions/_millrace", only: "deb"},
		{source: completion("zsh"), path: "/usr/share/zsh/site-functions/_millrace", only: "rpm"},
		{source: completion("zsh"), archived: "completion/millrace.zsh"},
	}
	for _, program := range programs {
		name := filepath.Base(program)
		list = append(list, installed{source: program, path: "/usr/bin/" + name, archived: name, mode: 0o755})
	}
	for i := range list {
		if list[i].mode == 0 {
			list[i].mode = 0o644
		}
	}
	return list, nil
}

// unit is the unit with the program where packages have it.
func (r *release) unit() (path string, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, unitFile))
	if err != nil {
		return "", fmt.Errorf("read unit: %w", err)
	}
	const by, with = "ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/"
	changed := strings.Replace(string(text), by, with, 1)
	if changed == string(text) {
		return "", fmt.Errorf("%s has no %s", unitFile, by)
	}
	path = filepath.Join(r.work, "millrace.service")
	if err = os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return "", fmt.Errorf("write unit: %w", err)
	}
	return path, nil
}

// page is the manual page, compressed as a distribution's.
func (r *release) page() (path string, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, "deploy/millrace.1"))
	if err != nil {
		return "", fmt.Errorf("read manual page: %w", err)
	}
	packed, err := compressed(func(z *gzip.Writer) error {
		_, failed := z.Write(text)
		return failed
	})
	path = filepath.Join(r.work, "millrace.1.gz")
	if err == nil {
		err = os.WriteFile(path, packed, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("compress manual page: %w", err)
	}
	return path, nil
}

// compressed is what is written, compressed, without a name or a time.
func compressed(write func(*gzip.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	err := errors.Join(write(z), z.Close())
	return b.Bytes(), err
}

// archive writes what is needed on a machine without packages, in a folder of its own.
func (r *release) archive(arch string, list []installed) (artefact, error) {
	folder := fmt.Sprintf("millrace-%s-linux-%s", r.of.version, arch)
	packed, err := compressed(func(z *gzip.Writer) error {
		t := tar.NewWriter(z)
		for _, f := range list {
			if f.archived == "" {
				continue
			}
			text, err := os.ReadFile(f.source)
			if err != nil {
				return err
			}
			head := &tar.Header{
				Name: folder + "/" + f.archived, Mode: int64(f.mode | 0o044), Size: int64(len(text)),
				ModTime: r.of.time, Uname: "root", Gname: "root", Format: tar.FormatPAX,
			}
			if err = t.WriteHeader(head); err != nil {
				return err
			}
			if _, err = t.Write(text); err != nil {
				return err
			}
		}
		return t.Close()
	})
	path := filepath.Join(r.work, folder+".tar.gz")
	if err == nil {
		err = os.WriteFile(path, packed, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("write archive for %s: %w", arch, err)
	}
	return artefact(path), nil
}
