package api

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
)

type simulcastTargets struct {
	live live.API
	now  func() time.Time
}

func (s simulcastTargets) register(on *server) {
	handle(on, route{
		method:     http.MethodPost,
		path:       liveItem + "/simulcast-targets",
		id:         "create-live-stream-simulcast-target",
		tag:        liveTag,
		status:     http.StatusCreated,
		permission: videoWrite,
		summary:    "Add a simulcast target to a live stream",
		text:       "Only while the live stream is idle; at most 6.",
	}, s.create)
	handle(on, route{
		method:     http.MethodGet,
		path:       liveItem + "/simulcast-targets/{simulcast_target_id}",
		id:         "get-live-stream-simulcast-target",
		tag:        liveTag,
		permission: videoRead,
		summary:    "Retrieve a simulcast target of a live stream",
	}, s.get)
	handle(on, route{
		method:     http.MethodDelete,
		path:       liveItem + "/simulcast-targets/{simulcast_target_id}",
		id:         "delete-live-stream-simulcast-target",
		tag:        liveTag,
		status:     http.StatusNoContent,
		permission: videoWrite,
		summary:    "Delete a simulcast target of a live stream",
		text:       "Only while the live stream is idle.",
	}, s.delete)
}

type createSimulcastTargetInput struct {
	LiveRef
	Body SimulcastTargetCreate
}

type simulcastTargetRef struct {
	LiveRef
	Target string `path:"simulcast_target_id" maxLength:"255"`
}

func (s simulcastTargets) create(ctx context.Context, in *createSimulcastTargetInput) (*one[SimulcastTarget], error) {
	t, err := s.live.AddSimulcastTarget(ctx, environment(ctx), in.id(), in.Body.domain(), s.now())
	return just(wireTarget(t)), err
}

func (s simulcastTargets) get(ctx context.Context, in *simulcastTargetRef) (*one[SimulcastTarget], error) {
	t, err := s.live.GetSimulcastTarget(ctx, environment(ctx), in.id(), id.SimulcastTarget(in.Target))
	return just(wireTarget(t)), err
}

func (s simulcastTargets) delete(ctx context.Context, in *simulcastTargetRef) (*none, error) {
	return &none{}, s.live.DeleteSimulcastTarget(ctx, environment(ctx), in.id(), id.SimulcastTarget(in.Target), s.now())
}
