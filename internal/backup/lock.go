package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"millrace/internal/fault"
)

// A backup is written to by one process at a time: what is removed for want of a snapshot that names it may be what
// another process is just about to name. The lock is an object with a time until which it holds; who has it renews it.
const (
	lockFor   = time.Minute
	lockRenew = 15 * time.Second
	lockRetry = time.Second

	maxLockBytes = 4096
)

// errLockLost is that another process has taken the lock, after this one stood still for longer than it held.
var errLockLost = errors.New("another process has begun to write there")

type holder struct {
	Run   string    `json:"run"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Until time.Time `json:"until"`
}

// dead reports whether the process is of this machine and gone.
func (h holder) dead(host string) bool {
	if h.Host != host {
		return false
	}
	return h.PID == os.Getpid() || h.PID > 0 && errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH)
}

// locked runs fn while it holds the lock, whose end ends fn's context. One that somebody has is waited for, until it is
// clear that they renew it.
func (c *common) locked(ctx context.Context, run string, fn func(ctx context.Context) error) (err error) {
	host, _ := os.Hostname()
	own := holder{Run: run, Host: host, PID: os.Getpid()}
	if err = c.takeLock(ctx, own); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		c.keepLock(ctx, own, cancel)
	}()
	defer func() {
		lost := context.Cause(ctx)
		cancel(nil)
		<-renewed
		if errors.Is(lost, errLockLost) {
			err = lost
			return
		}
		released, done := context.WithTimeout(context.WithoutCancel(ctx), lockRenew)
		defer done()
		_ = c.target.Delete(released, c.at.lock) // it ends by itself
	}()
	return fn(ctx)
}

func (c *common) takeLock(ctx context.Context, own holder) error {
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	var other holder
	for first := true; ; first = false {
		taken, by, err := c.tryLock(ctx, own)
		if err != nil || taken {
			return err
		}
		if !first && by.Run == other.Run && by.Until.After(other.Until) {
			return fault.New(fault.Conflict, "another process, %d on %s, is writing there", by.PID, by.Host)
		}
		if first {
			c.progress.Say(fmt.Sprintf("process %d on %s was writing there: waiting until %s for its sign",
				by.PID, by.Host, by.Until.Format(time.TimeOnly)))
		}
		other = by
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for another backup: %w", context.Cause(ctx))
		}
	}
}

// tryLock takes the lock unless somebody holds it.
func (c *common) tryLock(ctx context.Context, own holder) (taken bool, by holder, err error) {
	own.Until = c.now().Add(lockFor)
	text, err := json.Marshal(own)
	if err != nil {
		return false, by, fmt.Errorf("encode lock: %w", err)
	}
	if taken, err = c.target.PutNew(ctx, c.at.lock, text); taken || err != nil {
		return taken, by, err
	}
	by, err = c.holder(ctx)
	switch {
	case fault.Is(err, fault.NotFound): // just released
		return false, by, nil
	case err != nil:
		return false, by, err
	case by.Until.After(c.now()) && !by.dead(own.Host):
		return false, by, nil
	}
	if err = c.target.Put(ctx, c.at.lock, bytes.NewReader(text)); err != nil {
		return false, by, err
	}
	by, err = c.holder(ctx)
	return err == nil && by.Run == own.Run, by, err
}

// holder is who has the lock; one that can't be read is nobody's.
func (c *common) holder(ctx context.Context) (h holder, err error) {
	text, err := readSmall(ctx, c.target, c.at.lock, maxLockBytes)
	if err == nil && json.Unmarshal(text, &h) != nil {
		h = holder{}
	}
	return h, err
}

// keepLock renews the lock until ctx ends, and ends it when the lock is lost.
func (c *common) keepLock(ctx context.Context, own holder, lost context.CancelCauseFunc) {
	renew := time.NewTicker(lockRenew)
	defer renew.Stop()
	until := c.now().Add(lockFor)
	for {
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
		}
		by, err := c.holder(ctx)
		switch {
		case fault.Is(err, fault.NotFound), err == nil && by.Run != own.Run:
			lost(errLockLost)
			return
		case err == nil:
			own.Until = c.now().Add(lockFor)
			text, _ := json.Marshal(own) //nolint:errchkjson // plain fields
			if err = c.target.Put(ctx, c.at.lock, bytes.NewReader(text)); err == nil {
				until = own.Until
			}
		}
		if err != nil && c.now().After(until) {
			lost(errLockLost)
			return
		}
	}
}
