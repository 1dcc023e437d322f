package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"syscall"

	"millrace/internal/disk"
	"millrace/internal/fault"
)

// growDir holds the objects that come bit by bit, under their keys; no key begins with a dot.
const growDir = ".growing"

func (f *folder) growing(key string) string {
	return filepath.Join(f.root, growDir, filepath.FromSlash(key))
}

func (f *folder) Kept(_ context.Context, key string) (Info, error) {
	if err := CheckKey(key); err != nil {
		return Info{}, err
	}
	i, err := os.Lstat(f.growing(key))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return Info{}, fault.New(fault.NotFound, "nothing is kept of object %s", key)
	case err != nil:
		return Info{}, fmt.Errorf("look at object %s: %w", key, err)
	}
	return Info{Size: i.Size(), ModTime: i.ModTime()}, nil
}

// grown is an object of a folder that comes bit by bit: a file that is renamed when it is whole. Its size on the disk
// is what is kept: no file system that journals shows a length before the bytes are there.
type grown struct {
	folder *folder
	key    string
	file   *os.File
	size   int64
	begun  disk.Writeback
}

func (f *folder) Grow(ctx context.Context, key string) (Growing, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.openGrowing(f.growing(key))
	if err != nil {
		if fault.Is(err, fault.Internal) {
			err = fmt.Errorf("grow object %s: %w", key, err)
		}
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("grow object %s: %w", key, err)
	}
	return &grown{folder: f, key: key, file: file, size: size, begun: disk.Writeback{From: size}}, nil
}

// openGrowing opens and locks a file, which may be removed or renamed by who has it at the moment.
func (f *folder) openGrowing(path string) (*os.File, error) {
	for range nameTrials {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600) //nolint:gosec // made of a checked key
		if errors.Is(err, fs.ErrNotExist) {
			if err = f.makeDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, held := lock(file); held {
			_ = file.Close()
			return nil, fault.Ours(fault.New(fault.Conflict, "another writer has the object open"))
		}
		mine, err := file.Stat()
		if there, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(mine, there) {
			return file, nil
		}
		_ = file.Close() // nothing was written to it
	}
	return nil, errors.New("it comes and goes all the time")
}

func (g *grown) Size() int64 { return g.size }

func (g *grown) Append(ctx context.Context, p []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := g.file.WriteAt(p, g.size)
	g.size += int64(n)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(fault.Unavailable, err, "the storage has no room for it at the moment")
	}
	if err != nil {
		return fmt.Errorf("append to object %s: %w", g.key, err)
	}
	if !g.folder.noSync {
		g.begun.UpTo(g.file, g.size)
	}
	return nil
}

func (g *grown) Sync(context.Context) error {
	if g.folder.noSync {
		return nil
	}
	if err := errors.Join(g.file.Sync(), g.folder.syncDir(filepath.Dir(g.file.Name()))); err != nil {
		return fmt.Errorf("keep object %s: %w", g.key, err)
	}
	return nil
}

func (g *grown) Finish(ctx context.Context) error {
	err := g.Sync(ctx)
	if err == nil {
		err = g.folder.enter(g.file.Name(), g.key, os.Rename)
	}
	err = errors.Join(err, g.file.Close())
	if err != nil {
		return fmt.Errorf("finish object %s: %w", g.key, err)
	}
	g.folder.prune(filepath.Dir(g.file.Name()))
	return nil
}

func (g *grown) Close() error {
	err := g.file.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

func (f *folder) Drop(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := syscall.Unlink(f.growing(key))
	if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("drop object %s: %w", key, err)
	}
	f.prune(filepath.Dir(f.growing(key)))
	return nil
}

// Unfinished implements Store: what lies in the folder of objects that come bit by bit is named as in a store of its
// own.
func (f *folder) Unfinished(ctx context.Context, prefix string) iter.Seq2[Unfinished, error] {
	growing := tree{root: filepath.Join(f.root, growDir)}
	return func(yield func(Unfinished, error) bool) {
		for key, err := range growing.list(ctx, prefix) {
			if err != nil {
				yield(Unfinished{}, err)
				return
			}
			info, err := os.Lstat(growing.file(key))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
				continue // finished or dropped meanwhile
			}
			if err != nil {
				yield(Unfinished{}, fmt.Errorf("look at object %s: %w", key, err))
				return
			}
			if !yield(Unfinished{Key: key, ModTime: info.ModTime()}, nil) {
				return
			}
		}
	}
}
