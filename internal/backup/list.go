package backup

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"millrace/internal/storage/blob"
)

// entry is an object as lists have it, in the order of the keys.
type entry struct {
	Key  string `json:"k"`
	Size int64  `json:"n"`
	Sum  string `json:"s"` // SHA-256, hexadecimal
	// Time is when the storage of the service had it, in Unix milliseconds.
	Time int64 `json:"t"`
}

const (
	listFormat  = 1
	maxListLine = 4096
	// maxListRatio bounds what a list may grow to when it is unpacked. Half of each line are digits of a checksum,
	// which no packing makes shorter than half.
	maxListRatio = 32
)

type listHead struct {
	Format int `json:"millrace_objects"`
}

type listEnd struct {
	Objects *int64 `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// listWriter writes a list.
type listWriter struct {
	zip            *gzip.Writer
	out            *bufio.Writer
	objects, bytes int64
	last           string
}

func newListWriter(w io.Writer) (*listWriter, error) {
	z := gzip.NewWriter(w)
	l := &listWriter{zip: z, out: bufio.NewWriter(z)}
	return l, l.line(listHead{listFormat})
}

func (l *listWriter) add(e entry) error {
	if e.Key <= l.last {
		return fmt.Errorf("object %s comes after %s", e.Key, l.last)
	}
	l.objects, l.bytes, l.last = l.objects+1, l.bytes+e.Size, e.Key
	return l.line(e)
}

func (l *listWriter) close() error {
	if err := l.line(listEnd{&l.objects, l.bytes}); err != nil {
		return err
	}
	if err := errors.Join(l.out.Flush(), l.zip.Close()); err != nil {
		return fmt.Errorf("write list of objects: %w", err)
	}
	return nil
}

func (l *listWriter) line(v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write list of objects: %w", err)
	}
	return nil
}

// stored reports whether a key is one that a service's storage has and a backup too.
func stored(key string) bool {
	for _, root := range leftOut {
		if strings.HasPrefix(key, root) {
			return false
		}
	}
	return true
}

// check says what is wrong with an entry that was read.
func (e entry) check(last string) error {
	if err := blob.CheckKey(e.Key); err != nil {
		return err
	}
	if raw, err := hex.DecodeString(e.Sum); err != nil || len(raw) != sha256.Size || e.Size < 0 {
		return fmt.Errorf("object %s has no checksum or size", e.Key)
	}
	if !stored(e.Key) {
		return fmt.Errorf("object %s is none of a backup", e.Key)
	}
	if e.Key <= last {
		return fmt.Errorf("object %s is not in its place", e.Key)
	}
	return nil
}

// readList gives the entries of a list of so many bytes, whoever wrote it: in order, each checked, up to an error or
// its end.
func readList(r io.Reader, size int64) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		if err := readEntries(r, size, func(e entry) bool { return yield(e, nil) }); err != nil {
			yield(entry{}, fmt.Errorf("read list of objects: %w", err))
		}
	}
}

func readEntries(r io.Reader, size int64, yield func(entry) bool) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err //nolint:wrapcheck // by readList
	}
	in := bufio.NewScanner(io.LimitReader(z, 1<<20+size*maxListRatio))
	in.Buffer(nil, maxListLine)
	last, n, bytes := "", int64(0), int64(0)
	for first := true; in.Scan(); first = false {
		if first {
			var h listHead
			if err := json.Unmarshal(in.Bytes(), &h); err != nil || h.Format != listFormat {
				return errors.New("it is none, or of a newer version")
			}
			continue
		}
		var line struct {
			entry
			listEnd
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return fmt.Errorf("entry %d can't be read", n+1)
		}
		if line.Objects != nil {
			if *line.Objects != n || line.Bytes != bytes || in.Scan() {
				return errors.New("not all of it is there")
			}
			return in.Err() //nolint:wrapcheck // by readList
		}
		if err := line.check(last); err != nil {
			return err
		}
		last, n, bytes = line.Key, n+1, bytes+line.Size
		if !yield(line.entry) {
			return nil
		}
	}
	if err := in.Err(); err != nil {
		return err //nolint:wrapcheck // by readList
	}
	return io.ErrUnexpectedEOF
}

// stored lists are read from a store while they are gone through.
func listAt(ctx context.Context, store blob.Store, key string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		r, err := store.Get(ctx, key, 0, -1)
		if err != nil {
			yield(entry{}, err)
			return
		}
		defer func() { _ = r.Close() }() // only read from
		for e, err := range readList(r, r.Size) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// puller is a sequence that is gone through beside others.
type puller[T any] struct {
	next func() (T, error, bool)
	stop func()
	head T
	err  error
	ok   bool
}

func pull[T any](s iter.Seq2[T, error]) *puller[T] {
	next, stop := iter.Pull2(s)
	p := &puller[T]{next: next, stop: stop}
	p.advance()
	return p
}

func (p *puller[T]) advance() {
	p.head, p.err, p.ok = p.next()
	if p.err != nil {
		p.ok = false
	}
}

// merged gives the entries of several lists in the order of their keys. Of those with one key it gives that of the list
// which comes last. A list that can't be read ends where that is found; failed is told.
func merged(failed func(error), lists ...iter.Seq2[entry, error]) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		all := make([]*puller[entry], len(lists))
		for i, l := range lists {
			all[i] = pull(l)
			defer all[i].stop()
		}
		for {
			least := -1
			for i, p := range all {
				if p.err != nil {
					failed(p.err)
					p.err = nil
				}
				if p.ok && (least < 0 || p.head.Key <= all[least].head.Key) {
					least = i
				}
			}
			if least < 0 {
				return
			}
			e := all[least].head
			for _, p := range all {
				if p.ok && p.head.Key == e.Key {
					p.advance()
				}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
