package live

import (
	"net/url"
	"strings"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/field"
)

// WithoutSecrets is the stream as its events store it: anyone who may read events learns no key from them, nor the
// credentials in a URL.
func (s Stream) WithoutSecrets() Stream {
	s = s.WithoutKeys()
	s.Settings.ReconnectSlateURL = field.BareURL(s.Settings.ReconnectSlateURL)
	if made := s.Settings.NewAsset; made != nil {
		bare := *made
		bare.Inputs = assetopt.BareInputs(made.Inputs)
		s.Settings.NewAsset = &bare
	}
	return s
}

// WithoutKeys is the stream as its row is, whose keys are encrypted beside it.
func (s Stream) WithoutKeys() Stream {
	s.StreamKey, s.SRTPassphrase = "", ""
	targets := make([]SimulcastTarget, 0, len(s.Settings.SimulcastTargets))
	for _, t := range s.Settings.SimulcastTargets {
		targets = append(targets, t.WithoutSecrets())
	}
	s.Settings.SimulcastTargets = targets
	return s
}

// WithoutSecrets is the target as its events store it. Passphrase and streamid of SRT are in the query of the URL, and
// so may be keys of RTMP, or in the last part of the path where there is no stream_key.
func (s SimulcastTarget) WithoutSecrets() SimulcastTarget {
	u, err := url.Parse(s.URL)
	if err != nil {
		s.URL, s.StreamKey = "", ""
		return s
	}
	if app, _, found := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/"); found && s.StreamKey == "" {
		u.Path = "/" + app
	}
	s.URL, s.StreamKey = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), ""
	return s
}

// WithSecrets is a stream of an event with the keys that it has now, and with URLs as they are now where they are still
// the same.
func (s Stream) WithSecrets(now Stream) Stream {
	if url := now.Settings.ReconnectSlateURL; field.BareURL(url) == s.Settings.ReconnectSlateURL {
		s.Settings.ReconnectSlateURL = url
	}
	if made := s.Settings.NewAsset; made != nil && now.Settings.NewAsset != nil {
		full := *made
		full.Inputs = assetopt.FullInputs(made.Inputs, now.Settings.NewAsset.Inputs)
		s.Settings.NewAsset = &full
	}
	s.StreamKey, s.SRTPassphrase = now.StreamKey, now.SRTPassphrase
	targets := make([]SimulcastTarget, 0, len(s.Settings.SimulcastTargets))
	for _, t := range s.Settings.SimulcastTargets {
		targets = append(targets, t.WithSecrets(now))
	}
	s.Settings.SimulcastTargets = targets
	return s
}

// WithSecrets is a target of an event with the URL and key that it has now.
func (s SimulcastTarget) WithSecrets(now Stream) SimulcastTarget {
	if i, err := now.target(s.ID); err == nil {
		have := now.Settings.SimulcastTargets[i]
		s.URL, s.StreamKey = have.URL, have.StreamKey
	}
	return s
}
