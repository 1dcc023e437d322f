package services

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// S3 starts the S3 server whose binary (versitygw) is given, over an empty folder. URL is a storage URL as
// `millrace serve --storage-url` takes it; its bucket is made by the first one that opens it.
func S3(ctx context.Context, binary string) (*Service, error) {
	return retry(ctx, func(ctx context.Context) (*Service, error) { return s3(ctx, binary) })
}

func s3(ctx context.Context, binary string) (s *Service, err error) {
	dir, err := xattrDir()
	if err != nil {
		return nil, err
	}
	var addr address
	defer func() {
		if s == nil {
			addr.release()
			_ = os.RemoveAll(dir)
		}
	}()
	root := filepath.Join(dir, "root")
	if err = os.Mkdir(root, 0o700); err != nil {
		return nil, fmt.Errorf("make folder for S3: %w", err)
	}
	if addr, err = keptAddress(ctx, "s3"); err != nil {
		return nil, err
	}
	host, key, secret := addr.host(), "millrace", addr.Password
	query := url.Values{
		"endpoint": {"http://" + host}, "region": {"us-east-1"}, "path_style": {"true"}, "create": {"true"},
		"access_key_id": {key}, "secret_access_key": {secret},
	}
	s = &Service{dir: dir, addr: addr, end: syscall.SIGTERM, URL: "s3://millrace-test?" + query.Encode()}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), binary, "--keep-alive", "--quiet", "--port", host, "posix",
		root)
	s.cmd.Dir = dir
	s.cmd.Env = append(s.cmd.Environ(), "ROOT_ACCESS_KEY="+key, "ROOT_SECRET_KEY="+secret)
	return s, s.start(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
		if err != nil {
			return fmt.Errorf("ask S3: %w", err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("ask S3: %w", err)
		}
		return res.Body.Close()
	})
}

// xattrDir makes a folder on a file system that keeps extended attributes, where versitygw stores object metadata:
// the system's temporary folder, or else this folder's tmp.
func xattrDir() (string, error) {
	var last error
	for _, parent := range []string{os.TempDir(), "tmp"} {
		if parent == "tmp" {
			if err := os.MkdirAll(parent, 0o700); err != nil {
				return "", fmt.Errorf("make folder for S3: %w", err)
			}
		}
		dir, err := os.MkdirTemp(parent, "millrace-s3-")
		if err != nil {
			return "", fmt.Errorf("make folder for S3: %w", err)
		}
		if last = unix.Setxattr(dir, "user.millrace", []byte("1"), 0); last == nil {
			return filepath.Abs(dir)
		}
		if err := os.Remove(dir); err != nil {
			return "", fmt.Errorf("remove folder: %w", err)
		}
	}
	return "", errors.Join(errors.New("find a folder with extended attributes for S3"), last)
}
