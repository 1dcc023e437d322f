package restriction

import (
	"net/netip"
	"net/url"
	"strings"

	"millrace/internal/control/field"
	"millrace/internal/fault"
)

const (
	// MaxDomains is how many domains a restriction may name.
	MaxDomains = 10
	// maxRestrictions is how many an environment may have.
	maxRestrictions = 100
	maxHost         = 253 // characters of a host name, RFC 1035 section 2.3.4
	anyDomain       = "*"
)

// Codes of the errors that refuse a viewer.
const (
	CodeReferrer  = "referrer_denied"
	CodeUserAgent = "user_agent_denied"
	CodeUnknown   = "restriction_unknown" // the token's playback restriction is deleted
)

// check refuses domains that no referrer can match, so that nobody is surprised by them.
func (r *Referrer) check() error {
	var l fault.List
	if !field.Count(&l, "referrer.allowed_domains", len(r.AllowedDomains), MaxDomains) {
		return l.Err()
	}
	domains := make([]string, 0, len(r.AllowedDomains))
	for i, d := range r.AllowedDomains {
		d = strings.ToLower(d)
		if d != anyDomain && !isHost(strings.TrimPrefix(d, "*.")) {
			l.At(field.At("referrer.allowed_domains", i),
				"must be a host name such as example.com or *.example.com, or *")
		}
		domains = append(domains, d)
	}
	r.AllowedDomains = domains
	return l.Err()
}

// isHost reports whether s is a host name, in ASCII (as a browser sends it), or an address.
func isHost(s string) bool {
	if s == "" || len(s) > maxHost {
		return false
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Zone() == ""
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// Permits reports whether a request with these values of the fields Referer and User-Agent may be responded to;
// fault.Denied if not.
func (r Restriction) Permits(referrers, agents []string) error {
	if !r.Referrer.permits(referrers) {
		return fault.Coded(fault.Denied, CodeReferrer, "the playback restriction does not allow this referrer")
	}
	if !r.UserAgent.permits(agents) {
		return fault.Coded(fault.Denied, CodeUserAgent, "the playback restriction does not allow this user agent")
	}
	return nil
}

func (r Referrer) permits(given []string) bool {
	if len(given) == 0 || len(given) == 1 && given[0] == "" {
		return r.AllowNoReferrer
	}
	if len(given) > 1 { // nobody sends two who has nothing to hide
		return false
	}
	host, ok := hostOf(given[0])
	if !ok {
		return false
	}
	for _, d := range r.AllowedDomains {
		if covers(d, host) {
			return true
		}
	}
	return false
}

// hostOf is the host of a page's URL, in lower case, without port and last dot.
func hostOf(referrer string) (string, bool) {
	u, err := url.Parse(referrer)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return "", false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return host, isHost(host)
}

// covers reports whether a domain of a restriction stands for a host.
func covers(domain, host string) bool {
	if domain == anyDomain || domain == host || strings.Trim(domain, "[]") == host {
		return true
	}
	parent, wild := strings.CutPrefix(domain, "*.")
	if !wild {
		return false
	}
	label, rest, ok := strings.Cut(host, ".")
	return ok && label != "" && rest == parent
}

// highRisk are parts of the user agents, in lower case, of programs that people download with, and of programs that say
// nothing better of themselves than the library they are made with.
var highRisk = []string{ //nolint:gochecknoglobals // a table
	"curl/", "wget", "python", "aiohttp", "scrapy", "go-http-client", "java/", "apache-httpclient", "libwww", "lwp::",
	"perl", "ruby", "php/", "guzzle",
	"node-fetch", "axios", "undici", "httpie", "postman", "insomnia", "aria2", "axel", "youtube-dl", "yt-dlp",
	"streamlink", "ffmpeg", "lavf/", "vlc",
	"mpv", "mplayer", "n_m3u8dl", "hlsdl", "jdownloader", "internet download manager", "idman", "httrack",
	"headlesschrome", "phantomjs", "selenium",
}

func (u UserAgent) permits(given []string) bool {
	if len(given) == 0 || len(given) == 1 && strings.TrimSpace(given[0]) == "" {
		return u.AllowNone
	}
	if u.AllowHighRisk {
		return true
	}
	for _, agent := range given {
		agent = strings.ToLower(agent)
		for _, part := range highRisk {
			if strings.Contains(agent, part) {
				return false
			}
		}
	}
	return true
}
