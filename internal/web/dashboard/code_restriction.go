package dashboard

import (
	"net/http"
	"net/url"

	"millrace/internal/control/access"
)

func (s *server) showRestrictionCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderRule(w, r, p, http.StatusOK, readRule(r), !isResumed(r))
}

func (s *server) showRestrictionEditCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	f, both, err := s.changedRule(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	f.overtaken(both)
	s.renderRule(w, r, p, http.StatusOK, f, !isResumed(r))
}

// renderRule shows the form of a playback restriction, with its code.
func (s *server) renderRule(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f ruleForm, open bool,
) {
	if f.Of != nil {
		f.Code = s.code("make", f.Of.Address()+"/code", f.changes()...)
	} else {
		f.Code = s.code("make", restrictionsPath+"/code", call{
			path: "/video/v1/playback-restrictions", body: f.body(), node: "video.playbackRestrictions.create",
			goDo:   "PlaybackRestrictionsApi.CreatePlaybackRestriction",
			goType: "mux.CreatePlaybackRestrictionRequest",
		})
	}
	f.Code.Open = open
	s.render(w, r, p, status, "restriction", f)
}

// changes are the requests for what differs from what there is: each part has one of its own.
func (f ruleForm) changes() (c []call) {
	of := []string{string(f.Of.ID)}
	path := "/video/v1/playback-restrictions/" + url.PathEscape(of[0])
	if f.otherReferrer() {
		c = append(c, call{
			method: http.MethodPut, path: path + "/referrer", of: of, body: f.referrerBody(),
			node:   "video.playbackRestrictions.updateReferrer",
			goDo:   "PlaybackRestrictionsApi.UpdateReferrerDomainRestriction",
			goType: "mux.UpdateReferrerDomainRestrictionRequest",
		})
	}
	if f.otherAgent() {
		c = append(c, call{
			method: http.MethodPut, path: path + "/user_agent", of: of, body: f.agentBody(),
			node:   "video.playbackRestrictions.updateUserAgent",
			goDo:   "PlaybackRestrictionsApi.UpdateUserAgentRestriction",
			goType: "mux.UpdateUserAgentRestrictionRequest",
		})
	}
	return c
}

// body is what the API would be sent for a new one.
func (f ruleForm) body() object {
	return object{{"referrer", f.referrerBody()}, {"user_agent", f.agentBody()}}
}

func (f ruleForm) referrerBody() object {
	return object{{"allowed_domains", f.domains()}}.with("allow_no_referrer", f.NoReferrer)
}

// agentBody has all of it: what is left out counts as allowed.
func (f ruleForm) agentBody() object {
	agent := f.agent()
	return object{{"allow_no_user_agent", agent.AllowNone}, {"allow_high_risk_user_agent", agent.AllowHighRisk}}
}
