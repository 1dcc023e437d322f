package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// layer makes the layer of a COPY: the contents of a folder, or files into a folder. Paths begin with a key of from,
// whose value is the folder that stands for it.
func (m *maker) layer(i int, c copied, from map[string]string) (layer v1.Layer, err error) {
	name := filepath.Join(m.work, fmt.Sprintf("layer-%d.tar.gz", i))
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	z := gzip.NewWriter(file)
	w := &writer{tar: tar.NewWriter(z), uid: c.uid, gid: c.gid, time: m.time, has: map[string]bool{}}
	for _, source := range c.sources {
		if err == nil {
			err = w.copied(source, c.to, from)
		}
	}
	if err = errors.Join(err, w.tar.Close(), z.Close(), file.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(name, tarball.WithMediaType(types.OCILayer))
}

// writer writes files into an archive, each of them once.
type writer struct {
	tar      *tar.Writer
	uid, gid int
	time     time.Time // of folders that the files are put into
	has      map[string]bool
}

// copied writes what COPY would.
func (w *writer) copied(source, to string, from map[string]string) error {
	head := "/" + strings.SplitN(source, "/", 3)[1]
	folder, ok := from[head]
	if !ok {
		return fmt.Errorf("nothing stands for %s", head)
	}
	source = filepath.Join(folder, strings.TrimPrefix(source, head))
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if !strings.HasSuffix(to, "/") {
			return fmt.Errorf("%s has to end with /", to)
		}
		if err = w.folders(path.Clean(to)); err != nil {
			return err
		}
		return w.add(path.Join(to, path.Base(source)), source, info)
	}
	if err = w.folders(path.Clean(to)); err != nil {
		return err
	}
	return filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || inside == "." {
			return err
		}
		return w.add(path.Join(to, inside), name, info)
	})
}

// folders writes a folder and those that it is in.
func (w *writer) folders(name string) error {
	if name == "/" || w.has[name] {
		return nil
	}
	if err := w.folders(path.Dir(name)); err != nil {
		return err
	}
	w.has[name] = true
	return w.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: 0o755, ModTime: w.time,
	})
}

// add writes a file, folder or symbolic link.
func (w *writer) add(name, source string, info fs.FileInfo) error {
	if w.has[name] {
		return fmt.Errorf("%s is there twice", name)
	}
	w.has[name] = true
	head := &tar.Header{
		Name: name[1:], Mode: int64(info.Mode().Perm()), Uid: w.uid, Gid: w.gid, ModTime: info.ModTime().UTC(),
	}
	if info.Mode()&fs.ModeSticky != 0 {
		head.Mode |= 0o1000
	}
	var err error
	switch info.Mode().Type() {
	case fs.ModeDir:
		head.Typeflag, head.Name = tar.TypeDir, head.Name+"/"
	case fs.ModeSymlink:
		head.Typeflag, head.Mode = tar.TypeSymlink, 0o777
		if head.Linkname, err = os.Readlink(source); err != nil {
			return err
		}
	case 0:
		head.Typeflag, head.Size = tar.TypeReg, info.Size()
	default:
		return fmt.Errorf("%s is neither a file nor a folder nor a link", source)
	}
	if err = w.tar.WriteHeader(head); err != nil || head.Typeflag != tar.TypeReg {
		return err
	}
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(w.tar, file)
	return err
}
