package presentation

import (
	"context"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/rendition"
)

// Order is something that a node has another one make: an image, or an init segment or segment of a lower rendition of
// a recording.
type Order struct {
	Asset    id.Asset      `json:"asset,omitempty"`
	Stream   id.LiveStream `json:"stream,omitempty"`   // without an asset: what its viewers see
	Revision int64         `json:"revision,omitempty"` // of the asset that the other node knows, at least

	Rendition string       `json:"rendition,omitempty"`
	Resource  hls.Resource `json:"resource,omitzero"`
	Ahead     bool         `json:"ahead,omitempty"` // of a segment that is stored: what is behind it

	Image string `json:"image,omitempty"` // its name; empty: none
	Query string `json:"query,omitempty"`
}

// picture is the order with an image.
func (o Order) picture(name, query string) Order {
	o.Image, o.Query = name, query
	return o
}

// Workers are nodes that make what this one does not.
type Workers interface {
	// Make gives what is ordered; nil without an error: it is stored. Errors are faults.
	Make(ctx context.Context, o Order) ([]byte, error)
	// Ahead passes an order on that nobody waits for, or not. It does not wait.
	Ahead(ctx context.Context, o Order)
}

// ordered has the renditions of an asset made by workers.
type ordered struct {
	workers Workers
	of      Order
}

// Make implements rendition.Elsewhere.
func (or ordered) Make(ctx context.Context, rendition string, r hls.Resource) ([]byte, error) {
	o := or.of
	o.Rendition, o.Resource = rendition, r
	return or.workers.Make(ctx, o)
}

// Ahead implements rendition.Elsewhere.
func (or ordered) Ahead(ctx context.Context, rendition string, r hls.Resource) {
	o := or.of
	o.Rendition, o.Resource, o.Ahead = rendition, r, true
	or.workers.Ahead(ctx, o)
}

// byWorkers is who makes an asset's renditions; nil: this node does.
func byWorkers(w Workers, of Order) rendition.Elsewhere {
	if w == nil {
		return nil
	}
	return ordered{w, of}
}

// mostSent is how many bytes of a stored object another node is sent: what is larger it reads from the storage itself.
const mostSent = 4 << 20

// Orders are those of other nodes, which a source makes.
type Orders struct{ Source *Source }

// Make makes what another node has ordered, which has looked who may have it; nil without an error: it is stored.
func (os Orders) Make(ctx context.Context, o Order) ([]byte, error) {
	src := os.Source
	if src.opt.Workers != nil { // two would ask each other in circles
		return nil, fault.New(fault.Conflict, "this node does not have the role worker")
	}
	if err := src.recovered(ctx); err != nil {
		return nil, err
	}
	now := src.opt.Now()
	if o.Asset == "" {
		found, err := src.openLive(ctx, o.Stream, now)
		if err != nil {
			return nil, err
		}
		return drawn(ctx, pictures{src}, found, o)
	}
	current := func(row *asset.Asset) bool { return row.Revision >= o.Revision }
	row, err := src.assets.GetIf(ctx, o.Asset, now, current, src.findAsset(o.Asset))
	if err != nil {
		return nil, err
	}
	found, err := src.openRow(ctx, row, now)
	if err != nil {
		return nil, err
	}
	if o.Image != "" {
		return drawn(ctx, pictures{src}, found, o)
	}
	rec, ok := found.(*recorded)
	switch {
	case !ok || !rec.below.Want(o.Rendition):
		return nil, fault.New(fault.NotFound,
			"there is no such rendition: it is still live, or its encoder is another one")
	case o.Ahead:
		rec.below.Ahead(ctx, o.Rendition, o.Resource.MSN)
		return nil, nil
	}
	return sent(rec.below.Chunk(ctx, o.Rendition, o.Resource))
}

// drawn is an image of something.
func drawn(ctx context.Context, by pictures, found playback.Presentation, o Order) ([]byte, error) {
	if o.Image == "" {
		return nil, fault.New(fault.Invalid, "there is no such thing to be made")
	}
	f, err := film(ctx, found)
	if err != nil {
		return nil, err
	}
	plan, err := by.plan(f, o)
	if err != nil {
		return nil, err
	}
	if f.Prefix == "" { // kept in memory alone
		return delivered.Bytes(by.picture(ctx, f, plan, o))
	}
	return sent(by.picture(ctx, f, plan, o))
}

// sent are the bytes of a body; nil: they are stored, and many.
func sent(b delivered.Body, err error) ([]byte, error) {
	if err == nil && b.Reader != nil && b.Size > mostSent {
		return nil, b.Reader.Close()
	}
	return delivered.Bytes(b, err)
}
