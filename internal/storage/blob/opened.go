package blob

import (
	"container/list"
	"io/fs"
	"os"
	"sync"
	"time"

	"millrace/internal/openfile"
)

const (
	openedFiles = 512 // how many are kept open; the runtime has raised the limit of descriptors as far as it goes
	// a larger file is not kept: one that another process has deleted takes its room until it is closed.
	openedBytes = 16 << 20
	openedSure  = time.Second
)

// opened keeps files of objects open that were asked for lately, because to open one costs more than to send it. What
// this process puts or deletes is forgotten before Put or Delete returns; what others do in the same folder is seen
// within openedSure.
type opened struct {
	mu      sync.Mutex
	items   map[string]*list.Element // by key, of *openedFile
	order   list.List                // the one that was asked for last comes first
	changes uint64                   // grows when anything is forgotten
}

type openedFile struct {
	key  string
	file *openfile.File
	info fs.FileInfo
	seen time.Time // when the key was last found to lead to this file
}

// get holds the file of a key if it is open; if not, the caller opens it and gives put the ticket.
func (o *opened) get(key, path string) (_ *openfile.File, info fs.FileInfo, ticket uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	el := o.items[key]
	if el == nil {
		return nil, nil, o.changes
	}
	f, _ := el.Value.(*openedFile)
	if time.Since(f.seen) >= openedSure && !o.confirm(f, path) {
		return nil, nil, o.changes
	}
	o.order.MoveToFront(el)
	f.file.Hold()
	return f.file, f.info, o.changes
}

// confirm looks whether the key still leads to the file. It is called with the lock, which it gives up for as long as
// the disk takes.
func (o *opened) confirm(f *openedFile, path string) bool {
	f.seen = time.Now() // the others do not ask at the same time
	o.mu.Unlock()
	now, err := os.Lstat(path)
	same := err == nil && os.SameFile(now, f.info)
	o.mu.Lock()
	el := o.items[f.key]
	if el == nil || el.Value != f {
		return false
	}
	if !same {
		o.drop(el)
	}
	return same
}

// put keeps a file open that was just opened, unless something was forgotten since get gave the ticket: it may have
// been this one.
func (o *opened) put(key string, file *openfile.File, info fs.FileInfo, ticket uint64) {
	if info.Size() > openedBytes {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changes != ticket || o.items[key] != nil {
		return
	}
	if o.items == nil {
		o.items = map[string]*list.Element{}
	}
	file.Hold()
	o.items[key] = o.order.PushFront(&openedFile{key: key, file: file, info: info, seen: time.Now()})
	for o.order.Len() > openedFiles {
		o.drop(o.order.Back())
	}
}

// forget lets go of what the key led to. It is called once it leads there no more.
func (o *opened) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	if el := o.items[key]; el != nil {
		o.drop(el)
	}
}

// drop is called with the lock.
func (o *opened) drop(el *list.Element) {
	f, _ := o.order.Remove(el).(*openedFile)
	delete(o.items, f.key)
	_ = f.file.Close() // it was only read
}

func (o *opened) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	for o.order.Len() > 0 {
		o.drop(o.order.Back())
	}
}
