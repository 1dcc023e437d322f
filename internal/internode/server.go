// Package internode connects the nodes that share a database: HTTP/2 on a listener of its own, each request signed with
// a key that all nodes have (decision 78).
//
// It must never know what is asked, how the key is kept, nor which nodes there are. It starts no goroutines but those
// of net/http.
package internode

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/trace"
)

const (
	// MaxBody is the largest body of a request, in bytes: it is kept in memory until its digest has been compared.
	MaxBody = 1 << 20

	// window is how far the clocks of two nodes may differ, the way of a request included. A signature is valid twice
	// as long.
	window = 15 * time.Second
	// mostNonces is how many requests that may come only once are remembered: 2000 a second, in 10 MB.
	mostNonces = 1 << 16
	// streams is how many requests another node has on its connection at a time: those that wait for something to
	// happen count as well.
	streams = 1000
	// writeTimeout is how long a connection may take nothing of what it is sent.
	writeTimeout = 20 * time.Second
)

// ServerOptions are what a Server needs; all but Tracer are required.
type ServerOptions struct {
	Key    Key
	Self   Greeting
	Now    func() time.Time
	Logger *slog.Logger
	Tracer *trace.Tracer // nil: requests are in no trace
}

// Server is the handler of a node's listener for other nodes. Its methods may be called at the same time.
type Server struct {
	opts   ServerOptions
	signer *signer
	nonces *nonces
	began  time.Time
	mux    *http.ServeMux
	quiet  quiet
}

// HTTP is the http.Server of a listener for nodes, without handler of certificates: its bounds are here, beside what is
// read of strangers. A response has a minute, unless its handler moves the deadline (http.ResponseController).
func (s *Server) HTTP(secure *tls.Config) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP2(secure != nil)
	protocols.SetUnencryptedHTTP2(secure == nil)
	return &http.Server{
		Handler: s, Protocols: &protocols, TLSConfig: secure, MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: idleTimeout,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout,
			WriteByteTimeout: writeTimeout,
		},
		ErrorLog: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
	}
}

// NewServer makes a Server that says hello, and nothing else until Handle is called.
func NewServer(o ServerOptions) *Server {
	s := &Server{
		opts: o, signer: newSigner(o.Key), nonces: newNonces(mostNonces), began: o.Now(), mux: http.NewServeMux(),
		quiet: quiet{log: o.Logger, now: o.Now},
	}
	s.mux.HandleFunc("GET "+helloPath, s.hello)
	return s
}

// Handle serves a pattern of http.ServeMux to other nodes. Its requests are signed; their query and body, which is
// whole, are those that were signed, their other headers may have been changed on the way. FromNode says whose they
// are.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

type fromKey struct{}

// asked is what a handler's context knows of a request.
type asked struct {
	node  id.Node
	nonce string
}

// FromNode is the node that has sent the request of a handler's context; empty outside one.
func FromNode(ctx context.Context) id.Node {
	a, _ := ctx.Value(fromKey{}).(asked)
	return a.node
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sig, code := s.authenticate(r)
	w.Header().Set(speaksHeader, s.opts.Self.Speaks.String())
	if code == "" && r.URL.Path != helloPath && s.opts.Self.Speaks.With(parseRange(r.Header.Get(speaksHeader))) == 0 {
		code = Protocol // what is said may mean something else, and what is asked for be elsewhere
	}
	if code != "" {
		s.refuse(w, r, sig, code)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), fromKey{}, asked{sig.from, sig.nonce}))
	r, span := s.traced(r)
	err := fault.Guard(func() error { s.mux.ServeHTTP(w, r); return nil })
	span.End(err)
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		if p.Value != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			s.opts.Logger.ErrorContext(r.Context(), "request of another node ended by a panic", "node", sig.from,
				"path", r.URL.Path, "error", err, "stack", string(p.Stack))
		}
		panic(http.ErrAbortHandler) // the stream is reset: nobody takes half a response for a whole one
	}
}

// traced makes a request a part of the trace that its sender names. That header is not signed: whoever changes it on
// the way changes which trace the request is in, and nothing else.
func (s *Server) traced(r *http.Request) (*http.Request, trace.Span) {
	parent := r.Header.Get(trace.Header)
	if s.opts.Tracer == nil || parent == "" {
		return r, trace.Span{}
	}
	_, pattern := s.mux.Handler(r)
	ctx, span := s.opts.Tracer.Follow(r.Context(), parent, "internode "+pattern, trace.Server)
	span.Text(trace.MethodKey, trace.Method(r))
	span.Text(trace.RouteKey, pattern)
	span.Text(trace.NodeKey, string(FromNode(ctx)))
	return r.WithContext(ctx), span
}

// authenticate looks at a request's signature, the cheapest questions first, and reads its body; empty: it is right.
func (s *Server) authenticate(r *http.Request) (sig signature, refused Code) {
	sig, err := parseSignature(r.Header.Get("Authorization"))
	switch {
	case errors.Is(err, errProtocol):
		return sig, Protocol
	case err != nil:
		return sig, Unsigned
	case sig.keyID != s.signer.id:
		return sig, ForeignKey
	case !s.signer.right(&sig, r.Method, r.RequestURI):
		return sig, Altered
	case sig.to != s.opts.Self.Node:
		return sig, OtherNode
	}
	now := s.opts.Now()
	if now.Sub(sig.at).Abs() > window {
		return sig, Clock
	}
	if refused = readBody(r, sig.digest); refused != "" {
		return sig, refused
	}
	return sig, s.once(r.Method, sig, now)
}

// once lets a request that changes something in once. What came before this process began is not remembered, so what
// was signed before that is not taken.
func (s *Server) once(method string, sig signature, now time.Time) Code {
	if repeatable(method) {
		return ""
	}
	if sig.at.Before(s.began.Truncate(time.Millisecond)) {
		return Replayed
	}
	switch s.nonces.admit(sig.nonce, sig.at.Add(window), now) {
	case seenBefore:
		return Replayed
	case noRoom:
		return TooMany
	case admitted:
	}
	return ""
}

// readBody replaces the body of a request by the bytes that were signed.
func readBody(r *http.Request, signed string) Code {
	if signed == noBody && r.ContentLength == 0 {
		r.Body = http.NoBody
		return ""
	}
	if r.ContentLength > MaxBody {
		return TooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case len(body) > MaxBody:
		return TooLarge
	case err != nil || digest(body) != signed:
		return Altered
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return ""
}

// refuse responds to a request whose signature is not right. Where the key is that of this node the response is signed,
// so that the caller can believe what it says of clock and name.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, sig signature, code Code) {
	now := s.opts.Now()
	log := []any{"code", code, "remote", r.RemoteAddr, "node", sig.from}
	if code == Clock {
		log = append(log, "its_clock_ahead_by", sig.at.Sub(now).Round(time.Second), "its_time", sig.at, "own_time", now)
	}
	s.quiet.warn(r.Context(), string(code), "request to the listener for nodes refused", log...)
	w.Header().Set(refusedHeader, string(code))
	if code == TooMany {
		w.Header().Set("Retry-After", "1")
	}
	body := refusal{Code: code, Node: s.opts.Self.Node, Time: now.UnixMilli()}.body()
	nonce := ""
	if code != Unsigned && code != ForeignKey && code != Altered {
		nonce = sig.nonce // none where the signature is that of another version
	}
	s.answer(w, nonce, statuses[code], body)
}

// answer writes a response of this package itself, signed for the request with a nonce; empty: not signed.
func (s *Server) answer(w http.ResponseWriter, nonce string, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if nonce != "" {
		w.Header().Set(answerHeader, s.signer.mac(answerText(nonce, status, body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may have left
}

// helloPath is what a node asks to learn whom it has reached.
const helloPath = "/internode/hello"

// Greeting is what a node says of itself.
type Greeting struct {
	Node    id.Node `json:"node"`
	Run     string  `json:"run"`     // one process of the node: another one after each start
	Version string  `json:"version"` // of the program
	Speaks  Range   `json:"speaks"`
}

func (s *Server) hello(w http.ResponseWriter, r *http.Request) {
	a, _ := r.Context().Value(fromKey{}).(asked)
	body, err := json.Marshal(s.opts.Self)
	if err != nil {
		s.opts.Logger.ErrorContext(r.Context(), "hello can't be written", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.answer(w, a.nonce, http.StatusOK, body)
}
