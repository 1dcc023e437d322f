package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/fault"
	"millrace/internal/id"
)

// Data is the envelope of one resource.
type Data[T any] struct {
	Data T `json:"data"`
}

// List is the envelope of several.
type List[T any] struct {
	Data []T `json:"data"`
}

// Empty is the response of an action without a result.
type Empty struct{}

type one[T any] struct{ Body Data[T] }

type many[T any] struct{ Body List[T] }

type none struct{}

func just[T any](v T) *one[T] { return &one[T]{Body: Data[T]{Data: v}} }

func all[T any](v []T) *many[T] { return &many[T]{Body: List[T]{Data: v}} }

// listed is a page of what a service lists of the caller's environment.
func listed[A, B any](
	ctx context.Context, p Page,
	list func(ctx context.Context, env id.Environment, page, limit int) ([]A, error), wire func(A) B,
) (*many[B], error) {
	page, limit, err := p.read()
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, environment(ctx), page, limit)
	return all(convert(found, wire)), err
}

// convert maps a list and never returns nil, which would be null on the wire.
func convert[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// Page selects a part of a list; it is embedded in the input of list operations.
type Page struct {
	Page  pageNumber `query:"page" doc:"The page number, from 1."`
	Limit pageLimit  `query:"limit" doc:"Resources per page, from 1 to 100."`
}

type (
	pageNumber string
	pageLimit  string
)

const (
	defaultLimit = 25
	maxLimit     = 100
	maxPage      = 1_000_000
)

// Schema documents a page's number.
func (pageNumber) Schema(huma.Registry) *huma.Schema { return numberSchema(1, maxPage, 1) }

// Schema documents a page's size.
func (pageLimit) Schema(huma.Registry) *huma.Schema { return numberSchema(1, maxLimit, defaultLimit) }

func numberSchema(low, high, preset int) *huma.Schema {
	l, h := float64(low), float64(high)
	return &huma.Schema{Type: huma.TypeInteger, Minimum: &l, Maximum: &h, Default: preset}
}

func (p Page) read() (page, limit int, err error) {
	var problems fault.List
	page = readNumber(&problems, "page", string(p.Page), maxPage, 1)
	limit = readNumber(&problems, "limit", string(p.Limit), maxLimit, defaultLimit)
	return page, limit, problems.Err()
}

func readNumber(problems *fault.List, name, text string, high, preset int) int {
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > high {
		problems.At(name, "must be a whole number from 1 to %d", high)
	}
	return n
}

// route is one operation of the API.
type route struct {
	method, path string
	id           string // operationId
	summary      string
	text         string
	tag          string
	status       int
	permission   string
}

// handle registers an operation. Its errors are written by fail, so a handler returns what the service returned.
func handle[I, O any](s *server, rt route, h func(ctx context.Context, in *I) (*O, error)) {
	op := huma.Operation{
		OperationID:        rt.id,
		Method:             rt.method,
		Path:               rt.path,
		Summary:            rt.summary,
		Description:        rt.text,
		Tags:               []string{rt.tag},
		DefaultStatus:      rt.status,
		Metadata:           map[string]any{permissionMeta: rt.permission},
		Security:           security(rt.permission),
		Responses:          s.errorResponses(rt),
		SkipValidateBody:   true,
		SkipValidateParams: true, // done before, with messages of our own
		MaxBodyBytes:       -1,
		BodyReadTimeout:    -1, // likewise
	}
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, s.fail(ctx, err)
		}
		return out, nil
	})
}

// security documents the permission that a token needs, as a role (OpenAPI 3.1, Security Requirement Object).
func security(permission string) []map[string][]string {
	roles := []string{}
	if permission != anyToken {
		roles = append(roles, permission)
	}
	return []map[string][]string{{"accessToken": roles}}
}

// errorResponses documents the responses that an operation can give besides its own.
func (s *server) errorResponses(rt route) map[string]*huma.Response {
	codes := []int{
		http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusServiceUnavailable,
	}
	if rt.permission != anyToken {
		codes = append(codes, http.StatusBadRequest, http.StatusForbidden)
	}
	if strings.Contains(rt.path, "{") {
		codes = append(codes, http.StatusNotFound)
	}
	if rt.method == http.MethodPost || rt.method == http.MethodPatch {
		codes = append(codes, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge)
	}
	out := map[string]*huma.Response{}
	for _, code := range codes {
		out[strconv.Itoa(code)] = &huma.Response{
			Description: http.StatusText(code),
			Content:     map[string]*huma.MediaType{jsonType: {Schema: s.errorSchema()}},
		}
	}
	return out
}
