package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"millrace/internal/disk"
)

// exists reports whether something is at path. What can't be looked at may be there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// unreachable is why something that may be at path can't be looked at; nil when it can, or when nothing is there.
func unreachable(path string) error {
	if _, err := os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cause(err)
	}
	return nil
}

// DataFolder checks that the data folder can be written, renamed and synced in.
type DataFolder struct{ Path string }

// Name implements Check.
func (DataFolder) Name() string { return "data folder" }

// Run implements Check.
func (d DataFolder) Run(context.Context) Finding {
	whole, err := filepath.Abs(d.Path)
	if err != nil {
		whole = d.Path
	}
	info, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := nearest(d.Path)
		if err = tryWriting(parent); err != nil {
			return problem("Make the folder for the user that runs millrace, or give another one with --data-dir.",
				"%s is not there and cannot be made: %v", whole, err)
		}
		return ok("%s will be made at the first start", whole)
	case err != nil:
		return problem("Let the user that runs millrace see the folder, or give another one with --data-dir.",
			"%s can't be reached: %v", whole, cause(err))
	case !info.IsDir():
		return problem("Give a folder with --data-dir.", "%s is a file", whole)
	}
	if err := tryWriting(d.Path); err != nil {
		return problem("Give the folder to the user that runs millrace (chown), or give another one with --data-dir.",
			"%s cannot be written: %v", whole, err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return warning("chmod o-w "+whole, "%s can be written by every user of this machine", whole)
	}
	if kind := fileSystem(d.Path); kind != "" {
		return warning("Give a folder on a local disk with --data-dir.", "%s is on %s", whole, kind)
	}
	return ok("%s can be written", whole)
}

// tryWriting writes, syncs, renames and removes a file in dir.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".millrace-doctor-*")
	if err != nil {
		return fmt.Errorf("make file: %w", cause(err))
	}
	defer func() { _ = os.Remove(f.Name()) }() // may be gone already
	_, err = f.WriteString("doctor")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write file: %w", cause(err))
	}
	moved := f.Name() + "-moved"
	if err := os.Rename(f.Name(), moved); err != nil {
		return fmt.Errorf("rename file: %w", cause(err))
	}
	if err := os.Remove(moved); err != nil {
		return fmt.Errorf("remove file: %w", cause(err))
	}
	return nil
}

// cause takes the random file name out of an error.
func cause(err error) error {
	if p, is := errors.AsType[*fs.PathError](err); is {
		return p.Err
	}
	return err
}

// Bounds of free space, and what a stream takes in an hour at 2.5 Mbit/s.
const (
	tooLittle = 1 << 30
	tight     = 10 << 30
	perHour   = 2_500_000 / 8 * 3600
)

// DiskSpace checks the room on the disk of the data folder.
type DiskSpace struct {
	Path string
	Stat func(path string) (disk.Space, error)
}

// Name implements Check.
func (DiskSpace) Name() string { return "disk space" }

// Run implements Check.
func (d DiskSpace) Run(context.Context) Finding {
	const mend = "Free some space, or give a folder on a larger disk with --data-dir."
	s, err := d.Stat(nearest(d.Path))
	switch {
	case unreachable(d.Path) != nil:
		return warning("See data folder.", "free space is unknown: %s can't be reached", d.Path)
	case err != nil:
		return warning("Look with df -h.", "free space is unknown: %v", err)
	case s.Total == 0:
		return problem("Give a folder on a disk with --data-dir.", "%s is not on a disk: its file system has no size",
			d.Path)
	}
	text := fmt.Sprintf("%s free, enough for about %d hours of one 2.5 Mbit/s stream", size(s.Free), s.Free/perHour)
	switch {
	case s.Free < tooLittle:
		return problem(mend, "only %s", text)
	case s.TotalFiles > 0 && s.FreeFiles < 10_000:
		return problem("Delete small files, or give a folder on another file system with --data-dir.",
			"the file system has room for %d more files only", s.FreeFiles)
	case s.Free < tight:
		return warning(mend, "%s", text)
	}
	return ok("%s", text)
}

func size(n uint64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// OpenFiles checks how many files and connections the process may hold.
type OpenFiles struct {
	Limit func() (uint64, error)
}

// Name implements Check.
func (OpenFiles) Name() string { return "open files" }

// Run implements Check.
func (o OpenFiles) Run(context.Context) Finding {
	const mend = "Raise it: LimitNOFILE=65536 in the systemd unit, --ulimit nofile=65536 for a container, ulimit -n " +
		"65536 in a shell."
	n, err := o.Limit()
	switch {
	case err != nil:
		return warning("Look with ulimit -n.", "the limit is unknown: %v", err)
	case n < 256:
		return problem(mend, "only %d files and connections at a time are allowed", n)
	case n < 4096:
		return warning(mend, "%d files and connections at a time are allowed; each viewer holds one or more", n)
	}
	return ok("%d files and connections at a time are allowed", n)
}

// Clock checks that the time of day is set, goes forward and agrees with the file system's.
type Clock struct {
	Dir          string
	Now          func() time.Time
	Synchronised func() (yes, known bool)
}

// Name implements Check.
func (Clock) Name() string { return "clock" }

const oldestYear = 2025 // older than the program: the clock was never set

// Run implements Check.
func (c Clock) Run(context.Context) Finding {
	const mend = "Set the clock and keep it right with systemd-timesyncd or chrony."
	start := c.Now()
	if start.Year() < oldestYear {
		return problem(mend, "it shows the year %d", start.Year())
	}
	written, err := fileTime(nearest(c.Dir))
	end := c.Now()
	if end.Before(start) {
		return problem(mend, "it ran backwards while it was looked at")
	}
	if err == nil && (written.Before(start.Add(-2*time.Second)) || written.After(end.Add(2*time.Second))) {
		return warning("If the folder is on another machine, set the clocks of both.",
			"files in %s get a time %s off this machine's", c.Dir, written.Sub(start).Round(time.Second))
	}
	if yes, known := c.Synchronised(); known && !yes {
		return warning("Turn on systemd-timesyncd or chrony, so that recordings and tokens have the right time.",
			"%s; nothing keeps it right", start.UTC().Format(time.DateTime+" MST"))
	}
	return ok("%s", start.UTC().Format(time.DateTime+" MST"))
}

// fileTime is the modification time that a new file in dir gets.
func fileTime(dir string) (time.Time, error) {
	f, err := os.CreateTemp(dir, ".millrace-doctor-*")
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // may be gone already
	_, err = f.WriteString("doctor")
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}
