package access

import (
	"context"
	"net/url"
	"strings"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	maxEnvironments = 1000
	maxAncestors    = 100 // origins that may embed players
)

// FrameNone is the value of FrameAncestors when nobody may embed a player.
const FrameNone = "'none'"

// Default is the environment of those who name none; it is made on first use.
func (s *Service) Default(ctx context.Context, now time.Time) (Environment, error) {
	return s.Named(ctx, "", now)
}

// Named is an environment by its ID; the default one without.
func (s *Service) Named(ctx context.Context, e id.Environment, now time.Time) (Environment, error) {
	if e != "" {
		return s.store.Environment(ctx, e)
	}
	now = change.Stamp(now)
	return s.store.EnsureDefault(ctx, Environment{
		ID:        id.Environment(id.New()),
		Name:      "Default",
		Kind:      "production",
		CreatedAt: now,
	})
}

// CreateEnvironment makes an environment; its kind is production unless given.
func (s *Service) CreateEnvironment(ctx context.Context, name, kind string, now time.Time) (Environment, error) {
	if kind == "" {
		kind = "production"
	}
	var l fault.List
	checkName(&l, name)
	field.OneOf(&l, "type", kind, "production", "development")
	if err := l.Err(); err != nil {
		return Environment{}, err
	}
	e := Environment{ID: id.Environment(id.New()), Name: name, Kind: kind, CreatedAt: change.Stamp(now)}
	return e, s.store.InsertEnvironment(ctx, e, maxEnvironments)
}

// RenameEnvironment changes a name.
func (s *Service) RenameEnvironment(
	ctx context.Context, e id.Environment, name string, now time.Time,
) (Environment, error) {
	var l fault.List
	checkName(&l, name)
	if err := l.Err(); err != nil {
		return Environment{}, err
	}
	if err := s.change(ctx, e, now, func(e id.Environment) error { return s.store.SetName(ctx, e, name) }); err != nil {
		return Environment{}, err
	}
	return s.Named(ctx, e, now)
}

func checkName(l *fault.List, name string) {
	if strings.TrimSpace(name) == "" {
		l.At("name", "must not be empty")
		return
	}
	field.Name(l, "name", name, field.MaxName)
}

// Environments lists them, oldest first.
func (s *Service) Environments(ctx context.Context, page, limit int) ([]Environment, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.Environments(ctx, page, limit)
}

// Environment reads one.
func (s *Service) Environment(ctx context.Context, e id.Environment) (Environment, error) {
	return s.store.Environment(ctx, e)
}

// SetQuality changes an environment's default; see API.
func (s *Service) SetQuality(ctx context.Context, e id.Environment, quality string, now time.Time) error {
	var l fault.List
	if quality != "" && !field.OneOf(&l, "video_quality", quality, "basic", "plus", "premium") {
		return l.Err()
	}
	return s.change(ctx, e, now, func(e id.Environment) error { return s.store.SetVideoQuality(ctx, e, quality) })
}

// maxRules of an environment's captions, in characters.
const maxRules = 1000

// SetCaptions changes an environment's engines for speech; see API.
func (s *Service) SetCaptions(ctx context.Context, e id.Environment, rules string, now time.Time) error {
	var l fault.List
	if field.Text(&l, "captions", rules, maxRules); l.Err() != nil {
		return l.Err()
	}
	for part := range strings.SplitSeq(rules, ",") {
		language, engine, ok := strings.Cut(part, "=")
		if rules != "" && (!ok || strings.TrimSpace(language) == "" || strings.TrimSpace(engine) == "") {
			return fault.At(fault.Invalid, "captions",
				"must be pairs of a language, or *, and an engine, or none: en=pocketsphinx,*=openai")
		}
	}
	return s.change(ctx, e, now, func(e id.Environment) error { return s.store.SetCaptions(ctx, e, rules) })
}

// SetLiveRungs changes an environment's policy; see API.
func (s *Service) SetLiveRungs(ctx context.Context, e id.Environment, policy string, now time.Time) error {
	var l fault.List
	if policy != "" && !field.OneOf(&l, "live_rungs", policy, "on_demand", "always", "off") {
		return l.Err()
	}
	return s.change(ctx, e, now, func(e id.Environment) error { return s.store.SetLiveRungs(ctx, e, policy) })
}

// SetFrameAncestors changes who may embed an environment's players; see API.
func (s *Service) SetFrameAncestors(ctx context.Context, e id.Environment, origins []string, now time.Time) error {
	sources, err := frameAncestors(origins)
	if err != nil {
		return err
	}
	return s.change(ctx, e, now, func(e id.Environment) error { return s.store.SetFrameAncestors(ctx, e, sources) })
}

// frameAncestors turns origins into the value of the directive (CSP level 3, section 6.4.2).
func frameAncestors(origins []string) (string, error) {
	if len(origins) == 1 && origins[0] == "all" {
		return "", nil
	}
	if len(origins) == 1 && origins[0] == "none" {
		return FrameNone, nil
	}
	var l fault.List
	if len(origins) == 0 || len(origins) > maxAncestors {
		l.Add("there must be 1 to %d origins", maxAncestors)
	}
	for _, o := range origins {
		if !isOrigin(o) {
			l.Add("%q is not an origin such as https://example.com or https://*.example.com", o)
		}
	}
	return strings.Join(origins, " "), l.Err()
}

// isOrigin reports whether o is a scheme, a host, of which the first label may be *, and maybe a port, without anything
// that would end the directive.
func isOrigin(o string) bool {
	u, err := url.Parse(o)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || o != u.Scheme+"://"+u.Host {
		return false
	}
	host := strings.TrimPrefix(u.Hostname(), "*.")
	plain := func(r rune) bool {
		return r != '.' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	port := strings.TrimPrefix(strings.TrimPrefix(u.Host, u.Hostname()), ":")
	return host != "" && !strings.ContainsFunc(host, plain) && strings.Trim(port, "0123456789") == ""
}

// change changes an environment.
func (s *Service) change(ctx context.Context, e id.Environment, now time.Time, set func(e id.Environment) error) error {
	env, err := s.Named(ctx, e, now)
	if err != nil {
		return err
	}
	if err = set(env.ID); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, r := range s.cache { // identities carry their environment
		r.until = time.Time{}
		s.cache[t] = r
	}
	return nil
}
