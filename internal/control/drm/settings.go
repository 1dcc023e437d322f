package drm

import (
	"net/textproto"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/field"
	"millrace/internal/fault"
)

// Settings are what of a configuration is stored encrypted, because some of it is secret.
type Settings struct {
	Scheme       Scheme `json:"scheme"`
	EncryptAudio bool   `json:"encrypt_audio,omitempty"`
	KeysByClass  bool   `json:"keys_by_class,omitempty"` // one for each of SD, HD and UHD1; else one for all video
	// EncryptedOnly has media leave the service encrypted only: see playbackid.Configuration.
	EncryptedOnly bool `json:"encrypted_only,omitempty"`
	// Rotation is for how long the keys of a live stream are good, in nanoseconds; 0: for ever.
	Rotation time.Duration `json:"rotation,omitempty"`
	// ClearKey has the built-in licence server give out keys (W3C Encrypted Media Extensions, section 9.1). It hides
	// keys from nobody who may play.
	ClearKey bool `json:"clear_key,omitempty"`
	Vendors
}

// Vendors are the services of others that a configuration uses.
type Vendors struct {
	Widevine  *LicenceServer `json:"widevine,omitempty" yaml:"widevine"`
	PlayReady *LicenceServer `json:"playready,omitempty" yaml:"playready"`
	FairPlay  *LicenceServer `json:"fairplay,omitempty" yaml:"-"`
	// KeyProvider makes the keys; without one they are made here.
	KeyProvider *KeyProvider `json:"key_provider,omitempty" yaml:"key_provider"`
}

// The forms of a FairPlay licence request: what a player sends (SPC) as it is, or as the field spc of an HTML form, in
// base64.
const (
	BodyRaw  = "raw"
	BodyForm = "form"
)

// LicenceServer is where players' licence requests are passed on to.
type LicenceServer struct {
	URL     string            `json:"url" yaml:"url"`                             // secret: it may hold a key
	Headers map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"` // sent with each request; secret
	// Body is the form of the request to a FairPlay server; empty is BodyRaw. A response in the form of BodyForm is
	// unwrapped.
	Body string `json:"body,omitempty" yaml:"body,omitempty"`
	// Certificate is the application certificate of FairPlay, in DER.
	Certificate []byte `json:"certificate,omitempty" yaml:"-"`
}

// KeyProvider is a service that makes content keys, over SPEKE 2.0: CPIX 2.3 documents over HTTP.
type KeyProvider struct {
	URL     string            `json:"url" yaml:"url"`
	Headers map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"`
	// EncryptedKeys asks for keys that are encrypted to a key pair of this request (CPIX 2.3 section 8.1), beside TLS.
	EncryptedKeys bool `json:"encrypted_keys,omitempty" yaml:"encrypted_keys,omitempty"`
}

// Systems are the DRM systems that playlists name.
func (s Settings) Systems() (all []SystemID) {
	for _, x := range []struct {
		id SystemID
		on bool
	}{
		{ClearKey, s.ClearKey},
		{Widevine, s.Widevine != nil},
		{PlayReady, s.PlayReady != nil},
		{FairPlay, s.FairPlay != nil},
	} {
		if x.on {
			all = append(all, x.id)
		}
	}
	return all
}

const (
	maxHeaders     = 20
	maxHeader      = 4 << 10 // bytes of a value
	maxCertificate = 16 << 10
)

// check says what is wrong with settings.
func (s Settings) check(name string) error {
	var l fault.List
	field.Name(&l, "name", name, field.MaxPassthrough)
	field.OneOf(&l, "scheme", string(s.Scheme), string(CBCS), string(CENC))
	if s.Rotation != 0 && s.Rotation < MinRotation {
		l.At("rotation", "must be at least %v", MinRotation)
	}
	if len(s.Systems()) == 0 {
		l.Add("at least one DRM system must be given: clear key, widevine, playready or fairplay")
	}
	if s.FairPlay != nil && s.Scheme == CENC {
		l.At("fairplay", "needs the scheme cbcs")
	}
	s.Widevine.check(&l, "widevine")
	s.PlayReady.check(&l, "playready")
	s.FairPlay.check(&l, "fairplay")
	if p := s.KeyProvider; p != nil {
		checkEndpoint(&l, "key_provider", p.URL, p.Headers)
	}
	return l.Err()
}

func (ls *LicenceServer) check(l *fault.List, at string) {
	if ls == nil {
		return
	}
	checkEndpoint(l, at, ls.URL, ls.Headers)
	switch {
	case at == "fairplay":
		field.OneOf(l, at+".body", ls.form(), BodyRaw, BodyForm)
		if len(ls.Certificate) == 0 || len(ls.Certificate) > maxCertificate {
			l.At(at+".certificate_file", "must have 1 to %d bytes", maxCertificate)
		}
	case ls.Body != "" || len(ls.Certificate) > 0:
		l.At(at, ": body and certificate_file belong to fairplay")
	}
}

// form is how a request is written.
func (ls *LicenceServer) form() string {
	if ls.Body == "" {
		return BodyRaw
	}
	return ls.Body
}

// checkEndpoint adds what is wrong with the address of a vendor and what is sent there.
func checkEndpoint(l *fault.List, at, address string, headers map[string]string) {
	field.WebURL(l, at+".url", address)
	field.Count(l, at+".headers", len(headers), maxHeaders)
	for name, value := range headers {
		switch {
		case !token(name) ||
			slices.Contains([]string{
				"Host", "Content-Length", "Connection", "Transfer-Encoding",
			}, textproto.CanonicalMIMEHeaderKey(name)):
			l.At(at+".headers", ": a name can't be used")
		case len(value) > maxHeader || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
			l.At(at+".headers."+name, "must have at most %d visible ASCII characters", maxHeader)
		}
	}
}

// token reports whether s is one, RFC 9110 section 5.6.2.
func token(s string) bool {
	const special = "!#$%&'*+-.^_`|~"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(special, r)
	})
}
