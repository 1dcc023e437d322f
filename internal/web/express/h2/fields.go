package h2

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// fields reads blocks of header fields, RFC 9113 section 4.3. One after the other: only the goroutine that reads does.
type fields struct {
	decoder *hpack.Decoder
	most    int // bytes of a list, RFC 9113 section 6.5.2

	stream    uint32 // of the block that has begun; 0: none has
	ends      bool   // the stream ends with it
	fragments int
	size      int // bytes of its fragments
	left      int // of the list
	bad       bool
	large     bool
	pseudo    pseudo
	regular   bool // a field that is no pseudo-header field has come
	header    http.Header
}

// pseudo is the pseudo-header fields of a request, RFC 9113 section 8.3.1.
type pseudo struct {
	method, scheme, authority, path string
	seen                            [4]bool
}

// tableSize is how much of earlier fields is remembered, RFC 7541 section 4.2.
const tableSize = 4096

func (f *fields) init(most int) {
	f.most = most
	f.decoder = hpack.NewDecoder(tableSize, f.emit)
	f.decoder.SetMaxStringLength(most)
}

// begin begins a block.
func (f *fields) begin(stream uint32, ends bool) {
	*f = fields{decoder: f.decoder, most: f.most, left: f.most, stream: stream, ends: ends, header: http.Header{}}
	f.decoder.SetEmitEnabled(true)
}

// add takes a fragment. The table is kept in step even when the fields are of no use, but not for ever.
func (f *fields) add(fragment []byte, last bool) error {
	f.fragments++
	f.size += len(fragment)
	if f.fragments > mostFragments || f.size > f.most {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if _, err := f.decoder.Write(fragment); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	if !last {
		return nil
	}
	if err := f.decoder.Close(); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	return nil
}

// emit takes a field.
func (f *fields) emit(field hpack.HeaderField) {
	if f.left -= int(field.Size()); f.left < 0 {
		f.large = true
	}
	switch {
	case f.large || f.bad:
	case strings.HasPrefix(field.Name, ":"):
		f.bad = f.regular || !f.pseudo.set(field.Name, field.Value)
	default:
		f.regular = true
		f.bad = !f.set(field.Name, field.Value)
	}
	if f.large || f.bad {
		f.header = nil
		f.decoder.SetEmitEnabled(false) // it costs nothing any more
	}
}

// set takes a pseudo-header field, which may come once, RFC 9113 section 8.3. ":protocol" is for extended CONNECT,
// which is not offered.
func (p *pseudo) set(name, value string) bool {
	var to *string
	var n int
	switch name {
	case ":method":
		to, n = &p.method, 0
	case ":scheme":
		to, n = &p.scheme, 1
	case ":authority":
		to, n = &p.authority, 2
	case ":path":
		to, n = &p.path, 3
	default:
		return false
	}
	again := p.seen[n]
	p.seen[n], *to = true, value
	return !again && httpguts.ValidHeaderFieldValue(value)
}

// set takes a header field, RFC 9113 sections 8.2.1 and 8.2.2.
func (f *fields) set(name, value string) bool {
	if !httpguts.ValidHeaderFieldValue(value) || value != strings.Trim(value, " \t") {
		return false
	}
	key := canonical[name]
	if key == "" {
		if !validName(name) {
			return false
		}
		key = http.CanonicalHeaderKey(name)
	}
	switch key {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade":
		return false
	case "Te":
		if value != "trailers" {
			return false
		}
	case "Content-Length": // more than one would have to be the same
		if had := f.header[key]; had != nil {
			return had[0] == value
		}
	}
	f.header[key] = append(f.header[key], value)
	return true
}

// validName reports whether a name is a token without capital letters, RFC 9113 section 8.2.1.
func validName(name string) bool {
	for i := range len(name) {
		if b := name[i]; b >= 'A' && b <= 'Z' || !httpguts.IsTokenRune(rune(b)) {
			return false
		}
	}
	return name != ""
}

// canonical are the names of header fields that come often, as net/http has them; lower the other way around, with
// those that are sent often.
//
//nolint:gochecknoglobals // constants
var (
	canonical = map[string]string{}
	lower     = map[string]string{}
	_         = names(
		"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Cookie", "Content-Length", "Content-Type",
		"If-Modified-Since", "If-None-Match", "Origin", "Pragma", "Priority", "Range", "Referer", "Sec-Ch-Ua",
		"Sec-Ch-Ua-Mobile", "Sec-Ch-Ua-Platform", "Sec-Fetch-Dest", "Sec-Fetch-Mode", "Sec-Fetch-Site", "User-Agent",
		"X-Forwarded-For", "Accept-Ranges", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
		"Content-Encoding", "Content-Range", "Date", "Retry-After", "Strict-Transport-Security", "Vary",
		"X-Content-Type-Options",
	)
)

func names(all ...string) bool {
	for _, name := range all {
		low := strings.ToLower(name)
		canonical[low], lower[name] = name, low
	}
	return true
}
