package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"millrace/internal/control/drm"
	"millrace/internal/cpix"
	"millrace/internal/fetch"
)

// keyProvider asks key providers over SPEKE 2.0: CPIX documents over HTTP, through package fetch.
type keyProvider struct{ fetch *fetch.Client }

const (
	providerTime  = 8 * time.Second
	providerBytes = 1 << 20
)

// ask sends a request and reads the response.
func (k keyProvider) ask(ctx context.Context, p drm.KeyProvider, r drm.KeyRequest) (drm.Provided, error) {
	request := cpix.Request{ContentID: r.Resource.ID, Scheme: string(r.Scheme), Period: r.Period}
	for _, key := range r.Keys {
		request.Keys = append(request.Keys, cpix.Key{ID: key.ID, IV: key.IV, Track: string(key.Class)})
	}
	for _, s := range r.Systems {
		request.Systems = append(request.Systems, s)
	}
	if p.EncryptedKeys {
		recipient, err := cpix.NewRecipient(clock())
		if err != nil {
			return drm.Provided{}, err
		}
		request.Recipient = recipient
	}
	document, err := request.Document()
	if err != nil {
		return drm.Provided{}, err
	}
	header := http.Header{}
	for name, value := range p.Headers {
		header.Set(name, value)
	}
	header.Set("Content-Type", cpix.ContentType)
	header.Set("X-Speke-Version", cpix.Version)
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	reply, err := k.fetch.Post(ctx, p.URL, header, document, providerBytes+1)
	if err != nil {
		return drm.Provided{}, err
	}
	if reply.Status != http.StatusOK {
		return drm.Provided{}, fmt.Errorf("it responded with %d", reply.Status)
	}
	response, err := request.Read(reply.Body)
	if err != nil {
		return drm.Provided{}, fmt.Errorf("read its response: %w", err)
	}
	var out drm.Provided
	for _, key := range response.Keys {
		out.Keys = append(out.Keys, drm.Key{ID: key.ID, Value: key.Value, IV: key.IV})
	}
	for _, s := range response.Systems {
		out.Signals = append(out.Signals, drm.StoredSignal{
			System: s.ID, Signal: drm.Signal{KeyID: s.KeyID, PSSH: s.PSSH, Media: s.Media, Master: s.Master},
		})
	}
	return out, nil
}
