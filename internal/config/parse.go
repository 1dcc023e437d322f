package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"
)

// A parser's error completes the sentence `http-addr "x" …`; it never repeats the value, which may be a secret.

func parseText(s string) (string, error) { return s, nil }

func parseSecret(s string) (Secret, error) { return Secret(s), nil }

func parsePath(s string) (string, error) {
	if s == "" {
		return "", errors.New("is empty: name a folder")
	}
	return s, nil
}

func parseAddress(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "",
			errors.New("is not an address to listen on: write host:port or :port, for example :8080 or 127.0.0.1:8080")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", errors.New("has no port between 0 and 65535 after its last colon")
	}
	if strings.ContainsAny(host, "/ @") {
		return "", errors.New("is not an address to listen on: write host:port without scheme or path")
	}
	return s, nil
}

// parseSocket reads an address to listen on that may be left out.
func parseSocket(s string) (string, error) {
	if s == "off" {
		return "", nil
	}
	addr, err := parseAddress(s)
	if err != nil {
		return "", fmt.Errorf("%w, or off", err)
	}
	return addr, nil
}

func parseIPs(s string) ([]netip.Addr, error) {
	var out []netip.Addr
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		a, err := netip.ParseAddr(item)
		if err != nil || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() {
			return nil,
				fmt.Errorf("has the part %q, which is not an address that can be reached: write it as 203.0.113.7 or "+
					"2001:db8::7, several with commas between", item)
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

var errICEServer = errors.New("has a part that is no STUN or TURN server: write stun:host:port or " +
	"turn:user:password@host:port?transport=tcp, several with commas between")

// parseICEServers reads URLs of RFC 7064 and 7065, those of TURN with user and password before the host. No error shows
// a part: it may be a password.
func parseICEServers(s string) ([]ICEServer, error) {
	var out []ICEServer
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		scheme, rest, ok := strings.Cut(item, ":")
		if !ok || !slices.Contains([]string{"stun", "stuns", "turn", "turns"}, scheme) {
			return nil, errICEServer
		}
		var server ICEServer
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			user, password, both := strings.Cut(rest[:at], ":")
			if !both || user == "" || password == "" {
				return nil, errICEServer
			}
			server.Username, server.Credential, rest = user, Secret(password), rest[at+1:]
		}
		host, query, _ := strings.Cut(rest, "?")
		if turn := strings.HasPrefix(scheme, "turn"); turn != (server.Username != "") || !isHost(host) ||
			!slices.Contains([]string{"", "transport=udp", "transport=tcp"}, query) || !turn && query != "" {
			return nil, errICEServer
		}
		server.URL = scheme + ":" + rest
		out = append(out, server)
	}
	return out, nil
}

// isHost reports whether s is a host with or without a port.
func isHost(s string) bool {
	u, err := url.Parse("any://" + s)
	return err == nil && u.Hostname() != "" && u.Host == s
}

func parseAbsolute(s string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains(schemes, u.Scheme) {
		return nil, fmt.Errorf("is not a URL that starts with %s:// and has a host", strings.Join(schemes, ":// or "))
	}
	if u.User != nil {
		return nil, errors.New("has a user or password in it, and this URL is shown to others: take it out")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("has a part after ? or # that has no meaning here: take it out")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

func parseWebURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // nil is the documented value of "not given"
	}
	return parseAbsolute(s, "http", "https")
}

func parseRTMPURL(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // nil is the documented value of "not given"
	}
	return parseAbsolute(s, "rtmp", "rtmps")
}

// parseDirectory reads an ACME directory, RFC 8555 section 7.1.1. What is said to it is signed, but its response is
// not.
func parseDirectory(s string) (string, error) {
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", errors.New("is not a URL that starts with https:// and has a host")
	}
	return s, nil
}

// parseDomains reads names that a certificate authority can check over HTTP or TLS: no addresses, no wildcards.
func parseDomains(s string) ([]string, error) {
	var out []string
	for item := range strings.SplitSeq(s, ",") {
		item = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(item), "."))
		if item == "" {
			continue
		}
		name, err := idna.Lookup.ToASCII(item)
		if err != nil || !strings.Contains(name, ".") || strings.ContainsAny(name, "*:/@") {
			return nil,
				fmt.Errorf("has the part %q, which is not a whole domain name: write it as video.example.org, "+
					"several with commas between", item)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			return nil, fmt.Errorf("has the part %q, which is an address: certificates are for names", item)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

func parseEmail(s string) (string, error) {
	if a, err := mail.ParseAddress(s); s != "" && (err != nil || a.Address != s) {
		return "", errors.New("is not an e-mail address: write it as name@example.org")
	}
	return s, nil
}

func parseEndpoint(s string) (string, error) {
	u, err := parseWebURL(s)
	if err != nil || u == nil {
		return "", err
	}
	return u.String(), nil
}

func parseDatabase(s string) (Database, error) {
	if s == "" {
		return Database{}, nil
	}
	if path, ok := strings.CutPrefix(s, "sqlite:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" || strings.Contains(path, "?") {
			return Database{}, errors.New("names no file: write sqlite:/path/to/file.db, without options")
		}
		return Database{Engine: SQLite, Path: path}, nil
	}
	u, err := databaseURL(s)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return Database{},
			errors.New("is not a database URL: write sqlite:/path/to/file.db or postgres://user:password@host/name")
	}
	if strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "" {
		return Database{}, errors.New("names no database: write postgres://user:password@host/name")
	}
	return Database{Engine: Postgres, URL: Secret(s)}, nil
}

// databaseURL is url.Parse for a URL that may name several hosts, of which some are IPv6 addresses. Host has them all.
func databaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	head, rest, _ := strings.Cut(text, "://")
	end := authorityEnd(rest)
	at := strings.LastIndex(rest[:end], "@") + 1
	hosts := rest[at:end]
	if err == nil || !strings.Contains(hosts, ",") || !strings.Contains(hosts, "[") {
		return u, err //nolint:wrapcheck // callers have a text of their own
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if v, bad := url.Parse("any://" + host); bad != nil || v.Host != host {
			return nil, err //nolint:wrapcheck // likewise
		}
	}
	one, _, _ := strings.Cut(hosts, ",")
	if u, err = url.Parse(head + "://" + rest[:at] + one + rest[end:]); err == nil {
		u.Host = hosts
	}
	return u, err //nolint:wrapcheck // likewise
}

// HostsOf are the hosts that a PostgreSQL URL names, as they stand there; empty: none, or they are in its query.
func HostsOf(s Secret) string {
	u, err := databaseURL(s.Reveal())
	if err != nil {
		return ""
	}
	return u.Host
}

// parseServer reads the URL of a PostgreSQL server.
func parseServer(s string) (Secret, error) {
	if s == "" {
		return "", nil
	}
	d, err := parseDatabase(s)
	if err == nil && d.Engine != Postgres {
		err = errors.New("is not the URL of a PostgreSQL server: write postgres://user:password@host/name")
	}
	return d.URL, err
}

func parseStorage(s string) (Storage, error) {
	if s == "" {
		return Storage{}, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return Storage{}, errStorage
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || u.Path == "" {
			return Storage{},
				errors.New("names no folder: write three slashes and the whole path, as in file:///srv/media")
		}
		return Storage{Kind: Folder, Path: u.Path, URL: Secret(s)}, nil
	case "s3":
		if u.User != nil {
			return Storage{},
				errors.New("has credentials in it: put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the " +
					"environment")
		}
		if u.Host == "" {
			return Storage{}, errors.New("names no bucket: write s3://bucket?region=…")
		}
		if strings.Trim(u.Path, "/") != "" {
			return Storage{}, errors.New("has a path after the bucket: write it as s3://bucket?prefix=path")
		}
		return Storage{Kind: S3, URL: Secret(s)}, nil
	case "":
		if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../") {
			return Storage{Kind: Folder, Path: s, URL: Secret(s)}, nil
		}
	}
	return Storage{}, errStorage
}

var errStorage = errors.New("is not a storage URL: write file:///path/to/folder or s3://bucket?region=…")

func parsePrefixes(s string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		p, err := netip.ParsePrefix(item)
		if err != nil {
			a, aerr := netip.ParseAddr(item)
			if aerr != nil || a.Zone() != "" {
				return nil,
					fmt.Errorf("has the part %q, which is not an address range: write it as 10.0.0.0/8 or fd00::/8, "+
						"several with commas between", item)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		if p != p.Masked() {
			return nil, fmt.Errorf("has the part %q, whose address has bits after its prefix: did you mean %s?", item,
				p.Masked())
		}
		out = append(out, p)
	}
	return out, nil
}

//nolint:gochecknoglobals // a table
var units = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10},
	{"mib", 1 << 20},
	{"gib", 1 << 30},
	{"tib", 1 << 40},
	{"kb", 1e3},
	{"mb", 1e6},
	{"gb", 1e9},
	{"tb", 1e12},
	{"b", 1},
	{"", 1},
}

// ParseBytes reads a number of bytes, with a unit or without.
func ParseBytes(s string) (int64, error) { return parseBytes(s) }

func parseBytes(s string) (int64, error) {
	low := strings.ToLower(strings.TrimSpace(s))
	for _, u := range units {
		digits, ok := strings.CutSuffix(low, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(n*u.bytes >= 1 && n*u.bytes <= math.MaxInt64/2) {
			break
		}
		return int64(n * u.bytes), nil
	}
	return 0, errors.New("is not a size: write a number of bytes, or one with a unit as in 500MB or 50GiB")
}

// Number reads a whole number in a range.
func Number(low, high int) func(string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("is not a whole number from %d to %d", low, high)
		}
		return n, nil
	}
}

// ParseDuration reads a duration that is not negative. Its error completes a sentence, as those of all parsers do.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("is not a duration: write a number with a unit, as in 30s, 5m or 1h30m")
	}
	return d, nil
}

func applyShutdown(c *Config, s string) (err error) {
	c.ShutdownTimeout, err = ParseDuration(s)
	if err == nil && (c.ShutdownTimeout < time.Second || c.ShutdownTimeout > time.Hour) {
		err = errors.New("is not between 1s and 1h")
	}
	return err
}

// OneOf reads a word of a list.
func OneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		switch {
		case slices.Contains(words, s):
			return s, nil
		case len(words) == 2:
			return "", fmt.Errorf("is neither %s nor %s", words[0], words[1])
		}
		return "", fmt.Errorf("is none of %s", strings.Join(words, ", "))
	}
}

// onOff reads a switch.
func onOff(s string) (bool, error) {
	word, err := OneOf("on", "off")(s)
	return word == "on", err
}

func applyLevel(c *Config, s string) error {
	word, err := OneOf("debug", "info", "warn", "error")(s)
	if err != nil {
		return err
	}
	return c.LogLevel.UnmarshalText([]byte(word))
}

func parseTokenID(s string) (string, error) {
	if !plain(s, 255) {
		return "", errors.New("is not a token ID: use 1 to 255 of A-Z, a-z, 0-9, - and _; a UUID is usual")
	}
	return s, nil
}

func parseTokenSecret(s string) (Secret, error) {
	if s != "" &&
		(len(s) < 16 || len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })) {
		return "", errors.New("is no good secret: use 16 to 255 printable ASCII characters without spaces")
	}
	return Secret(s), nil
}

func parseNodeID(s string) (string, error) {
	if !plain(strings.ReplaceAll(s, ".", "-"), 100) {
		return "", errors.New("is not a node name: use 1 to 100 of A-Z, a-z, 0-9, -, _ and the full stop")
	}
	return s, nil
}

func parseZone(s string) (string, error) {
	if !plain(strings.ReplaceAll(s, ".", "-"), 100) {
		return "", errors.New("is not a zone: use up to 100 of A-Z, a-z, 0-9, -, _ and the full stop")
	}
	return s, nil
}

// plain reports whether s is empty or has only letters, digits, dash and underscore, at most limit of them.
func plain(s string, limit int) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' && r != '_'
	})
}

func applyPlaybackSession(c *Config, s string) (err error) {
	if c.PlaybackSessionMax = 0; s == "off" {
		return nil
	}
	c.PlaybackSessionMax, err = ParseDuration(s)
	if err == nil && (c.PlaybackSessionMax < time.Minute || c.PlaybackSessionMax > 30*24*time.Hour) {
		return errors.New("is not between 1m and 720h, or off")
	}
	return err
}

// retention reads how long something is kept, some time at least.
func retention(least time.Duration, field func(*Config) *time.Duration) func(*Config, string) error {
	return into(func(s string) (time.Duration, error) {
		d, err := ParseDuration(s)
		if err == nil && (d < least || d > 10*365*24*time.Hour) {
			err = fmt.Errorf("is not between %dh and 87600h", least/time.Hour)
		}
		return d, err
	}, field)
}

// parseProxies reads networks; none is a list without any, which is not the same as no list.
func parseProxies(s string) ([]netip.Prefix, error) {
	if s == "none" {
		return []netip.Prefix{}, nil
	}
	return parsePrefixes(s)
}
