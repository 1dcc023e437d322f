package services

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// address is where on 127.0.0.1 a server listens, and the password that it asks for.
type address struct {
	Port     int    `json:"port"`
	Password string `json:"password"`

	lock *os.File // of the file that keeps it; nil when another run has that
}

func (a address) host() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port)) }

// release lets another run have the address.
func (a address) release() {
	if a.lock != nil {
		_ = a.lock.Close()
	}
}

// keptAddress gives a server the address that it had in this user's last run: go test takes from its cache what has
// passed with the same environment, and that names the servers.
func keptAddress(ctx context.Context, server string) (address, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return address{}, fmt.Errorf("find the user's cache folder: %w", err)
	}
	return addressIn(ctx, filepath.Join(cache, "millrace-test-services", server+".json"))
}

// addressIn gives the address that file keeps, until it is released. While another run has that, it gives a new one;
// where file has none, or something else listens there, a new one that file keeps from now on.
func addressIn(ctx context.Context, file string) (a address, err error) {
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return a, fmt.Errorf("keep a server's address: %w", err)
	}
	lock, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return a, fmt.Errorf("keep a server's address: %w", err)
	}
	defer func() {
		if a.lock == nil {
			_ = lock.Close()
		}
	}()
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return newAddress(ctx)
	}
	if err != nil {
		return a, fmt.Errorf("lock a server's address: %w", err)
	}
	if json.NewDecoder(lock).Decode(&a) != nil || !isFree(ctx, a.Port) {
		if a, err = newAddress(ctx); err == nil {
			err = a.write(lock)
		}
		if err != nil {
			return a, err
		}
	}
	a.lock = lock
	return a, nil
}

func (a address) write(file *os.File) error {
	b, err := json.Marshal(a)
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt(b, 0)
	}
	if err != nil {
		return fmt.Errorf("keep a server's address: %w", err)
	}
	return nil
}

// newAddress has a port nobody listens on, below those of which Linux takes one for each connection.
func newAddress(ctx context.Context) (address, error) {
	for range 100 {
		if port := 20000 + mathrand.N(12000); isFree(ctx, port) {
			return address{Port: port, Password: rand.Text()}, nil
		}
	}
	return address{}, errors.New("find a free port: of 100 tried between 20000 and 31999 none is free")
}

// isFree reports whether nobody listens on a port. It does not listen there itself to find out: a process that is
// being started at that moment would have the socket for a little longer, and the server could not.
func isFree(ctx context.Context, port int) bool {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address{Port: port}.host())
	if err == nil {
		_ = c.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}
