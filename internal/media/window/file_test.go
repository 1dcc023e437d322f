package window

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/media/delivered"
	"millrace/internal/media/journal"
)

// bytesOf is what a viewer gets.
func bytesOf(t *testing.T, s *storage, p Location) []byte {
	t.Helper()
	if p.Data != nil {
		return p.Data
	}
	if p.File != nil {
		r, err := p.File.Section(p.Offset, p.N)
		if err == nil {
			defer r.Close()
			data, failed := io.ReadAll(r)
			if failed != nil {
				t.Error(failed)
			}
			return data
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[p.Object][p.Offset : p.Offset+p.N]
}

// openBelow counts the open files of this process below dir.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			n++
		}
	}
	return n
}

// held is how many bytes of segments are in memory.
func (r *rig) held() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.renditions {
		for i := range l.segs {
			if h := l.segs[i].hot; h != nil {
				n += len(h.buf)
			}
		}
	}
	return n
}

// TestFileIsWhatIsServedAndStored: a part comes from its file as soon as it is published, a whole segment leaves memory
// and is stored as the file that it is; what a viewer was given stays readable through all of it, and no file stays
// open.
func TestFileIsWhatIsServedAndStored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	r := newRig(Options{Mode: low, Journal: journalIn(dir)})
	stop := r.run(t)
	r.start()
	var early []Location // of the first segment, held for as long as a slow viewer likes
	want := map[string][]byte{}
	for n := range int64(12) {
		r.begin("v", false)
		r.begin("a", false)
		for k := range 3 {
			for _, id := range []string{"v", "a"} {
				r.part(id)
				p, err := r.ReadPart(t.Context(), id, 7+n, k)
				if err != nil || p.File == nil || p.Data != nil {
					t.Fatalf("%+v %v", p, err)
				}
				if got := bytesOf(t, r.store, p); !bytes.Equal(got, r.bufs[id][k*100:]) {
					t.Fatalf("part %d of %s: %q", k, id, got)
				}
				if in := r.held(); in != 0 {
					t.Errorf("%d bytes of an open segment are in memory", in)
				}
				if n == 0 {
					early = append(early, p)
				}
			}
		}
		want[r.key("v", 7+n)], want[r.key("a", 7+n)] = r.bufs["v"], r.bufs["a"]
		r.finish(3, "v", "a")
		if in := r.held(); in != 0 {
			t.Errorf("%d bytes of whole segments are in memory", in)
		}
		p, err := r.ReadSegment(t.Context(), "v", 7+n)
		if err != nil || !bytes.Equal(bytesOf(t, r.store, p), want[r.key("v", 7+n)]) {
			t.Errorf("%+v %v", p, err)
		}
	}
	r.drain(t)
	for i, p := range early {
		id := []string{"v", "a"}[i%2]
		if got := bytesOf(t, r.store, p); !bytes.Equal(got, want[r.key(id, 7)][i/2*100:][:100]) {
			t.Errorf("%+v gives %q", p, got)
		}
	}
	r.store.mu.Lock()
	if r.store.linked != 24 {
		t.Errorf("%d of 24 were stored as files", r.store.linked)
	}
	for key, data := range want {
		if !bytes.Equal(r.store.objects[key], data) {
			t.Errorf("%s is %q", key, r.store.objects[key])
		}
	}
	r.store.mu.Unlock()
	r.Close()
	r.drain(t)
	stop()
	if n := openBelow(t, dir); n > 8 { // two renditions of what is at hand, and the index
		t.Errorf("%d files are open", n)
	}
	r.Release()
	if n := openBelow(t, dir); n != 0 {
		t.Errorf("%d files are open still", n)
	}
	if p, err := r.ReadPart(t.Context(), "v", 18, 0); err != nil ||
		!bytes.Equal(bytesOf(t, r.store, p), want[r.key("v", 18)][:100]) {
		t.Errorf("%+v %v", p, err) // who watches for longer is served by storage
	}
}

// TestDiskThatHangsHarmsNobody: parts that can not be written in time are served from memory and stored from there.
func TestDiskThatHangsHarmsNobody(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := journal.New(journal.Options{Dir: dir, MaxBacklog: 2000, Logger: slog.New(slog.DiscardHandler)})
	r := newRig(Options{Mode: low, Journal: j})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // the edge's own goroutine, without the one that writes the journal
		defer close(done)
		_ = r.Edge.store(ctx)
	}()
	r.start()
	began := time.Now()
	for n := range int64(6) {
		r.begin("v", false)
		r.begin("a", false)
		for k := range 3 {
			r.part("v")
			r.part("a")
			p, err := r.ReadPart(t.Context(), "v", 7+n, k)
			if err != nil || !bytes.Equal(p.Data, r.bufs["v"][k*100:]) {
				t.Fatalf("%+v %v", p, err)
			}
		}
		r.finish(3, "v", "a")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	r.drain(t)
	tl := r.store.timeline(t)
	if len(tl.Marks) != 6 || r.store.linked != 0 {
		t.Errorf("%d rows, %d files", len(tl.Marks), r.store.linked)
	}
	stop := make(chan struct{})
	writing, end := context.WithCancel(t.Context())
	go func() { // the disk is back
		defer close(stop)
		_ = j.Run(writing)
	}()
	for seen := false; !seen; runtime.Gosched() {
		r.segment(3, false)
		r.drain(t)
		r.store.mu.Lock()
		seen = r.store.linked > 0
		r.store.mu.Unlock()
	}
	cancel()
	end()
	<-done
	<-stop
	for _, c := range r.store.timeline(t).Rendition("v").Chunks {
		if int64(len(r.store.objects[c.Object])) != c.Size || c.Gap {
			t.Errorf("%+v", c)
		}
	}
	r.Release()
	if n := openBelow(t, dir); n != 0 {
		t.Errorf("%d files are open still", n)
	}
}

// TestDiskHangsWithinASegment: what a segment's file has not got when the disk begins to hang is in memory; together
// they are what viewers and followers are given, and what is stored.
func TestDiskHangsWithinASegment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	j := journal.New(journal.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	r := newRig(Options{Mode: low, Journal: j})
	writing, hang := context.WithCancel(t.Context())
	var disk sync.WaitGroup
	disk.Go(func() { _ = j.Run(writing) })
	r.announce("v")
	r.Live(true)
	r.begin("v", false)
	r.part("v")
	r.part("v")
	hang()
	disk.Wait()
	r.part("v")
	r.part("v")
	if in := r.held(); in != 200 {
		t.Errorf("%d bytes in memory, of two parts", in)
	}
	want := r.bufs["v"]
	for k := range 4 {
		p, err := r.ReadPart(t.Context(), "v", 7, k)
		if err != nil || (p.Data == nil) != (k < 2) || !bytes.Equal(bytesOf(t, r.store, p), want[k*100:][:100]) {
			t.Errorf("part %d: %+v %v", k, p, err)
		}
	}
	r.finish(4, "v")
	whole := func() string {
		t.Helper()
		p, err := r.ReadSegment(t.Context(), "v", 7)
		data, err := delivered.Bytes(p.Open(t.Context(), nil, err))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := whole(); got != string(want) {
		t.Errorf("the segment is %q", got)
	}
	storing, end := context.WithCancel(t.Context())
	var stored sync.WaitGroup
	stored.Go(func() { _ = r.Edge.store(storing) })
	r.drain(t)
	end()
	stored.Wait()
	r.store.mu.Lock()
	if got := r.store.objects[r.key("v", 7)]; !bytes.Equal(got, want) || r.store.linked != 0 {
		t.Errorf("%d files and %q are stored", r.store.linked, got)
	}
	r.store.mu.Unlock()
	r.Release()
}

// TestFollowersKeepSegments: who follows a rendition finds all of its open segment in memory, and who has begun in its
// midst what is left of it.
func TestFollowersKeepSegments(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low, Journal: journalIn(filepath.Join(t.TempDir(), "m"))})
	stop := r.run(t)
	defer stop()
	r.start()
	r.begin("v", false)
	r.part("v")
	f, err := r.Follow("v", 7)
	if err != nil {
		t.Fatal(err)
	}
	r.part("v")
	r.part("v")
	if in := r.held(); in != 200 {
		t.Errorf("%d bytes in memory, of the two parts that came since", in)
	}
	for k := range 3 {
		p, err := r.ReadPart(t.Context(), "v", 7, k)
		if err != nil || !bytes.Equal(bytesOf(t, r.store, p), r.bufs["v"][k*100:][:100]) {
			t.Errorf("part %d: %+v %v", k, p, err)
		}
	}
	f.Close()
	r.part("v")
	if in := r.held(); in != 0 {
		t.Errorf("%d bytes in memory, and nobody follows", in)
	}
	r.Release()
}

// TestStorageAway: files wait for storage without being open, are read meanwhile, and stored when it is back.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "m")
	r := newRig(Options{Mode: low, Journal: journalIn(dir)})
	var back atomic.Bool
	r.store.before = func(context.Context, string) error {
		if back.Load() {
			return nil
		}
		return errAway
	}
	stop := r.run(t)
	r.start()
	for range 40 {
		r.segment(3, false)
	}
	if n := openBelow(t, dir); n > 12 {
		t.Errorf("%d files are open", n)
	}
	if in := r.held(); in != 0 {
		t.Errorf("%d bytes in memory", in)
	}
	p, err := r.ReadSegment(t.Context(), "a", 9)
	if err != nil || len(bytesOf(t, r.store, p)) != 300 {
		t.Errorf("%+v %v", p, err)
	}
	back.Store(true)
	r.drain(t)
	if tl := r.store.timeline(t); len(tl.Marks) != 40 || r.store.linked != 80 {
		t.Errorf("%d rows, %d files", len(tl.Marks), r.store.linked)
	}
	if got := bytesOf(t, r.store, p); len(got) != 300 {
		t.Errorf("what was found before storage came back has %d bytes", len(got))
	}
	r.Close()
	r.drain(t)
	stop()
	r.Release()
	if n := openBelow(t, dir); n != 0 {
		t.Errorf("%d files are open still", n)
	}
}

// TestLostSegmentsLeaveTheDisk: while storage is away the files of what is kept for it are there, and those of what is
// lost are not. Who goes on after a crash has stored what was kept, and lists a gap as long as what was lost.
func TestLostSegmentsLeaveTheDisk(t *testing.T) {
	t.Parallel()
	at := newPlaces(t)
	const kept, all = 5, 20
	r := newRig(Options{Mode: low, Journal: at.open(), MaxHeld: kept * 600})
	r.store.before = func(context.Context, string) error { return errAway }
	stop := r.run(t)
	r.start()
	for range all {
		r.segment(3, false)
	}
	stop() // it was killed, and had written its journal
	files := 0
	entries, err := os.ReadDir(filepath.Join(at.disk, "m"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".m4s" {
			files++
		}
	}
	if most := 2 * (kept + low.InMemory); files != most {
		t.Errorf("%d files on the disk, want %d", files, most)
	}
	two := newRig(Options{Mode: low, Journal: at.open()})
	defer two.run(t)()
	two.drain(t)
	tl := two.store.timeline(t)
	if len(tl.Marks) != all {
		t.Fatalf("%d rows", len(tl.Marks))
	}
	for i, c := range tl.Rendition("v").Chunks {
		gap := i >= kept && i < all-low.InMemory
		if c.Gap != gap || c.Duration != 3*partTicks {
			t.Errorf("segment %d: gap %t, %d ticks", i, c.Gap, c.Duration)
		}
	}
}
