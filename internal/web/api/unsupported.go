package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// typeUnsupported is the type of error of an operation that the wire format has and this service does not.
const typeUnsupported = "not_supported"

// absent is an operation that client libraries have and this service does not: the response is 400 and says why. 501
// would be truer, but clients repeat a request after any 5xx.
type absent struct {
	method, path string
	id           string // operationId
	tag          string
	why          string
}

// Why an operation is absent.
const (
	noShots     = "This version does not detect shots"
	noExports   = "A self-hosted service has no bill; see /video/v1/delivery-usage for what was delivered"
	noSpaces    = "Spaces are gone from the wire format; publish to a live stream over WHIP instead"
	noWebInputs = "Web inputs are gone from the wire format; publish to a live stream with an encoder"
	noData      = "Playback analytics are not part of this service"
	noRobots    = "Jobs of language models are not part of this service"
)

// absentOperations are those of the client libraries' Video and System.
func absentOperations() []absent {
	const (
		space     = "/video/v1/spaces/{space_id}"
		webInput  = "/video/v1/web-inputs/{web_input_id}"
		broadcast = space + "/broadcasts/{broadcast_id}"
	)
	list := []absent{
		{http.MethodGet, assetItem + "/shots", "get-asset-shots", assetTag, noShots},
		{http.MethodPost, assetItem + "/shots", "generate-asset-shots", assetTag, noShots},
		{http.MethodDelete, assetItem + "/shots", "delete-asset-shots", assetTag, noShots},
		{http.MethodGet, "/system/v1/usage/exports", "list-usage-exports", absentTag, noExports},
		{http.MethodPost, broadcast + "/start", "start-space-broadcast", absentTag, noSpaces},
		{http.MethodPost, broadcast + "/stop", "stop-space-broadcast", absentTag, noSpaces},
		{http.MethodPut, webInput + "/launch", "launch-web-input", absentTag, noWebInputs},
		{http.MethodPut, webInput + "/shutdown", "shutdown-web-input", absentTag, noWebInputs},
		{http.MethodPut, webInput + "/reload", "reload-web-input", absentTag, noWebInputs},
		{http.MethodPut, webInput + "/url", "update-web-input-url", absentTag, noWebInputs},
	}
	for _, r := range []struct{ path, item, name, why string }{
		{"/video/v1/spaces", space, "space", noSpaces},
		{space + "/broadcasts", broadcast, "space-broadcast", noSpaces},
		{"/video/v1/web-inputs", webInput, "web-input", noWebInputs},
	} {
		list = append(
			list,
			absent{http.MethodPost, r.path, "create-" + r.name, absentTag, r.why},
			absent{http.MethodGet, r.item, "get-" + r.name, absentTag, r.why},
			absent{http.MethodDelete, r.item, "delete-" + r.name, absentTag, r.why},
		)
		if r.name != "space-broadcast" {
			list = append(list, absent{http.MethodGet, r.path, "list-" + r.name, absentTag, r.why})
		}
	}
	return list
}

const absentTag = "Not supported"

// routeAbsent responds to what client libraries can call and this service does not have.
func (s *server) routeAbsent() {
	for _, a := range absentOperations() {
		permission := anyToken
		switch {
		case strings.HasPrefix(a.path, "/system/"):
		case a.method == http.MethodGet:
			permission = videoRead
		default:
			permission = videoWrite
		}
		refused := newError(http.StatusBadRequest, typeUnsupported, a.why)
		responses := s.errorResponses(route{method: a.method, path: a.path, permission: permission})
		delete(responses, strconv.Itoa(http.StatusNotFound))
		responses[strconv.Itoa(http.StatusBadRequest)] = &huma.Response{
			Description: "Always: " + a.why + ".",
			Content:     map[string]*huma.MediaType{jsonType: {Schema: s.errorSchema()}},
		}
		op := huma.Operation{
			OperationID:        a.id,
			Method:             a.method,
			Path:               a.path,
			Summary:            "Not supported",
			Description:        a.why + ".",
			Tags:               []string{a.tag},
			DefaultStatus:      http.StatusBadRequest,
			Metadata:           map[string]any{permissionMeta: permission},
			Security:           security(permission),
			Responses:          responses,
			Parameters:         pathParams(a.path),
			SkipValidateBody:   true,
			SkipValidateParams: true,
		}
		huma.Register(s.huma, op, func(context.Context, *struct{}) (*struct{}, error) { return nil, refused })
	}
	// whole interfaces of other products
	for prefix, why := range map[string]string{"/data/v1": noData, "/robots/v0": noRobots} {
		refuse := func(w http.ResponseWriter, r *http.Request) {
			refuseUnread(w, r, newError(http.StatusBadRequest, typeUnsupported, why))
		}
		s.mux.HandleFunc(prefix, refuse)
		s.mux.HandleFunc(prefix+"/", refuse)
	}
}

// pathParams documents the IDs in a path.
func pathParams(path string) (params []*huma.Param) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, &huma.Param{
				Name:     strings.TrimSuffix(name, "}"),
				In:       "path",
				Required: true,
				Schema:   &huma.Schema{Type: huma.TypeString},
			})
		}
	}
	return params
}
