package dashboard

import (
	"net/http"

	"millrace/internal/control/access"
)

func (s *server) showRestrictionCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderRule(w, r, p, http.StatusOK, readRule(r), true)
}

// renderRule shows the form of a playback restriction, that of a new one with its code. What changes one is no single
// request of the API.
func (s *server) renderRule(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f ruleForm, open bool,
) {
	if f.Of == nil {
		f.Code = s.code("make", restrictionsPath+"/code", call{
			path: "/video/v1/playback-restrictions", body: f.body(), node: "video.playbackRestrictions.create",
			goDo:   "PlaybackRestrictionsApi.CreatePlaybackRestriction",
			goType: "mux.CreatePlaybackRestrictionRequest",
		})
		f.Code.Open = open
	}
	s.render(w, r, p, status, "restriction", f)
}

// body is what the API would be sent. It has all of the user agents' part: what is left out of it counts as allowed.
func (f ruleForm) body() object {
	agent := f.agent()
	return object{
		{"referrer", object{{"allowed_domains", f.domains()}}.with("allow_no_referrer", f.NoReferrer)},
		{"user_agent", object{
			{"allow_no_user_agent", agent.AllowNone}, {"allow_high_risk_user_agent", agent.AllowHighRisk},
		}},
	}
}
