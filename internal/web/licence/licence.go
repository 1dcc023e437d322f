// Package licence serves what players need to decrypt media: licences of the built-in W3C ClearKey server, licences of
// the vendors' servers, to which it forwards requests, and the FairPlay certificate. It must never know how keys are
// stored or tokens are made. It starts no goroutine.
package licence

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/web/limit"
	"millrace/internal/web/pace"
	"millrace/internal/web/respond"
)

const (
	// Path is what the paths of licences begin with.
	Path = "/license/"
	// CertificatePath is what that of the FairPlay certificate begins with.
	CertificatePath = "/appcert/"

	maxChallenge = 64 << 10  // bytes of a licence request
	maxLicence   = 256 << 10 // bytes of a vendor's response
	vendorTime   = 10 * time.Second
	maxWaiting   = 256 // requests to vendors at a time
)

// Request identifies the player: the tokens of the query, and the fields Referer and User-Agent.
type Request struct{ Tokens, Referrers, UserAgents []string }

// Response is what a vendor's server says.
type Response struct {
	Status      int
	ContentType string
	Body        []byte
}

// Options is what Handler needs.
type Options struct {
	// Resolve finds what a playback ID leads to; fault.NotFound if there is none.
	Resolve func(ctx context.Context, p id.Playback) (playbackid.Object, error)
	// Admit reports whether a request may have licences of a playback ID, and gives the modifiers of its token;
	// fault.Denied if not.
	Admit func(ctx context.Context, o playbackid.Object, r Request, now time.Time) (url.Values, error)
	// Smallest is the shorter side, in pixels, of the smallest picture that a playback ID offers. 0, or a nil Smallest:
	// it is not known.
	Smallest func(ctx context.Context, o playbackid.Object) (int, error)
	DRM      *drm.Service
	// Post sends a body to a URL and reads at most so many bytes of the response.
	Post func(ctx context.Context, url string, header http.Header, body []byte, most int64) (Response, error)
	// Limit bounds how often an address may ask; nil: it does not.
	Limit   *limit.Limiter
	Clients clientaddr.Finder
	Now     func() time.Time
	Logger  *slog.Logger
}

type server struct {
	Options

	waiting chan struct{} // a place for each request to a vendor
}

// Handler serves Path and CertificatePath.
func Handler(o Options) http.Handler {
	return &server{Options: o, waiting: make(chan struct{}, maxWaiting)}
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", "*")
	head.Set("Access-Control-Expose-Headers", "Content-Length, Retry-After")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	allowed := []string{http.MethodPost, http.MethodOptions}
	path, certificate := strings.CutPrefix(r.URL.Path, CertificatePath)
	if certificate {
		allowed = []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	} else {
		path = strings.TrimPrefix(path, Path)
	}
	system, playback, ok := strings.Cut(path, "/")
	if !ok || playback == "" || strings.Contains(playback, "/") || certificate && system != "fairplay" {
		s.fail(w, r,
			fault.New(fault.NotFound,
				"there is no such path; licences are at /license/clearkey, widevine, playready or "+
					"fairplay/{playback_id}"))
		return
	}
	switch r.Method {
	case http.MethodOptions: // Fetch standard section 3.3.3; the wildcard does not stand for Authorization
		head.Set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, SOAPAction, *")
		head.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
		return
	case allowed[0], allowed[len(allowed)-2]:
	default:
		head.Set("Allow", strings.Join(allowed, ", "))
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed",
			"The method must be one of "+strings.Join(allowed, ", "))
		return
	}
	if wait := s.Limit.Take(clientaddr.Network(s.Clients.Of(r)), s.Now()); wait > 0 {
		respond.RetryAfter(w, wait)
		refuse(w, http.StatusTooManyRequests, "too_many_requests",
			"This address sends too many licence requests; wait and try again")
		return
	}
	var err error
	if certificate {
		err = s.certificate(w, r, id.Playback(playback))
	} else {
		err = s.licence(w, r, system, id.Playback(playback))
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// asked is a request that may have licences.
type asked struct {
	object    playbackid.Object
	modifiers url.Values
	settings  drm.Settings
}

func (s *server) admit(r *http.Request, p id.Playback) (a asked, err error) {
	ctx, now := r.Context(), s.Now()
	if a.object, err = s.Resolve(ctx, p); err != nil {
		return a, err
	}
	if a.object.ID.Policy != playbackid.DRM {
		return a, fault.New(fault.NotFound, "this playback ID has the policy %s and needs no licence",
			a.object.ID.Policy)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return a, fault.New(fault.Invalid, "the query can't be read")
	}
	who := Request{Tokens: query["token"], Referrers: r.Header["Referer"], UserAgents: r.Header["User-Agent"]}
	if a.modifiers, err = s.Admit(ctx, a.object, who, now); err != nil {
		return a, err
	}
	c, err := s.DRM.Known(ctx, a.object.Environment, drm.ConfigurationOf(a.object), now)
	a.settings = c.Settings
	return a, err
}

// errSlow ends a licence request that does not come in time.
var errSlow = fault.New(fault.Unavailable, "the licence request came too slowly; send it again")

// licence responds to a licence request. Who may not have one learns nothing about it.
func (s *server) licence(w http.ResponseWriter, r *http.Request, system string, p id.Playback) error {
	a, err := s.admit(r, p)
	if err != nil {
		return err
	}
	challenge, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChallenge))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return fault.New(fault.TooLarge, "a licence request may have at most %d bytes", maxChallenge)
	}
	if pace.TooSlow(err) {
		return errSlow
	}
	if err != nil {
		return fault.New(fault.Invalid, "the licence request can't be read")
	}
	if len(challenge) == 0 {
		return fault.New(fault.Invalid, "the licence request is empty")
	}
	var response Response
	switch system {
	case "clearkey":
		response, err = s.clearKey(r.Context(), a, challenge)
	case "widevine":
		response, err = s.pass(r.Context(), a, a.settings.Widevine, drm.Widevine, challenge, nil)
	case "playready":
		response, err = s.pass(r.Context(), a, a.settings.PlayReady, drm.PlayReady, challenge, soapHeader(r.Header))
	case "fairplay":
		if challenge, err = spc(r.Header.Get("Content-Type"), challenge); err == nil {
			response, err = s.pass(r.Context(), a, a.settings.FairPlay, drm.FairPlay, challenge, nil)
		}
	default:
		err = fault.New(fault.NotFound,
			"there is no DRM system of that name; it is clearkey, widevine, playready or fairplay")
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", response.ContentType)
	_, _ = w.Write(response.Body) // the player may have left
	return nil
}

// certificate responds with the application certificate of FairPlay.
func (s *server) certificate(w http.ResponseWriter, r *http.Request, p id.Playback) error {
	a, err := s.admit(r, p)
	if err != nil {
		return err
	}
	if a.settings.FairPlay == nil {
		return absent(drm.FairPlay)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if r.Method == http.MethodGet {
		_, _ = w.Write(a.settings.FairPlay.Certificate)
	}
	return nil
}

func absent(s drm.SystemID) error {
	return fault.New(fault.NotFound, "the DRM configuration of this playback ID has no %s", s.Name())
}

// fail responds with an error; nothing but a fault's own sentences is shown.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if v, is := errors.AsType[*vendorError](err); is {
		s.Logger.WarnContext(r.Context(), "a licence server failed", "error", v, "reason", v.cause)
		if v.status == http.StatusServiceUnavailable {
			respond.RetryAfter(w, 0)
		}
		refuse(w, v.status, "licence_server", v.Error())
		return
	}
	if errors.Is(err, errSlow) {
		refuse(w, pace.Status, "request_timeout", fault.Messages(err)...)
		return
	}
	respond.Licence.Fail(w, r, err, func(ctx context.Context, err error) {
		s.Logger.ErrorContext(ctx, "licence request failed", "error", err)
	})
}

func refuse(w http.ResponseWriter, status int, typ string, messages ...string) {
	respond.Refuse(w, status, respond.Error{Type: typ, Messages: messages})
}
