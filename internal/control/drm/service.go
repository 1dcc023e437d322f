package drm

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/field"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/stalecache"
)

const (
	// fresh is how late this node sees that another one has made a period.
	fresh    = 2 * time.Second
	maxCache = 4096
	// lead is how long before its first segment a period is made, so that every node knows it by then and players can
	// get its keys.
	lead = 30 * time.Second
	// kept is for how long a period is kept behind its end: longer than a broadcast may last, of which all can be
	// watched.
	kept = 13 * time.Hour
	// MinRotation is the shortest time that the keys of a live stream may be good for.
	MinRotation = 5 * time.Minute
)

// Options configures a Service.
type Options struct {
	Store Store
	// Provider asks a key provider; nil: configurations that have one do not work.
	Provider func(ctx context.Context, p KeyProvider, r KeyRequest) (Provided, error)
}

// KeyRequest asks a key provider for the keys of one period.
type KeyRequest struct {
	Resource Resource
	Scheme   Scheme
	Systems  []SystemID
	Keys     []Key // with IDs, IVs and classes that are to be used unless the provider has others
	Period   int   // negative: keys do not rotate
}

// Provided is what a key provider gives: a key for each class of the request.
type Provided struct {
	Keys    []Key
	Signals []StoredSignal
}

// Service keeps DRM configurations and content keys. All its methods may be called at the same time.
type Service struct {
	store          Store
	provider       func(ctx context.Context, p KeyProvider, r KeyRequest) (Provided, error)
	configurations *stalecache.Cache[id.DRMConfiguration, Configuration]
	contents       *stalecache.Cache[contentKey, Content]
}

type contentKey struct {
	resource      Resource
	configuration id.DRMConfiguration
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	return &Service{
		store:          o.Store,
		provider:       o.Provider,
		configurations: stalecache.New[id.DRMConfiguration, Configuration](maxCache, fresh),
		contents:       stalecache.New[contentKey, Content](maxCache, fresh),
	}
}

// Create makes a configuration.
func (s *Service) Create(
	ctx context.Context, env id.Environment, name string, set Settings, now time.Time,
) (Configuration, error) {
	if err := set.check(name); err != nil {
		return Configuration{}, err
	}
	c := Configuration{
		ID: id.DRMConfiguration(id.New()), Environment: env, Name: name, CreatedAt: change.Stamp(now), Settings: set,
	}
	return c, s.store.InsertConfiguration(ctx, c, MaxConfigurations)
}

// SetVendors replaces the vendors of a configuration. What is encrypted already, and its keys, stay as they are.
func (s *Service) SetVendors(ctx context.Context, env id.Environment, c id.DRMConfiguration, v Vendors) error {
	old, err := s.Get(ctx, env, c)
	if err != nil {
		return err
	}
	old.Vendors = v
	if err = old.check(""); err != nil {
		return err
	}
	defer s.configurations.Drop(c)
	return s.store.SaveSettings(ctx, env, c, old.Settings)
}

// Named is what a configuration of an environment says of what it encrypts, with an empty ID the environment's only
// one; fault.NotFound when there is none.
func (s *Service) Named(
	ctx context.Context, env id.Environment, configuration string,
) (playbackid.Configuration, error) {
	if configuration == "" {
		all, err := s.store.Configurations(ctx, env, 1, 2)
		if err == nil && len(all) != 1 {
			err = errNoConfiguration()
		}
		if err != nil {
			return playbackid.Configuration{}, err
		}
		return named(all[0]), nil
	}
	c, err := s.Get(ctx, env, id.DRMConfiguration(configuration))
	return named(c), err
}

func named(c Configuration) playbackid.Configuration {
	return playbackid.Configuration{ID: string(c.ID), EncryptedOnly: c.EncryptedOnly}
}

// Get reads a configuration of an environment; others' are fault.NotFound.
func (s *Service) Get(ctx context.Context, env id.Environment, c id.DRMConfiguration) (Configuration, error) {
	found, err := s.store.Configuration(ctx, c)
	if err == nil && found.Environment != env {
		return Configuration{}, errNoConfiguration()
	}
	return found, err
}

// List lists configurations, newest first.
func (s *Service) List(ctx context.Context, env id.Environment, page, limit int) ([]Configuration, error) {
	page, limit, err := field.Page(page, limit)
	if err != nil {
		return nil, err
	}
	return s.store.Configurations(ctx, env, page, limit)
}

// Delete deletes a configuration that no playback ID names any more.
func (s *Service) Delete(ctx context.Context, env id.Environment, c id.DRMConfiguration) error {
	defer s.configurations.Drop(c)
	return s.store.DeleteConfiguration(ctx, env, c)
}

func errNoConfiguration() error {
	return fault.New(fault.NotFound, "the DRM configuration does not exist")
}

// Known is a configuration of an environment from a cache of seconds; others' are fault.NotFound.
func (s *Service) Known(
	ctx context.Context, env id.Environment, c id.DRMConfiguration, now time.Time,
) (Configuration, error) {
	found, err := s.configurations.Get(ctx, c, now, func(ctx context.Context) (Configuration, error) {
		return s.store.Configuration(ctx, c)
	})
	if err == nil && found.Environment != env {
		return Configuration{}, errNoConfiguration()
	}
	return found, err
}

// Content is how an asset or live stream is encrypted for a configuration of its environment. Its keys are made on
// first use; of several nodes that make them at the same time, all get those of the first. It is cached, and cheap
// enough for every request.
//
// A live stream keeps its keys over all its broadcasts, unless they rotate.
func (s *Service) Content(
	ctx context.Context, env id.Environment, resource Resource, configuration id.DRMConfiguration, now time.Time,
) (Content, error) {
	c, err := s.Known(ctx, env, configuration, now)
	if err != nil {
		return Content{}, err
	}
	return s.contents.Get(ctx, contentKey{resource, configuration}, now, func(ctx context.Context) (Content, error) {
		found, err := s.keys(ctx, c, resource, now)
		if err != nil {
			return Content{}, err
		}
		out := c.content(found.StoredKeys)
		out.Rotates = c.rotationOf(resource) > 0
		return out, nil
	})
}

// keys reads what is stored and writes what is missing.
func (s *Service) keys(ctx context.Context, c Configuration, resource Resource, now time.Time) (Stored, error) {
	found, err := s.store.Keys(ctx, resource, c.ID)
	if fault.Is(err, fault.NotFound) {
		found, err = Stored{Environment: c.Environment, Resource: resource, Configuration: c.ID}, nil
	}
	if err != nil {
		return Stored{}, err
	}
	rotation := c.rotationOf(resource)
	next, due := found.due(rotation, now)
	if !due {
		return found, nil
	}
	before := found
	keys := newKeys(c.Settings, next.Number)
	if c.KeyProvider == nil {
		found.add(next, Provided{Keys: keys})
	} else {
		provided, failed := s.provided(ctx, c, KeyRequest{
			Resource: resource,
			Scheme:   c.Scheme,
			Systems:  c.vendors(),
			Keys:     keys,
			Period:   period(rotation, next),
		})
		if failed != nil && len(before.Periods) > 0 { // the keys that there are go on until it responds
			return before, nil
		}
		if failed != nil {
			return Stored{}, failed
		}
		found.add(next, provided)
	}
	found.forget(now)
	return s.store.SaveKeys(ctx, found)
}

// rotationOf is for how long the keys of a resource are good; 0: for ever.
func (c Configuration) rotationOf(r Resource) time.Duration {
	if r.Kind != playbackid.OfLiveStream {
		return 0
	}
	return c.Rotation
}

// provided asks the key provider of a configuration.
func (s *Service) provided(ctx context.Context, c Configuration, r KeyRequest) (Provided, error) {
	if s.provider == nil {
		return Provided{}, fault.New(fault.Internal, "there is nothing that asks key providers")
	}
	out, err := s.provider(ctx, *c.KeyProvider, r)
	if err != nil {
		return Provided{}, fault.Wrap(fault.Unavailable, err, "the key provider gives no keys")
	}
	if len(out.Keys) != len(r.Keys) {
		return Provided{}, fault.New(fault.Unavailable, "the key provider gives %d keys, not %d", len(out.Keys),
			len(r.Keys))
	}
	for i, k := range r.Keys {
		out.Keys[i].Class, out.Keys[i].Period = k.Class, k.Period
	}
	return out, nil
}

// vendors are the systems that a key provider is asked about: not the one that is built in.
func (s Settings) vendors() []SystemID {
	return slices.DeleteFunc(s.Systems(), func(id SystemID) bool { return id == ClearKey })
}

// period is how a key provider is told a period.
func period(rotation time.Duration, p Period) int {
	if rotation == 0 {
		return -1
	}
	return p.Number
}

// due is the next period, and whether it is time to make it.
func (s *Stored) due(rotation time.Duration, now time.Time) (Period, bool) {
	if len(s.Periods) == 0 {
		return Period{From: firstFrom(rotation, now)}, true
	}
	last := s.Periods[len(s.Periods)-1]
	if rotation == 0 {
		return Period{}, false
	}
	from := last.From.Add(rotation)
	if now.Add(lead).Before(from) {
		return Period{}, false
	}
	// nobody has watched for a while: what could be watched has the keys of before
	if soonest := now.Add(lead); from.Before(soonest) {
		from = soonest
	}
	return Period{Number: last.Number + 1, From: from}, true
}

// firstFrom is when the first period begins to count; what is older has its keys too.
func firstFrom(rotation time.Duration, now time.Time) time.Time {
	if rotation == 0 {
		return time.Time{}
	}
	return change.Stamp(now)
}

// add appends a period with its keys.
func (s *Stored) add(p Period, v Provided) {
	p.From = change.Stamp(p.From)
	s.Periods = append(slices.Clip(s.Periods), p)
	s.Keys = append(slices.Clip(s.Keys), v.Keys...)
	s.Signals = append(slices.Clip(s.Signals), v.Signals...)
}

// newKeys makes the keys of a period.
func newKeys(set Settings, period int) []Key {
	var keys []Key
	for _, class := range set.classes() {
		k := Key{Class: class, Period: period}
		for _, b := range [][]byte{k.ID[:], k.Value[:], k.IV[:]} {
			_, _ = rand.Read(b) // never fails
		}
		keys = append(keys, k)
	}
	return keys
}

// classes are those that have a key of their own.
func (s Settings) classes() []Class {
	all := []Class{Video}
	if s.KeysByClass {
		all = []Class{SD, HD, UHD1}
	}
	if s.EncryptAudio {
		all = append(all, Audio)
	}
	return all
}

// forget drops periods that nobody can watch any more.
func (s *Stored) forget(now time.Time) {
	for len(s.Periods) > 1 && s.Periods[1].From.Add(kept).Before(now) {
		gone := s.Periods[0].Number
		s.Periods = s.Periods[1:]
		left := map[[16]byte]bool{}
		s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(k Key) bool {
			left[k.ID] = left[k.ID] || k.Period != gone
			return k.Period == gone
		})
		s.Signals = slices.DeleteFunc(slices.Clone(s.Signals), func(x StoredSignal) bool { return !left[x.KeyID] })
	}
}

// content returns the keys for those who encrypt.
func (c Configuration) content(k StoredKeys) Content {
	out := Content{Scheme: c.Scheme, EncryptAudio: c.EncryptAudio, Keys: k.Keys, Periods: k.Periods}
	for _, system := range c.Systems() {
		s := System{ID: system}
		for _, signal := range k.Signals {
			if signal.System == system {
				s.Signals = append(s.Signals, signal.Signal)
			}
		}
		out.Systems = append(out.Systems, s)
	}
	return out
}

// String keeps the key out of logs.
func (k Key) String() string { return fmt.Sprintf("key %x", k.ID) }
