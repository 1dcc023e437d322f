package app

import (
	"context"

	"millrace/internal/fetch"
)

// slates fetches the owners' slates.
type slates struct{ client *fetch.Client }

// Image implements edgewriter.Images.
func (s slates) Image(ctx context.Context, url string, maxBytes int64) ([]byte, error) {
	data, _, err := s.client.Get(ctx, url, maxBytes)
	return data, err
}
