package socket_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"millrace/internal/socket"
)

// TestWriter writes what the other side reads, whatever its size, and waits for room.
func TestWriter(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	out := socket.NewWriter(ours)
	var want []byte
	wrote := make(chan error, 1)
	sizes := [][2]int{{0, 0}, {1, 0}, {0, 1}, {500, 3000}, {300000, 1}, {1, 3 << 20}, {300000, 5 << 20}, {10, 10}}
	for i, size := range sizes {
		want = append(want, bytes.Repeat([]byte{byte('a' + i)}, size[0])...)
		want = append(want, bytes.Repeat([]byte{byte('A' + i)}, size[1])...)
		want = append(want, "more"...)
	}
	go func() {
		for i, size := range sizes {
			if err := out.Write(bytes.Repeat([]byte{byte('a' + i)}, size[0]),
				bytes.Repeat([]byte{byte('A' + i)}, size[1])); err != nil {
				wrote <- err
				return
			}
			if err := out.WriteMore([]byte("more")); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- ours.CloseWrite()
	}()
	got, err := io.ReadAll(theirs)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// TestWriterPatience: a write ends when nothing was taken for a while, or at the latest; where there was room the
// deadline stays.
func TestWriterPatience(t *testing.T) {
	t.Parallel()
	const short = 50 * time.Millisecond
	const size = 64 << 20
	path := filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ patience, until time.Duration }{
		"nothing taken": {short, time.Hour}, "at the latest": {time.Hour, short},
	} {
		for how, send := range map[string]func(out *socket.Writer) error{
			"bytes": func(out *socket.Writer) error { return out.Write(nil, make([]byte, size)) },
			"file": func(out *socket.Writer) error {
				file, err := os.Open(path)
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				_, err = out.SendFile(nil, file, 0, size)
				return err
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				ours, _ := pair(t)
				out := socket.NewWriter(ours)
				out.Patience(tt.patience, time.Now().Add(tt.until))
				if err := out.Write([]byte("a little"), nil); err != nil {
					t.Fatal(err)
				}
				if out.Patience(tt.patience, time.Now().Add(tt.until)) {
					t.Error("the deadline was moved where there was room")
				}
				if err := send(out); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				if !out.Patience(tt.patience, time.Now().Add(tt.until)) {
					t.Error("the deadline was not moved")
				}
			})
		}
	}
}

// TestWriterEnds where the connection's own writes end.
func TestWriterEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(ours, theirs *net.TCPConn) error
		want error
	}{
		"deadline": {
			func(o, _ *net.TCPConn) error { return o.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)) },
			os.ErrDeadlineExceeded,
		},
		"past deadline": {
			func(o, _ *net.TCPConn) error { return o.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded,
		},
		"closed": {func(o, _ *net.TCPConn) error { return o.Close() }, net.ErrClosed},
		"reset":  {func(_, c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := pair(t)
			out := socket.NewWriter(ours)
			if err := tt.do(ours, theirs); err != nil {
				t.Fatal(err)
			}
			data := make([]byte, 16<<20)
			err := out.Write(data, data)
			if err == nil || errors.Is(err, syscall.ECONNRESET) { // said once, by whatever comes first
				err = out.Write(data, data)
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestSendFile sends stretches of one file behind heads, some at the same time, and says where a file is too short.
func TestSendFile(t *testing.T) {
	t.Parallel()
	data := make([]byte, 5<<20)
	for i := range data {
		data[i] = byte(i * 7 / 3)
	}
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for n := range 3 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			ours, theirs := pair(t)
			out := socket.NewWriter(ours)
			wrote := make(chan error, 1)
			go func() {
				for _, s := range [][2]int64{{0, int64(len(data))}, {17, 1}, {1 << 20, 85 << 10}, {0, 0}} {
					if sent, err := out.SendFile([]byte("head"), f, s[0], s[1]); err != nil || sent != s[1] {
						wrote <- fmt.Errorf("%d of %d: %w", sent, s[1], err)
						return
					}
				}
				sent, err := out.SendFile(nil, f, int64(len(data))-10, 100)
				if sent != 10 || !errors.Is(err, io.ErrUnexpectedEOF) {
					wrote <- fmt.Errorf("behind the end: %d, %w", sent, err)
					return
				}
				wrote <- ours.CloseWrite()
			}()
			got, err := io.ReadAll(theirs)
			head := []byte("head")
			want := slices.Concat(head, data, head, data[17:18], head, data[1<<20:][:85<<10], head, data[len(data)-10:])
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
			}
			if err := <-wrote; err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		ours, _ := pair(t)
		out := socket.NewWriter(ours)
		if err := ours.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var err error
		for range 10 {
			if _, err = out.SendFile(nil, f, 0, int64(len(data))); err != nil {
				break
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	})
}
