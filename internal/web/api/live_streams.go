package api

import (
	"context"
	"net/http"
	"strings"
	"time"

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

func (r LiveRef) id() id.LiveStream { return id.LiveStream(r.ID) }

func (s *server) routeLiveStreams() {
	handle(s, route{
		method: http.MethodPost, path: livePath, id: "create-live-stream", tag: liveTag, status: http.StatusCreated, permission: videoWrite,
		summary: "Create a live stream",
	}, s.createLiveStream)
	handle(s, route{
		method: http.MethodGet, path: livePath, id: "list-live-streams", tag: liveTag, permission: videoRead,
		summary: "List live streams", text: "Newest first.",
	}, s.listLiveStreams)
	handle(s, route{
		method: http.MethodGet, path: liveItem, id: "get-live-stream", tag: liveTag, permission: videoRead,
		summary: "Retrieve a live stream",
	}, s.getLiveStream)
	handle(s, route{
		method: http.MethodPatch, path: liveItem, id: "update-live-stream", tag: liveTag, permission: videoWrite,
		summary: "Update a live stream", text: "Changes only the fields that are sent.",
	}, s.updateLiveStream)
	handle(s, route{
		method: http.MethodDelete, path: liveItem, id: "delete-live-stream", tag: liveTag, status: http.StatusNoContent, permission: videoWrite,
		summary: "Delete a live stream", text: "Disconnects its encoder. Recorded assets are kept.",
	}, s.deleteLiveStream)
	handle(s, route{
		method: http.MethodPost, path: liveItem + "/reset-stream-key", id: "reset-stream-key", tag: liveTag, status: http.StatusCreated,
		permission: videoWrite, summary: "Reset a stream key", text: "The old key is refused from now on.",
	}, s.resetStreamKey)
	s.routeAction("enable", "Enable a live stream", "Encoders can connect again.", live.API.Enable)
	s.routeAction("disable", "Disable a live stream", "Ends the broadcast, disconnects the encoder and refuses new ones.", live.API.Disable)
	s.routeAction("complete", "Complete a live stream", "Ends the broadcast and finishes its asset at once.", live.API.Complete)
}

// routeAction registers PUT …/{verb}, which returns an empty object: older clients expect one, newer ones ignore it.
func (s *server) routeAction(verb, summary, text string, do func(live.API, context.Context, id.Environment, id.LiveStream, time.Time) error) {
	handle(s, route{
		method: http.MethodPut, path: liveItem + "/" + verb, id: verb + "-live-stream", tag: liveTag, permission: videoWrite,
		summary: summary, text: text,
	}, func(ctx context.Context, in *LiveRef) (*one[Empty], error) {
		return just(Empty{}), do(s.live, ctx, environment(ctx), in.id(), s.now())
	})
}

type createLiveStreamInput struct{ Body LiveStreamCreate }

func (s *server) createLiveStream(ctx context.Context, in *createLiveStreamInput) (*one[LiveStream], error) {
	input, err := in.Body.input()
	if err != nil {
		return nil, err
	}
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	stream, err := s.live.Create(ctx, environment(ctx), input, s.now())
	return s.liveStream(ctx, stream, err)
}

type listLiveStreamsInput struct {
	Page
	Status    string `query:"status" enum:"idle,active,disabled"`
	StreamKey string `query:"stream_key" doc:"Finds the live stream with this key."`
}

func (s *server) listLiveStreams(ctx context.Context, in *listLiveStreamsInput) (*many[LiveStream], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	switch status := live.Status(in.Status); status {
	case "", live.StatusIdle, live.StatusActive, live.StatusDisabled:
	default:
		return nil, fault.New(fault.Invalid, "status must be one of %s", strings.Join([]string{"idle", "active", "disabled"}, ", "))
	}
	streams, err := s.live.List(ctx, environment(ctx), live.ListQuery{Status: live.Status(in.Status), StreamKey: in.StreamKey, Page: page, Limit: limit})
	for i := range streams {
		if err == nil {
			streams[i], err = s.recorded(ctx, streams[i])
		}
	}
	return all(convert(streams, wireLiveStream)), err
}

func (s *server) getLiveStream(ctx context.Context, in *LiveRef) (*one[LiveStream], error) {
	stream, err := s.live.Get(ctx, environment(ctx), in.id())
	return s.liveStream(ctx, stream, err)
}

type updateLiveStreamInput struct {
	LiveRef
	Body LiveStreamUpdate
}

func (s *server) updateLiveStream(ctx context.Context, in *updateLiveStreamInput) (*one[LiveStream], error) {
	input := in.Body.input()
	input.DefaultQuality = caller(ctx).Environment.VideoQuality
	stream, err := s.live.Patch(ctx, environment(ctx), in.id(), input, s.now())
	return s.liveStream(ctx, stream, err)
}

func (s *server) deleteLiveStream(ctx context.Context, in *LiveRef) (*none, error) {
	return &none{}, s.live.Delete(ctx, environment(ctx), in.id(), s.now())
}

func (s *server) resetStreamKey(ctx context.Context, in *LiveRef) (*one[LiveStream], error) {
	stream, err := s.live.ResetStreamKey(ctx, environment(ctx), in.id(), s.now())
	return s.liveStream(ctx, stream, err)
}

// liveStream is the response with a stream as a service gave it, or with the error.
func (s *server) liveStream(ctx context.Context, stream live.Stream, err error) (*one[LiveStream], error) {
	if err == nil {
		stream, err = s.recorded(ctx, stream)
	}
	return just(wireLiveStream(stream)), err
}

// recorded leaves the active asset out that is not there yet: the encoder is let in first, and its asset is made next,
// which takes a while where the database is slow.
func (s *server) recorded(ctx context.Context, stream live.Stream) (live.Stream, error) {
	if stream.ActiveAsset == "" || stream.Status() == live.StatusActive {
		return stream, nil
	}
	_, err := s.assets.Get(ctx, environment(ctx), stream.ActiveAsset)
	if fault.Is(err, fault.NotFound) {
		stream.ActiveAsset, err = "", nil
	}
	return stream, err
}
