package api

import (
	"context"
	"net/http"

	"millrace/internal/id"
)

func (s *server) routeSimulcastTargets() {
	handle(s, route{
		method: http.MethodPost, path: liveItem + "/simulcast-targets", id: "create-live-stream-simulcast-target", tag: liveTag,
		status: http.StatusCreated, permission: videoWrite, summary: "Add a simulcast target to a live stream",
		text: "Only while the live stream is idle; at most 6.",
	}, s.createSimulcastTarget)
	handle(s, route{
		method: http.MethodGet, path: liveItem + "/simulcast-targets/{simulcast_target_id}", id: "get-live-stream-simulcast-target", tag: liveTag,
		permission: videoRead, summary: "Retrieve a simulcast target of a live stream",
	}, s.getSimulcastTarget)
	handle(s, route{
		method: http.MethodDelete, path: liveItem + "/simulcast-targets/{simulcast_target_id}", id: "delete-live-stream-simulcast-target", tag: liveTag,
		status: http.StatusNoContent, permission: videoWrite, summary: "Delete a simulcast target of a live stream",
		text: "Only while the live stream is idle.",
	}, s.deleteSimulcastTarget)
}

type createSimulcastTargetInput struct {
	LiveRef
	Body SimulcastTargetCreate
}

type simulcastTargetRef struct {
	LiveRef
	Target string `path:"simulcast_target_id" maxLength:"255"`
}

func (s *server) createSimulcastTarget(ctx context.Context, in *createSimulcastTargetInput) (*one[SimulcastTarget], error) {
	t, err := s.live.AddSimulcastTarget(ctx, environment(ctx), in.id(), in.Body.domain(), s.now())
	return just(wireTarget(t)), err
}

func (s *server) getSimulcastTarget(ctx context.Context, in *simulcastTargetRef) (*one[SimulcastTarget], error) {
	t, err := s.live.GetSimulcastTarget(ctx, environment(ctx), in.id(), id.SimulcastTarget(in.Target))
	return just(wireTarget(t)), err
}

func (s *server) deleteSimulcastTarget(ctx context.Context, in *simulcastTargetRef) (*none, error) {
	return &none{}, s.live.DeleteSimulcastTarget(ctx, environment(ctx), in.id(), id.SimulcastTarget(in.Target), s.now())
}
