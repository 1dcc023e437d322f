// Package httpdate formats the Date header of responses (RFC 9110, section 6.6.1). It is a leaf and starts no
// goroutine.
package httpdate

import (
	"net/http"
	"sync/atomic"
	"time"
)

// stamp is the Date of one second.
type stamp struct {
	second int64
	text   string
}

//nolint:gochecknoglobals // the time of day, made once a second
var last atomic.Pointer[stamp]

// Now is the Date of a response that is sent now.
func Now() string {
	now := time.Now()
	s := last.Load()
	if s == nil || s.second != now.Unix() {
		s = &stamp{now.Unix(), now.UTC().Format(http.TimeFormat)}
		last.Store(s)
	}
	return s.text
}
