package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// walk yields the keys below dir ("" or ending in a slash) that begin with prefix; false when the caller has enough.
// One folder's names are held in memory at a time per level.
func (f *folder) walk(ctx context.Context, dir, prefix string, yield func(string, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield("", err)
		return false
	}
	names, err := f.names(dir)
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
			if !f.walk(ctx, key, prefix, yield) {
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
func (f *folder) names(dir string) ([]string, error) {
	entries, err := os.ReadDir(f.file(dir))
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
