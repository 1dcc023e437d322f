package whip

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"millrace/internal/media/ingest"
	"millrace/internal/web/respond"
)

const (
	typeSDP      = "application/sdp"
	typeFragment = "application/trickle-ice-sdpfrag"

	maxOffer    = 64 << 10 // bytes; a browser's has about 8 KiB
	maxFragment = 16 << 10
	maxKey      = 256

	endTime  = 10 * time.Second // that a DELETE waits for the session's end
	bodyTime = 10 * time.Second // that a body may take to come; keys are looked at behind it
)

// ServeHTTP implements http.Handler for Options.Path and what lies under it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, under := strings.CutPrefix(strings.TrimPrefix(r.URL.Path, s.opts.Path), "/")
	if !strings.HasPrefix(r.URL.Path, s.opts.Path) || !under && r.URL.Path != s.opts.Path || strings.Contains(id, "/") {
		http.NotFound(w, r)
		return
	}
	// A page of any origin may publish: what it needs is the key, which no browser adds by itself.
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", "Location, ETag, Link, Accept-Patch, Retry-After")
	head.Set("Cache-Control", "no-store")
	var err error
	if id == "" {
		err = s.endpoint(w, r)
	} else {
		err = s.resource(w, r, id)
	}
	if err != nil {
		s.refuse(w, r, err)
	}
}

// endpoint serves the WHIP endpoint, RFC 9725 sections 4.1 and 4.2.
func (s *Server) endpoint(w http.ResponseWriter, r *http.Request) error {
	head := w.Header()
	switch r.Method {
	case http.MethodOptions:
		head.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
		head.Set("Access-Control-Max-Age", "86400")
		head.Set("Accept-Post", typeSDP)
		w.WriteHeader(http.StatusOK)
		return nil
	case http.MethodGet, http.MethodHead:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case http.MethodPost:
		return s.publish(w, r)
	}
	head.Set("Allow", "POST, OPTIONS, GET, HEAD")
	return &problem{status: http.StatusMethodNotAllowed, detail: "publish with POST"}
}

func (s *Server) publish(w http.ResponseWriter, r *http.Request) error {
	head := w.Header()
	key := bearer(r)
	if key == "" {
		return &problem{
			status: http.StatusUnauthorized,
			detail: "give the stream key as bearer token in the Authorization header",
		}
	}
	body, err := read(w, r, typeSDP, maxOffer)
	if err != nil {
		if p, ok := errors.AsType[*problem](err); ok && p.status == http.StatusUnsupportedMediaType {
			head.Set("Accept-Post", typeSDP)
		}
		return err
	}
	o, err := parseOffer(body, s.opts.Video)
	if err != nil {
		return err
	}
	n, err := s.open(o, key, clip(r.UserAgent()), s.remoteOf(r))
	if err != nil {
		return err
	}
	n.signal.Lock()
	defer n.signal.Unlock()
	answer, err := n.said.Marshal()
	if err != nil {
		n.cancel(err)
		return fmt.Errorf("write answer: %w", err)
	}
	head.Set("Content-Type", typeSDP)
	head.Set("Location", s.opts.Path+"/"+n.id)
	head.Set("ETag", n.etag)
	head.Set("Accept-Patch", typeFragment)
	for _, l := range s.opts.ICEServers {
		head.Add("Link", l.link())
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(answer) // who has gone does not connect, and its session ends by that
	return nil
}

// link is RFC 9725 section 4.6.
func (i ICEServer) link() string {
	l := "<" + i.URL + `>; rel="ice-server"`
	if i.Username != "" {
		l += fmt.Sprintf(`; username=%q; credential=%q; credential-type="password"`, i.Username, i.Credential)
	}
	return l
}

// resource serves a session's URL.
func (s *Server) resource(w http.ResponseWriter, r *http.Request, id string) error {
	head := w.Header()
	switch r.Method {
	case http.MethodOptions:
		head.Set("Access-Control-Allow-Methods", "PATCH, DELETE, OPTIONS")
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match")
		head.Set("Access-Control-Max-Age", "86400")
		head.Set("Accept-Patch", typeFragment)
		w.WriteHeader(http.StatusOK)
		return nil
	case http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodDelete:
	default:
		head.Set("Allow", "PATCH, DELETE, OPTIONS, GET, HEAD")
		return &problem{status: http.StatusMethodNotAllowed, detail: "change a session with PATCH, end it with DELETE"}
	}
	n := s.find(id)
	if n == nil {
		return gone(nil)
	}
	switch key := bearer(r); {
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case key == "":
		return &problem{
			status: http.StatusUnauthorized,
			detail: "give the stream key as bearer token in the Authorization header",
		}
	case subtle.ConstantTimeCompare([]byte(key), []byte(n.key)) != 1:
		return &problem{status: http.StatusForbidden, detail: "the session belongs to another stream key"}
	case r.Method == http.MethodPatch:
		return n.patch(w, r)
	}
	n.cancel(ingest.ErrEncoderEnded)
	wait, stop := context.WithTimeout(r.Context(), endTime)
	defer stop()
	select {
	case <-n.done:
	case <-wait.Done():
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// gone is the answer of a session that is not there; err says why, for the log.
func gone(err error) error {
	return &problem{status: http.StatusNotFound, detail: "there is no such session, or it has ended", err: err}
}

// patch takes candidates or restarts ICE, RFC 9725 section 4.3.
func (sess *session) patch(w http.ResponseWriter, r *http.Request) error {
	body, err := read(w, r, typeFragment, maxFragment)
	if err != nil {
		return err
	}
	f, err := parseFragment(body)
	if err != nil {
		return err
	}
	sess.signal.Lock()
	defer sess.signal.Unlock()
	match := r.Header.Get("If-Match")
	restart := f.ufrag != "" && (f.ufrag != sess.offer.ufrag || f.pwd != sess.offer.pwd)
	switch {
	case match == "":
		return &problem{
			status: http.StatusPreconditionRequired,
			detail: `If-Match is missing: give the session's ETag, or "*" to restart ICE`,
		}
	case match == "*" || match == `"*"`: // section 4.3.3 has it in both ways
	case match != sess.etag:
		return &problem{
			status: http.StatusPreconditionFailed,
			detail: "ICE was restarted since: If-Match is not the session's ETag",
		}
	}
	if !restart {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if err := sess.negotiate(sess.offer.restarted(f.ufrag, f.pwd)); err != nil {
		if sess.over() || errors.Is(err, ingest.ErrShutdown) {
			return gone(fmt.Errorf("restart ICE of a session that has ended: %w", err))
		}
		return &problem{
			status: http.StatusInternalServerError,
			detail: "ICE could not be restarted",
			err:    fmt.Errorf("restart ICE: %w", err),
			ours:   true,
		}
	}
	head := w.Header()
	head.Set("Content-Type", typeFragment)
	head.Set("ETag", sess.etag)
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, iceFragment(sess.said))
	return nil
}

// bearer is the key in a request; "" when there is none that could be one.
func bearer(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key = strings.TrimSpace(key)
	if !strings.EqualFold(scheme, "Bearer") || len(key) > maxKey ||
		strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return key
}

// read gives the body of a request, which must have a type and may have so many bytes.
func read(w http.ResponseWriter, r *http.Request, want string, limit int64) (string, error) {
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != want {
		return "", &problem{status: http.StatusUnsupportedMediaType, detail: "the body must be " + want}
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime)) // not every writer has deadlines; then the server's own holds
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		const detail = "the body did not come within 10 seconds"
		return "", &problem{status: http.StatusRequestTimeout, detail: detail, err: err}
	}
	_ = conn.SetReadDeadline(time.Time{})
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return "", &problem{
			status: http.StatusRequestEntityTooLarge,
			detail: fmt.Sprintf("the body has more than %d bytes", limit),
		}
	}
	if err != nil {
		return "", &problem{status: http.StatusBadRequest, detail: "the body could not be read", err: err}
	}
	return string(b), nil
}

// peer is the address that a request's connection comes from.
func peer(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	return a.Addr().Unmap()
}

func (s *Server) remoteOf(r *http.Request) netip.AddrPort {
	a, _ := netip.ParseAddrPort(r.RemoteAddr)
	if client := s.opts.Client(r); client != a.Addr().Unmap() {
		return netip.AddrPortFrom(client, 0) // no proxy tells of ports
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// report logs a refusal. Anybody can cause one with every request, of any status: those without a key, which no encoder
// sends, hide no other.
func (s *Server) report(r *http.Request, p *problem) {
	say := (*slog.Logger).Warn
	if p.ours {
		say = (*slog.Logger).Error
	}
	remote, method, encoder := s.remoteOf(r), clip(r.Method), clip(r.UserAgent())
	s.refusals.LogFrom(fmt.Sprint(p.status, bearer(r) != ""), remote, func(log *slog.Logger) {
		say(log, "publish refused", "protocol", "whip", "remote", remote, "method", method, "status", p.status,
			"reason", p, "encoder", encoder)
	})
}

// refuse writes a problem, RFC 9457, and logs it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		p = &problem{
			status: http.StatusInternalServerError,
			detail: "this service has a problem, try again",
			err:    err,
			ours:   true,
		}
	}
	s.report(r, p)
	head := w.Header()
	if p.status < http.StatusInternalServerError {
		respond.Unread(w, r)
	}
	switch p.status {
	case http.StatusUnauthorized:
		head.Set("WWW-Authenticate", `Bearer realm="whip"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		head.Set("Retry-After", "5")
	}
	head.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(p.status), "status": p.status, "detail": p.detail,
	})
}
