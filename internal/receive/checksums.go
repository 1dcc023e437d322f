package receive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
)

const (
	// blockBytes is how much of a file has a checksum of its own. Chunks of a file are multiples of it.
	blockBytes = 256 << 10
	sumBytes   = crc32.Size
	// pageBlocks is how many checksums of a stored file are read at once: those of 256 MiB.
	pageBlocks = 1024
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a table

// checksums are those of a file's blocks (CRC-32C), made while its bytes come. By them another file of the same length
// is told from it, once the upload has its file and whatever becomes of that. A block whose beginning came to another
// process is not known, and has 0.
type checksums struct {
	blocks []uint32 // of the whole blocks that have come
	size   int64    // bytes that have come
	rest   uint32   // of what has come of the block behind them
	known  bool     // rest is of all of it
}

// checksumsFrom are those of a file of which so many bytes came before.
func checksumsFrom(size int64) *checksums {
	return &checksums{blocks: make([]uint32, size/blockBytes), size: size, known: size%blockBytes == 0}
}

// add takes what comes next.
func (c *checksums) add(p []byte) {
	for len(p) > 0 {
		n := min(int64(len(p)), blockBytes-c.size%blockBytes)
		if c.known {
			c.rest = crc32.Update(c.rest, castagnoli, p[:n])
		}
		c.size += n
		p = p[n:]
		if c.size%blockBytes == 0 {
			c.blocks = append(c.blocks, c.rest)
			c.rest, c.known = 0, true
		}
	}
}

// bytes is how they are stored: big-endian, block by block, that behind the last whole one too.
func (c *checksums) bytes() []byte {
	out := make([]byte, 0, (len(c.blocks)+1)*sumBytes)
	for _, sum := range c.blocks {
		out = binary.BigEndian.AppendUint32(out, sum)
	}
	if c.size%blockBytes != 0 {
		out = binary.BigEndian.AppendUint32(out, c.rest)
	}
	return out
}

// Bounds of what is remembered between the requests of uploads: 8 MiB, for files of 512 GiB together.
const maxRemembered, maxRememberedBlocks = 1024, 2 << 20

// remembered are the checksums of files that are under way, between the requests that bring them.
type remembered struct {
	mu     sync.Mutex
	of     map[id.Upload]*checksums
	order  []id.Upload // as they were put down, the oldest first
	blocks int         // of all of them
}

// put keeps the checksums of an upload until they are taken, or there are too many others.
func (r *remembered) put(u id.Upload, c *checksums) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(u)
	if r.of == nil {
		r.of = map[id.Upload]*checksums{}
	}
	r.of[u] = c
	r.order = append(r.order, u)
	r.blocks += len(c.blocks)
	for len(r.order) > maxRemembered || r.blocks > maxRememberedBlocks {
		r.forget(r.order[0])
	}
}

// take gives the checksums of a file of which so many bytes have come. They are the caller's alone.
func (r *remembered) take(u id.Upload, size int64) *checksums {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of[u]
	r.forget(u)
	if c == nil || c.size != size { // more of it came to another process
		return checksumsFrom(size)
	}
	return c
}

// forget needs the lock.
func (r *remembered) forget(u id.Upload) {
	c := r.of[u]
	if c == nil {
		return
	}
	delete(r.of, u)
	r.blocks -= len(c.blocks)
	i := slices.Index(r.order, u)
	r.order = slices.Delete(r.order, i, i+1)
}

// storeChecksums keeps those of a file that has come.
func (w *Writer) storeChecksums(ctx context.Context) error {
	err := w.files.opt.Store.Put(ctx, objectkey.Checksums(w.upload.Media), bytes.NewReader(w.sums.bytes()))
	if err != nil {
		return fmt.Errorf("store checksums of an upload: %w", err)
	}
	return nil
}

// Compare reads what may be the file of an upload that has its file, from a byte of it on, and reports whether it is
// the same. It ends at the first block of 256 KiB that is another one, and reads nothing where no checksums are kept:
// an earlier version had the file, or its asset is deleted. A block that does not come whole is not compared. n is how
// many bytes were read.
func (f *Files) Compare(ctx context.Context, u upload.Upload, from int64, r io.Reader) (n int64, same bool, err error) {
	sums := &storedChecksums{files: f, key: objectkey.Checksums(u.Media)}
	sums.blocks = (u.Size + blockBytes - 1) / blockBytes
	if skip := -from & (blockBytes - 1); skip > 0 {
		if n, err = io.CopyN(io.Discard, r, skip); err != nil {
			return n, from+n <= u.Size, notEOF(err)
		}
	}
	buf := make([]byte, blockBytes)
	for {
		var want uint32
		if want, err = sums.at(ctx, (from+n)/blockBytes); err != nil || sums.none {
			return n, err == nil, err
		}
		var came int
		came, err = io.ReadFull(r, buf)
		n += int64(came)
		end := from + n
		whole := came == blockBytes || came > 0 && end == u.Size
		switch {
		case end > u.Size, whole && want != 0 && want != crc32.Checksum(buf[:came], castagnoli):
			return n, false, nil
		case err == io.ErrUnexpectedEOF: //nolint:errorlint // ReadFull's own: that of r says why it ended early
			return n, true, nil
		case err != nil:
			return n, true, notEOF(err)
		}
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// storedChecksums are those of a file that has come, read page by page.
type storedChecksums struct {
	files  *Files
	key    string
	blocks int64 // of the file
	page   []byte
	first  int64 // block of the page
	none   bool  // there are none
}

// at is the checksum of a block; 0: it is not known.
func (s *storedChecksums) at(ctx context.Context, block int64) (uint32, error) {
	if block >= s.blocks || s.none {
		return 0, nil
	}
	if s.page == nil || block < s.first || block >= s.first+pageBlocks {
		if err := s.read(ctx, block-block%pageBlocks); err != nil {
			return 0, err
		}
	}
	at := (block - s.first) * sumBytes
	if at+sumBytes > int64(len(s.page)) {
		return 0, nil
	}
	return binary.BigEndian.Uint32(s.page[at:]), nil
}

func (s *storedChecksums) read(ctx context.Context, first int64) error {
	r, err := s.files.opt.Store.Get(ctx, s.key, first*sumBytes, pageBlocks*sumBytes)
	if fault.Is(err, fault.NotFound) {
		s.none = true
		return nil
	}
	if err == nil {
		s.page, err = io.ReadAll(io.LimitReader(r, pageBlocks*sumBytes))
		err = errors.Join(err, r.Close())
	}
	if err != nil {
		return fmt.Errorf("read checksums of an upload: %w", err)
	}
	s.first = first
	return nil
}
