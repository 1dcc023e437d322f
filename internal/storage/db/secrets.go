package db

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/masterkey"
)

// sealDocument encrypts a document for a place in the database.
func sealDocument(v *masterkey.Vault, doc any, place string) ([]byte, error) {
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode secrets of %s: %w", place, err)
	}
	return v.Seal(raw, place), nil
}

func openDocument(v *masterkey.Vault, sealed []byte, place string, into any) error {
	raw, err := v.Open(sealed, place)
	if err != nil {
		return err
	}
	if err = json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decode secrets of %s: it is no JSON", place) // without the cause, which may repeat it
	}
	return nil
}

// sealText encrypts a text for a column of text. An empty one stays empty.
func sealText(v *masterkey.Vault, secret, place string) string {
	if secret == "" {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(v.Seal([]byte(secret), place))
}

func openText(v *masterkey.Vault, sealed, place string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return "", fmt.Errorf("decrypt secret of %s: it is no base64", place)
	}
	secret, err := v.Open(raw, place)
	return string(secret), err
}

// liveSecrets are the secrets of a live stream, which is stored without them.
type liveSecrets struct {
	StreamKey     string                               `json:"stream_key"`
	SRTPassphrase string                               `json:"srt_passphrase"`
	Targets       map[id.SimulcastTarget]targetSecrets `json:"simulcast_targets,omitempty"`
}

// targetSecrets are those of a simulcast target: its URL may hold a passphrase or a key.
type targetSecrets struct {
	URL       string `json:"url"`
	StreamKey string `json:"stream_key,omitempty"`
}

func livePlace(stream string) string { return "live_streams/" + stream }

func webhookPlace(w string) string { return "webhooks/" + w }

func uploadPlace(u string) string { return "uploads/" + u }

func pathSecretPlace(n int64) string { return fmt.Sprintf("path_secrets/%d", n) }

// keyHash is what a live stream is looked up by.
func keyHash(v *masterkey.Vault, streamKey string) string { return v.Hash(streamKey, "stream key") }

// uploadHash is what an upload is looked up by, by whom its URL was given.
func uploadHash(v *masterkey.Vault, secret string) string { return v.Hash(secret, "upload") }

// sealLive takes the secrets out of a live stream.
func sealLive(v *masterkey.Vault, s live.Stream) (without live.Stream, sealed []byte, err error) {
	secrets := liveSecrets{StreamKey: s.StreamKey, SRTPassphrase: s.SRTPassphrase}
	for _, t := range s.Settings.SimulcastTargets {
		if secrets.Targets == nil {
			secrets.Targets = map[id.SimulcastTarget]targetSecrets{}
		}
		secrets.Targets[t.ID] = targetSecrets{URL: t.URL, StreamKey: t.StreamKey}
	}
	sealed, err = sealDocument(v, secrets, livePlace(string(s.ID)))
	return s.WithoutKeys(), sealed, err
}

// openLive puts the secrets back into a live stream.
func openLive(v *masterkey.Vault, sealed []byte, s *live.Stream) error {
	var secrets liveSecrets
	if err := openDocument(v, sealed, livePlace(string(s.ID)), &secrets); err != nil {
		return err
	}
	s.StreamKey, s.SRTPassphrase = secrets.StreamKey, secrets.SRTPassphrase
	for i, t := range s.Settings.SimulcastTargets {
		own := secrets.Targets[t.ID]
		s.Settings.SimulcastTargets[i].URL, s.Settings.SimulcastTargets[i].StreamKey = own.URL, own.StreamKey
	}
	return nil
}
