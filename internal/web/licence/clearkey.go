package licence

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"

	"millrace/internal/control/drm"
	"millrace/internal/fault"
)

// maxKeyIDs is how many keys a ClearKey licence request may name.
const maxKeyIDs = 1000

// licenceRequest is that of W3C Encrypted Media Extensions, section 9.1.3.
type licenceRequest struct {
	KeyIDs []string `json:"kids"`
	Type   string   `json:"type"`
}

// jwk is a key of a JSON Web Key set (RFC 7517), section 9.1.4.
type jwk struct {
	Type  string `json:"kty"`
	KeyID string `json:"kid"`
	Key   string `json:"k"`
}

// clearKey responds with all keys that the token allows, and not only with those that are asked for: players that ask
// for one key do not ask again when they change the rendition.
func (s *server) clearKey(ctx context.Context, a asked, challenge []byte) (Response, error) {
	if !a.settings.ClearKey {
		return Response{}, absent(drm.ClearKey)
	}
	wanted, err := parseRequest(challenge)
	if err != nil {
		return Response{}, err
	}
	most, err := s.largest(ctx, a)
	if err != nil {
		return Response{}, err
	}
	c, err := s.DRM.Content(ctx, a.object.Environment, drm.ResourceOf(a.object), drm.ConfigurationOf(a.object), s.Now())
	if err != nil {
		return Response{}, err
	}
	keys, ours := []jwk{}, false
	for _, k := range c.Keys {
		ours = ours || wanted[k.ID]
		if allowed(k.Class, most) {
			keys = append(keys, jwk{
				Type:  "oct",
				KeyID: base64.RawURLEncoding.EncodeToString(k.ID[:]),
				Key:   base64.RawURLEncoding.EncodeToString(k.Value[:]),
			})
		}
	}
	if !ours {
		return Response{}, fault.New(fault.Invalid, "the licence request names no key (kids) of this playback ID")
	}
	body, err := json.Marshal(map[string]any{"keys": keys, "type": "temporary"})
	return Response{ContentType: "application/json", Body: body}, err
}

// parseRequest reads a ClearKey licence request.
func parseRequest(challenge []byte) (map[[16]byte]bool, error) {
	var r licenceRequest
	dec := json.NewDecoder(bytes.NewReader(challenge))
	if err := dec.Decode(&r); err != nil {
		return nil, fault.New(fault.Invalid, "the licence request is not the JSON of a ClearKey player")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fault.New(fault.Invalid, "the licence request has data after its JSON")
	}
	if r.Type != "" && r.Type != "temporary" {
		return nil, fault.New(fault.Invalid, "the type of a licence must be temporary: ClearKey licences can't be kept")
	}
	if len(r.KeyIDs) == 0 || len(r.KeyIDs) > maxKeyIDs {
		return nil, fault.New(fault.Invalid, "kids must name 1 to %d keys", maxKeyIDs)
	}
	wanted := make(map[[16]byte]bool, len(r.KeyIDs))
	for _, text := range r.KeyIDs {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
		if err != nil || len(raw) != 16 {
			return nil, fault.New(fault.Invalid, "kids must be key IDs of 16 bytes in base64url")
		}
		wanted[[16]byte(raw)] = true
	}
	return wanted, nil
}

// largest is how many pixels the shorter side of a picture may have that a token gives the key of; 0: any number.
// Playlists keep the smallest rendition where every one is larger than max_resolution, so its key is given too.
func (s *server) largest(ctx context.Context, a asked) (int, error) {
	most, err := maxResolution(a.modifiers)
	if err != nil || most == 0 || !a.settings.KeysByClass || s.Smallest == nil {
		return most, err
	}
	smallest, err := s.Smallest(ctx, a.object)
	return max(most, smallest), err
}

// maxResolution is how many pixels the shorter side of a picture may have by the token; 0: any number. What can't be
// read allows nothing.
func maxResolution(modifiers url.Values) (int, error) {
	claim := modifiers.Get("max_resolution")
	if claim == "" {
		return 0, nil
	}
	digits, ok := strings.CutSuffix(claim, "p")
	most, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || most == 0 {
		return 0, fault.New(fault.Invalid, "max_resolution of the token must be a number of lines such as 720p")
	}
	return int(most), nil
}

// allowed reports whether a viewer may have the key of a class whose pictures may have so many pixels at their shorter
// side; 0: any number.
func allowed(class drm.Class, most int) bool {
	if most == 0 {
		return true
	}
	switch class {
	case drm.HD:
		return most > drm.MaxSD
	case drm.UHD1:
		return most > drm.MaxHD
	case drm.Video, drm.SD, drm.Audio:
	}
	return true
}
