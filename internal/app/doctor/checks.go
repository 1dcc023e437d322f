package doctor

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/node"
	"millrace/internal/disk"
	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/storage/blob"
)

// Options is what the list of checks is made from.
type Options struct {
	Config config.Config
	// OpenStorage opens the storage at a URL as serve would.
	OpenStorage func(ctx context.Context, url config.Secret) (blob.Store, error)
	// SpeechEngines are what would recognise speech, the one of this machine first.
	SpeechEngines []speech.Engine
	// UploadsLeft looks at direct uploads, once database and storage were; nil: that is not done.
	UploadsLeft func(ctx context.Context) (UploadsLeft, error)
	Now         func() time.Time // nil: time.Now
}

// Checks lists what is looked at, in the order in which one thing builds on another.
func Checks(o Options) []Check {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := o.Config
	checks := []Check{
		Settings{Warnings: c.Warnings, File: c.File},
		Roles{Has: c.Node.Roles, Lack: c.RoleConflicts()},
		DataFolder{Path: c.DataDir},
		DiskSpace{Path: c.DataDir, Stat: disk.SpaceOf},
		OpenFiles{Limit: openFiles},
		Clock{Dir: c.DataDir, Now: o.Now, Synchronised: clockSynchronised},
		FFmpeg{Inspect: encode.Check, Load: load},
		Confinement{Offered: encode.Confined},
		Priorities{MayRaise: encode.MayRaise},
		H264Encoder{Chosen: encode.H264(c.H264Encoder), Try: tryEncoder, Load: load},
		FreePort{Setting: "http-addr", Addr: c.HTTPAddr, Ours: c.HTTPAddr},
	}
	if c.TLS() {
		checks = append(checks, FreePort{Setting: "https-addr", Addr: c.HTTPSAddr, Ours: c.HTTPAddr})
	}
	if c.TLSCert != "" {
		checks = append(checks, Certificate{CertFile: c.TLSCert, KeyFile: c.TLSKey, Now: o.Now})
	}
	for _, domain := range c.ACMEDomains {
		checks = append(checks, ACME{
			Domain: domain, Folder: filepath.Join(c.DataDir, "acme"), HTTP: c.HTTPAddr, HTTPS: c.HTTPSAddr,
			Now: o.Now, LookUp: net.DefaultResolver.LookupHost,
		})
	}
	if c.Node.Roles.Has(node.RoleIngest) {
		checks = append(checks, encoderPorts(c)...)
	}
	if c.MetricsAddr != "" {
		checks = append(checks, FreePort{Setting: "metrics-addr", Addr: c.MetricsAddr, Ours: c.HTTPAddr})
	}
	if c.Database.Engine == config.Postgres {
		checks = append(checks, PostgreSQL{URL: config.Secret(c.Database.Server()), Now: o.Now}, Sessions{c.Database})
	} else {
		checks = append(checks, SQLite{Path: c.Database.Path})
	}
	checks = append(checks, Schema{c.Database})
	for i, e := range o.SpeechEngines {
		checks = append(checks, SpeechEngine{Engine: e, Configured: i > 0, Load: load})
	}
	checks = append(checks, Storage{Where: c.Storage, Open: o.OpenStorage, Now: o.Now})
	if o.UploadsLeft != nil {
		checks = append(checks, Uploads{Look: o.UploadsLeft})
	}
	return checks
}

// encoderPorts looks at the ports for encoders.
func encoderPorts(c config.Config) (checks []Check) {
	if c.TLS() {
		checks = append(checks, FreePort{Setting: "rtmps-addr", Addr: c.RTMPSAddr, Ours: c.HTTPAddr})
	}
	checks = append(checks, FreePort{Setting: "rtmp-addr", Addr: c.RTMPAddr, Ours: c.HTTPAddr}, FreePort{
		Setting: "srt-addr",
		Addr:    c.SRTAddr,
		Ours:    c.HTTPAddr,
		UDP:     true,
	})
	if c.WebRTCUDPAddr != "" {
		checks = append(checks, FreePort{
			Setting: "webrtc-udp-addr",
			Addr:    c.WebRTCUDPAddr,
			Ours:    c.HTTPAddr,
			UDP:     true,
		})
	}
	if c.WebRTCTCPAddr != "" {
		checks = append(checks, FreePort{Setting: "webrtc-tcp-addr", Addr: c.WebRTCTCPAddr, Ours: c.HTTPAddr})
	}
	return checks
}

// Roles tells what this node does.
type Roles struct {
	Has  config.Roles
	Lack []string // what keeps a node with them from being started
}

// Name implements Check.
func (Roles) Name() string { return "roles" }

// Run implements Check.
func (r Roles) Run(context.Context) Finding {
	if len(r.Lack) > 0 {
		return problem("Change the settings: with these the service does not start.", "%s", strings.Join(r.Lack, "; "))
	}
	if r.Has.All() {
		return ok("all: this node does everything")
	}
	return ok("%s: other nodes have to do the rest, see millrace nodes", r.Has)
}

// Settings tells of doubtful names in the environment.
type Settings struct {
	Warnings []string
	File     string
}

// Name implements Check.
func (Settings) Name() string { return "settings" }

// Run implements Check.
func (s Settings) Run(context.Context) Finding {
	if len(s.Warnings) > 0 {
		return warning("Correct the name, or take it out of the environment.", "%s", strings.Join(s.Warnings, "; "))
	}
	if s.File != "" {
		return ok("read, with the file %s", s.File)
	}
	return ok("read, without a file")
}

// portOf gives the port of host:port, for messages.
func portOf(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return port
}

// nearest is path, or the closest folder above it that exists.
func nearest(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return "."
	}
	for !exists(path) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
	}
	return path
}
