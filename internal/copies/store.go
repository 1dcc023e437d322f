package copies

import (
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/journal"
)

const (
	// keptFor is how long a copy is kept that nothing is heard of: longer than anybody waits for an encoder.
	keptFor = 35 * time.Minute
	// mostCopies is how many broadcasts are copied at a time, and mostLayers of how many writers each.
	mostCopies, mostLayers = 1000, 4
	// mostSenders is how many nodes send at a time.
	mostSenders = 1024
	// maxFrame is what a frame has at most.
	maxFrame = 17 << 20
	maxName  = 100
)

// Store is what this node has copied of others' broadcasts. It implements http.Handler for Path.
type Store struct {
	opt   Options
	stats *stats

	mu      sync.Mutex
	senders map[id.Node]*sender
	kept    map[id.Media]*kept
	bytes   int64
}

// sender is a node that has something copied here.
type sender struct {
	session, run string
	heard        time.Time
	at           int64  // where in its stream buf ends
	buf          []byte // the beginning of a frame
}

// kept is the copy of one broadcast.
type kept struct {
	layers []*layer // one for each process that has written it and had it copied, the latest last
	heard  time.Time
	bytes  int64
}

type layer struct {
	run, session string // of who sends it
	generation   int64
	both         [journals]journal.Replica
}

func (k *kept) size() (bytes int64) {
	for _, l := range k.layers {
		for i := range l.both {
			bytes += l.both[i].Size()
		}
	}
	return bytes
}

func newStore(o Options, s *stats) *Store {
	return &Store{opt: o, stats: s, senders: map[id.Node]*sender{}, kept: map[id.Media]*kept{}}
}

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch media := id.Media(q.Get("media")); {
	case r.Method == http.MethodPost:
		full, err := s.take(r)
		switch {
		case err != nil:
			wire.Fail(w, err, false)
		case len(full) > 0: // what a name has is never a line break: the owner's lines are its own media
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, strings.Join(full, "\n")) //nolint:gosec // read by a node, which begins again else
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	case media != "":
		s.give(w, media)
	default:
		w.Header().Set(zoneHeader, s.opt.Zone)
		w.WriteHeader(http.StatusNoContent)
	}
}

// take reads what another node has this one copy. full are broadcasts that it has no place for.
func (s *Store) take(r *http.Request) (full []string, err error) {
	q := r.URL.Query()
	from, session, run := s.opt.From(r.Context()), q.Get("session"), q.Get("run")
	at, err := strconv.ParseInt(q.Get("at"), 10, 64)
	if err != nil || at < 0 || from == "" || session == "" || len(session) > maxName ||
		run == "" || len(run) > maxName {
		return nil, fault.New(fault.Invalid, "session, run and at must be given")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxFrame))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the body can't be read")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.senders[from]
	switch {
	case at == 0 && (stream == nil || stream.session != session):
		if stream == nil && len(s.senders) >= mostSenders {
			return nil, fault.New(fault.TooMany, "too many nodes have broadcasts copied here")
		}
		stream = &sender{session: session, run: run}
		s.senders[from] = stream
	case stream == nil || stream.session != session || stream.at != at:
		return nil, fault.New(fault.Conflict, "the stream does not go on here")
	}
	stream.at += int64(len(body))
	if full, err = s.frames(stream, body); err != nil {
		delete(s.senders, from) // it begins again
		return nil, err
	}
	stream.heard = s.opt.Now()
	for _, k := range s.kept { // what it has another node copy by now was of an earlier stream
		if n := len(k.layers); k.layers[n-1].session == session {
			k.heard = stream.heard
		}
	}
	return full, nil
}

// frames does what the frames of a stream say. Called with the lock.
func (s *Store) frames(from *sender, body []byte) (full []string, err error) {
	data := body
	if len(from.buf) > 0 {
		data = append(from.buf, body...)
	}
	for len(data) > 0 {
		rest, whole, err := s.frame(from, data)
		if no := (*fullError)(nil); errors.As(err, &no) {
			full = append(full, string(no.media))
		} else if err != nil {
			return nil, err
		}
		if !whole {
			break
		}
		data = rest
	}
	if len(data) > maxFrame {
		return nil, errFrame()
	}
	from.buf = slices.Clone(data)
	return full, nil
}

// fullError is that of a broadcast that is not copied here, since others are.
type fullError struct{ media id.Media }

func (*fullError) Error() string { return "this node copies as many broadcasts as it can" }

func errFrame() error { return fault.New(fault.Invalid, "the stream can't be read") }

// frame does what the first frame of data says, if that is whole. Called with the lock.
func (s *Store) frame(from *sender, data []byte) (rest []byte, whole bool, err error) {
	if len(data) < 2 || len(data) < 2+int(data[1]) {
		return data, false, nil
	}
	kind, media, rest := data[0], id.Media(data[2:2+data[1]]), data[2+data[1]:]
	if media == "" || len(media) > maxName {
		return nil, false, errFrame()
	}
	switch kind {
	case frameOver:
		s.over(media, from.run)
		return rest, true, nil
	case frameBegin:
		if len(rest) < 8 {
			return data, false, nil
		}
		err = s.begin(media, from, int64(binary.BigEndian.Uint64(rest)))
		return rest[8:], true, err
	case frameRecord:
		if len(rest) == 0 {
			return data, false, nil
		}
		of := int(rest[0])
		record, behind, err := journal.Frame(rest[1:])
		switch {
		case err != nil || of >= journals:
			return nil, false, errFrame()
		case record == nil:
			return data, false, nil
		}
		s.add(media, from.run, of, slices.Clone(record))
		return behind, true, nil
	}
	return nil, false, errFrame()
}

// begin begins the copy of what a process publishes. Called with the lock.
func (s *Store) begin(m id.Media, from *sender, generation int64) error {
	k := s.kept[m]
	if k == nil {
		if len(s.kept) >= mostCopies && !s.makeRoom() {
			return &fullError{m}
		}
		k = &kept{}
		s.kept[m] = k
	}
	k.layers = slices.DeleteFunc(k.layers, func(l *layer) bool { return l.run == from.run })
	at := 0
	for at < len(k.layers) && k.layers[at].generation <= generation {
		at++
	}
	k.layers = slices.Insert(k.layers, at, &layer{run: from.run, session: from.session, generation: generation})
	if len(k.layers) > mostLayers {
		k.layers = slices.Delete(k.layers, 0, len(k.layers)-mostLayers)
	}
	k.heard = s.opt.Now()
	s.bound(k)
	return nil
}

// makeRoom forgets the copy that was not heard of for longest, if that is as long as what was left is kept: its next
// writer has asked for it. Called with the lock.
func (s *Store) makeRoom() bool {
	var oldest id.Media
	for m, k := range s.kept {
		if oldest == "" || k.heard.Before(s.kept[oldest].heard) {
			oldest = m
		}
	}
	k := s.kept[oldest]
	if k == nil || s.opt.Now().Sub(k.heard) < leftFor {
		return false
	}
	s.forget(oldest, k)
	return true
}

// add adds a record to what there is of a process. Earlier ones had the same segments: what is stored of them needs no
// copy there either. Called with the lock.
func (s *Store) add(m id.Media, run string, of int, record []byte) {
	k := s.kept[m]
	if k == nil {
		return // it is over, or has not begun
	}
	mine := slices.IndexFunc(k.layers, func(l *layer) bool { return l.run == run })
	if mine < 0 {
		return
	}
	for i := range mine + 1 {
		if i < mine && !journal.NeedsNoCopy(record) {
			continue
		}
		r := &k.layers[i].both[of]
		if err := r.Add(record); err != nil {
			s.stats.dropped.Add(int64(len(record)))
			return
		}
		r.Fetched(r.Last()) // nobody is told to forget it again
	}
	s.stats.taken.Add(int64(len(record)))
	s.bound(k)
}

// bound counts what a broadcast takes, and leaves out its oldest media where that is too much. Called with the lock.
func (s *Store) bound(k *kept) {
	for {
		size := k.size()
		s.bytes += size - k.bytes
		k.bytes = size
		if size <= mostOfOne && s.bytes <= mostOfAll {
			return
		}
		thinned := int64(0)
		for _, l := range k.layers {
			for i := range l.both {
				if thinned == 0 {
					thinned = l.both[i].Thin()
				}
			}
		}
		if thinned == 0 {
			return
		}
		s.stats.dropped.Add(thinned)
	}
}

// over forgets a broadcast that has ended, unless a later process has it. Called with the lock.
func (s *Store) over(m id.Media, run string) {
	if k := s.kept[m]; k != nil && k.layers[len(k.layers)-1].run == run {
		s.forget(m, k)
	}
}

func (s *Store) forget(m id.Media, k *kept) {
	s.bytes -= k.bytes
	delete(s.kept, m)
}

// expire forgets what nothing is heard of any more.
func (s *Store) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	for m, k := range s.kept {
		if now.Sub(k.heard) > keptFor {
			s.forget(m, k)
		}
	}
	maps.DeleteFunc(s.senders, func(_ id.Node, x *sender) bool { return now.Sub(x.heard) > keptFor })
}

// size is how many broadcasts are copied here, and how many bytes that takes.
func (s *Store) size() (broadcasts int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept), s.bytes
}

// Has reports whether this node has a copy of a broadcast.
func (s *Store) Has(m id.Media) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[m] != nil
}

// copy is what this node has of a broadcast; false: nothing. age is how long ago its writer was heard.
func (s *Store) copy(m id.Media) (c Copy, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[m]
	if k == nil {
		return c, false
	}
	for _, l := range k.layers {
		c.Own, c.Derived = append(c.Own, l.both[0].All()...), append(c.Derived, l.both[1].All()...)
	}
	c.Generation, c.age = k.layers[len(k.layers)-1].generation, s.opt.Now().Sub(k.heard)
	return c, true
}

const (
	zoneHeader       = "Millrace-Zone"
	ageHeader        = "Millrace-Age"        // milliseconds
	generationHeader = "Millrace-Generation" // of the latest writer
	ownHeader        = "Millrace-Own"        // bytes of the first journal
)

// give sends what there is of a broadcast: the records of one journal and then those of the other.
func (s *Store) give(w http.ResponseWriter, m id.Media) {
	c, found := s.copy(m)
	if !found {
		wire.Fail(w, fault.New(fault.NotFound, "nothing of the broadcast was copied here"), false)
		return
	}
	h := w.Header()
	h.Set(ageHeader, strconv.FormatInt(c.age.Milliseconds(), 10))
	h.Set(generationHeader, strconv.FormatInt(c.Generation, 10))
	h.Set(ownHeader, strconv.Itoa(len(c.Own)))
	h.Set("Content-Length", strconv.Itoa(len(c.Own)+len(c.Derived)))
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(c.Own)
	if err == nil {
		_, err = w.Write(c.Derived)
	}
	if err != nil && !errors.Is(err, http.ErrHandlerTimeout) {
		panic(http.ErrAbortHandler) // nobody takes what has come for the whole
	}
}
