package express

import (
	"bufio"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: what is taken here, net/http takes too, and as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"GET /a/b.m3u8?x=1&y HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD / HTTP/1.1\r\nhost: a:1\r\naccept: */*\r\nRange: bytes=0-1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /? HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: [::1]:8\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n a: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\na : b\r\n\r\n",
		"GET / HTTP/1.1\r\n: b\r\n\r\n", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, head string) {
		i := strings.Index(head, "\r\n\r\n")
		if i < 0 {
			return
		}
		head = head[:i+4]
		c := &conn{l: &Listener{opt: Options{Takes: func(string) bool { return true }}}, header: http.Header{}}
		c.request = &http.Request{URL: &c.url, Header: c.header}
		if !c.parse([]byte(head)) {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
		if err != nil {
			t.Fatalf("%q is taken, net/http says %v", head, err)
		}
		got := c.request
		if got.Method != r.Method || got.RequestURI != r.RequestURI || got.Host != r.Host ||
			got.URL.Path != r.URL.Path || got.URL.RawPath != r.URL.RawPath ||
			got.URL.RawQuery != r.URL.RawQuery || c.last != r.Close || r.ContentLength != 0 ||
			!reflect.DeepEqual(got.Header, r.Header) {
			t.Errorf("%q: %+v %+v, net/http has %+v %+v", head, got, got.URL, r, r.URL)
		}
	})
}
