package ondemand

import (
	"errors"
	"fmt"
	"io"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
)

const (
	// maxHole is the largest hole, in bytes, that is read along from storage elsewhere: one request is cheaper than
	// two. From a file on this machine it is maxNear.
	maxHole, maxNear = 64 << 10, 4 << 10
)

// Ranger is the further ability of an open stored file that is elsewhere: n bytes from off on come one after the other.
type Ranger interface {
	Range(off, n int64) (io.ReadCloser, error)
}

// piece is a stretch of a segment: bytes at hand, or of the file.
type piece struct {
	data   []byte
	stored mp4.Extent
}

func (p piece) size() int64 { return int64(len(p.data)) + p.stored.Length }

// scattered is a segment of many pieces.
type scattered struct {
	file   ReaderAtCloser
	pieces []piece
	done   int64 // bytes of the first of them that are read

	ranger Ranger // nil: the file is read at any place
	run    io.ReadCloser
	at     int64 // where run goes on in the file
	end    int64 // where it ends
}

// scatter reads samples behind a head: those with bytes of their own, the others from extents in their order.
func scatter(head []byte, samples []cmaf.Sample, extents []mp4.Extent, file ReaderAtCloser) (*scattered, error) {
	x := &scattered{file: file, pieces: []piece{{data: head}}}
	x.ranger, _ = file.(Ranger)
	for _, s := range samples {
		if s.Data != nil {
			x.pieces = append(x.pieces, piece{data: s.Data})
			continue
		}
		for left := int64(s.Size); left > 0; {
			if len(extents) == 0 {
				return nil, fmt.Errorf("a sample lies nowhere: %w", io.ErrUnexpectedEOF)
			}
			some := mp4.Extent{Offset: extents[0].Offset, Length: min(left, extents[0].Length)}
			x.store(some)
			left -= some.Length
			if extents[0].Offset += some.Length; extents[0].Length == some.Length {
				extents = extents[1:]
			} else {
				extents[0].Length -= some.Length
			}
		}
	}
	return x, x.begin()
}

// store appends a stretch of the file, which may go on where the last one ends.
func (s *scattered) store(e mp4.Extent) {
	if last := &s.pieces[len(s.pieces)-1]; last.data == nil && last.stored.Offset+last.stored.Length == e.Offset {
		last.stored.Length += e.Length
		return
	}
	s.pieces = append(s.pieces, piece{stored: e})
}

// begin asks for the first bytes, so that an object that can't be read is an error before anything is sent.
func (s *scattered) begin() error {
	for i := range s.pieces {
		if s.ranger != nil && s.pieces[i].data == nil {
			return s.open(i, s.pieces[i].stored.Offset)
		}
	}
	return nil
}

// Read implements io.Reader. It fills p as far as there is something.
func (s *scattered) Read(p []byte) (n int, err error) {
	for n < len(p) && len(s.pieces) > 0 {
		var k int
		switch now := s.pieces[0]; {
		case now.data != nil:
			k = copy(p[n:], now.data[s.done:])
			s.advance(k)
		case s.ranger == nil:
			k, err = s.gather(p[n:])
		default:
			k = int(min(int64(len(p)-n), now.size()-s.done))
			err = s.read(p[n:n+k], now.stored.Offset+s.done)
			s.advance(k)
		}
		if err != nil {
			return n, err
		}
		n += k
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// advance notes that k more bytes of the first piece are read.
func (s *scattered) advance(k int) {
	if s.done += int64(k); s.done == s.pieces[0].size() {
		s.pieces, s.done = s.pieces[1:], 0
	}
}

// gather reads the first piece and those close behind it by one call, as far as p has room for what is between them
// too, and moves them together.
func (s *scattered) gather(p []byte) (n int, err error) {
	from := s.pieces[0].stored.Offset + s.done
	count, end := s.near(from + int64(len(p)))
	p = p[:end-from]
	if k, err := s.file.ReadAt(p, from); k < len(p) {
		return 0, short(err)
	}
	for ; count > 0; count-- {
		now := s.pieces[0].stored
		at := now.Offset + s.done - from
		k := copy(p[n:], p[at:min(at+now.Length-s.done, end-from)])
		s.advance(k)
		n += k
	}
	return n, nil
}

// near is how many pieces, from the first on, lie close behind one another in the file and begin before limit, and
// where they end: there at the latest.
func (s *scattered) near(limit int64) (count int, end int64) {
	for _, next := range s.pieces {
		hole := next.stored.Offset - end
		if next.data != nil || next.stored.Offset >= limit || count > 0 && (hole < 0 || hole > maxNear) {
			break
		}
		count, end = count+1, next.stored.Offset+next.stored.Length
	}
	return count, min(end, limit)
}

// read fills p with bytes from off on, of a file that is elsewhere.
func (s *scattered) read(p []byte, off int64) error {
	if s.run == nil || off < s.at || off+int64(len(p)) > s.end {
		if err := s.open(0, off); err != nil {
			return err
		}
	}
	if _, err := io.CopyN(io.Discard, s.run, off-s.at); err != nil { // a hole
		return short(err)
	}
	n, err := io.ReadFull(s.run, p)
	s.at = off + int64(n)
	if err != nil {
		return short(err)
	}
	return nil
}

// short is the error of a file that ends too soon.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read stored samples: %w", err)
}

// open asks for piece i from off on, and for those behind it that are close.
func (s *scattered) open(i int, off int64) error {
	s.closeRun()
	end := s.pieces[i].stored.Offset + s.pieces[i].stored.Length
	for _, next := range s.pieces[i+1:] {
		if next.data != nil {
			continue
		}
		if hole := next.stored.Offset - end; hole < 0 || hole > maxHole {
			break
		}
		end = next.stored.Offset + next.stored.Length
	}
	run, err := s.ranger.Range(off, end-off)
	if err != nil {
		return err
	}
	s.run, s.at, s.end = run, off, end
	return nil
}

func (s *scattered) closeRun() {
	if s.run != nil {
		_ = s.run.Close() // it was only read
		s.run = nil
	}
}

// WriteTo implements io.WriterTo.
func (s *scattered) WriteTo(w io.Writer) (total int64, err error) {
	buf, give := copies.take()
	defer give()
	for {
		n, err := s.Read(buf)
		if n > 0 {
			k, werr := w.Write(buf[:n])
			total += int64(k)
			if werr != nil {
				return total, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Close implements io.Closer.
func (s *scattered) Close() error {
	s.closeRun()
	return s.file.Close()
}
