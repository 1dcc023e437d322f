package copies

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
)

// A node sends what is to be copied as one stream of frames for all its broadcasts, in requests of at most mostSent
// bytes, each of which says at which byte of the stream it begins. The response to one says that all of it is kept: all
// but the broadcasts that its lines name, for which there is no place. After an error another stream begins, with all
// that there is.
//
// A frame is its kind, one byte; the length of the broadcast's media ID, one byte, and that. Then, where something
// begins: its generation, 8 bytes, big-endian; what there was of this process is void. Of a record: its journal, one
// byte, and the record, which says how long it is. Nothing follows where a broadcast is over.

// Path is where a node is sent by POST what it is to copy, with the stream ("session", "run") and where in it the
// body begins ("at"), and where by GET it says its zone, or what it has copied of a broadcast ("media").
const Path = "/copies/v1"

const (
	frameBegin  = 'b'
	frameRecord = 'r'
	frameOver   = 'o'

	// mostSent is what a request has at most; a node takes a MiB.
	mostSent = 768 << 10
	// gathered is how much is read of the broadcasts at once.
	gathered = 512 << 10
	// beat is how often something is sent if there is nothing to say: so a dead node is noticed.
	beat = time.Second
	// pace is the least time between two requests. Where only lengths are copied nobody waits for them.
	pace, pacedOutline = 4 * time.Millisecond, 250 * time.Millisecond
	// sendTime is how long a request may take.
	sendTime = 3 * time.Second
	// lostAfter is for how long a node may refuse everything before another one is chosen.
	lostAfter = 3 * time.Second
	retry     = 200 * time.Millisecond
)

// link is a node that copies for this one.
type link struct {
	s    *Service
	to   follow.Node
	run  string // of its process
	stop context.CancelFunc
	wake chan struct{} // one token: there is something to send

	mu    sync.Mutex
	ended []id.Media // broadcasts that are over, which the node may not know
	told  int        // of them, which are in out, or were

	// only send uses these
	session string
	at      int64 // where in the stream out begins
	out     []byte
	acks    []ack
	begun   map[*Feed]bool
}

// ack is where in the stream a record ends.
type ack struct {
	end    int64
	of     *tapped
	number uint64
}

func newLink(s *Service, to follow.Node, run string) *link {
	return &link{s: s, to: to, run: run, wake: make(chan struct{}, 1)}
}

func (l *link) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// over tells that a broadcast is over.
func (l *link) over(m id.Media) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, m)
	l.wakeUp()
}

// idle reports whether there is nothing to tell.
func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ended) == 0
}

// send sends until ctx ends, or the node does not take it any more.
func (l *link) send(ctx context.Context) {
	var failing time.Time
	l.restart()
	gap := pace
	if !l.s.opt.Media {
		gap = pacedOutline
	}
	for ctx.Err() == nil {
		l.gather()
		err := l.post(ctx)
		switch {
		case err == nil:
			failing = time.Time{}
			if len(l.out) == 0 {
				l.await(ctx, beat, l.wake)
			}
			l.await(ctx, gap, nil)
			continue
		case ctx.Err() != nil:
			return
		case failing.IsZero():
			failing = l.s.opt.Now()
			l.s.opt.Logger.InfoContext(ctx, "a node does not take what it is to copy", "node", l.to.ID, "error", err)
		}
		if fault.Is(err, fault.TooMany) || l.s.opt.Now().Sub(failing) >= lostAfter {
			l.s.fail(l.to.ID)
			return
		}
		l.restart()
		l.await(ctx, retry, nil)
	}
}

func (l *link) await(ctx context.Context, most time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	}
}

// restart begins another stream.
func (l *link) restart() {
	l.session, l.at, l.out, l.acks, l.begun = id.New(), 0, nil, nil, map[*Feed]bool{}
	l.mu.Lock()
	l.told = 0
	l.mu.Unlock()
	for _, f := range l.s.of(l) {
		f.restart()
	}
}

// gather adds what there is to send.
func (l *link) gather() {
	l.mu.Lock()
	untold := l.ended[l.told:]
	l.told = len(l.ended)
	l.mu.Unlock()
	for _, m := range untold {
		l.frame(frameOver, m)
	}
	current := map[*Feed]bool{}
	for _, f := range l.s.of(l) {
		current[f] = true
		if !l.begun[f] {
			l.begun[f] = true
			l.frame(frameBegin, f.media)
			l.out = binary.BigEndian.AppendUint64(l.out, uint64(f.of.Generation))
		}
		for i := range f.both {
			l.records(f, i)
		}
	}
	for f := range l.begun {
		if !current[f] {
			delete(l.begun, f)
		}
	}
}

// records adds those of a journal, until there is enough to send.
func (l *link) records(f *Feed, i int) {
	most := gathered - len(l.out)
	if most <= 0 {
		l.wakeUp() // the rest comes after this
		return
	}
	var records [][]byte
	var last uint64
	if !l.whileCopying(f, func() { records, last = f.both[i].next(most) }) {
		return
	}
	for _, r := range records {
		l.frame(frameRecord, f.media)
		l.out = append(append(l.out, byte(i)), r...)
	}
	l.acks = append(l.acks, ack{l.at + int64(len(l.out)), &f.both[i], last})
}

// whileCopying runs do unless another node copies the broadcast by now, which has it sent from the beginning.
func (l *link) whileCopying(f *Feed, do func()) bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if f.link != l {
		return false
	}
	do()
	return true
}

func (l *link) frame(kind byte, m id.Media) {
	l.out = append(append(l.out, kind, byte(len(m))), m...)
}

// post sends the beginning of what is there.
func (l *link) post(ctx context.Context) error {
	body := l.out[:min(len(l.out), mostSent)]
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	r := &http.Request{
		Method: http.MethodPost, Header: http.Header{}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)),
		URL: &url.URL{Path: Path, RawQuery: url.Values{
			"session": {l.session}, "run": {l.s.opt.Self.Run}, "at": {strconv.FormatInt(l.at, 10)},
		}.Encode()},
	}
	res, err := l.s.opt.Peer.Do(ctx, l.to, r.WithContext(ctx))
	if err != nil {
		return err //nolint:wrapcheck // send says what it was about
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	switch res.StatusCode {
	case http.StatusNoContent:
	case http.StatusOK:
		if err = l.full(ctx, res.Body); err != nil {
			return err
		}
	default:
		return failure(res)
	}
	l.s.stats.sent.Add(int64(len(body)))
	l.at += int64(len(body))
	l.out = l.out[len(body):]
	if len(l.out) == 0 {
		l.out = nil
		l.mu.Lock()
		l.ended, l.told = l.ended[l.told:], 0
		l.mu.Unlock()
	}
	for len(l.acks) > 0 && l.acks[0].end <= l.at {
		a := l.acks[0]
		l.acks = l.acks[1:]
		l.whileCopying(a.of.f, func() { a.of.ack(a.number) })
	}
	return nil
}

// full takes the broadcasts from the link that the node has no place for.
func (l *link) full(ctx context.Context, body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, mostSent)) // what was sent named them
	if err != nil {
		return err //nolint:wrapcheck // send says what it was about
	}
	names := map[string]bool{}
	for name := range strings.SplitSeq(string(data), "\n") {
		names[name] = true
	}
	count := 0
	for _, f := range l.s.of(l) {
		if names[string(f.media)] {
			delete(l.begun, f)
			l.s.refused(f, l)
			count++
		}
	}
	if count > 0 {
		l.s.opt.Logger.WarnContext(ctx, "a node copies as many broadcasts as it can, and not these: others are asked",
			"node", l.to.ID, "code", "too_many_copies", "broadcasts", count)
	}
	return nil
}

// failure is the error that a response has.
func failure(res *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxError))
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it was about
	}
	return wire.Failed(res.StatusCode, data)
}
