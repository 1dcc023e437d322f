package licence

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"millrace/internal/control/drm"
	"millrace/internal/fault"
)

const (
	binary = "application/octet-stream"
	form   = "application/x-www-form-urlencoded"

	maxAction = 256 // bytes of SOAPAction
)

// vendorError is the error that players get when a vendor's server fails.
type vendorError struct {
	status int // of our response
	text   string
	cause  error
}

func (v *vendorError) Error() string { return v.text }

func (v *vendorError) Unwrap() error { return v.cause }

// pass sends a licence request to a vendor's server and gives its response, unread.
func (s *server) pass(
	ctx context.Context, a asked, to *drm.LicenceServer, system drm.SystemID, challenge []byte, header http.Header,
) (Response, error) {
	if to == nil {
		return Response{}, absent(system)
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return Response{}, &vendorError{
			http.StatusServiceUnavailable,
			"too many licence requests wait for the " + system.Name() + " licence server; try again", nil,
		}
	}
	if header == nil {
		header = http.Header{"Content-Type": {binary}}
	}
	if system == drm.FairPlay && to.Body == drm.BodyForm {
		header.Set("Content-Type", form)
		challenge = []byte(url.Values{"spc": {base64.StdEncoding.EncodeToString(challenge)}}.Encode())
	}
	fill := strings.NewReplacer("{playback_id}", string(a.object.ID.ID), "{content_id}", a.object.ObjectID)
	for name, value := range to.Headers {
		header.Set(name, fill.Replace(value))
	}
	ctx, cancel := context.WithTimeout(ctx, vendorTime)
	defer cancel()
	response, err := s.Post(ctx, fill.Replace(to.URL), header, challenge, maxLicence+1)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err = judge(response, err, system.Name()); err != nil {
		return Response{}, err
	}
	if response.ContentType == "" {
		response.ContentType = binary
	}
	if system == drm.FairPlay && to.Body == drm.BodyForm {
		response = Response{ContentType: binary, Body: ckc(response.Body)}
	}
	return response, nil
}

// judge turns what a vendor's server says into what a player is told. The cause is for the log alone: it may name the
// server.
func judge(r Response, err error, system string) error {
	server := "the " + system + " licence server "
	switch {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Internal, err, "the player has left")
	case errors.Is(err, context.DeadlineExceeded):
		return &vendorError{http.StatusGatewayTimeout, server + "did not respond in time", err}
	case err != nil:
		return &vendorError{http.StatusBadGateway, server + "can't be reached", err}
	case len(r.Body) > maxLicence:
		return &vendorError{
			http.StatusBadGateway, server + fmt.Sprintf("responded with more than %d bytes", maxLicence), nil,
		}
	}
	said := server + fmt.Sprintf("responded with %d", r.Status)
	switch {
	case r.Status >= http.StatusOK && r.Status <= 299:
		return nil
	case r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity:
		return &vendorError{http.StatusBadRequest, said + ": the licence request is bad", nil}
	case r.Status == http.StatusForbidden:
		return &vendorError{http.StatusForbidden, said + ": it grants no licence", nil}
	case r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable:
		return &vendorError{http.StatusServiceUnavailable, said + "; try again", nil}
	}
	return &vendorError{http.StatusBadGateway, said, nil}
}

// soapHeader are the fields of a PlayReady request, which is a SOAP message, that its server needs.
func soapHeader(from http.Header) http.Header {
	header := http.Header{"Content-Type": {"text/xml; charset=utf-8"}}
	if t := from.Get("Content-Type"); t != "" {
		if _, _, err := mime.ParseMediaType(t); err == nil {
			header.Set("Content-Type", t)
		}
	}
	visible := func(r rune) bool { return r < ' ' || r > '~' }
	if action := from.Get("SOAPAction"); action != "" && len(action) <= maxAction &&
		!strings.ContainsFunc(action, visible) {
		header.Set("SOAPAction", action)
	}
	return header
}

// spc is the server playback context of a FairPlay player, which sends it as it is or in a form.
func spc(contentType string, body []byte) ([]byte, error) {
	if t, _, _ := mime.ParseMediaType(contentType); t != form { // what can't be read is none
		return body, nil
	}
	fields, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the form of the licence request can't be read")
	}
	text := strings.ReplaceAll(fields.Get("spc"), " ", "+") // of players that do not escape it
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return nil, fault.New(fault.Invalid, "the field spc of the licence request must be base64")
	}
	return raw, nil
}

// ckc is the content key context of a server that is asked by a form: as it is, in base64, or that between <ckc> and
// </ckc>.
func ckc(body []byte) []byte {
	text := bytes.TrimSpace(body)
	if inner, ok := bytes.CutPrefix(text, []byte("<ckc>")); ok {
		text = bytes.TrimSpace(bytes.TrimSuffix(inner, []byte("</ckc>")))
	}
	raw, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(raw) == 0 {
		return body
	}
	return raw
}
