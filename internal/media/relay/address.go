package relay

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// address is a target's URL taken apart.
type address struct {
	scheme string // rtmp, rtmps, srt
	host   string // without port
	port   string

	app, tcURL, name string // RTMP; name is secret

	streamID, passphrase string // SRT; secret
	keyLength            int    // bytes; 0: as the other side wants
	latency              time.Duration
}

// hostPort is what is connected to.
func (a address) hostPort() string { return net.JoinHostPort(a.host, a.port) }

// String is what may be shown of it.
func (a address) String() string { return a.scheme + "://" + a.hostPort() }

// parseAddress takes a target's URL apart. Its errors repeat nothing of it.
func parseAddress(t Target) (address, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return address{}, impossible("the target's URL can not be used")
	}
	a := address{scheme: u.Scheme, host: u.Hostname(), port: u.Port()}
	switch a.scheme {
	case "rtmp", "rtmps":
		return a.rtmp(u, t.Key)
	case "srt":
		return a.srt(u)
	}
	return address{}, impossible("a target's URL begins with rtmp, rtmps or srt")
}

// rtmp finds application and stream name. Without a key of its own the last part of the path is the name. A query
// belongs to the application, as encoders have it: rtmp://host/live2?backup=1 and a key.
func (a address) rtmp(u *url.URL, key string) (address, error) {
	if a.port == "" {
		a.port = map[string]string{"rtmp": "1935", "rtmps": "443"}[a.scheme]
	}
	app := strings.Trim(u.Path, "/")
	a.name = key
	if i := strings.LastIndexByte(app, '/'); key == "" && i >= 0 {
		app, a.name = app[:i], app[i+1:]
	}
	if app == "" {
		return address{}, impossible("the target's URL has no application")
	}
	if u.RawQuery != "" {
		app += "?" + u.RawQuery
	}
	a.app, a.tcURL = app, a.scheme+"://"+u.Host+"/"+app
	return a, nil
}

func (a address) srt(u *url.URL) (address, error) {
	q := u.Query()
	a.streamID, a.passphrase = q.Get("streamid"), q.Get("passphrase")
	if a.port == "" {
		return address{}, impossible("the target's URL has no port")
	}
	if n, err := strconv.Atoi(q.Get("pbkeylen")); err == nil {
		a.keyLength = n
	}
	if n, err := strconv.Atoi(q.Get("latency")); err == nil && n >= 0 {
		a.latency = time.Duration(n) * time.Millisecond
	}
	return a, nil
}
