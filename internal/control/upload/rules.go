package upload

import (
	"net/url"
	"strings"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/field"
	"millrace/internal/fault"
)

// Bounds of Timeout, in seconds.
const (
	MinTimeout     = 60
	MaxTimeout     = 7 * 24 * 60 * 60
	DefaultTimeout = 60 * 60
)

// Keep is for how long an upload can be looked at once it is Unneeded.
const Keep = 30 * 24 * time.Hour

// AnyOrigin lets pages of every origin upload.
const AnyOrigin = "*"

func (c CreateInput) check() error {
	var l fault.List
	if c.Timeout != nil {
		field.Between(&l, "timeout", float64(*c.Timeout), MinTimeout, MaxTimeout)
	}
	switch {
	case c.CORSOrigin == "":
		l.At("cors_origin",
			"is required: the origin of the page that uploads, such as https://example.com, or * for any")
	case c.CORSOrigin == AnyOrigin:
	case field.WebURL(&l, "cors_origin", c.CORSOrigin) && Origin(c.CORSOrigin) == "":
		l.At("cors_origin", "must be an origin such as https://example.com, or *")
	}
	c.Options.Check(&l, "new_asset_settings", assetopt.ForUpload)
	return l.Err()
}

// Origin is the origin of a URL as browsers write it (RFC 6454 section 6.2): in lower case, without the port that its
// scheme implies; "" where there is none.
func Origin(raw string) string {
	u, err := url.Parse(strings.ToLower(raw))
	if err != nil || u.Host == "" || u.User != nil {
		return ""
	}
	implied := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	if implied == "" {
		return ""
	}
	return u.Scheme + "://" + strings.TrimSuffix(u.Host, implied)
}

// Allows reports whether a page of an origin may upload.
func (u *Upload) Allows(origin string) bool {
	return u.CORSOrigin == AnyOrigin || Origin(origin) != "" && Origin(origin) == Origin(u.CORSOrigin)
}
