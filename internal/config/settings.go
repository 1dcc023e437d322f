package config

import (
	"net/netip"
	"net/url"
	"strings"
)

// Kind says what a value looks like; it is the word after the flag in the help text.
type Kind string

// The kinds.
const (
	KindText     Kind = "text"
	KindPath     Kind = "path"
	KindAddress  Kind = "host:port"
	KindURL      Kind = "url"
	KindNumber   Kind = "number"
	KindBytes    Kind = "size"
	KindDuration Kind = "duration"
	KindPrefixes Kind = "cidr,…"
	KindChoice   Kind = "word"
	KindNames    Kind = "name,…"
	KindIPs      Kind = "ip,…"
)

// Setting is one row of the table from which flags, environment names, YAML keys and all documentation are made.
type Setting struct {
	Name    string // flag --name and YAML key name
	Kind    Kind
	Default string // as it would be written; "" has its meaning in Absent
	Absent  string // what holds when nothing is given, in words
	Help    string // one or two sentences
	Secret  bool   // masked wherever it is printed
	NoFlag  bool   // environment and file only, because process lists show flags
	Foreign string // environment name that is not ours (AWS_…); such a setting is neither flag nor YAML key

	apply func(c *Config, text string) error
}

// Env is the setting's name in the environment.
func (s Setting) Env() string {
	if s.Foreign != "" {
		return s.Foreign
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Flag says whether the setting can be given on the command line.
func (s Setting) Flag() bool { return !s.NoFlag && s.Foreign == "" }

// DefaultText is the default in words.
func (s Setting) DefaultText() string {
	if s.Default == "" {
		return s.Absent
	}
	return s.Default
}

const (
	envPrefix = "MILLRACE_"
	envFile   = envPrefix + "CONFIG"
)

// into makes the function that parses a text and stores the value in a field.
func into[T any](parse func(string) (T, error), field func(*Config) *T) func(*Config, string) error {
	return func(c *Config, text string) error {
		v, err := parse(text)
		if err != nil {
			return err
		}
		*field(c) = v
		return nil
	}
}

// Settings returns the table.
func Settings() []Setting { return settings }

//nolint:gochecknoglobals // a table
var settings = []Setting{
	{
		Name: "data-dir", Kind: KindPath, Default: "millrace-data",
		Help:  "Folder for everything that is kept: database, media, work files.",
		apply: into(parsePath, func(c *Config) *string { return &c.DataDir }),
	},
	{
		Name: "http-addr", Kind: KindAddress, Default: ":8080",
		Help:  "Where API and playback listen. Port 0 takes a free port and logs it.",
		apply: into(parseAddress, func(c *Config) *string { return &c.HTTPAddr }),
	},
	{
		Name: "https-addr", Kind: KindAddress, Default: ":8443",
		Help:  "Where the same is served over HTTPS. Used only with a certificate: tls-cert and tls-key, or acme-domain.",
		apply: into(parseAddress, func(c *Config) *string { return &c.HTTPSAddr }),
	},
	{
		Name: "tls-cert", Kind: KindPath, Absent: "no HTTPS, no RTMPS",
		Help:  "PEM file with the certificate chain. It and tls-key are read again when they change, and on SIGHUP.",
		apply: into(parseText, func(c *Config) *string { return &c.TLSCert }),
	},
	{
		Name: "tls-key", Kind: KindPath, Absent: "no HTTPS, no RTMPS",
		Help:  "PEM file with the certificate's private key.",
		apply: into(parseText, func(c *Config) *string { return &c.TLSKey }),
	},
	{
		Name: "acme-domain", Kind: KindNames, Absent: "certificate from files, or none",
		Help:  "Names to get a certificate for over ACME instead, which accepts the authority's terms of service. It must reach this service at them: http-addr on port 80, or https-addr on port 443.",
		apply: into(parseDomains, func(c *Config) *[]string { return &c.ACMEDomains }),
	},
	{
		Name: "acme-email", Kind: KindText, Absent: "none",
		Help:  "Where the authority may write to about these certificates.",
		apply: into(parseEmail, func(c *Config) *string { return &c.ACMEEmail }),
	},
	{
		Name: "acme-directory", Kind: KindURL, Default: "https://acme-v02.api.letsencrypt.org/directory",
		Help:  "Directory URL of the certificate authority. One with a private address needs fetch-allow, one with a private root SSL_CERT_FILE.",
		apply: into(parseDirectory, func(c *Config) *string { return &c.ACMEDirectory }),
	},
	{
		Name: "rtmp-addr", Kind: KindAddress, Default: ":1935",
		Help:  "Where encoders connect over RTMP.",
		apply: into(parseAddress, func(c *Config) *string { return &c.RTMPAddr }),
	},
	{
		Name: "rtmps-addr", Kind: KindAddress, Default: ":1936",
		Help:  "Where encoders connect over RTMPS. Used only with a certificate, the one of HTTPS.",
		apply: into(parseAddress, func(c *Config) *string { return &c.RTMPSAddr }),
	},
	{
		Name: "srt-addr", Kind: KindAddress, Default: ":6001",
		Help:  "Where encoders connect over SRT, which is UDP.",
		apply: into(parseAddress, func(c *Config) *string { return &c.SRTAddr }),
	},
	{
		Name: "webrtc-udp-addr", Kind: KindAddress, Default: ":8189",
		Help:  "Where browsers and other WHIP encoders send their media, over UDP: one port for all of them. off takes none over UDP.",
		apply: into(parseSocket, func(c *Config) *string { return &c.WebRTCUDPAddr }),
	},
	{
		Name: "webrtc-tcp-addr", Kind: KindAddress, Default: ":8189",
		Help:  "The same over TCP, for networks that let no UDP through. off takes none over TCP; off for both is no WHIP.",
		apply: into(parseSocket, func(c *Config) *string { return &c.WebRTCTCPAddr }),
	},
	{
		Name: "webrtc-public-ip", Kind: KindIPs, Absent: "the addresses of this machine",
		Help:  "Addresses at which both are reached from outside, where the machine does not know them: behind a NAT, in a container.",
		apply: into(parseIPs, func(c *Config) *[]netip.Addr { return &c.WebRTCPublicIPs }),
	},
	{
		Name: "webrtc-ice-servers", Kind: KindText, Absent: "none", Secret: true, NoFlag: true,
		Help:  "STUN and TURN servers that WHIP encoders are told of, with commas between: stun:host:port, turn:user:password@host:port?transport=tcp, turns:….",
		apply: into(parseICEServers, func(c *Config) *[]ICEServer { return &c.WebRTCICEServers }),
	},
	{
		Name: "metrics-addr", Kind: KindAddress, Default: "off",
		Help:  "Where /metrics listens, in the form of Prometheus, or off. Everybody who reaches it may read it, so give an address inside, for example 127.0.0.1:9464.",
		apply: into(parseSocket, func(c *Config) *string { return &c.MetricsAddr }),
	},
	{
		Name: "public-url", Kind: KindURL, Absent: "made from http-addr",
		Help:  "URL under which viewers and API clients reach this service, for example https://video.example.org.",
		apply: into(parseWebURL, func(c *Config) **url.URL { return &c.PublicURL }),
	},
	{
		Name: "rtmp-public-url", Kind: KindURL, Absent: "host of public-url, port of rtmp-addr, /app",
		Help:  "URL that encoders are told to publish to, without the stream key.",
		apply: into(parseRTMPURL, func(c *Config) **url.URL { return &c.RTMPPublicURL }),
	},
	{ //nolint:gosec // the password is an example
		Name: "database-url", Kind: KindURL, Absent: "SQLite file millrace.db in data-dir",
		Help:  "sqlite:/path/to/file.db or postgres://user:password@host/name.",
		apply: into(parseDatabase, func(c *Config) *Database { return &c.Database }),
	},
	{
		Name: "storage-url", Kind: KindURL, Absent: "folder storage in data-dir",
		Help:  "Where media is kept: file:///path/to/folder or s3://bucket?region=…&endpoint=…&path_style=true&prefix=…. Credentials for S3 come from AWS_* in the environment, or from where AWS tools find them: profile, web identity, role of the container or machine.",
		apply: into(parseStorage, func(c *Config) *Storage { return &c.Storage }),
	},
	{
		Name: "fetch-allow", Kind: KindPrefixes, Absent: "public addresses only",
		Help:  "Private address ranges that downloads may reach nevertheless, for example 10.0.0.0/8,127.0.0.0/8.",
		apply: into(parsePrefixes, func(c *Config) *[]netip.Prefix { return &c.FetchAllow }),
	},
	{
		Name: "max-upload-bytes", Kind: KindBytes, Default: "50GiB",
		Help:  "Largest file that is downloaded from a URL. Units: kB, MB, GB, KiB, MiB, GiB.",
		apply: into(parseBytes, func(c *Config) *int64 { return &c.MaxUploadBytes }),
	},
	{
		Name: "live-rungs", Kind: KindChoice, Default: "on_demand",
		Help:  "When live streams are encoded in lower sizes: on_demand while somebody watches those, always, or off.",
		apply: into(oneOf("on_demand", "always", "off"), func(c *Config) *string { return &c.LiveRungs }),
	},
	{
		Name: "h264-encoder", Kind: KindChoice, Default: "x264",
		Help:  "What encodes pictures: x264 on the processor, or hardware: nvenc, qsv, vaapi or videotoolbox, which millrace doctor tries. The service does not start with one that does not encode.",
		apply: into(oneOf("x264", "nvenc", "qsv", "vaapi", "videotoolbox"), func(c *Config) *string { return &c.H264Encoder }),
	},
	{
		Name: "log-format", Kind: KindChoice, Default: "text",
		Help:  "text for people, json for machines.",
		apply: into(oneOf("text", "json"), func(c *Config) *string { return &c.LogFormat }),
	},
	{
		Name: "log-level", Kind: KindChoice, Default: "info",
		Help:  "debug, info, warn or error.",
		apply: applyLevel,
	},
	{
		Name: "token-id", Kind: KindText, Absent: "one token is made at the first start and printed once", NoFlag: true,
		Help:  "ID of an access token that exists from the start. For containers.",
		apply: into(parseTokenID, func(c *Config) *string { return &c.TokenID }),
	},
	{
		Name: "token-secret", Kind: KindText, Absent: "none", Secret: true, NoFlag: true,
		Help:  "Secret of that token, 16 characters or more.",
		apply: into(parseTokenSecret, func(c *Config) *Secret { return &c.TokenSecret }),
	},
	{
		Name: "node-id", Kind: KindText, Absent: "made at the first start and kept in data-dir",
		Help:  "Name of this process among others on the same database. No two processes may share one.",
		apply: into(parseNodeID, func(c *Config) *string { return &c.NodeID }),
	},
	{
		Name: "max-connections-per-address", Kind: KindNumber, Default: "16",
		Help:  "Encoder connections that one IP address may hold at a time.",
		apply: into(number(1, 1_000_000), func(c *Config) *int { return &c.MaxConnectionsPerAddress }),
	},
	{
		Name: "worker-concurrency", Kind: KindNumber, Default: "0",
		Help:  "Jobs (clips, files to download, deletions) that run at a time, beside eight times as many that fetch files from URLs. 0 is one per CPU.",
		apply: into(number(0, 1024), func(c *Config) *int { return &c.WorkerConcurrency }),
	},
	{
		Name: "shutdown-timeout", Kind: KindDuration, Default: "30s",
		Help:  "Longest time that live streams and jobs get to finish after Ctrl-C or SIGTERM.",
		apply: applyShutdown,
	},
	{
		Name: "aws-access-key-id", Foreign: "AWS_ACCESS_KEY_ID", Kind: KindText, Absent: "found as AWS tools do",
		Help:  "Credentials for S3.",
		apply: into(parseText, func(c *Config) *string { return &c.AWS.AccessKeyID }),
	},
	{
		Name: "aws-secret-access-key", Foreign: "AWS_SECRET_ACCESS_KEY", Kind: KindText, Absent: "found as AWS tools do", Secret: true,
		Help:  "Second part of them.",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.AWS.SecretAccessKey }),
	},
	{
		Name: "aws-session-token", Foreign: "AWS_SESSION_TOKEN", Kind: KindText, Absent: "none", Secret: true,
		Help:  "Third part of them, of temporary ones.",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.AWS.SessionToken }),
	},
	{
		Name: "aws-region", Foreign: "AWS_REGION", Kind: KindText, Absent: "region in storage-url",
		Help:  "Region of the S3 bucket when storage-url names none.",
		apply: into(parseText, func(c *Config) *string { return &c.AWS.Region }),
	},
	{
		Name: "aws-endpoint-url", Foreign: "AWS_ENDPOINT_URL", Kind: KindURL, Absent: "endpoint in storage-url, or Amazon's",
		Help:  "Address of an S3-compatible server when storage-url names none.",
		apply: into(parseEndpoint, func(c *Config) *string { return &c.AWS.EndpointURL }),
	},
}
