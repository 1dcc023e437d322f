package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// tree is files in folders, by their keys.
type tree struct {
	root   string
	noSync bool
}

func (t tree) file(key string) string { return filepath.Join(t.root, filepath.FromSlash(key)) }

// makeDir makes dir and those above it, and writes the new names to disk.
func (t tree) makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for dir != t.root && len(dir) > len(t.root) {
		dir = filepath.Dir(dir)
		if err := t.syncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (t tree) syncDir(dir string) error {
	if t.noSync {
		return nil
	}
	d, err := os.Open(dir) //nolint:gosec // made of a checked key
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted again by now, and so is the object
		}
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// prune removes dir and those above it while they are empty.
func (t tree) prune(dir string) {
	for len(dir) > len(t.root) && syscall.Rmdir(dir) == nil {
		dir = filepath.Dir(dir)
	}
}

// list yields the keys that begin with prefix, in their order.
func (t tree) list(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := checkPrefix(prefix); err != nil {
			yield("", err)
			return
		}
		dir := prefix[:strings.LastIndex(prefix, "/")+1]
		t.walk(ctx, dir, prefix, yield)
	}
}

// walk yields the keys below dir ("" or ending in a slash) that begin with prefix; false when the caller has enough.
// One folder's names are held in memory at a time per level.
func (t tree) walk(ctx context.Context, dir, prefix string, yield func(string, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield("", err)
		return false
	}
	names, err := t.names(dir)
	if err != nil {
		yield("", fmt.Errorf("list objects: %w", err))
		return false
	}
	for _, name := range names {
		key := dir + name
		if isDir := strings.HasSuffix(name, "/"); isDir {
			if !strings.HasPrefix(key, prefix) && !strings.HasPrefix(prefix, key) {
				continue
			}
			if !t.walk(ctx, key, prefix, yield) {
				return false
			}
			continue
		}
		if strings.HasPrefix(key, prefix) && !yield(key, nil) {
			return false
		}
	}
	return true
}

// names reads one folder in the order its keys have: a folder's name counts with its slash, so that "a-b" comes
// before "a/c" as it does in S3.
func (t tree) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(t.file(dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil // deleted meanwhile, or never there
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		switch name := e.Name(); {
		case checkPrefix(name) != nil: // not ours: unfinished writes, lost+found and other people's files
		case e.IsDir():
			names = append(names, name+"/")
		case e.Type().IsRegular():
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names, nil
}
