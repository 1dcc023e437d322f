package shell

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"millrace/internal/control/access"
)

// pressField of a form is a random text, another one each time that it is shown.
const pressField = "press"

const (
	pressTime  = time.Minute // after which the same form is sent once more on purpose
	maxPresses = 100         // forms that are remembered; beyond that none is, until one is forgotten
)

// presses have a form that is sent twice, as by a double press, do what it does once: the second time has the response
// of the first, which it waits for. It is of this process: where another node of a fleet gets the second one, the
// page's script has kept it back.
type presses struct {
	mu   sync.Mutex
	done map[string]*press
}

type press struct {
	at     time.Time
	ready  chan struct{} // closed when the response is there
	status int
	header http.Header
	body   bytes.Buffer
}

// once lets a form that has such a text do what it does, once for what was typed.
func (s *Shell) once(w http.ResponseWriter, r *http.Request, p access.Person, h Handler) {
	text := r.PostFormValue(pressField)
	if text == "" || r.Method != http.MethodPost {
		s.serve(w, r, p, h)
		return
	}
	name := mark(url.Values{"session": {p.Session.Hash}, "path": {r.URL.Path}, "form": {r.PostForm.Encode()}})
	x, first := s.presses.find(name, s.Now())
	if !first {
		select {
		case <-x.ready:
			x.give(w)
		case <-r.Context().Done():
		}
		return
	}
	defer func() { // also when h panics
		if x.status == 0 || x.status >= http.StatusBadRequest { // nothing was done: it may be sent again
			s.presses.forget(name, x)
		}
		close(x.ready)
	}()
	s.serve(x, r, p, h)
	x.give(w)
}

// find gives what is known of a form, and whether this is the first time that it is sent.
func (p *presses) find(name string, now time.Time) (x *press, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.done, func(_ string, x *press) bool { return now.Sub(x.at) >= pressTime })
	if x = p.done[name]; x != nil {
		return x, false
	}
	x = &press{at: now, ready: make(chan struct{}), header: http.Header{}}
	if p.done == nil {
		p.done = map[string]*press{}
	}
	if len(p.done) < maxPresses {
		p.done[name] = x
	}
	return x, true
}

func (p *presses) forget(name string, x *press) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done[name] == x {
		delete(p.done, name)
	}
}

// Header implements http.ResponseWriter.
func (pr *press) Header() http.Header { return pr.header }

// WriteHeader implements http.ResponseWriter.
func (pr *press) WriteHeader(status int) {
	if pr.status == 0 {
		pr.status = status
	}
}

// Write implements http.ResponseWriter.
func (pr *press) Write(p []byte) (int, error) {
	pr.WriteHeader(http.StatusOK)
	return pr.body.Write(p)
}

// give responds as the first time. Where that has panicked, there is nothing to give.
func (pr *press) give(w http.ResponseWriter) {
	if pr.status == 0 {
		http.Error(w, "That didn't work. Go back and submit the form again.", http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), pr.header)
	w.WriteHeader(pr.status)
	_, _ = w.Write(pr.body.Bytes()) // who has gone needs no page
}
