package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
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
	Default string   // as it would be written; "" has its meaning in Absent
	Absent  string   // what holds when nothing is given, in words
	Help    string   // one or two sentences
	Words   []string // KindChoice: what it can be
	Secret  bool     // masked wherever it is printed
	NoFlag  bool     // environment and file only, because process lists show flags
	Foreign string   // environment name that is not ours (AWS_…); such a setting is neither flag nor YAML key

	apply func(c *Config, text string) error
}

// Env is the setting's name in the environment.
func (s Setting) Env() string {
	if s.Foreign != "" {
		return s.Foreign
	}
	return envPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Flag reports whether the setting can be given on the command line.
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
var settings = append(slices.Clip(serviceSettings), traceSettings...)

//nolint:gochecknoglobals // a table
var serviceSettings = []Setting{
	{
		Name: "data-dir", Kind: KindPath, Default: "millrace-data",
		Help:  "Folder for all data: database, media and work files.",
		apply: into(parsePath, func(c *Config) *string { return &c.DataDir }),
	},
	{
		Name: "http-addr", Kind: KindAddress, Default: ":8080",
		Help:  "Address of the API and playback. Port 0 picks a free port and logs it.",
		apply: into(parseAddress, func(c *Config) *string { return &c.HTTPAddr }),
	},
	{
		Name: "https-addr", Kind: KindAddress, Default: ":8443",
		Help:  "The same over HTTPS. Used only with a certificate: tls-cert and tls-key, or acme-domain.",
		apply: into(parseAddress, func(c *Config) *string { return &c.HTTPSAddr }),
	},
	{
		Name: "tls-cert", Kind: KindPath, Absent: "no HTTPS, no RTMPS",
		Help:  "PEM file with the certificate chain. It and tls-key are reloaded when they change, and on SIGHUP.",
		apply: into(parseText, func(c *Config) *string { return &c.TLSCert }),
	},
	{
		Name: "tls-key", Kind: KindPath, Absent: "no HTTPS, no RTMPS",
		Help:  "PEM file with the certificate's private key.",
		apply: into(parseText, func(c *Config) *string { return &c.TLSKey }),
	},
	{
		Name: "hsts-max-age", Kind: KindDuration, Default: "4320h",
		Help: "How long browsers that used HTTPS insist on it (Strict-Transport-Security), for all ports of the " +
			"host. 0s leaves the header out. The default is 180 days.",
		apply: into(ParseDuration, func(c *Config) *time.Duration { return &c.HSTSMaxAge }),
	},
	{
		Name: "acme-domain", Kind: KindNames, Absent: "certificate from files, or none",
		Help: "Domain names to get a certificate for through ACME; this accepts the authority's terms of service. " +
			"The authority must reach this service under them: http-addr on port 80, or https-addr on port 443.",
		apply: into(parseDomains, func(c *Config) *[]string { return &c.ACMEDomains }),
	},
	{
		Name: "acme-email", Kind: KindText, Absent: "none",
		Help:  "Contact address for the authority's messages about these certificates.",
		apply: into(parseEmail, func(c *Config) *string { return &c.ACMEEmail }),
	},
	{
		Name: "acme-directory", Kind: KindURL, Default: "https://acme-v02.api.letsencrypt.org/directory",
		Help: "Directory URL of the certificate authority. A private address needs fetch-allow, a private root " +
			"certificate SSL_CERT_FILE.",
		apply: into(parseDirectory, func(c *Config) *string { return &c.ACMEDirectory }),
	},
	{
		Name: "rtmp-addr", Kind: KindAddress, Default: ":1935",
		Help:  "Address for RTMP encoders.",
		apply: into(parseAddress, func(c *Config) *string { return &c.RTMPAddr }),
	},
	{
		Name: "rtmps-addr", Kind: KindAddress, Default: ":1936",
		Help:  "Address for RTMPS encoders. Used only with a certificate, the same as for HTTPS.",
		apply: into(parseAddress, func(c *Config) *string { return &c.RTMPSAddr }),
	},
	{
		Name: "srt-addr", Kind: KindAddress, Default: ":6001",
		Help:  "Address for SRT encoders (UDP).",
		apply: into(parseAddress, func(c *Config) *string { return &c.SRTAddr }),
	},
	{
		Name: "webrtc-udp-addr", Kind: KindAddress, Default: ":8189",
		Help:  "UDP address for media of browsers and other WHIP encoders, one port for all. off disables UDP.",
		apply: into(parseSocket, func(c *Config) *string { return &c.WebRTCUDPAddr }),
	},
	{
		Name: "webrtc-tcp-addr", Kind: KindAddress, Default: ":8189",
		Help:  "The same over TCP, for networks that block UDP. off disables TCP; with both off WHIP is disabled.",
		apply: into(parseSocket, func(c *Config) *string { return &c.WebRTCTCPAddr }),
	},
	{
		Name: "webrtc-public-ip", Kind: KindIPs, Absent: "the addresses of this machine",
		Help:  "Public addresses of both, if the machine does not know them: behind a NAT, in a container.",
		apply: into(parseIPs, func(c *Config) *[]netip.Addr { return &c.WebRTCPublicIPs }),
	},
	{
		Name: "webrtc-ice-servers", Kind: KindText, Absent: "none", Secret: true, NoFlag: true,
		Help: "STUN and TURN servers to announce to WHIP encoders, separated by commas: stun:host:port, " +
			"turn:user:password@host:port?transport=tcp, turns:….",
		apply: into(parseICEServers, func(c *Config) *[]ICEServer { return &c.WebRTCICEServers }),
	},
	{
		Name: "metrics-addr", Kind: KindAddress, Default: "off",
		Help: "Address of /metrics for Prometheus, or off. Anyone who can reach it can read it, so use a private " +
			"address, for example 127.0.0.1:9464.",
		apply: into(parseSocket, func(c *Config) *string { return &c.MetricsAddr }),
	},
	{
		Name: "internal-addr", Kind: KindAddress, Default: "off",
		Help: "Address for the other nodes on the same database, over HTTP/2: host:port in a private network, " +
			"for example 10.0.0.5:9465. With off this node serves alone. Needs PostgreSQL.",
		apply: into(parseSocket, func(c *Config) *string { return &c.InternalAddr }),
	},
	{
		Name: "internal-tls-cert", Kind: KindPath, Absent: "nodes speak in clear text",
		Help: "PEM file with the certificate chain of internal-addr. It and internal-tls-key are reloaded when " +
			"they change, and on SIGHUP.",
		apply: into(parseText, func(c *Config) *string { return &c.InternalTLSCert }),
	},
	{
		Name: "internal-tls-key", Kind: KindPath, Absent: "nodes speak in clear text",
		Help:  "PEM file with that certificate's private key.",
		apply: into(parseText, func(c *Config) *string { return &c.InternalTLSKey }),
	},
	{
		Name: "internal-tls-ca", Kind: KindPath, Absent: "the system's authorities; callers need no certificate",
		Help: "PEM file with the certificate authorities for verifying other nodes, as servers and as clients. " +
			"Read at startup only.",
		apply: into(parseText, func(c *Config) *string { return &c.InternalTLSCA }),
	},
	{
		Name: "advertise-url", Kind: KindURL, Absent: "made from internal-addr where that names a host",
		Help: "URL where other nodes reach internal-addr of this node, for example http://10.0.0.5:9465. It is " +
			"called at startup and must lead to this node.",
		apply: into(parseAdvertised, func(c *Config) **url.URL { return &c.AdvertiseURL }),
	},
	{
		Name: "public-url", Kind: KindURL, Absent: "made from http-addr",
		Help:  "URL where viewers and API clients reach this service, for example https://video.example.org.",
		apply: into(parseWebURL, func(c *Config) **url.URL { return &c.PublicURL }),
	},
	{
		Name: "rtmp-public-url", Kind: KindURL, Absent: "host of public-url, port of rtmp-addr, /app",
		Help:  "URL for encoders to publish to, without the stream key, as shown to users.",
		apply: into(parseRTMPURL, func(c *Config) **url.URL { return &c.RTMPPublicURL }),
	},
	{
		Name: "database-url", Kind: KindURL, Absent: "SQLite file millrace.db in data-dir",
		Help: "sqlite:/path/to/file.db or postgres://user:password@host/name. Flags are visible in the process " +
			"list: put a password in the settings file or the environment.",
		apply: into(parseDatabase, func(c *Config) *Database { return &c.Database }),
	},
	{
		// After database-url, which sets all of Database.
		Name: "database-direct-url", Kind: KindURL, Absent: "database-url",
		Help: "If database-url leads to a pooler in transaction mode, such as pgbouncer: postgres://… of the " +
			"server itself, for what needs a session.",
		apply: into(parseServer, func(c *Config) *Secret { return &c.Database.Direct }),
	},
	{
		Name: "storage-url", Kind: KindURL, Absent: "folder storage in data-dir",
		Help: "Storage for media: file:///path/to/folder or " +
			"s3://bucket?region=…&endpoint=…&path_style=true&prefix=…. S3 credentials come from AWS_* in the " +
			"environment, or from where AWS tools find them: profile, web identity, role of the container or machine.",
		apply: into(parseStorage, func(c *Config) *Storage { return &c.Storage }),
	},
	{
		// After database-url, which sets all of Database.
		Name: "upgrade-backup", Kind: KindChoice, Default: "on",
		Words: []string{"on", "off"},
		Help:  "Back up the rows of the database into data-dir before a new version migrates its schema.",
		apply: into(onOff, func(c *Config) *bool { return &c.Database.UpgradeBackup }),
	},
	{
		Name: "master-key-file", Kind: KindPath, Absent: "master-key in data-dir, made at the first start",
		Help: "File with the master key, which encrypts stream keys, passphrases and content keys in the database: " +
			"32 bytes in base64 or hexadecimal. All processes on one database need the same key.",
		apply: into(parseText, func(c *Config) *string { return &c.MasterKeyFile }),
	},
	{
		Name: "master-key", Kind: KindText, Absent: "in a file", Secret: true, NoFlag: true,
		Help:  "The master key itself, instead of a file.",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.MasterKey }),
	},
	{
		Name: "fetch-allow", Kind: KindPrefixes, Absent: "public addresses only",
		Help:  "Private address ranges that downloads are allowed to reach, for example 10.0.0.0/8,127.0.0.0/8.",
		apply: into(parsePrefixes, func(c *Config) *[]netip.Prefix { return &c.FetchAllow }),
	},
	{
		Name: "max-upload-bytes", Kind: KindBytes, Default: "50GiB",
		Help:  "Maximum size of a file downloaded from a URL or uploaded. Units: kB, MB, GB, KiB, MiB, GiB.",
		apply: into(parseBytes, func(c *Config) *int64 { return &c.MaxUploadBytes }),
	},
	{
		Name: "upload-quota", Kind: KindBytes, Default: "200GiB",
		Help:  "Maximum total size of one environment's direct uploads in progress; never more than the disk has.",
		apply: into(parseBytes, func(c *Config) *int64 { return &c.UploadQuota }),
	},
	{
		Name: "event-retention", Kind: KindDuration, Default: "720h",
		Help: "How long events and their webhook deliveries are kept; at least 48 hours, as deliveries are retried " +
			"for 24. The default is 30 days.",
		apply: retention(48*time.Hour, func(c *Config) *time.Duration { return &c.EventRetention }),
	},
	{
		Name: "audit-retention", Kind: KindDuration, Default: "2160h",
		Help:  "How long the audit log is kept; at least an hour. The default is 90 days.",
		apply: retention(time.Hour, func(c *Config) *time.Duration { return &c.AuditRetention }),
	},
	{
		Name: "api-rate-token", Kind: KindNumber, Default: "100",
		Help: "API requests per second per access token, with bursts of ten times as many; more are refused with " +
			"429 and Retry-After. 0: no limit.",
		apply: into(Number(0, 1_000_000), func(c *Config) *int { return &c.APIRateToken }),
	},
	{
		Name: "api-rate-address", Kind: KindNumber, Default: "200",
		Help:  "The same per IP address (per /64 for IPv6), whatever its tokens. Does not apply to playback.",
		apply: into(Number(0, 1_000_000), func(c *Config) *int { return &c.APIRateAddress }),
	},
	{
		Name: "licence-rate-address", Kind: KindNumber, Default: "50",
		Help: "Licence requests per second per IP address (per /64 for IPv6), with bursts of ten times as many. 0: " +
			"no limit.",
		apply: into(Number(0, 1_000_000), func(c *Config) *int { return &c.LicenceRateAddress }),
	},
	{
		Name: "dashboard", Kind: KindChoice, Default: "on",
		Words: []string{"on", "off"},
		Help:  "Whether the dashboard is served under /dashboard: on or off.",
		apply: into(onOff, func(c *Config) *bool { return &c.Dashboard }),
	},
	{
		Name: "trusted-proxies", Kind: KindPrefixes, Absent: "loopback and private networks",
		Help: "Networks of reverse proxies trusted to give the client's address, by X-Forwarded-For, Forwarded " +
			"or the PROXY protocol (HTTP and RTMP); used for limits, viewer counts, logs and the audit log. Or " +
			"none.",
		apply: into(parseProxies, func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }),
	},
	{
		Name: "playback-session-max", Kind: KindDuration, Default: "off",
		Help: "How long viewers who started with a valid token may keep watching after it expires: 1m to 720h. " +
			"off: until the token expires. Deleting the signing key always ends it.",
		apply: applyPlaybackSession,
	},
	{
		Name: "live-rungs", Kind: KindChoice, Default: "on_demand",
		Words: []string{"on_demand", "always", "off"},
		Help: "When lower renditions of live streams are encoded: on_demand (while somebody watches them), always " +
			"or off.",
		apply: into(OneOf("on_demand", "always", "off"), func(c *Config) *string { return &c.LiveRungs }),
	},
	{
		Name: "h264-encoder", Kind: KindChoice, Default: "x264",
		Words: []string{"x264", "nvenc", "qsv", "vaapi", "videotoolbox"},
		Help: "Video encoder: x264 on the processor, or the hardware encoders nvenc, qsv, vaapi or videotoolbox, " +
			"which millrace doctor tests. The service does not start with an encoder that does not work.",
		apply: into(OneOf("x264", "nvenc", "qsv", "vaapi", "videotoolbox"), func(c *Config) *string {
			return &c.H264Encoder
		}),
	},
	{
		Name: "speech-engines", Kind: KindText, Absent: "the first engine that supports the language",
		Help: "Speech recognition engine of each language: en=pocketsphinx,*=openai, with none to turn a language " +
			"off. Environments can override it.",
		apply: into(parseRules, func(c *Config) *string { return &c.Speech.Rules }),
	},
	{
		Name: "speech-servers", Kind: KindText, Absent: "none: audio never leaves this machine",
		Help: "Speech recognition servers, as kind=URL separated by commas: openai (anything that offers " +
			"/v1/audio/transcriptions), whisper (whisper.cpp), vosk and sherpa (websockets). A server in a " +
			"private network needs --fetch-allow, unless its URL has its IP address.",
		apply: into(parseServers, func(c *Config) *[]string { return &c.Speech.Servers }),
	},
	{
		Name: "speech-model", Kind: KindText, Default: "whisper-1",
		Help:  "The model to request from servers of the kind openai.",
		apply: into(parseWord, func(c *Config) *string { return &c.Speech.Model }),
	},
	{
		Name: "speech-ffmpeg-model", Kind: KindPath, Absent: "none: ffmpeg's filter whisper is not used",
		Help: "A model in whisper.cpp's format (ggml-base.bin, …) for speech recognition by ffmpeg on this machine, " +
			"if it has the whisper filter. The engine is called ffmpeg.",
		apply: into(parseWord, func(c *Config) *string { return &c.Speech.FFmpegModel }),
	},
	{
		Name: "speech-requests", Kind: KindNumber, Default: "4",
		Help: "Maximum concurrent requests to each speech recognition server, live streams first; whisper always " +
			"gets one at a time. Live streams on websockets (vosk and sherpa) count, but never wait.",
		apply: into(Number(1, 1000), func(c *Config) *int { return &c.Speech.Requests }),
	},
	{
		Name: "speech-key", Kind: KindText, Absent: "none", Secret: true, NoFlag: true,
		Help:  "API key for servers of the kind openai (Authorization: Bearer).",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.Speech.Key }),
	},
	{
		Name: "speech-program", Kind: KindPath, Absent: "millrace-speech beside this program",
		Help:  "The speech recognition program of this machine.",
		apply: into(parseWord, func(c *Config) *string { return &c.Speech.Program }),
	},
	{
		Name: "log-format", Kind: KindChoice, Default: "text",
		Words: []string{"text", "json"},
		Help:  "text for people, json for machines.",
		apply: into(OneOf("text", "json"), func(c *Config) *string { return &c.LogFormat }),
	},
	{
		Name: "log-level", Kind: KindChoice, Default: "info",
		Words: []string{"debug", "info", "warn", "error"},
		Help:  "debug, info, warn or error.",
		apply: applyLevel,
	},
	{
		Name:   "token-id",
		Kind:   KindText,
		Absent: "a token is created at the first start and printed once",
		NoFlag: true,
		Help:   "ID of an access token that exists from the first start on. For containers.",
		apply:  into(parseTokenID, func(c *Config) *string { return &c.TokenID }),
	},
	{
		Name: "token-secret", Kind: KindText, Absent: "none", Secret: true, NoFlag: true,
		Help:  "Secret of that token; at least 16 characters.",
		apply: into(parseTokenSecret, func(c *Config) *Secret { return &c.TokenSecret }),
	},
	{
		Name: "node-id", Kind: KindText, Absent: "generated at the first start and kept in data-dir",
		Help:  "Name of this node; unique among the processes on the same database.",
		apply: into(parseNodeID, func(c *Config) *string { return &c.Node.ID }),
	},
	{
		Name: "zone", Kind: KindText, Absent: "none",
		Help: "Where this node is, such as a rack or data centre: copies of its live streams are kept by a node in " +
			"another zone, if there is one.",
		apply: into(parseZone, func(c *Config) *string { return &c.Node.Zone }),
	},
	{
		Name: "live-copies", Kind: KindNumber, Default: "1",
		Help: "2: another node keeps a copy of the newest media of each live stream, until storage has it, so that " +
			"nothing that was listed is lost if this node dies. Needs internal-addr.",
		apply: into(Number(1, 2), func(c *Config) *int { return &c.Node.LiveCopies }),
	},
	{
		Name: "roles", Kind: KindNames, Default: RoleAll,
		Help: "What this node does: any of api, ingest, playback and worker, separated by commas, or all " +
			"(docs/fleet.md). Anything but all needs PostgreSQL and internal-addr.",
		apply: into(parseRoles, func(c *Config) *Roles { return &c.Node.Roles }),
	},
	{
		Name: "max-connections-per-address", Kind: KindNumber, Default: "16",
		Help:  "Maximum concurrent encoder connections per IP address.",
		apply: into(Number(1, 1_000_000), func(c *Config) *int { return &c.MaxConnectionsPerAddress }),
	},
	{
		Name: "worker-concurrency", Kind: KindNumber, Default: "0",
		Help: "How many downloadable files are made at once; the sizes of the other job queues follow from it " +
			"(docs/monitoring.md). 0 means one per CPU.",
		apply: into(Number(0, 1024), func(c *Config) *int { return &c.WorkerConcurrency }),
	},
	{
		Name: "shutdown-timeout", Kind: KindDuration, Default: "30s",
		Help:  "How long live streams and jobs may take to finish after Ctrl-C or SIGTERM.",
		apply: applyShutdown,
	},
	{
		Name: "aws-access-key-id", Foreign: "AWS_ACCESS_KEY_ID", Kind: KindText, Absent: "found as AWS tools do",
		Help:  "Credentials for S3.",
		apply: into(parseText, func(c *Config) *string { return &c.AWS.AccessKeyID }),
	},
	{
		Name:    "aws-secret-access-key",
		Foreign: "AWS_SECRET_ACCESS_KEY",
		Kind:    KindText,
		Absent:  "found as AWS tools do",
		Secret:  true,
		Help:    "The secret that goes with it.",
		apply:   into(parseSecret, func(c *Config) *Secret { return &c.AWS.SecretAccessKey }),
	},
	{
		Name: "aws-session-token", Foreign: "AWS_SESSION_TOKEN", Kind: KindText, Absent: "none", Secret: true,
		Help:  "The session token of temporary credentials.",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.AWS.SessionToken }),
	},
	{
		Name: "aws-region", Foreign: "AWS_REGION", Kind: KindText, Absent: "region in storage-url",
		Help:  "Region of the S3 bucket if storage-url has none.",
		apply: into(parseText, func(c *Config) *string { return &c.AWS.Region }),
	},
	{
		Name:    "aws-endpoint-url",
		Foreign: "AWS_ENDPOINT_URL",
		Kind:    KindURL,
		Absent:  "endpoint in storage-url, or Amazon's",
		Help:    "URL of an S3-compatible server if storage-url has none.",
		apply:   into(parseEndpoint, func(c *Config) *string { return &c.AWS.EndpointURL }),
	},
	{
		Name: "gogc", Foreign: "GOGC", Kind: KindText, Default: "200",
		Help: "How much the heap may grow before the garbage collector runs, in percent: higher saves CPU and " +
			"takes memory. As in Go, with another default.",
		apply: into(parseText, func(c *Config) *string { return &c.GOGC }),
	},
	{
		Name: "gomemlimit", Foreign: "GOMEMLIMIT", Kind: KindText, Absent: "three quarters of the memory",
		Help: "Soft memory limit of this process, as in Go: 2GiB, or off. Default: three quarters of the memory " +
			"of the machine or control group (container, unit).",
		apply: into(parseText, func(c *Config) *string { return &c.GOMemory }),
	},
}
