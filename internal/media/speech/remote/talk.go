package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"millrace/internal/media/speech"
)

const (
	// answerTime is how long a server may take for an answer while it is sent sound. Both dialects answer each message,
	// or nearly.
	answerTime = 20 * time.Second
	// idle is how long a connection waits for more sound. Then what was said has ended, and the server says what it has
	// not yet.
	idle = 2 * time.Second
	// lag is how far behind the newest sound a word may begin that a server which hears nobody is about to hear.
	lag = time.Second
)

var errSilent = errors.New("the server does not answer")

// talk is one connection. It has sound recognised that follows on itself.
type talk struct {
	engine  *Socket
	conn    *websocket.Conn
	backlog *speech.Backlog
	emit    func(speech.Result) error
	base    int64 // sample that the server takes for 0
	most    int64 // samples that may be sent and not answered; zero: any

	mu       sync.Mutex
	sent     []int64       // where the messages end that are not answered
	answered chan struct{} // one token: sent has become shorter
	until    int64
}

// talk has one connection recognise what there is, up to a gap, a while without sound, or the end. What is known then
// is done with. Where the server answers each message, no more than so many samples are sent that it has not answered;
// zero: any.
func (s *Socket) talk(ctx context.Context, backlog *speech.Backlog, most int64, emit func(speech.Result) error) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.CloseNow() }()
	first, ok := backlog.Take(ctx)
	if !ok {
		return nil
	}
	backlog.Untake()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &talk{
		engine: s, conn: c, backlog: backlog, emit: emit, base: first.First, until: first.First, most: most,
		answered: make(chan struct{}, 1),
	}
	done := make(chan error, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		failed := t.listen(ctx)
		if failed != nil {
			cancel(failed)
		}
		done <- failed
	})
	defer wait.Wait()
	defer cancel(nil)
	end, err := t.send(ctx)
	if err == nil {
		err = <-done
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return err
	}
	return t.emitWords(nil, end, 1)
}

// send sends sound until there is none, or until it does not follow, and says where it ends.
func (t *talk) send(ctx context.Context) (end int64, err error) {
	if t.engine.opt.Dialect == Vosk { // phrase_list is left out: it would be all that can be recognised
		if err = t.text(ctx, `{"config":{"sample_rate":16000,"words":true,"max_alternatives":0}}`); err != nil {
			return 0, err
		}
	}
	for end = t.base; ; {
		if err = t.room(ctx); err != nil {
			return end, err
		}
		b, ok := t.next(ctx)
		if ok && b.First != end {
			t.backlog.Untake()
			ok = false
		}
		if ctx.Err() != nil {
			return end, fmt.Errorf("send to the server: %w", context.Cause(ctx))
		}
		if !ok {
			break
		}
		for part := range slices.Chunk(b.Samples, block) {
			end += int64(len(part))
			t.mu.Lock()
			t.sent = append(t.sent, end)
			t.mu.Unlock()
			if err = t.conn.Write(ctx, websocket.MessageBinary, t.engine.encoded(part)); err != nil {
				return end, fmt.Errorf("send to the server: %w", unreached(err))
			}
		}
	}
	if t.engine.opt.Dialect == Sherpa {
		return end, t.text(ctx, "Done")
	}
	return end, t.text(ctx, `{"eof" : 1}`) // the server compares it as it stands
}

// room waits until the server has answered enough.
func (t *talk) room(ctx context.Context) error {
	for {
		t.mu.Lock()
		full := t.most > 0 && len(t.sent) > 0 && t.sent[len(t.sent)-1]-t.sent[0] >= t.most
		t.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-t.answered:
		case <-ctx.Done():
			return fmt.Errorf("send to the server: %w", context.Cause(ctx))
		}
	}
}

// next is the next sound; none comes for a while, or ever.
func (t *talk) next(ctx context.Context) (speech.Block, bool) {
	ctx, cancel := context.WithTimeout(ctx, idle)
	defer cancel()
	return t.backlog.Take(ctx)
}

func (t *talk) text(ctx context.Context, text string) error {
	if err := t.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return fmt.Errorf("send to the server: %w", unreached(err))
	}
	return nil
}

// listen reads results until the server has said the last one.
func (t *talk) listen(ctx context.Context) error {
	for {
		data, err := t.receive(ctx)
		if websocket.CloseStatus(err) == websocket.StatusNormalClosure || errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := t.engine.read(data)
		if err != nil {
			return err
		}
		if err = t.handle(r); err != nil || r.last {
			return err
		}
	}
}

func (t *talk) receive(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSilent)
	defer cancel()
	_, data, err := t.conn.Read(ctx)
	if errors.Is(context.Cause(ctx), errSilent) {
		return nil, errSilent
	}
	if err != nil {
		return nil, fmt.Errorf("read from the server: %w", unreached(err))
	}
	return data, nil
}

// handle passes on what is final.
func (t *talk) handle(r reply) error {
	base := speech.Duration(t.base)
	until := t.base + speech.Samples(r.since)
	for i := range r.words {
		r.words[i].Start, r.words[i].End = r.words[i].Start+base, r.words[i].End+base
		until = max(until, speech.Samples(r.words[i].End))
	}
	t.mu.Lock()
	if len(t.sent) > 0 && t.engine.opt.Dialect == Vosk { // one answer to each message
		if r.silent {
			until = max(until, t.sent[0]-speech.Samples(lag))
		}
		t.sent = t.sent[1:]
	} else if len(t.sent) > 0 {
		t.sent = t.sent[:0]
	}
	t.mu.Unlock()
	select {
	case t.answered <- struct{}{}:
	default:
	}
	const step = speech.SampleRate / 2 // of silence that is worth a result
	return t.emitWords(r.words, until, step)
}

// emitWords passes on words and the sample up to which all are known; without words, only if that is so much later than
// before.
func (t *talk) emitWords(words []speech.Word, until, step int64) error {
	if len(words) == 0 && until < t.until+step {
		return nil
	}
	t.until = max(t.until, until)
	if err := t.emit(speech.Result{Words: words, Until: speech.Duration(t.until)}); err != nil {
		return err
	}
	t.backlog.Done(t.until)
	return nil
}
