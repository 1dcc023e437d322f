// Package config is the only reader of flags, environment variables and the configuration file. It turns them into
// typed values, once. One table of settings yields the flags, the MILLRACE_* names, the YAML keys, the help text and
// docs/settings.md. It must never know what a value is used for: it opens nothing and connects to nothing. It
// owns no goroutines.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Engines and kinds of storage.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	Folder   = "folder"
	S3       = "s3"
)

// Secret is text that prints as a mask; Reveal gives the text.
type Secret string

// Reveal returns the text itself.
func (s Secret) Reveal() string { return string(s) }

// String masks the text, so that no log, error or %v shows it.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return mask
}

// GoString masks the text for %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText masks the text for JSON and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

const mask = "********"

// Database says which engine keeps the rows.
type Database struct {
	Engine string // SQLite or Postgres
	Path   string // SQLite: the file
	URL    Secret // Postgres: postgres://user:password@host/name?…

	// Direct is the URL of the server itself, where URL leads to a pooler of transactions; empty: URL is.
	Direct Secret

	// MustExist reports whether a file that is not there is an error: only serve and demo, and --create, make one.
	MustExist bool
	// UpgradeBackup backs up the rows before the schema is migrated.
	UpgradeBackup bool
}

// Address is where the database is: a path or a URL, with its password.
func (d Database) Address() string {
	if d.Engine == Postgres {
		return d.URL.Reveal()
	}
	return d.Path
}

// Server is Address, but of the server itself where that is a pooler's.
func (d Database) Server() string {
	if d.Direct != "" {
		return d.Direct.Reveal()
	}
	return d.Address()
}

// Speech says what recognises speech.
type Speech struct {
	Program string   // millrace-speech; empty: the one beside this program
	Rules   string   // language=engine,…
	Servers []string // engine=URL
	Model   string   // that servers are asked for
	Key     Secret   // of servers
	// FFmpegModel is the file of a model for ffmpeg's filter; empty: the filter is not used.
	FFmpegModel string
	// Requests is how many a server is sent at once.
	Requests int
}

// Storage says where media is kept.
type Storage struct {
	Kind string // Folder or S3
	Path string // Folder: the directory
	// as the blob store reads it: a path, file:///…, or s3://bucket?region=…, with what AWS_* in the environment adds
	URL Secret
}

// AWS holds the credentials for S3, from the standard environment variables of the AWS tools.
type AWS struct {
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret
	Region          string
	EndpointURL     string // empty: Amazon's own
}

// Runtime are settings of Go's runtime, which reads them too.
type Runtime struct {
	GOGC     string
	GOMemory string // GOMEMLIMIT
}

// ICEServer is a STUN or TURN server for WHIP encoders.
type ICEServer struct {
	URL        string // stun:host:port, turn:host:port?transport=…, turns:…
	Username   string // of TURN
	Credential Secret
}

// Config holds every setting as a typed value. Relative paths are relative to the working directory.
type Config struct {
	DataDir     string
	HTTPAddr    string // host:port; port 0 takes a free one
	HTTPSAddr   string // used only with TLS()
	TLSCert     string // PEM file, set together with TLSKey or not at all
	TLSKey      string
	RTMPAddr    string
	RTMPSAddr   string // used only with TLS()
	MetricsAddr string // empty: none
	SRTAddr     string // UDP

	WebRTCUDPAddr    string // empty: none
	WebRTCTCPAddr    string // empty: none
	WebRTCPublicIPs  []netip.Addr
	WebRTCICEServers []ICEServer

	ACMEDomains   []string // certificates come over ACME; excludes TLSCert
	ACMEEmail     string
	ACMEDirectory string // URL

	InternalAddr    string // where other nodes connect; empty: none do
	InternalTLSCert string // PEM file, set together with InternalTLSKey or not at all
	InternalTLSKey  string
	InternalTLSCA   string   // PEM file; empty: the system's authorities, and callers show no certificate
	AdvertiseURL    *url.URL // nil: see AdvertisedBase

	PublicURL     *url.URL // nil: see PublicBase
	RTMPPublicURL *url.URL // nil: see RTMPBase

	Database Database
	Storage  Storage
	AWS      AWS
	Runtime

	MasterKeyFile string // empty: MasterKey, or the file in DataDir
	MasterKey     Secret

	FetchAllow     []netip.Prefix // may be reached by downloads although private
	MaxUploadBytes int64          // largest file that is downloaded or uploaded, in bytes
	UploadQuota    int64          // bytes of the direct uploads of one environment that are under way

	PlaybackSessionMax time.Duration // how long somebody may watch who began with a good token; 0: until that expires

	LiveRungs   string // on_demand, always or off
	H264Encoder string // x264, nvenc, qsv, vaapi, videotoolbox
	LogFormat   string // text or json
	Speech      Speech
	LogLevel    slog.Level
	Traces      Traces

	TokenID     string // seeded access token; empty: none
	TokenSecret Secret

	Node                     Node          // this one among others
	MaxConnectionsPerAddress int           // concurrent ingest connections of one IP address, at least 1
	WorkerConcurrency        int           // what the places of jobs follow from (job.Class); 0: one per CPU
	ShutdownTimeout          time.Duration // longest drain
	EventRetention           time.Duration
	AuditRetention           time.Duration
	APIRateToken             int            // requests per second; 0: any number
	APIRateAddress           int            // likewise
	LicenceRateAddress       int            // likewise
	Dashboard                bool           // /dashboard is served
	HSTSMaxAge               time.Duration  // 0: none
	TrustedProxies           []netip.Prefix // nil: loopback and private networks

	File     string   // the configuration file that was read; empty: none
	Warnings []string // plain sentences on what looks like a mistake but stops nothing

	values []Value
}

// TLS reports whether HTTPS and RTMPS are served.
func (c Config) TLS() bool { return c.TLSCert != "" || len(c.ACMEDomains) > 0 }

// WebRTC reports whether WHIP encoders are taken.
func (c Config) WebRTC() bool { return c.WebRTCUDPAddr != "" || c.WebRTCTCPAddr != "" }

// Given reports whether the setting was set by flag, environment or file rather than by its default.
func (c Config) Given(name string) bool {
	for _, v := range c.values {
		if v.Setting.Name == name {
			return v.Source != FromDefault
		}
	}
	return false
}

// PublicBase returns the URL under which API and playback are reached: public-url, or one made from the address that is
// listened on.
func (c Config) PublicBase(httpAddr string) *url.URL {
	if c.PublicURL != nil {
		u := *c.PublicURL
		return &u
	}
	return &url.URL{Scheme: "http", Host: reachable(httpAddr)}
}

// RTMPBase returns the URL encoders publish to, without the stream key: rtmp-public-url, or the host of public-url with
// the port that is listened on.
func (c Config) RTMPBase(rtmpAddr string) *url.URL {
	if c.RTMPPublicURL != nil {
		u := *c.RTMPPublicURL
		return &u
	}
	host := reachable(rtmpAddr)
	if c.PublicURL != nil {
		if _, port, err := net.SplitHostPort(host); err == nil {
			host = net.JoinHostPort(c.PublicURL.Hostname(), port)
		}
	}
	return &url.URL{Scheme: "rtmp", Host: strings.TrimSuffix(host, ":1935"), Path: "/app"}
}

// reachable turns an address to listen on into one to connect to: an unspecified host becomes localhost.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// derive fills what follows from other settings.
func (c *Config) derive() {
	if c.Database.Engine == "" {
		c.Database.Engine, c.Database.Path = SQLite, filepath.Join(c.DataDir, "millrace.db")
	}
	if c.Storage.Kind == "" {
		path := filepath.Join(c.DataDir, "storage")
		c.Storage = Storage{Kind: Folder, Path: path, URL: Secret(path)}
	}
	if c.Storage.Kind == S3 {
		c.Storage.URL = c.AWS.complete(c.Storage.URL)
	}
}

// halfCredentials reports whether a storage URL has one of the two parts of credentials. With none of them the storage
// finds its own.
func (s Storage) halfCredentials() bool {
	u, err := url.Parse(s.URL.Reveal())
	return err == nil && (u.Query().Get("access_key_id") == "") != (u.Query().Get("secret_access_key") == "")
}

// complete adds to a storage URL what it does not say itself. Credentials belong together: they are added all or none.
func (a AWS) complete(raw Secret) Secret {
	u, err := url.Parse(raw.Reveal())
	if err != nil {
		return raw
	}
	q := u.Query()
	if !q.Has("access_key_id") && a.AccessKeyID != "" {
		q.Set("access_key_id", a.AccessKeyID)
		q.Set("secret_access_key", a.SecretAccessKey.Reveal())
		if a.SessionToken != "" {
			q.Set("session_token", a.SessionToken.Reveal())
		}
	}
	if !q.Has("region") && a.Region != "" {
		q.Set("region", a.Region)
	}
	if !q.Has("endpoint") && a.EndpointURL != "" {
		q.Set("endpoint", a.EndpointURL)
	}
	u.RawQuery = q.Encode()
	return Secret(u.String())
}

// conflicts lists what is wrong between settings that are right by themselves.
func (c *Config) conflicts() (problems []string) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		problems = append(problems, "tls-cert and tls-key belong together: set both for HTTPS, or neither")
	}
	if c.MasterKeyFile != "" && c.MasterKey != "" {
		problems = append(problems,
			"master-key-file and MILLRACE_MASTER_KEY are two ways to give the master key: set one of them")
	}
	if c.TLSCert != "" && len(c.ACMEDomains) > 0 {
		problems = append(problems, "tls-cert and acme-domain are two ways to have a certificate: set one of them")
	}
	for _, name := range []string{"https-addr", "rtmps-addr"} {
		if !c.TLS() && c.Given(name) {
			problems = append(problems, name+" needs a certificate: set tls-cert and tls-key, or acme-domain")
		}
	}
	if (c.TokenID == "") != (c.TokenSecret == "") {
		problems = append(problems,
			"token-id and token-secret belong together: set both to seed an access token, or neither")
	}
	if c.Storage.Kind == S3 && c.Storage.halfCredentials() {
		problems = append(problems,
			"of the credentials for S3 one half is missing: set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in "+
				"the environment, or neither to use the role of the machine or pod")
	}
	if c.Database.Direct != "" && c.Database.Engine != Postgres {
		problems = append(problems, "database-direct-url is the address of the PostgreSQL server behind database-url: "+
			"set that too")
	}
	problems = append(problems, c.internalConflicts()...)
	return append(problems, c.sharedPorts()...)
}

// sharedPorts lists the addresses that two settings have. A UDP port may have the number of a TCP port.
func (c *Config) sharedPorts() (problems []string) {
	used := map[string]string{}
	for _, l := range []struct{ name, addr, network string }{
		{"http-addr", c.HTTPAddr, "tcp"},
		{"rtmp-addr", c.RTMPAddr, "tcp"},
		{"https-addr", c.HTTPSAddr, "tcp"},
		{"rtmps-addr", c.RTMPSAddr, "tcp"},
		{"metrics-addr", c.MetricsAddr, "tcp"},
		{"internal-addr", c.InternalAddr, "tcp"},
		{"webrtc-tcp-addr", c.WebRTCTCPAddr, "tcp"},
		{"srt-addr", c.SRTAddr, "udp"},
		{"webrtc-udp-addr", c.WebRTCUDPAddr, "udp"},
	} {
		if (l.name == "https-addr" || l.name == "rtmps-addr") && !c.TLS() || strings.HasSuffix(l.addr, ":0") {
			continue
		}
		if other := used[l.network+l.addr]; other != "" && l.addr != "" {
			problems = append(problems, other+" and "+l.name+" are both "+l.addr+": give each its own port")
		}
		used[l.network+l.addr] = l.name
	}
	return problems
}

// Node is what tells a node from others, and what others do for it.
type Node struct {
	ID         string // empty: made at the first start and kept in DataDir
	Zone       string // where it is; empty: nobody has said
	LiveCopies int    // 1 or 2: how many nodes have what storage does not have yet of a live stream
	Roles      Roles  // what it does
}
