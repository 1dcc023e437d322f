package live

import (
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/field"
	"millrace/internal/control/language"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
)

// Limits and defaults.
const (
	MaxReconnectWindow  = 1800.0          // seconds
	MinContinuous       = 60              // seconds
	MaxContinuous       = 43200           // seconds; also the default
	MaxTest             = 5 * time.Minute // of a test stream's broadcast, from its becoming active
	MaxSimulcastTargets = 6
	maxStreamKey        = 2048 // of a simulcast target; some destinations put tokens into it
	maxRecent           = 100
)

// DefaultWindow is the reconnect window in seconds of a stream that did not choose one.
func DefaultWindow(m LatencyMode) float64 {
	if m == Standard {
		return 60
	}
	return 0
}

// newAsset is what recordings are made with: in the environment's quality when none was asked for.
func (c CreateInput) newAsset() *assetopt.Options {
	if c.DefaultQuality == "" {
		return c.NewAsset
	}
	var o assetopt.Options
	if c.NewAsset != nil {
		o = *c.NewAsset
	}
	o = o.WithQuality(assetopt.ForLive, c.DefaultQuality)
	return &o
}

// Check says all that is wrong with in by itself. fault.Invalid.
func (c CreateInput) Check() error {
	_, err := c.settings()
	return err
}

// Check says all that is wrong with in as a change of a stream. fault.Invalid; fault.Conflict for what can't be changed
// while a broadcast goes on.
func (p PatchInput) Check(of Stream) error {
	_, err := p.apply(of.Settings, of.ActiveAsset != "")
	return err
}

// settings checks in and gives the settings that it asks for, defaults filled in.
func (c CreateInput) settings() (Settings, error) {
	var l fault.List
	s := Settings{
		LatencyMode: c.latency(&l), SlateForStandard: c.SlateForStandard, ReconnectSlateURL: c.ReconnectSlateURL,
		MaxContinuous: MaxContinuous, Passthrough: c.Passthrough, Meta: c.Meta, AudioOnly: c.AudioOnly, Test: c.Test,
		NewAsset: c.newAsset(), EmbeddedSubtitles: c.EmbeddedSubtitles, GeneratedSubtitles: c.GeneratedSubtitles,
		SimulcastTargets: c.SimulcastTargets,
	}
	s.ReconnectWindow = DefaultWindow(s.LatencyMode)
	if c.ReconnectWindow != nil {
		s.ReconnectWindow, s.ReconnectChosen = *c.ReconnectWindow, true
	}
	if c.MaxContinuous != nil {
		s.MaxContinuous = *c.MaxContinuous
	}
	playbackid.CheckAll(&l, "", c.PlaybackPolicies, c.AdvancedPolicies)
	s.check(&l, given{meta: true, newAsset: true, captions: true})
	if err := l.Err(); err != nil {
		return Settings{}, err
	}
	return s.named(), nil
}

// Slate reports whether slate stands in for an encoder that is away: with a reconnect window, in standard latency only
// when it is asked for.
func (s Settings) Slate() bool {
	return s.ReconnectWindow > 0 && (s.LatencyMode != Standard || s.SlateForStandard)
}

// latency reads latency_mode and its deprecated mirrors, which may repeat but not contradict it.
func (c CreateInput) latency(l *fault.List) LatencyMode {
	mode := c.LatencyMode
	if mode != "" && !field.OneOf(l, "latency_mode", string(mode), string(Standard), string(Reduced), string(Low)) {
		return Standard
	}
	low, reduced := c.LowLatency != nil && *c.LowLatency, c.ReducedLatency != nil && *c.ReducedLatency
	if low && reduced {
		l.At("low_latency", "and reduced_latency must not both be true; use latency_mode")
		return Standard
	}
	asked := Standard
	switch {
	case low:
		asked = Low
	case reduced:
		asked = Reduced
	}
	if mode == "" {
		return asked
	}
	for name, flag := range map[string]struct {
		given *bool
		mode  LatencyMode
	}{"low_latency": {c.LowLatency, Low}, "reduced_latency": {c.ReducedLatency, Reduced}} {
		if flag.given != nil && *flag.given != (mode == flag.mode) {
			l.At(name, "contradicts latency_mode; use latency_mode alone")
		}
	}
	return mode
}

// given says which settings with names in them a request has.
type given struct{ meta, newAsset, captions bool }

// check adds what is wrong with s as a whole, but for names that are there already: earlier versions took some that are
// refused now, and all else can be changed beside those.
func (s Settings) check(l *fault.List, in given) {
	field.OneOf(l, "latency_mode", string(s.LatencyMode), string(Standard), string(Reduced), string(Low))
	field.Between(l, "reconnect_window", s.ReconnectWindow, 0, MaxReconnectWindow)
	if s.MaxContinuous < MinContinuous || s.MaxContinuous > MaxContinuous {
		l.At("max_continuous_duration", "must be a whole number of seconds from %d to %d", MinContinuous, MaxContinuous)
	}
	if s.ReconnectSlateURL != "" {
		field.WebURL(l, "reconnect_slate_url", s.ReconnectSlateURL)
	}
	field.Passthrough(l, "passthrough", s.Passthrough)
	if in.meta {
		s.Meta.Check(l, "meta")
	}
	if in.newAsset && s.NewAsset != nil {
		s.NewAsset.Check(l, "new_asset_settings", assetopt.ForLive)
		overlaid := func(in assetopt.Input) bool { return in.Overlay != nil }
		if s.AudioOnly && slices.ContainsFunc(s.NewAsset.Inputs, overlaid) {
			l.At("new_asset_settings.inputs", "may have no overlays when audio_only is true")
		}
	}
	if in.captions {
		s.checkCaptions(l)
	}
	s.checkTargets(l)
}

func (s Settings) checkCaptions(l *fault.List) {
	const embedded, generated = "embedded_subtitles", "generated_subtitles"
	if len(s.EmbeddedSubtitles) > 0 && s.AudioOnly {
		l.At(embedded, "must not be set when audio_only is true: there is no video to read captions from")
	}
	assetopt.CheckEmbedded(l, embedded, s.EmbeddedSubtitles)
	assetopt.CheckLiveGenerated(l, generated, s.GeneratedSubtitles)
	for _, g := range s.GeneratedSubtitles {
		if g.Name != "" &&
			slices.ContainsFunc(s.EmbeddedSubtitles, func(e assetopt.EmbeddedSubtitle) bool {
				return e.Name == g.Name
			}) {
			l.At(generated+"[0].name", "must be unique among the text tracks")
		}
	}
	for i, name := range s.addedTexts() {
		embedded := func(e assetopt.EmbeddedSubtitle) bool { return e.Name == name }
		generated := func(g assetopt.GeneratedSubtitle) bool { return g.Name == name }
		if name != "" && (slices.ContainsFunc(s.EmbeddedSubtitles, embedded) ||
			slices.ContainsFunc(s.GeneratedSubtitles, generated)) {
			l.At(field.At("new_asset_settings.inputs", i)+".name", "must be unique among the text tracks")
		}
	}
}

// addedTexts are the names that were chosen for text files which each recording gets, by input; others are empty.
func (s Settings) addedTexts() []string {
	if s.NewAsset == nil {
		return nil
	}
	names := make([]string, len(s.NewAsset.Inputs))
	for i, in := range s.NewAsset.Inputs {
		if in.Type == "text" {
			names[i] = in.Name
		}
	}
	return names
}

func (s Settings) checkTargets(l *fault.List) {
	const at = "simulcast_targets"
	if !field.Count(l, at, len(s.SimulcastTargets), MaxSimulcastTargets) {
		return
	}
	for i, t := range s.SimulcastTargets {
		t.check(l, field.At(at, i))
	}
}

// named fills in the defaults of caption tracks and the IDs of simulcast targets, on copies.
func (s Settings) named() Settings {
	embedded := s.namedEmbedded()
	taken := func(name string) bool {
		return slices.Contains(s.addedTexts(), name) ||
			slices.ContainsFunc(embedded, func(e assetopt.EmbeddedSubtitle) bool { return e.Name == name })
	}
	generated := make([]assetopt.GeneratedSubtitle, 0, len(s.GeneratedSubtitles))
	for _, g := range s.GeneratedSubtitles {
		g.LanguageCode = assetopt.BaseLanguage(g.LanguageCode)
		g = g.Named()
		if taken(g.Name) {
			g.Name = language.EnglishName(g.LanguageCode) + " (generated)"
		}
		generated = append(generated, g)
	}
	targets := make([]SimulcastTarget, 0, len(s.SimulcastTargets))
	for _, t := range s.SimulcastTargets {
		targets = append(targets, t.fresh())
	}
	s.EmbeddedSubtitles, s.GeneratedSubtitles, s.SimulcastTargets = embedded, generated, targets
	return s
}

// apply returns the settings that in asks for; broadcasting says that a broadcast runs.
func (p PatchInput) apply(s Settings, broadcasting bool) (Settings, error) {
	var l fault.List
	if p.LatencyMode != nil && *p.LatencyMode != s.LatencyMode {
		if broadcasting {
			return s, fault.At(fault.Conflict, "latency_mode", "may be changed only while the live stream is idle")
		}
		s.LatencyMode = *p.LatencyMode
		if !s.ReconnectChosen {
			s.ReconnectWindow = DefaultWindow(s.LatencyMode)
		}
	}
	switch {
	case p.DefaultWindow:
		s.ReconnectWindow, s.ReconnectChosen = DefaultWindow(s.LatencyMode), false
	case p.ReconnectWindow != nil:
		s.ReconnectWindow, s.ReconnectChosen = *p.ReconnectWindow, true
	}
	set(&s.SlateForStandard, p.SlateForStandard)
	set(&s.ReconnectSlateURL, p.ReconnectSlateURL)
	set(&s.Passthrough, p.Passthrough)
	set(&s.MaxContinuous, p.MaxContinuous)
	if p.Meta != nil {
		s.Meta = p.Meta.Apply(s.Meta)
	}
	if p.NewAsset != nil {
		s.NewAsset = p.NewAsset.apply(s.NewAsset, p.DefaultQuality)
	}
	if p.EmbeddedSubtitles != nil {
		if broadcasting {
			l.At("embedded_subtitles", "may be changed only while the live stream is idle")
		} else {
			s.EmbeddedSubtitles = *p.EmbeddedSubtitles
		}
	}
	s.check(&l, given{p.Meta != nil, p.NewAsset != nil, p.EmbeddedSubtitles != nil})
	if err := l.Err(); err != nil {
		return s, err
	}
	s.EmbeddedSubtitles = s.namedEmbedded()
	return s, nil
}

// namedEmbedded names the tracks of captions in the video, by none of the names that were chosen for other text tracks.
func (s Settings) namedEmbedded() []assetopt.EmbeddedSubtitle {
	chosen := s.addedTexts()
	for _, g := range s.GeneratedSubtitles {
		chosen = append(chosen, g.Name)
	}
	return assetopt.NamedEmbedded(s.EmbeddedSubtitles, chosen...)
}

// apply returns the settings of recordings that p asks for; now is nil while there are none.
func (n NewAssetPatch) apply(now *assetopt.Options, defaultQuality string) *assetopt.Options {
	if n.Clear {
		now = CreateInput{DefaultQuality: defaultQuality}.newAsset()
		if n == (NewAssetPatch{Clear: true}) {
			return now
		}
	}
	var o assetopt.Options
	if now != nil {
		o = *now
	}
	set(&o.MasterAccess, n.MasterAccess)
	set(&o.MP4Support, n.MP4Support)
	if n.Meta != nil {
		o.Meta = n.Meta.Apply(o.Meta)
	}
	set(&o.StaticRenditions, n.StaticRenditions)
	if n.VideoQuality != nil {
		o.VideoQuality, o.EncodingTier = *n.VideoQuality, "" // the new name replaces the deprecated one
	}
	return &o
}

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}
