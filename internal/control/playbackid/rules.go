package playbackid

import (
	"millrace/internal/control/field"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Max is how many playback IDs a resource may have.
const Max = 100

// Check adds what is wrong with a single request, as in the body of a playback-ids endpoint or an entry of
// advanced_playback_policies.
func (r Request) Check(l *fault.List, path string) {
	field.OneOf(l, field.Join(path, "policy"), string(r.Policy), string(Public), string(Signed), string(DRM))
	at := field.Join(path, "drm_configuration_id")
	if r.DRMConfigurationID != "" && r.Policy != DRM {
		l.At(at, "may be set only when %s is drm", field.Join(path, "policy"))
	}
	field.Text(l, at, r.DRMConfigurationID, field.MaxID)
}

// CheckAll adds what is wrong with the two ways of asking for playback IDs together with a resource; only one may be
// used, and drm only in the advanced one.
func CheckAll(l *fault.List, path string, policies []Policy, advanced []Request) {
	plain, adv := field.Join(path, "playback_policies"), field.Join(path, "advanced_playback_policies")
	if len(policies) > 0 && len(advanced) > 0 {
		l.At(plain, "and %s must not be used together", adv)
	}
	if !field.Count(l, plain, len(policies), Max) || !field.Count(l, adv, len(advanced), Max) {
		return
	}
	for i, p := range policies {
		if p == DRM {
			l.At(field.At(plain, i), "must be public or signed; drm is asked for by %s", adv)
			continue
		}
		field.OneOf(l, field.At(plain, i), string(p), string(Public), string(Signed))
	}
	for i, r := range advanced {
		r.Check(l, field.At(adv, i))
	}
}

// New makes the playback ID that r asks for.
func New(r Request) ID {
	return ID{ID: id.Playback(id.New()), Policy: r.Policy, DRMConfigurationID: r.DRMConfigurationID}
}

// NewAll makes the playback IDs that a resource starts with.
func NewAll(policies []Policy, advanced []Request) []ID {
	requests := Requests(policies, advanced)
	ids := make([]ID, 0, len(requests))
	for _, r := range requests {
		ids = append(ids, New(r))
	}
	return ids
}

// Requests are the two ways of asking for playback IDs as one.
func Requests(policies []Policy, advanced []Request) []Request {
	all := make([]Request, 0, len(policies)+len(advanced))
	for _, p := range policies {
		all = append(all, Request{Policy: p})
	}
	return append(all, advanced...)
}

// RequestsOf are what playback IDs were asked for by.
func RequestsOf(ids []ID) []Request {
	all := make([]Request, 0, len(ids))
	for _, p := range ids {
		all = append(all, Request{p.Policy, p.DRMConfigurationID})
	}
	return all
}

// Index finds p in ids; -1 when it is not there.
func Index(ids []ID, p id.Playback) int {
	for i, have := range ids {
		if have.ID == p {
			return i
		}
	}
	return -1
}

// ErrTooMany refuses one playback ID more than Max.
func ErrTooMany() error {
	return fault.New(fault.Conflict, "a resource may have at most %d playback IDs; delete one first", Max)
}

// ErrUnknown says that the resource has no such playback ID.
func ErrUnknown() error { return fault.New(fault.NotFound, "the playback ID does not exist") }
