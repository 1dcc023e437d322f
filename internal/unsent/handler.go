package unsent

import (
	"encoding/json"
	"net/http"

	"millrace/internal/clientaddr"
	"millrace/internal/fault"
)

// Handler counts the requests of HTTP/2 against b before they reach next, and breaks off responses of which nothing is
// taken for Patience. Those of HTTP/1.1 are counted as connections are. The server has ConnContext.
func Handler(b *Budget, clients clientaddr.Finder, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := newWriter(w, r.ProtoMajor)
		if r.ProtoMajor < 2 {
			next.ServeHTTP(out, r)
			return
		}
		address := clientaddr.Network(clients.Of(r))
		release, err := b.Hold(r.Context(), address, Stream)
		if err != nil {
			b.refuse(out, r, address, err)
			return
		}
		defer release()
		next.ServeHTTP(out, r)
		out.finish()
	})
}

// Streams counts the requests of HTTP/2 against b before they reach next, for a server that breaks off by itself what
// is not taken, and whose responses can be ended here. It has ConnContext.
func Streams(b *Budget, clients clientaddr.Finder, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := clientaddr.Network(clients.Of(r))
		release, err := b.Hold(r.Context(), address, Stream)
		if err != nil {
			b.refuse(newWriter(w, r.ProtoMajor), r, address, err)
			return
		}
		defer release()
		next.ServeHTTP(w, r)
		if e, ok := w.(ender); ok {
			e.End()
		}
	})
}

// refuse says no, which has to be sent as well: where even that is not read the connection is closed.
func (b *Budget) refuse(w *writer, r *http.Request, address string, reason error) {
	release, err := b.refusal.Hold(r.Context(), address, Stream)
	if err != nil {
		connectionOf(r.Context()).close()
		panic(http.ErrAbortHandler)
	}
	defer release()
	status, typ := http.StatusServiceUnavailable, "unavailable"
	if fault.Is(reason, fault.TooMany) {
		status, typ = http.StatusTooManyRequests, "too_many_requests"
	}
	var body struct {
		Error struct {
			Type     string   `json:"type"`
			Messages []string `json:"messages"`
		} `json:"error"`
	}
	body.Error.Type, body.Error.Messages = typ, fault.Messages(reason)
	data, _ := json.Marshal(body) // strings always marshal
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	head.Set("Retry-After", "1")
	head.Set("Access-Control-Allow-Origin", "*") // players show what is wrong
	w.WriteHeader(status)
	if _, err = w.Write(data); err == nil {
		w.finish()
	}
}
