package settings

import (
	"net/http"
	"net/url"

	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

func (s *restrictions) showRestrictionCode(r *shell.Request) (shell.View, error) {
	return s.renderForm(r, http.StatusOK, readRestriction(r), !r.Resumed())
}

func (s *restrictions) showRestrictionEditCode(r *shell.Request) (shell.View, error) {
	f, both, err := s.changedForm(r)
	if err != nil {
		return shell.View{}, err
	}
	f.Overtaken(both)
	return s.renderForm(r, http.StatusOK, f, !r.Resumed())
}

// renderForm shows the form of a playback restriction, with its code.
func (s *restrictions) renderForm(
	r *shell.Request, status int, f restrictionForm, open bool,
) (shell.View, error) {
	if f.Of != nil {
		f.Code = s.Code("make", f.Of.Address()+"/code", f.changes()...)
	} else {
		f.Code = s.Code("make", shell.RestrictionsPath+"/code", sdkcode.Request{
			Path: "/video/v1/playback-restrictions", Body: f.body(), Node: "video.playbackRestrictions.create",
			Go:     "PlaybackRestrictionsApi.CreatePlaybackRestriction",
			GoType: "mux.CreatePlaybackRestrictionRequest",
		})
	}
	f.Code.Open = open
	return shell.ShowAs(status, "restriction", f), nil
}

// changes are the requests for what differs from what there is: each part has one of its own.
func (f restrictionForm) changes() (c []sdkcode.Request) {
	of := []string{string(f.Of.ID)}
	path := "/video/v1/playback-restrictions/" + url.PathEscape(of[0])
	if f.otherReferrer() {
		c = append(c, sdkcode.Request{
			Method: http.MethodPut, Path: path + "/referrer", IDs: of, Body: f.referrerBody(),
			Node:   "video.playbackRestrictions.updateReferrer",
			Go:     "PlaybackRestrictionsApi.UpdateReferrerDomainRestriction",
			GoType: "mux.UpdateReferrerDomainRestrictionRequest",
		})
	}
	if f.otherAgent() {
		c = append(c, sdkcode.Request{
			Method: http.MethodPut, Path: path + "/user_agent", IDs: of, Body: f.agentBody(),
			Node:   "video.playbackRestrictions.updateUserAgent",
			Go:     "PlaybackRestrictionsApi.UpdateUserAgentRestriction",
			GoType: "mux.UpdateUserAgentRestrictionRequest",
		})
	}
	return c
}

// body is what the API would be sent for a new one.
func (f restrictionForm) body() sdkcode.Object {
	return sdkcode.Object{}.Set("referrer", f.referrerBody()).Set("user_agent", f.agentBody())
}

func (f restrictionForm) referrerBody() sdkcode.Object {
	return sdkcode.Object{}.Set("allowed_domains", f.domains()).With("allow_no_referrer", f.NoReferrer)
}

// agentBody has all of it: what is left out counts as allowed.
func (f restrictionForm) agentBody() sdkcode.Object {
	agent := f.agent()
	return sdkcode.Object{}.Set("allow_no_user_agent", agent.AllowNone).
		Set("allow_high_risk_user_agent", agent.AllowHighRisk)
}
