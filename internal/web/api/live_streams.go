package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	liveTag  = "Live streams"
	livePath = "/video/v1/live-streams"
	liveItem = livePath + "/{live_stream_id}"
)

// LiveRef names a live stream in a path; exported for huma, which reads embedded fields of exported types only.
type LiveRef struct {
	ID string `path:"live_stream_id" maxLength:"255"`
}

func (l LiveRef) id() id.LiveStream { return id.LiveStream(l.ID) }

// liveStreams are the operations of live streams.
type liveStreams struct {
	live   live.API
	assets asset.API // which tell whether the active one is there yet
	now    func() time.Time
}

func (l liveStreams) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       livePath,
		id:         "create-live-stream",
		tag:        liveTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Create a live stream",
	}, l.create)
	handle(on, route{
		method: http.MethodGet, path: livePath, id: "list-live-streams", tag: liveTag, permission: videoRead,
		summary: "List live streams", text: "Newest first.",
	}, l.list)
	handle(on, route{
		method: http.MethodGet, path: liveItem, id: "get-live-stream", tag: liveTag, permission: videoRead,
		summary: "Retrieve a live stream",
	}, l.get)
	handle(on, route{
		method: http.MethodPatch, path: liveItem, id: "update-live-stream", tag: liveTag, permission: videoWrite,
		summary: "Update a live stream", text: "Changes only the fields that are sent.",
	}, l.update)
	handle(on, route{
		method:     http.MethodDelete,
		path:       liveItem,
		id:         "delete-live-stream",
		tag:        liveTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a live stream",
		text:       "Disconnects its encoder. Recorded assets are kept.",
	}, l.delete)
	handle(on, route{
		method:     http.MethodPost,
		path:       liveItem + "/reset-stream-key",
		id:         "reset-stream-key",
		tag:        liveTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Reset a stream key",
		text:       "The old key is refused from now on.",
	}, l.resetKey)
	l.registerAction(on, "enable", "Enable a live stream", "Encoders can connect again.", live.API.Enable)
	l.registerAction(on, "disable", "Disable a live stream",
		"Ends the broadcast, disconnects the encoder and refuses new ones.", live.API.Disable)
	l.registerAction(on, "complete", "Complete a live stream", "Ends the broadcast and finishes its asset at once.",
		live.API.Complete)
}

// registerAction registers PUT …/{verb}, which returns an empty object: older clients expect one, newer ones ignore it.
func (l liveStreams) registerAction(
	on *server, verb, summary, text string,
	do func(live.API, context.Context, id.Environment, id.LiveStream, time.Time) error,
) {
	handle(on, route{
		method:     http.MethodPut,
		path:       liveItem + "/" + verb,
		id:         verb + "-live-stream",
		tag:        liveTag,
		permission: videoWrite,
		summary:    summary,
		text:       text,
	}, func(ctx context.Context, in *LiveRef) (*one[Empty], error) {
		return just(Empty{}), do(l.live, ctx, environment(ctx), in.id(), l.now())
	})
}

type createLiveStreamInput struct{ Body LiveStreamCreate }

func (l liveStreams) create(ctx context.Context, in *createLiveStreamInput) (*one[LiveStream], error) {
	input, err := in.Body.input()
	if err != nil {
		return nil, err
	}
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	stream, err := l.live.Create(ctx, environment(ctx), input, l.now())
	return l.response(ctx, stream, err)
}

type listLiveStreamsInput struct {
	Page
	Status    string `query:"status" enum:"idle,active,disabled"`
	StreamKey string `query:"stream_key" doc:"Finds the live stream with this key."`
}

func (l liveStreams) list(ctx context.Context, in *listLiveStreamsInput) (*many[LiveStream], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	switch status := live.Status(in.Status); status {
	case "", live.StatusIdle, live.StatusActive, live.StatusDisabled:
	default:
		return nil, fault.New(fault.Invalid, "status must be one of %s",
			strings.Join([]string{"idle", "active", "disabled"}, ", "))
	}
	streams, err := l.live.List(ctx, environment(ctx), live.ListQuery{
		Status: live.Status(in.Status), StreamKey: in.StreamKey, Page: page, Limit: limit,
	})
	for i := range streams {
		if err == nil {
			streams[i], err = l.recorded(ctx, streams[i])
		}
	}
	return all(convert(streams, wireLiveStream)), err
}

func (l liveStreams) get(ctx context.Context, in *LiveRef) (*one[LiveStream], error) {
	stream, err := l.live.Get(ctx, environment(ctx), in.id())
	return l.response(ctx, stream, err)
}

type updateLiveStreamInput struct {
	LiveRef
	Body LiveStreamUpdate
}

func (l liveStreams) update(ctx context.Context, in *updateLiveStreamInput) (*one[LiveStream], error) {
	input := in.Body.input()
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	stream, err := l.live.Patch(ctx, environment(ctx), in.id(), input, l.now())
	return l.response(ctx, stream, err)
}

func (l liveStreams) delete(ctx context.Context, in *LiveRef) (*none, error) {
	return &none{}, l.live.Delete(ctx, environment(ctx), in.id(), l.now())
}

func (l liveStreams) resetKey(ctx context.Context, in *LiveRef) (*one[LiveStream], error) {
	stream, err := l.live.ResetStreamKey(ctx, environment(ctx), in.id(), l.now())
	return l.response(ctx, stream, err)
}

// response is the response with a stream as a service gave it, or with the error.
func (l liveStreams) response(ctx context.Context, stream live.Stream, err error) (*one[LiveStream], error) {
	if err == nil {
		stream, err = l.recorded(ctx, stream)
	}
	return just(wireLiveStream(stream)), err
}

// recorded leaves the active asset out that is not there yet: the encoder is let in first, and its asset is made next,
// which takes a while where the database is slow.
func (l liveStreams) recorded(ctx context.Context, stream live.Stream) (live.Stream, error) {
	if stream.ActiveAsset == "" || stream.Status() == live.StatusActive {
		return stream, nil
	}
	_, err := l.assets.Get(ctx, environment(ctx), stream.ActiveAsset)
	if fault.Is(err, fault.NotFound) {
		stream.ActiveAsset, err = "", nil
	}
	return stream, err
}
