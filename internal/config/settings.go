package config

import (
	"net/netip"
	"net/url"
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
		Name: "hsts-max-age", Kind: KindDuration, Default: "4320h",
		Help:  "How long browsers that came over HTTPS come over HTTPS only (Strict-Transport-Security), to all ports of the host. 0s tells them nothing. The default is 180 days.",
		apply: into(parseDuration, func(c *Config) *time.Duration { return &c.HSTSMaxAge }),
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
		Help:  "The same over TCP, for networks that let no UDP through. off takes none over TCP; with off for both there is no WHIP.",
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
		Name: "internal-addr", Kind: KindAddress, Default: "off",
		Help: "Where this node listens for the other nodes of its database, over HTTP/2: host:port inside a private " +
			"network, for example 10.0.0.5:9465, or off: it serves alone. Needs PostgreSQL.",
		apply: into(parseSocket, func(c *Config) *string { return &c.InternalAddr }),
	},
	{
		Name: "internal-tls-cert", Kind: KindPath, Absent: "nodes speak in clear text",
		Help: "PEM file with the certificate chain of internal-addr. It and internal-tls-key are read again when " +
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
		Help: "PEM file with the authorities that certificates of other nodes are verified by, of those that are " +
			"called and of those that call. Read at the start.",
		apply: into(parseText, func(c *Config) *string { return &c.InternalTLSCA }),
	},
	{
		Name: "advertise-url", Kind: KindURL, Absent: "made from internal-addr where that names a host",
		Help: "URL under which other nodes reach internal-addr of this one, for example http://10.0.0.5:9465. It is " +
			"called at the start, and has to lead to this node.",
		apply: into(parseAdvertised, func(c *Config) **url.URL { return &c.AdvertiseURL }),
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
		Help:  "sqlite:/path/to/file.db or postgres://user:password@host/name. A flag can be read in the list of processes: a password belongs in the settings file or the environment.",
		apply: into(parseDatabase, func(c *Config) *Database { return &c.Database }),
	},
	{
		Name: "storage-url", Kind: KindURL, Absent: "folder storage in data-dir",
		Help:  "Where media is kept: file:///path/to/folder or s3://bucket?region=…&endpoint=…&path_style=true&prefix=…. Credentials for S3 come from AWS_* in the environment, or from where AWS tools find them: profile, web identity, role of the container or machine.",
		apply: into(parseStorage, func(c *Config) *Storage { return &c.Storage }),
	},
	{
		Name: "master-key-file", Kind: KindPath, Absent: "master-key in data-dir, made at the first start",
		Help:  "File with the master key, which stream keys, passphrases and content keys in the database are encrypted under: 32 bytes in base64 or hexadecimal digits. All processes on one database need the same one.",
		apply: into(parseText, func(c *Config) *string { return &c.MasterKeyFile }),
	},
	{
		Name: "master-key", Kind: KindText, Absent: "in a file", Secret: true, NoFlag: true,
		Help:  "The master key itself, instead of a file.",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.MasterKey }),
	},
	{
		Name: "fetch-allow", Kind: KindPrefixes, Absent: "public addresses only",
		Help:  "Private address ranges that downloads may reach nevertheless, for example 10.0.0.0/8,127.0.0.0/8.",
		apply: into(parsePrefixes, func(c *Config) *[]netip.Prefix { return &c.FetchAllow }),
	},
	{
		Name: "max-upload-bytes", Kind: KindBytes, Default: "50GiB",
		Help:  "Largest file that is downloaded from a URL, or uploaded. Units: kB, MB, GB, KiB, MiB, GiB.",
		apply: into(parseBytes, func(c *Config) *int64 { return &c.MaxUploadBytes }),
	},
	{
		Name: "upload-quota", Kind: KindBytes, Default: "200GiB",
		Help: "How many bytes the direct uploads of one environment that are under way may have together; " +
			"no more than the disk has.",
		apply: into(parseBytes, func(c *Config) *int64 { return &c.UploadQuota }),
	},
	{
		Name: "event-retention", Kind: KindDuration, Default: "720h",
		Help:  "How long events and their deliveries to webhooks are kept, 48 hours at least: deliveries are tried for 24. The default is 30 days.",
		apply: retention(48*time.Hour, func(c *Config) *time.Duration { return &c.EventRetention }),
	},
	{
		Name: "audit-retention", Kind: KindDuration, Default: "2160h",
		Help:  "How long the audit log is kept, an hour at least. The default is 90 days.",
		apply: retention(time.Hour, func(c *Config) *time.Duration { return &c.AuditRetention }),
	},
	{
		Name: "api-rate-token", Kind: KindNumber, Default: "100",
		Help:  "API requests per second that one access token may send, ten times as many at once; more are refused with 429 and Retry-After. 0: no limit.",
		apply: into(number(0, 1_000_000), func(c *Config) *int { return &c.APIRateToken }),
	},
	{
		Name: "api-rate-address", Kind: KindNumber, Default: "200",
		Help:  "The same by IP address, or the /64 of an IPv6 one, whatever tokens it has. Playback is not bounded by it.",
		apply: into(number(0, 1_000_000), func(c *Config) *int { return &c.APIRateAddress }),
	},
	{
		Name: "licence-rate-address", Kind: KindNumber, Default: "50",
		Help:  "Licence requests per second that one IP address may send, or the /64 of an IPv6 one, ten times as many at once. 0: no limit.",
		apply: into(number(0, 1_000_000), func(c *Config) *int { return &c.LicenceRateAddress }),
	},
	{
		Name: "dashboard", Kind: KindChoice, Default: "on",
		Help:  "Whether there are pages for people under /dashboard: on or off.",
		apply: into(onOff, func(c *Config) *bool { return &c.Dashboard }),
	},
	{
		Name: "trusted-proxies", Kind: KindPrefixes, Absent: "loopback and private networks",
		Help: "Networks of reverse proxies that are believed who asks, by X-Forwarded-For, Forwarded or the PROXY " +
			"protocol (HTTP and RTMP): for limits, viewer counts, logs and the audit log. Or none.",
		apply: into(parseProxies, func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }),
	},
	{
		Name: "playback-session-max", Kind: KindDuration, Default: "off",
		Help: "How long a viewer who began with a valid token may go on watching after the token has expired: 1m to 720h. off: until the token expires. " +
			"Deleting the signing key ends it at any time.",
		apply: applyPlaybackSession,
	},
	{
		Name: "live-rungs", Kind: KindChoice, Default: "on_demand",
		Help:  "When the lower renditions of live streams are encoded: on_demand while somebody watches them, always, or off.",
		apply: into(oneOf("on_demand", "always", "off"), func(c *Config) *string { return &c.LiveRungs }),
	},
	{
		Name: "h264-encoder", Kind: KindChoice, Default: "x264",
		Help:  "What encodes pictures: x264 on the processor, or hardware: nvenc, qsv, vaapi or videotoolbox, which millrace doctor tries. The service does not start with one that does not encode.",
		apply: into(oneOf("x264", "nvenc", "qsv", "vaapi", "videotoolbox"), func(c *Config) *string { return &c.H264Encoder }),
	},
	{
		Name: "speech-engines", Kind: KindText, Absent: "the first engine that takes the language",
		Help:  "Which engine recognises which language: en=pocketsphinx,*=openai, with none for a language that is not to be recognised. An environment may have others.",
		apply: into(parseRules, func(c *Config) *string { return &c.Speech.Rules }),
	},
	{
		Name: "speech-servers", Kind: KindText, Absent: "none: no sound leaves this machine",
		Help: "Servers that recognise speech, as kind=URL and separated by commas: openai (anything that offers /v1/audio/transcriptions), whisper (whisper.cpp), " +
			"vosk and sherpa (websockets). One in a private network, unless its URL has its address, needs --fetch-allow.",
		apply: into(parseServers, func(c *Config) *[]string { return &c.Speech.Servers }),
	},
	{
		Name: "speech-model", Kind: KindText, Default: "whisper-1",
		Help:  "The model that servers of the kind openai are asked for.",
		apply: into(parseWord, func(c *Config) *string { return &c.Speech.Model }),
	},
	{
		Name: "speech-ffmpeg-model", Kind: KindPath, Absent: "none: ffmpeg's filter whisper is not used",
		Help:  "A model in whisper.cpp's format (ggml-base.bin, …) with which ffmpeg recognises speech on this machine, where it has the filter whisper. The engine is called ffmpeg.",
		apply: into(parseWord, func(c *Config) *string { return &c.Speech.FFmpegModel }),
	},
	{
		Name: "speech-requests", Kind: KindNumber, Default: "4",
		Help: "How many requests each server that recognises speech is sent at once, those of live streams first; whisper, which recognises one thing at a time, is sent one. " +
			"Live streams on websockets (vosk and sherpa) count, and don't wait.",
		apply: into(number(1, 1000), func(c *Config) *int { return &c.Speech.Requests }),
	},
	{
		Name: "speech-key", Kind: KindText, Absent: "none", Secret: true, NoFlag: true,
		Help:  "Key that servers of the kind openai are sent (Authorization: Bearer).",
		apply: into(parseSecret, func(c *Config) *Secret { return &c.Speech.Key }),
	},
	{
		Name: "speech-program", Kind: KindPath, Absent: "millrace-speech beside this program",
		Help:  "The program that recognises speech on this machine.",
		apply: into(parseWord, func(c *Config) *string { return &c.Speech.Program }),
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
		Help: "Files to download that are made at a time. How many jobs of each other queue run follows from it, " +
			"as docs/operations.md says. 0 is one per CPU.",
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
	{
		Name: "gogc", Foreign: "GOGC", Kind: KindText, Default: "200",
		Help: "How much memory may be used before the garbage collector runs, in percent of what is in use: " +
			"more takes memory and saves CPU. As Go has it, with another default.",
		apply: into(parseText, func(c *Config) *string { return &c.GOGC }),
	},
	{
		Name: "gomemlimit", Foreign: "GOMEMLIMIT", Kind: KindText, Absent: "three quarters of the memory",
		Help: "How much memory this process takes before it gives some back more often, as Go has it: 2GiB, or off. Otherwise three quarters " +
			"of what the machine has, or the control group (container, unit) lets the process have.",
		apply: into(parseText, func(c *Config) *string { return &c.GOMemory }),
	},
}
