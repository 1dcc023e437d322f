package remote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"millrace/internal/media/speech"
)

// Dialect is which server speaks over a websocket.
type Dialect int

// The dialects.
const (
	Vosk Dialect = iota
	Sherpa
)

// SocketOptions of a websocket engine.
type SocketOptions struct {
	Name    string
	Dialect Dialect
	URL     string // ws or wss
	// Languages that the server's model has, which it does not say; none: any.
	Languages []string
	Client    *http.Client
	// AtOnce is how many connections the server has at once; zero is one. Those of live streams count, and don't wait.
	AtOnce int
}

// Socket is an engine that sound is streamed to.
type Socket struct {
	opt  SocketOptions
	gate *gate
}

// NewSocket returns an engine; nothing is connected yet.
func NewSocket(o SocketOptions) *Socket {
	if len(o.Languages) == 0 {
		o.Languages = []string{speech.AnyLanguage}
	}
	return &Socket{o, newGate(o.AtOnce)}
}

// Name implements speech.Engine.
func (s *Socket) Name() string { return s.opt.Name }

// maxMessage of a server, in bytes.
const maxMessage = 1 << 20

// Abilities implements speech.Engine.
func (s *Socket) Abilities() (speech.Abilities, error) {
	return speech.Abilities{Streaming: true, WordTimes: true, Languages: s.opt.Languages}, nil
}

// Probe implements speech.Engine: it connects.
func (s *Socket) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	return c.CloseNow() //nolint:wrapcheck // it was there
}

// errAway says that no sound was sent to the server yet.
var errAway = errors.New("connect to the server")

func (s *Socket) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSilent)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, s.opt.URL, &websocket.DialOptions{HTTPClient: s.opt.Client})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // nothing is in it
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, unreached(err))
	}
	c.SetReadLimit(maxMessage)
	return c, nil
}

// Open implements speech.Engine. It takes a place without waiting for one: what has ended then gets fewer.
func (s *Socket) Open(ctx context.Context, _ speech.Config) (speech.Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	st := &socketStream{
		engine: s, cancel: cancel, results: make(chan speech.Result, 64), ended: make(chan struct{}),
		backlog: speech.NewBacklog(maxHeld, maxAhead),
	}
	go st.run(ctx)
	return st, nil
}

// Transcribe implements speech.Engine. It waits for a place.
func (s *Socket) Transcribe(ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error) error {
	data, err := io.ReadAll(io.LimitReader(pcm, maxSound+1))
	if err != nil {
		return fmt.Errorf("read sound: %w", err)
	}
	if len(data) > maxSound {
		return errTooLong
	}
	release, err := s.gate.acquire(ctx, false)
	if err != nil {
		return err
	}
	defer release()
	if err = c.StillWanted(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience+2*speech.Duration(int64(len(data)/2)))
	defer cancel()
	samples := make([]int16, len(data)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(data[2*i:]))
	}
	backlog := speech.NewBacklog(0, 0)
	n := int64(0)
	for part := range slices.Chunk(samples, block) {
		backlog.Add(n, part)
		n += int64(len(part))
	}
	backlog.End()
	if _, ok := backlog.Take(ctx); !ok {
		return nil
	}
	backlog.Untake()
	return s.talk(ctx, backlog, 0, emit)
}

// block is how much sound goes into one message at most, in samples.
const block = speech.SampleRate / 5

func (s *Socket) encoded(samples []int16) []byte {
	if s.opt.Dialect == Vosk {
		out := make([]byte, 0, 2*len(samples))
		for _, v := range samples {
			out = binary.LittleEndian.AppendUint16(out, uint16(v))
		}
		return out
	}
	out := make([]byte, 0, 4*len(samples))
	for _, v := range samples {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)/32768))
	}
	return out
}

// reply is one message of a server.
type reply struct {
	words  []speech.Word // that are final
	silent bool          // nobody is heard to speak at the moment
	since  time.Duration // all in front of this is final; the dialects that say so
	last   bool          // nothing follows
}

// read reads one message.
func (s *Socket) read(data []byte) (reply, error) {
	if s.opt.Dialect == Sherpa {
		if strings.TrimSpace(string(data)) == "Done!" {
			return reply{last: true}, nil
		}
		return readSherpa(data)
	}
	var m struct {
		Partial string `json:"partial"`
		Result  []struct {
			Word  string `json:"word"`
			Start number `json:"start"`
			End   number `json:"end"`
			Conf  number `json:"conf"`
		} `json:"result"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return reply{}, errors.New("the server does not speak as vosk does")
	}
	r := reply{silent: strings.TrimSpace(m.Partial) == ""} // it closes the connection behind the last one
	for _, w := range m.Result {
		r.words = append(r.words, speech.Word{
			Text:       w.Word,
			Start:      w.Start.time(),
			End:        w.End.time(),
			Confidence: float32(w.Conf),
		})
	}
	return r, nil
}

// readSherpa joins tokens, which begin with a space, or U+2581, where a word does.
func readSherpa(data []byte) (reply, error) {
	var m struct {
		Text       string    `json:"text"`
		Tokens     []string  `json:"tokens"`
		Timestamps []float64 `json:"timestamps"`
		Start      float64   `json:"start_time"`
		Final      bool      `json:"is_final"`
		EOF        bool      `json:"is_eof"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return reply{}, errors.New("the server does not speak as sherpa-onnx does")
	}
	r := reply{since: seconds(m.Start), last: m.EOF && !m.Final}
	if !m.Final && !m.EOF {
		return r, nil
	}
	at := func(i int) time.Duration {
		if i >= len(m.Timestamps) {
			return seconds(m.Start)
		}
		return seconds(m.Start + m.Timestamps[i])
	}
	const token = 200 * time.Millisecond // the last one's length, which is not said
	for i, t := range m.Tokens {
		text := strings.TrimLeft(t, " ▁")
		if n := len(r.words); n > 0 && text == t {
			words := r.words
			words[n-1].Text, words[n-1].End = words[n-1].Text+text, at(i)+token
			continue
		}
		if text == "" {
			continue
		}
		if n := len(r.words); n > 0 {
			before := &r.words[n-1]
			before.End = min(before.End, max(at(i), before.Start+10*time.Millisecond))
		}
		r.words = append(r.words, speech.Word{Text: text, Start: at(i), End: at(i) + token})
	}
	return r, nil
}

// seconds is a time as a server says it: none is later than any sound lasts.
func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), longest/1e9) * float64(time.Second))
}
