package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"millrace/internal/fault"
	"millrace/internal/web/pace"
)

const (
	maxBody     = 256 << 10        // bytes
	bodyTimeout = 10 * time.Second // for a client to send one body
	jsonType    = "application/json"
)

// readBody is the middleware in front of every operation that takes a body. It leaves huma a document that is known to
// fit.
func (s *server) readBody(ctx huma.Context, next func(huma.Context)) {
	op := ctx.Operation()
	if op.RequestBody == nil {
		next(ctx)
		return
	}
	raw, err := read(ctx)
	if err != nil {
		s.refuse(ctx, err)
		return
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = []byte("{}") // no field is given
	} else if e := checkContentType(ctx); e != nil {
		s.refuse(ctx, e)
		return
	}
	clean, body, err := s.cleanBody(raw, op)
	if err != nil {
		s.refuse(ctx, s.fail(ctx.Context(), err))
		return
	}
	checked := bodyContext{ignoredReporter{ctx, body.ignored}, bytes.NewReader(clean)}
	next(huma.WithValue(checked, namesKey, body.names))
}

// cleanBody parses, checks and shapes a body for op.
func (s *server) cleanBody(raw []byte, op *huma.Operation) (clean []byte, body shaped, err error) {
	root, err := parseJSON(raw)
	if err != nil {
		return nil, shaped{}, err
	}
	body, err = shape(root, op.RequestBody.Content[jsonType].Schema, s.schemas, op.Method)
	if err != nil {
		return nil, shaped{}, err
	}
	clean, err = json.Marshal(body.value)
	return clean, body, err
}

// read returns the whole body, or an error that is ready to be sent.
func read(ctx huma.Context) ([]byte, error) {
	r, w := humago.Unwrap(ctx)
	if c := r.Header.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return nil, invalid("the body must be sent without Content-Encoding")
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer has deadlines; then the server's own holds
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		_ = conn.SetReadDeadline(time.Time{}) // or it would end the request's context in the middle of the work
		return raw, nil
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, newError(http.StatusRequestEntityTooLarge, typeTooLarge, "the body must not be larger than 256 KiB")
	}
	if pace.TooSlow(err) {
		return nil, newError(pace.Status, typeInvalid, "the body must arrive within 10 seconds")
	}
	return nil, invalid("the body ended before it was complete")
}

func checkContentType(ctx huma.Context) error {
	header := ctx.Header("Content-Type")
	if header == "" {
		return nil
	}
	media, params, err := mime.ParseMediaType(header)
	isJSON := media == jsonType || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
	if err != nil || !isJSON {
		return invalid("the Content-Type must be application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") &&
		!strings.EqualFold(charset, "us-ascii") {
		return invalid("the Content-Type's charset must be utf-8")
	}
	return nil
}

// refuse responds instead of the operation.
func (s *server) refuse(ctx huma.Context, err error) {
	r, w := humago.Unwrap(ctx)
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = s.fail(r.Context(), fault.Wrap(fault.Internal, err, "refuse a request"))
	}
	writeError(w, e)
}

// wrapped is huma.Context under a name that does not clash with its method Context.
type wrapped huma.Context

// bodyContext is the request with its body replaced by the checked one.
type bodyContext struct {
	wrapped
	body io.Reader
}

func (b bodyContext) BodyReader() io.Reader { return b.body }
func (b bodyContext) Unwrap() huma.Context  { return b.wrapped }
func (b bodyContext) Header(name string) string {
	if strings.EqualFold(name, "Content-Type") {
		return jsonType
	}
	return b.wrapped.Header(name)
}
