package upload_test

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// raw sends a request as it is written, which a library would not send, and reads the status of the response.
func (s *service) raw(request string) int {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	must(s.t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte(request))
	must(s.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(s.t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestHostile: who has no URL of an upload gets no further with one that is made up, whatever it is made of; a page of
// another origin does not with the right one; and what a request says of ranges and lengths reaches its upload alone.
func TestHostile(t *testing.T) {
	t.Parallel()
	const put = "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n%s\r\n01234"
	head := func(lines ...string) string { return strings.Join(append(lines, ""), "\r\n") }
	long := strings.Repeat("a", 100_000)
	moved := []int{301, 307, 404}
	for _, tt := range []struct {
		name, path, header string // empty: the URL of the upload, and nothing more
		status             []int
	}{
		{"the ID in place of the secret", "/uploads/{id}", "", []int{404}},
		{"the media's ID", "/uploads/{media}", "", []int{404}},
		{"half of a secret", "/uploads/{half}", "", []int{404}},
		{"a pattern", "/uploads/{half}%25", "", []int{404}},
		{"no secret", "/uploads/", "", []int{404}},
		{"the parent folder", "/uploads/../{secret}", "", moved},
		{"the parent folder, escaped", "/uploads/%2e%2e%2f{secret}", "", moved},
		{"a folder behind it", "/uploads/{secret}/../../etc/passwd", "", moved},
		{"a file behind it", "/uploads/{secret}/passwd", "", []int{404}},
		{"a NUL behind it", "/uploads/{secret}%00", "", []int{404}},
		{"not UTF-8", "/uploads/%ff%fe{secret}", "", []int{404}},
		{"a statement", "/uploads/%27%20OR%201=1%20--", "", []int{404}},
		{"a long one", "/uploads/" + long, "", []int{404}},
		{"tus's URL for a PUT", "/uploads/tus/{secret}", head("Tus-Resumable: 1.0.0"), []int{405}},
		{"another origin", "", head("Origin: https://b.example"), []int{403}},
		{"another origin that begins alike", "", head("Origin: https://a.example.b.example"), []int{403}},
		{"another scheme", "", head("Origin: http://a.example"), []int{403}},
		{"another port", "", head("Origin: https://a.example:8443"), []int{403}},
		{"a page without an origin", "", head("Origin: null"), []int{403}},
		{"a user in the origin", "", head("Origin: https://a.example@b.example"), []int{403}},
		{
			"another origin by tus", "/uploads/tus/{secret}",
			head("Origin: https://b.example", "Tus-Resumable: 1.0.0"),
			[]int{403},
		},
		{"more than the range says", "", head("Content-Range: bytes 0-2/3"), []int{400}},
		{"less than the range says", "", head("Content-Range: bytes 0-262143/262144"), []int{400}},
		{"a range that ends before it begins", "", head("Content-Range: bytes 5-0/5"), []int{400}},
		{"a range beyond numbers", "", head("Content-Range: bytes 0-99999999999999999999/*"), []int{400}},
		{"a chunk far behind", "", head("Content-Range: bytes 1000000-1000004/1000005"), []int{416}},
		{"two lengths", "", head("Content-Length: 6"), []int{400}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			u := s.createFor("https://a.example")
			path := strings.NewReplacer(
				"{id}", string(u.ID), "{media}", string(u.Media), "{half}", u.Secret[:len(u.Secret)/2], "{secret}",
				u.Secret,
			).Replace(cmp.Or(tt.path, "/uploads/{secret}"))
			got := s.raw(fmt.Sprintf(put, path, tt.header))
			if !slices.Contains(tt.status, got) {
				t.Errorf("%d, want one of %v", got, tt.status)
			}
			s.received(u, 0)
			s.put(u, file(300), "", 200, "") // nobody else is disturbed
			s.arrived(u, file(300))
		})
	}
}

// TestHostileNames: what a file is called decides nothing.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{
		"../../../etc/passwd", "/etc/passwd", `..\..\x`, "a\x00b", "\xff\xfe", "a\r\nSet-Cookie: a=b",
		strings.Repeat("n", 2000),
	} {
		u := s.create()
		metadata := "Upload-Metadata: filename " + base64.StdEncoding.EncodeToString([]byte(name))
		s.tus(u, http.MethodPost, 201, nil, "Upload-Length: 300", metadata)
		h := s.tus(u, http.MethodHead, 200, nil)
		if h.Get("Set-Cookie") != "" || h.Get("Upload-Offset") != "0" {
			t.Errorf("%q: %v", name, h)
		}
		s.tus(u, http.MethodPatch, 204, file(300), "Upload-Offset: 0", "Content-Type: application/offset+octet-stream")
		s.arrived(u, file(300))
	}
}
