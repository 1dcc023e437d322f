package programtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	mediaKept = 14 * 24 * time.Hour // how long made media stays after its last use
	maxList   = 64 << 10            // bytes; a larger input is media and names no other file
)

// Media returns the path of a file called name that ffmpeg makes of args: a copy, for the test alone. It is made once
// for all runs: the same ffmpeg with the same arguments and inputs is not run again.
func Media(t testing.TB, name string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	kept := SharedMedia(t, name, args...)
	if err := copyFile(out, kept); err != nil {
		t.Fatalf("copy %s: %v", name, err)
	}
	return out
}

// SharedMedia is Media without the copy: other tests read the same file, so it must not be changed.
func SharedMedia(t testing.TB, name string, args ...string) string {
	t.Helper()
	key, ok := mediaKey(t, name, args)
	if !ok {
		out := filepath.Join(t.TempDir(), name)
		makeMedia(t, out, args)
		return out
	}
	dir := mediaDir(t)
	path := filepath.Join(dir, key+"-"+name)
	now := time.Now()
	if os.Chtimes(path, now, now) == nil {
		return path
	}
	work, err := os.MkdirTemp(dir, "making-") //nolint:usetesting // on the same file system, for the rename
	if err != nil {
		t.Fatalf("make %s: %v", name, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	made := filepath.Join(work, name)
	makeMedia(t, made, args)
	// Another process may have made the same meanwhile: either file will do.
	if err := os.Rename(made, path); err != nil {
		t.Fatalf("keep %s: %v", name, err)
	}
	removed.Do(func() { removeOldMedia(dir, now.Add(-mediaKept)) })
	return path
}

func makeMedia(t testing.TB, path string, args []string) {
	t.Helper()
	Run(t, "ffmpeg", append(append([]string{"-nostdin", "-y", "-loglevel", "error"}, args...), path)...)
}

// mediaDir is the folder of media that tests have made, in the user's cache.
func mediaDir(t testing.TB) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "millrace-test-media")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("keep media: %v", err)
	}
	return dir
}

// mediaKey says what decides the bytes: the program, the arguments and the content of files among them. It is not ok
// where an argument or an input depends on a test's own folder in a way that can't be seen through.
func mediaKey(t testing.TB, name string, args []string) (key string, ok bool) {
	t.Helper()
	h := sha256.New()
	program, err := os.Stat(Path(t, "ffmpeg"))
	if err != nil {
		t.Fatalf("find ffmpeg: %v", err)
	}
	fmt.Fprintf(h, "%d %v\n%q\n", program.Size(), program.ModTime().UTC(), name)
	for _, arg := range args {
		if !hashArgument(h, arg) {
			return "", false
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), true
}

func hashArgument(h hash.Hash, arg string) (ok bool) {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		return hashFile(h, arg, info.Size())
	}
	fmt.Fprintf(h, "argument %q\n", arg)
	return !strings.Contains(arg, os.TempDir())
}

func hashFile(h hash.Hash, path string, size int64) (ok bool) {
	f, err := os.Open(path) //nolint:gosec // an input that the test names
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	fmt.Fprintf(h, "file %q of %d bytes\n", filepath.Ext(path), size)
	if size > maxList {
		_, err = io.Copy(h, f)
		return err == nil
	}
	data, err := io.ReadAll(f)
	h.Write(data)
	return err == nil && !bytes.Contains(data, []byte(os.TempDir()))
}

var removed sync.Once //nolint:gochecknoglobals // once in a process is enough

// removeOldMedia deletes what no test has asked for since a time. What another process deletes first is gone as well.
func removeOldMedia(dir string, since time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the next run looks again
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(since) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

func copyFile(to, from string) error {
	in, err := os.Open(from) //nolint:gosec // made media
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.Create(to)         //nolint:gosec // in the test's folder
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
