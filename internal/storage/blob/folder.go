package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"syscall"

	"millrace/internal/fault"
	"millrace/internal/openfile"
)

const nameTrials = 100 // each is lost only when a Delete comes in between

// folder is a Store whose objects are files. It writes them itself rather than through fileblob: one file per object
// without side files, half the system calls, and a rename for Adopt.
type folder struct {
	tree
	staging *staging
	device  uint64 // that root is on
	opened  opened
}

var (
	_ Store = (*folder)(nil)
	_ Local = (*folder)(nil)
)

func openFolder(dir string, noSync bool) (*folder, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find storage folder: %w", err)
	}
	if err = os.MkdirAll(filepath.Join(root, stagingDir), 0o750); err != nil {
		return nil, fmt.Errorf("make storage folder: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("look at storage folder: %w", err)
	}
	s, err := openStaging(filepath.Join(root, stagingDir), noSync)
	if err != nil {
		return nil, err
	}
	return &folder{tree: tree{root, noSync}, staging: s, device: device(info)}, nil
}

func (f *folder) Path(key string) (string, bool) {
	if CheckKey(key) != nil {
		return "", false
	}
	return f.file(key), true
}

func (f *folder) Put(ctx context.Context, key string, r io.Reader) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	tmp, err := f.staging.write(ctx, r)
	if err != nil {
		return fmt.Errorf("write object %s: %w", key, err)
	}
	if err := f.enter(tmp, key, os.Rename); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("store object %s: %w", key, err)
	}
	return nil
}

func (f *folder) PutNew(ctx context.Context, key string, data []byte) (created bool, err error) {
	if err = CheckKey(key); err != nil {
		return false, err
	}
	if f.present(key) {
		return false, ctx.Err()
	}
	tmp, err := f.staging.write(ctx, bytes.NewReader(data))
	if err != nil {
		return false, fmt.Errorf("write object %s: %w", key, err)
	}
	err = f.enter(tmp, key, os.Link)
	if err != nil && f.present(key) { // by another, meanwhile
		return false, os.Remove(tmp)
	}
	if namesOnce(err) {
		err = f.enter(tmp, key, os.Rename)
	}
	_ = os.Remove(tmp) // it is gone already where it was renamed
	if err != nil {
		return false, fmt.Errorf("store object %s: %w", key, err)
	}
	return true, nil
}

// present reports whether a key has an object.
func (f *folder) present(key string) bool {
	info, err := os.Lstat(f.file(key))
	return err == nil && info.Mode().IsRegular()
}

// namesOnce reports whether a filesystem gives files no second names.
func namesOnce(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EMLINK)
}

// enter gives a complete file the name of its key, by os.Rename or os.Link. The folder may vanish between making it and
// that, since Delete removes empty ones; then it is made again.
func (f *folder) enter(from, key string, name func(from, to string) error) error {
	to := f.file(key)
	dir := filepath.Dir(to)
	defer f.opened.forget(key) // what was there before
	var err error
	for range nameTrials {
		if err = name(from, to); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		if _, serr := os.Lstat(from); serr != nil {
			return serr
		}
		err = f.makeDir(dir)
		// both: it went away meanwhile
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return clash(err)
	}
	return f.syncDir(dir)
}

func (f *folder) Adopt(ctx context.Context, key, path string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.adopt(ctx, key, path); err != nil {
		return fmt.Errorf("adopt object %s: %w", key, err)
	}
	return nil
}

func (f *folder) adopt(ctx context.Context, key, path string) error {
	src, err := openRegular(path)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read from
	if !f.noSync {
		if err = src.Sync(); err != nil {
			return err
		}
	}
	err = f.enter(path, key, os.Rename)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	tmp, err := f.staging.write(ctx, src)
	if err != nil {
		return err
	}
	if err := f.enter(tmp, key, os.Rename); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return os.Remove(path)
}

func (f *folder) Link(ctx context.Context, key string, src *os.File) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.link(ctx, key, src); err != nil {
		return fmt.Errorf("link object %s: %w", key, err)
	}
	return nil
}

func (f *folder) link(ctx context.Context, key string, src *os.File) error {
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if device(info) == f.device {
		if !f.noSync {
			if err = src.Sync(); err != nil {
				return err
			}
		}
		err = f.enter(src.Name(), key, os.Link)
		if errors.Is(err, fs.ErrExist) {
			err = f.relink(key, src)
		}
		if err == nil {
			return nil
		}
	}
	return f.copy(ctx, key, src, info.Size()) // another filesystem, or one that gives no second names
}

// relink puts a second name of a file into the place of what key has now.
func (f *folder) relink(key string, src *os.File) error {
	tmp := f.staging.name()
	if err := os.Link(src.Name(), tmp); err != nil {
		return err
	}
	defer func() { _ = syscall.Unlink(tmp) }() // it stays where the key has this very file already
	return f.enter(tmp, key, os.Rename)
}

func device(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Dev) //nolint:unconvert // narrower elsewhere
	}
	return 0
}

// copy stores what is in an open file.
func (f *folder) copy(ctx context.Context, key string, src *os.File, size int64) error {
	tmp, err := f.staging.write(ctx, io.NewSectionReader(src, 0, size))
	if err != nil {
		return err
	}
	if err = f.enter(tmp, key, os.Rename); err != nil {
		_ = os.Remove(tmp)
	}
	return err
}

func (f *folder) Get(ctx context.Context, key string, off, n int64) (*Reader, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, info, err := f.open(key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the reader holds it
	size := info.Size()
	if off < 0 || off > 0 && off >= size {
		return nil, outside(key, off)
	}
	if n < 0 || n > size-off {
		n = size - off
	}
	section, _ := file.Section(off, n)
	return &Reader{ReadCloser: section, Size: size, ModTime: info.ModTime()}, nil
}

// open gives the file of a key, which the caller closes.
func (f *folder) open(key string) (*openfile.File, fs.FileInfo, error) {
	path := f.file(key)
	file, info, ticket := f.opened.get(key, path)
	if file != nil {
		return file, info, nil
	}
	fresh, err := openRegular(path)
	if err != nil {
		return nil, nil, absent(key, err)
	}
	info, err = fresh.Stat()
	if err != nil {
		_ = fresh.Close()
		return nil, nil, fmt.Errorf("read object %s: %w", key, err)
	}
	file = openfile.New(fresh)
	f.opened.put(key, file, info, ticket)
	return file, info, nil
}

func (f *folder) Stat(ctx context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	info, err := os.Lstat(f.file(key))
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return Info{}, absent(key, err)
	}
	return Info{Size: info.Size(), ModTime: info.ModTime()}, nil
}

func (f *folder) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return err
		}
	}
	var errs []error
	dirs := map[string]bool{}
	for _, key := range keys {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		// unlink, and not os.Remove, which would take an empty folder too.
		err := syscall.Unlink(f.file(key))
		f.opened.forget(key)
		switch {
		case err == nil:
			dirs[filepath.Dir(f.file(key))] = true
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		default:
			errs = append(errs, fmt.Errorf("delete object %s: %w", key, err))
		}
	}
	for dir := range dirs {
		f.prune(dir)
	}
	return errors.Join(errs...)
}

func (f *folder) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return f.list(ctx, prefix)
}

func (f *folder) Close() error {
	f.opened.close()
	return f.staging.close()
}

// openRegular opens a file for reading, and nothing else that may stand at path.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) //nolint:gosec // made of a checked key, or the caller's own file
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func absent(key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return fault.Ours(fault.New(fault.NotFound, "object %s does not exist", key))
	}
	return fmt.Errorf("read object %s: %w", key, err)
}

func outside(key string, off int64) error {
	return fault.Ours(fault.New(fault.Invalid, "object %s has no byte %d", key, off))
}

// clash marks what only a key that is the folder of another can cause.
func clash(err error) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EEXIST) ||
		errors.Is(err, syscall.ENOTEMPTY) {
		return fault.Ours(fault.Wrap(fault.Conflict, err, "a key can't be the folder of another"))
	}
	return err
}
