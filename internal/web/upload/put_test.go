package upload_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/disk"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
)

func TestWholeFile(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, n := range []int{1, 100, 3*mib + 1} {
		u := s.create()
		s.put(u, file(n), "", http.StatusOK, "")
		s.arrived(u, file(n))
		s.put(u, file(n), "", http.StatusOK, "") // the response was lost
		s.put(u, nil, "*/*", http.StatusOK, "")
	}
	u := s.create() // of unknown length
	unsized := sent{method: http.MethodPut, body: io.LimitReader(bytes.NewReader(file(2*mib)), 2*mib)}
	if resp := s.send(u, unsized); resp.StatusCode != http.StatusOK {
		t.Errorf("a body of unknown length: %d %s", resp.StatusCode, text(resp))
	}
	s.arrived(u, file(2*mib))
}

// TestAnotherFile: an upload that has its file takes no other one, and says so; whoever may have lost the response to
// the last byte of that file is told that it is there. So it is when the file has been encoded and is gone.
func TestAnotherFile(t *testing.T) {
	t.Parallel()
	const c, size = 256 << 10, 600 << 10
	sent := file(size)
	changed := func(at int) []byte {
		b := bytes.Clone(sent)
		b[at]++
		return b
	}
	for name, tt := range map[string]struct {
		body   []byte
		ranged string
		stream bool // the length is not said
		status int
	}{
		"the file":                         {body: sent, status: 200},
		"the file, its length not said":    {body: sent, stream: true, status: 200},
		"its first chunk":                  {body: sent[:c], ranged: "0-262143/614400", status: 200},
		"its last chunk":                   {body: sent[2*c:], ranged: "524288-614399/614400", status: 200},
		"its last chunk, not in one block": {body: sent[c/2:], ranged: "131072-614399/614400", status: 200},
		"a chunk, its length not said":     {body: sent[c : 2*c], ranged: "262144-524287/*", status: 200},
		"a question":                       {ranged: "*/614400", status: 200},
		"a question without a length":      {ranged: "*/*", status: 200},
		"a shorter file":                   {body: sent[:5], status: 409},
		"a longer file":                    {body: file(size + 1), status: 409},
		"a longer file that begins alike":  {body: append(bytes.Clone(sent), 1), stream: true, status: 409},
		"a shorter one that begins alike":  {body: sent[:size-1], stream: true, status: 409},
		"a chunk of a longer file":         {body: sent[:c], ranged: "0-262143/999999", status: 409},
		"a chunk behind its end":           {body: file(c), ranged: "524288-786431/*", status: 409},
		"a question about a longer file":   {ranged: "*/999999", status: 409},
		"another first byte":               {body: changed(0), status: 409},
		"another last byte":                {body: changed(size - 1), status: 409},
		"another byte, length not said":    {body: changed(c), stream: true, status: 409},
		"another file's first chunk":       {body: changed(5)[:c], ranged: "0-262143/614400", status: 409},
		"another file's second chunk":      {body: changed(c + 5)[c : 2*c], ranged: "262144-524287/*", status: 409},
		"another file's last chunk":        {body: file(size - 2*c), ranged: "524288-614399/614400", status: 409},
	} {
		for _, encoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, encoded %v", name, encoded), func(t *testing.T) {
				t.Parallel()
				s := start(t)
				u := s.create()
				s.put(u, sent, "", http.StatusOK, "")
				s.arrived(u, sent)
				if encoded {
					must(t, s.store.Delete(t.Context(), objectkey.SourceFile(u.Media)))
				}
				s.repeat(u, tt.body, tt.ranged, tt.stream, tt.status)
				if !encoded {
					s.arrived(u, sent)
				}
			})
		}
	}
}

// repeat sends something to an upload that has its file.
func (s *service) repeat(u upload.Upload, body []byte, ranged string, stream bool, status int) {
	s.t.Helper()
	r := sent{method: http.MethodPut, body: bytes.NewReader(body)}
	if stream {
		r.body = io.LimitReader(r.body, int64(len(body)))
	}
	if ranged != "" {
		r.header = []string{"Content-Range: bytes " + ranged}
	}
	resp := s.send(u, r)
	said := text(resp)
	refused := strings.Contains(said, "has its file already")
	if resp.StatusCode != status || refused != (status == 409) {
		s.t.Errorf("%d %s, want %d", resp.StatusCode, said, status)
	}
}

// TestAnotherFileOverRestarts: what another process has taken of a file is not compared, and the rest is.
func TestAnotherFileOverRestarts(t *testing.T) {
	t.Parallel()
	const c = 256 << 10
	sent, other := file(4*c+17), bytes.Repeat([]byte{1}, 4*c+17)
	of := func(from, to int) string { return fmt.Sprintf("%d-%d/%d", from, to-1, len(sent)) }
	s := start(t)
	u := s.create()
	s.put(u, sent[:c], of(0, c), 308, "bytes=0-262143")
	s.restart()
	s.put(u, sent[c:2*c], of(c, 2*c), 308, "bytes=0-524287")
	s.put(u, sent[2*c:3*c], of(2*c, 3*c), 308, "bytes=0-786431")
	s.put(u, sent[3*c:], of(3*c, len(sent)), 200, "")
	s.arrived(u, sent)
	s.restart()
	s.repeat(u, sent, "", false, 200)
	s.repeat(u, other, "", false, 409)
	s.repeat(u, other[c:2*c], of(c, 2*c), false, 409)
	s.repeat(u, other[4*c:], of(4*c, len(sent)), false, 409)
	s.repeat(u, other[:c], of(0, c), false, 200)
	s.arrived(u, sent)
	a, err := s.uploads.Get(t.Context(), env, u.ID, s.now())
	must(t, err)
	must(t, s.store.Delete(t.Context(), objectkey.Checksums(a.Media))) // with its asset, or it is an earlier version's
	s.repeat(u, other, "", false, 200)
	s.repeat(u, other[1:], "", false, 409)
}

// TestAnotherFileAfterOne: a file that replaces what came before is the one that others are compared with.
func TestAnotherFileAfterOne(t *testing.T) {
	t.Parallel()
	const c = 256 << 10
	first, second := file(2*c), bytes.Repeat([]byte{2}, 2*c)
	s := start(t)
	u := s.create()
	s.put(u, first[:c], "0-262143/*", 308, "bytes=0-262143")
	s.put(u, second, "", 200, "")
	s.arrived(u, second)
	s.repeat(u, first, "", false, 409)
	s.repeat(u, second, "", false, 200)
}

// TestChunks sends a file as resumable clients do, with every kind of disturbance, each by a service that has forgotten
// everything.
func TestChunks(t *testing.T) {
	t.Parallel()
	const c = 256 << 10
	total := 3*c + 17
	data := file(total)
	of := func(from, to int, total string) string { return fmt.Sprintf("%d-%d/%s", from, to-1, total) }
	for name, known := range map[string]bool{"known length": true, "unknown length": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			u := s.create()
			whole, sum := fmt.Sprint(total), "*"
			if known {
				sum = whole
			}
			s.put(u, nil, "*/"+sum, 308, "")
			s.put(u, data[:c], of(0, c, sum), 308, "bytes=0-262143")
			s.restart()
			s.put(u, nil, "*/"+sum, 308, "bytes=0-262143")
			s.put(u, data[:c], of(0, c, sum), 308, "bytes=0-262143") // the response was lost
			s.put(u, data[2*c:3*c], of(2*c, 3*c, sum), 416, "bytes=0-262143")
			s.put(u, data[c:c+100], of(c, c+100, sum), 400, "")
			s.put(u, data[c:2*c], of(c, 3*c, sum), 400, "")
			s.put(u, data[:2*c], of(0, 2*c, sum), 308, "bytes=0-524287") // half of it is known
			s.restart()
			s.put(u, data[2*c:3*c], of(2*c, 3*c, sum), 308, "bytes=0-786431")
			if known {
				s.put(u, data[3*c:], of(3*c, total, fmt.Sprint(total+1)), 400, "")
			}
			s.put(u, data[3*c:], of(3*c, total, whole), 200, "")
			s.arrived(u, data)
			s.put(u, data[3*c:], of(3*c, total, whole), 200, "")
			s.put(u, nil, "*/"+whole, 200, "")
		})
	}
}

// TestLengthToldLast: all bytes have come before it is said that these are all.
func TestLengthDeclaredLast(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	data := file(256 << 10)
	s.put(u, data, "0-262143/*", 308, "bytes=0-262143")
	s.put(u, nil, "*/262144", 200, "")
	s.arrived(u, data)
}

// cut sends the first n bytes of a body and then loses the connection.
func (s *service) cut(u upload.Upload, contentRange string, body []byte, n int) {
	s.t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPut, s.server.URL+"/uploads/"+u.Secret, r)
	must(s.t, err)
	req.ContentLength = int64(len(body))
	if contentRange != "" {
		req.Header.Set("Content-Range", "bytes "+contentRange)
	}
	go func() {
		_, _ = w.Write(body[:n])
		_ = w.CloseWithError(io.ErrClosedPipe)
	}()
	if resp, err := s.server.Client().Do(req); err == nil {
		_ = resp.Body.Close()
		s.t.Fatal("a request that was cut has a response")
	}
}

// TestConnectionLost: what has come counts, at any byte, and the client goes on there.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	data := file(2*mib + 5)
	s.cut(u, fmt.Sprintf("0-%d/*", 2*mib-1), data[:2*mib], mib+123)
	last := s.keptSome(u)
	if last < mib-8192 || last >= mib+123 {
		t.Errorf("kept up to byte %d", last) // the client may not have sent its last buffers
	}
	s.put(u, data[last+1:], fmt.Sprintf("%d-%d/%d", last+1, len(data)-1, len(data)), 200, "")
	s.arrived(u, data)

	u = s.create() // who sends the whole again is another file, as far as anybody knows
	s.cut(u, "", file(3*mib), mib)
	s.keptSome(u)
	s.put(u, data, "", 200, "")
	s.arrived(u, data)
}

// keptSome is the last byte that is kept, once any is: a request that was cut may not have been looked at yet.
func (s *service) keptSome(u upload.Upload) (last int) {
	s.t.Helper()
	for {
		if _, err := fmt.Sscanf(s.kept(u), "bytes=0-%d", &last); err == nil {
			return last
		}
	}
}

// TestSentTwiceAtOnce: the last byte has come by another request while this one waited for it.
func TestSentTwiceAtOnce(t *testing.T) {
	t.Parallel()
	data := file(300)
	for name, again := range map[string]func(s *service, u upload.Upload){
		"whole": func(s *service, u upload.Upload) { s.put(u, data, "", 200, "") },
		"chunk": func(s *service, u upload.Upload) { s.put(u, data, "0-299/300", 200, "") },
		"query": func(s *service, u upload.Upload) { s.put(u, nil, "*/300", 200, "") },
		"tus":   func(s *service, u upload.Upload) { s.offset(u, 300) },
		"tus creation": func(s *service, u upload.Upload) {
			s.tus(u, http.MethodPost, 201, data, "Upload-Length: 300", "Content-Type: application/offset+octet-stream")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			u := s.create()
			s.opening = func() { s.put(u, data, "", 200, "") }
			again(s, u)
			s.arrived(u, data)
		})
	}
}

// TestOneWriter: while one writes others are told so, and one that has gone quiet is replaced.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	data := file(mib)
	r, w := io.Pipe()
	defer func() { _ = w.CloseWithError(io.ErrClosedPipe) }()
	first := make(chan *http.Response, 1)
	go func() {
		first <- s.send(u, sent{
			method: http.MethodPut, header: []string{fmt.Sprintf("Content-Range: bytes 0-%d/*", mib-1)}, body: r,
			size: mib,
		})
	}()
	_, err := w.Write(data[:mib/2])
	must(t, err)
	wr := make(chan struct{})
	writing := make(chan struct{})
	go func() { // a byte now and then
		defer close(writing)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for at := mib / 2; ; at++ {
			select {
			case <-wr:
				return
			case <-tick.C:
				_, _ = w.Write(data[at : at+1])
			}
		}
	}()
	resp := s.send(u, sent{method: http.MethodPut, header: []string{"Content-Range: bytes */*"}})
	for resp.StatusCode == 308 { // the first one has not been looked at yet
		resp = s.send(u, sent{method: http.MethodPut, header: []string{"Content-Range: bytes */*"}})
	}
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" ||
		!strings.Contains(text(resp), "another request is writing") {
		t.Errorf("the second writer is told %d %v", resp.StatusCode, resp.Header)
	}
	close(wr)
	<-writing
	resp = s.put(u, nil, "*/*", 308, s.kept(u))
	if got := <-first; got.StatusCode != 503 {
		t.Errorf("the first writer is told %d", got.StatusCode)
	}
	var last int
	if _, err := fmt.Sscanf(resp.Header.Get("Range"), "bytes=0-%d", &last); err != nil || last < mib/2 {
		t.Fatalf("kept %s: %v", resp.Header.Get("Range"), err)
	}
	s.put(u, data[last+1:], fmt.Sprintf("%d-%d/%d", last+1, mib-1, mib), 200, "")
	s.arrived(u, data)
}

// kept is the Range of what is kept, once nobody is writing.
func (s *service) kept(u upload.Upload) string {
	s.t.Helper()
	return s.send(u, sent{method: http.MethodPut, header: []string{"Content-Range: bytes */*"}}).Header.Get("Range")
}

// TestRefused: what can't be taken is refused before it is sent.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(s *service, u upload.Upload)
		r      sent
		status int
		says   string
	}{
		{"too large", nil, sent{size: maxSize + 1}, 413, "at most 33554432 bytes"},
		{
			"too large by its range", nil,
			sent{header: []string{"Content-Range: bytes 0-262143/99999999"}, size: 262144},
			413,
			"at most 33554432 bytes",
		},
		{
			"a disk that is full", func(s *service, _ upload.Upload) { s.space = disk.Space{Free: 60, Total: 1000} },
			sent{size: 11},
			507, "no room for 11 more bytes",
		},
		{"an environment that has too many", func(s *service, _ upload.Upload) {
			must(s.t, s.uploads.Declare(s.t.Context(), s.create().ID, upload.Length{Size: 30 * mib}))
		}, sent{size: 20 * mib}, 507, "50331648 bytes together"},
		{
			"cancelled",
			func(s *service, u upload.Upload) { must(s.t, s.uploads.Quit(s.t.Context(), u.ID, time.Now())) },
			sent{size: 5},
			410, "cancelled",
		},
		{
			"timed out", func(s *service, _ upload.Upload) { s.late.Store(int64(2 * time.Hour)) },
			sent{size: 5},
			410,
			"timed_out",
		},
		{
			"not a range", nil,
			sent{header: []string{"Content-Range: items 0-1/2"}, size: 2},
			400,
			"Content-Range must be of the form",
		},
		{
			"another length", nil,
			sent{header: []string{"Content-Range: bytes 0-9/10"}, size: 5},
			400,
			"Content-Range says 10 bytes, and Content-Length 5",
		},
		{"empty", nil, sent{}, 400, "the file is empty"},
		{"another method", nil, sent{method: http.MethodPost, size: 5}, 405, "must be PUT"},
		{"another origin", nil, sent{header: []string{"Origin: https://b.example"}, size: 5}, 403, "cors_origin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			u := s.createFor("https://a.example")
			if tt.before != nil {
				tt.before(s, u)
			}
			if tt.r.method == "" {
				tt.r.method = http.MethodPut
			}
			if tt.r.size > 0 { // a client that asks first
				tt.r.header = append(tt.r.header, "Expect: 100-continue")
				tt.r.body = unread{t}
			}
			resp := s.send(u, tt.r)
			if body := text(resp); resp.StatusCode != tt.status || !strings.Contains(body, tt.says) ||
				!strings.Contains(body, `{"error":{"type":"`) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if after := resp.Header.Get("Retry-After"); tt.status == 507 && after != "60" {
				t.Errorf("Retry-After: %q", after)
			}
		})
	}
	s := start(t)
	if resp := s.send(upload.Upload{Secret: "unknown"}, sent{method: http.MethodPut}); resp.StatusCode != 404 {
		t.Errorf("an unknown one: %d", resp.StatusCode)
	}
}

// limitedStore takes so many bytes in one object, as a bucket does.
type limitedStore struct {
	blob.Store
	most int64
}

func (l limitedStore) MaxGrown() int64 { return l.most }

// TestStorageLimit: what the storage can't take in one object is refused before a byte of it is asked for, and no tus
// client is told otherwise.
func TestStorageLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.store = limitedStore{s.store, mib}
	s.restart()
	u := s.create()
	says := "the file may have at most 1048576 bytes"
	for name, r := range map[string]sent{
		"whole":  {method: http.MethodPut, size: mib + 1},
		"chunks": {method: http.MethodPut, size: 262144, header: []string{"Content-Range: bytes 0-262143/1048577"}},
	} {
		r.body, r.header = unread{t}, append(r.header, "Expect: 100-continue")
		if resp := s.send(u, r); resp.StatusCode != 413 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		} else if body := text(resp); !strings.Contains(body, says) {
			t.Errorf("%s: %s", name, body)
		}
	}
	resp := s.send(u, sent{method: http.MethodOptions, tus: true})
	if got := resp.Header.Get("Tus-Max-Size"); got != "1048576" {
		t.Errorf("Tus-Max-Size is %s", got)
	}
	s.put(u, file(mib), "", 200, "")
}

// TestRoomIsShared: what one upload has declared and not sent is not given to another one, unless its client stays
// away.
func TestRoomIsShared(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.space = disk.Space{Total: 20 * mib, Free: 11 * mib} // of which a mebibyte is left to live streams
	chunk := file(1 * mib)
	first, second, third := s.create(), s.create(), s.create()
	s.put(first, chunk, fmt.Sprintf("0-%d/%d", mib-1, 6*mib), 308, fmt.Sprintf("bytes=0-%d", mib-1))
	s.space.Free -= mib
	if body := text(s.put(second, chunk, fmt.Sprintf("0-%d/%d", mib-1, 5*mib), 507, "")); !strings.Contains(body,
		"no room for 5242880 more bytes") {
		t.Error(body)
	}
	s.put(second, chunk, fmt.Sprintf("0-%d/%d", mib-1, 4*mib), 308, fmt.Sprintf("bytes=0-%d", mib-1))
	s.space.Free -= mib
	s.restart()
	s.put(third, chunk, fmt.Sprintf("0-%d/%d", mib-1, mib), 507, "")

	s.late.Store(int64(30 * time.Minute)) // nothing has come for half an hour
	s.put(third, chunk, "", 200, "")
	s.space.Free -= 5 * mib
	s.put(first, chunk, fmt.Sprintf("%d-%d/%d", mib, 2*mib-1, 6*mib), 507, "")
}

// TestRoomAgainstOthers: what one environment has declared and not sent leaves room to another one, however much it is,
// and less is held for it the longer nothing comes.
func TestRoomAgainstOthers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.space = disk.Space{Total: 20 * mib, Free: 17 * mib} // of which a mebibyte is left to live streams
	chunk := file(1 * mib)
	greedy := s.create()
	s.put(greedy, chunk, fmt.Sprintf("0-%d/%d", mib-1, 16*mib), 308, fmt.Sprintf("bytes=0-%d", mib-1))
	s.space.Free -= mib
	other := func(size int64, status int, kept string) {
		t.Helper()
		u, err := s.uploads.Create(t.Context(), "other", upload.CreateInput{CORSOrigin: "*"}, time.Now())
		must(t, err)
		s.put(u, chunk, fmt.Sprintf("0-%d/%d", mib-1, size), status, kept)
		must(t, s.uploads.Quit(t.Context(), u.ID, time.Now()))
	}
	const room = 15 * mib
	other(room*3/4+1, 507, "")
	other(room*3/4, 308, fmt.Sprintf("bytes=0-%d", mib-1))

	for _, env := range []id.Environment{"b", "c", "d"} { // each of them holds a quarter, and all of them half
		u, err := s.uploads.Create(t.Context(), env, upload.CreateInput{CORSOrigin: "*"}, time.Now())
		must(t, err)
		must(t, s.uploads.Declare(t.Context(), u.ID, upload.Length{Size: room, Whole: true}))
		object, err := s.store.Grow(t.Context(), objectkey.SourceFile(u.Media))
		must(t, err)
		must(t, object.Append(t.Context(), chunk))
		must(t, object.Sync(t.Context()))
		must(t, object.Close())
	}
	other(room/2+1, 507, "")
	other(room/2, 308, fmt.Sprintf("bytes=0-%d", mib-1))

	s.late.Store(int64(14 * time.Minute))
	other(room/2+1, 308, fmt.Sprintf("bytes=0-%d", mib-1))
}

// unread is a body that nobody may ask for.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was asked for")
	return 0, io.ErrUnexpectedEOF
}

// TestGrowsTooLarge: a file of unknown length is taken up to the limit, and not a byte more.
func TestGrowsTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	resp := s.send(u, sent{method: http.MethodPut, body: io.LimitReader(zeros{}, maxSize+1)})
	if resp.StatusCode != 413 {
		t.Errorf("%d %s", resp.StatusCode, text(resp))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestCORS(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, tt := range []struct{ set, origin, allowed string }{
		{"*", "https://b.example", "*"},
		{"https://a.example", "https://a.example", "https://a.example"},
		{"https://a.example", "https://b.example", ""},
	} {
		for _, tus := range []bool{false, true} {
			resp := s.send(s.createFor(tt.set), sent{
				method: http.MethodOptions, tus: tus,
				header: []string{"Origin: " + tt.origin, "Access-Control-Request-Method: PUT"},
			})
			h := resp.Header
			if h.Get("Access-Control-Allow-Origin") != tt.allowed ||
				tt.allowed != "" &&
					(resp.StatusCode >= 300 ||
						!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Content-Range")) {
				t.Errorf("%+v: %d %v", tt, resp.StatusCode, h)
			}
		}
	}
	for _, tus := range []bool{false, true} { // any page gets to read that there is no such upload
		r := sent{method: http.MethodOptions, tus: tus, header: []string{"Origin: https://b.example"}}
		for method, status := range map[string]int{http.MethodOptions: 204, http.MethodPut: 404} {
			r.method = method
			resp := s.send(upload.Upload{Secret: "unknown"}, r)
			if resp.StatusCode != status || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s of an unknown one: %d %v", method, resp.StatusCode, resp.Header)
			}
		}
	}
	resp := s.send(s.create(), sent{
		method: http.MethodPut, body: bytes.NewReader(file(5)), header: []string{"Origin: https://b.example"},
	})
	if resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "Range") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
}

// TestClear: of an upload that is over nothing stays, also of one that is being written to.
func TestClear(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	r, w := io.Pipe()
	defer func() { _ = w.CloseWithError(io.ErrClosedPipe) }()
	response := make(chan *http.Response, 1)
	go func() { response <- s.send(u, sent{method: http.MethodPut, body: r, size: 4 * mib}) }()
	_, err := w.Write(file(mib))
	must(t, err)
	must(t, s.uploads.Quit(t.Context(), u.ID, time.Now()))
	over, err := s.uploads.Find(t.Context(), u.ID)
	must(t, err)
	must(t, s.files.Clear(t.Context(), over))
	if got := <-response; got.StatusCode != 503 && got.StatusCode != 410 { // the latter if it was looked at only then
		t.Errorf("the writer is told %d", got.StatusCode)
	}
	g, err := s.store.Grow(t.Context(), objectkey.SourceFile(u.Media))
	must(t, err)
	if g.Size() != 0 {
		t.Errorf("%d bytes are left", g.Size())
	}
	must(t, g.Close())

	u = s.create() // its process died between its last byte and its asset, and then it was cancelled
	stored := []string{objectkey.SourceFile(u.Media), objectkey.Checksums(u.Media)}
	for _, key := range stored {
		must(t, s.store.Put(t.Context(), key, bytes.NewReader(file(5))))
	}
	must(t, s.uploads.Quit(t.Context(), u.ID, time.Now()))
	over, err = s.uploads.Find(t.Context(), u.ID)
	must(t, err)
	must(t, s.files.Clear(t.Context(), over))
	for _, key := range stored {
		if _, err = s.store.Stat(t.Context(), key); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s is left: %v", key, err)
		}
	}
}

// received checks how much of a file has come as far as the API knows.
func (s *service) received(u upload.Upload, want int64) {
	s.t.Helper()
	if n, err := s.files.Received(s.t.Context(), u); err != nil || n != want {
		s.t.Errorf("received: %d, %v, want %d", n, err, want)
	}
}

// TestDiedBeforeTheAsset: the last byte has come, and the process died before it could make the asset; anyone who asks
// next gets it.
func TestDiedBeforeTheAsset(t *testing.T) {
	t.Parallel()
	s := start(t)
	u := s.create()
	s.received(u, 0)
	must(t, s.store.Put(t.Context(), objectkey.SourceFile(u.Media), bytes.NewReader(file(5))))
	s.received(u, 5)
	s.put(u, nil, "*/5", 200, "")
	s.arrived(u, file(5))

	u = s.create()
	must(t, s.uploads.Declare(t.Context(), u.ID, upload.Length{Size: 5, Whole: true}))
	g, err := s.store.Grow(t.Context(), objectkey.SourceFile(u.Media))
	must(t, err)
	must(t, g.Append(t.Context(), file(5)))
	must(t, g.Sync(t.Context()))
	must(t, g.Close())
	s.received(u, 5)
	if resp := s.send(u, sent{method: http.MethodHead, tus: true}); resp.StatusCode != 200 ||
		resp.Header.Get("Upload-Offset") != "5" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	s.arrived(u, file(5))
}
