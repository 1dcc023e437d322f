package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

const (
	checkpointEvery = 500 * time.Millisecond
	longLog         = 16384       // pages, 64 MiB: then the log is to begin again
	largeLog        = 4 * longLog // pages: then somebody should know
	nearlyAll       = 512         // pages that writers may wait for
	maxPasses       = 4

	holdMost     = 500 * time.Millisecond // readers are held back no longer
	firstPause   = time.Second            // until they are again, after it was in vain
	longestPause = 15 * time.Second
)

// sqliteLog keeps SQLite's log short. A writer begins it again when all of it is written back and nobody reads from it;
// readers that take turns without a pause would never let that be.
type sqliteLog struct {
	file    string
	side    *sql.DB // one connection, which waits for no lock
	write   *sql.DB // of the engine, as is turn
	turn    chan struct{}
	reading reading
	hold    time.Duration // readers are held back at most
	long    int           // pages at which it is to begin again
	large   int           // pages that are told of
	logger  *slog.Logger

	waits  backoff
	told   bool // that it is large
	failed bool // to write it back; told too
}

// backoff is until when readers are not held back again, since it was in vain.
type backoff struct {
	pause  time.Duration // 0: it was not
	until  time.Time
	behind bool // somebody was reading from far behind the log's end
}

// progress is what a checkpoint says of the log.
type progress struct {
	busy       bool // something was in the way
	size, done int  // pages of the log as it began, and how many of them are written back
}

// nearly is whether hardly any page is left to be written back: nobody reads who began to long ago.
func (p progress) nearly() bool { return p.size-p.done < nearlyAll }

// run writes the log back into the file, beside the writer, whenever it has changed.
func (s *sqliteLog) run(ctx context.Context) error {
	tick := time.NewTicker(checkpointEvery)
	defer tick.Stop()
	var done time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		info, err := os.Stat(s.file)
		if err != nil || info.ModTime().Equal(done) {
			continue
		}
		whole, err := s.checkpoint(ctx)
		if whole { // else the rest is written back at the next tick
			done = info.ModTime()
		}
		if ctx.Err() == nil {
			s.tellFailure(ctx, err)
		}
	}
}

// checkpoint writes back what is in the log, and says whether that was all of it. When it has become long, checkpoint
// catches up with the writers, who go on meanwhile, and lets them and the readers wait for the little that is left.
func (s *sqliteLog) checkpoint(ctx context.Context) (whole bool, err error) {
	at, err := s.writeBack(ctx, "PASSIVE")
	if err != nil {
		return false, err
	}
	if at.size < s.long {
		s.short(ctx, at)
		return at.done >= at.size, nil
	}
	for range maxPasses {
		before := at.size
		if at, err = s.writeBack(ctx, "PASSIVE"); err != nil {
			return false, err
		}
		if at.size-before < nearlyAll {
			break
		}
	}
	if !s.waits.over(at) {
		return false, nil
	}
	by, err := s.beginAgain(ctx)
	switch {
	case err != nil:
		return false, err
	case by != nobody:
		s.waits.again(at)
		s.tellLarge(ctx, at, by)
		return false, nil
	}
	s.short(ctx, at)
	return true, nil
}

// reader is who reads from the log for too long.
type reader string

const (
	nobody  reader = ""
	ours    reader = "this process"
	foreign reader = "another process"
)

// beginAgain has the next writer begin the log again, unless somebody goes on to read from it. The writer's turn comes
// first, then its connection, which River and others take without the turn: a transaction that reads with another
// connection holds both, and is not held back. A reader that waits for the turn waits as long as readers are held.
func (s *sqliteLog) beginAgain(ctx context.Context) (reader, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nobody, fmt.Errorf("wait to begin log again: %w", context.Cause(ctx))
	}
	defer func() { <-s.turn }()
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nobody, fmt.Errorf("wait for writer: %w", err)
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	// In a log that can't begin again, the writer would make a checkpoint of its own at each commit.
	if _, err = conn.ExecContext(ctx, "PRAGMA wal_autocheckpoint = 0"); err != nil {
		return nobody, fmt.Errorf("relieve writer of checkpoints: %w", err)
	}
	goOn, err := s.reading.hold(ctx, s.hold)
	switch {
	case ctx.Err() != nil && err != nil:
		return nobody, err
	case err != nil:
		return ours, nil
	}
	// Unlike PASSIVE, RESTART says whether somebody still reads. It does not wait for them: side waits for no lock.
	at, err := s.writeBack(ctx, "RESTART")
	held := goOn()
	switch {
	case err != nil || !at.busy:
		return nobody, err
	case !held: // the disk took longer
		return ours, nil
	}
	return foreign, nil
}

// writeBack is one checkpoint. What comes meanwhile, and what is newer than what somebody reads, is left to the next.
func (s *sqliteLog) writeBack(ctx context.Context, mode string) (at progress, err error) {
	row := s.side.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")")
	if err = row.Scan(&at.busy, &at.size, &at.done); err != nil {
		return at, fmt.Errorf("write log back: %w", err)
	}
	return at, nil
}

// over is whether another attempt is worth it: some time has gone, or who read from far behind has ended.
func (b *backoff) over(at progress) bool {
	return b.pause == 0 || !time.Now().Before(b.until) || b.behind && at.nearly()
}

// again notes an attempt.
func (b *backoff) again(at progress) {
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	b.until = time.Now().Add(b.pause)
	b.behind = !at.nearly()
}

// short notes that the log is short, or begins again.
func (s *sqliteLog) short(ctx context.Context, at progress) {
	s.waits = backoff{}
	if s.told {
		s.told = false
		s.logger.InfoContext(ctx, "the database's log begins again", slog.Int("pages", at.size))
	}
}

// tellLarge says once that the log grows, and why.
func (s *sqliteLog) tellLarge(ctx context.Context, at progress, by reader) {
	if s.told || at.size < s.large {
		return
	}
	s.told = true
	s.logger.WarnContext(ctx, "the database's log grows until somebody ends who reads from it",
		slog.String("reader", string(by)), slog.Int64("bytes", s.bytes()))
}

// tellFailure says once that the log can't be written back; nil ends that.
func (s *sqliteLog) tellFailure(ctx context.Context, err error) {
	if err != nil && !s.failed {
		s.logger.ErrorContext(ctx, "the database's log can't be written back", slog.Any("error", err))
	}
	s.failed = err != nil
}

// bytes is the size of the log's file.
func (s *sqliteLog) bytes() int64 {
	info, err := os.Stat(s.file)
	if errors.Is(err, fs.ErrNotExist) || info == nil {
		return 0
	}
	return info.Size()
}
