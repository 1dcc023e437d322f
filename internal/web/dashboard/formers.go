package dashboard

import (
	"fmt"
	"net/url"
	"strings"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
)

// Former are the settings that the form which changes them was filled in with.
func (f form) Former() string { return streamFormer(f.Of.Settings).Encode() }

// Former is likewise for the name of an asset.
func (v video) Former() string { return assetFormer(v.Asset).Encode() }

// Former is likewise for a track.
func (t track) Former() string { return trackFormer(t.Track).Encode() }

// Former is likewise for a webhook.
func (e endpoint) Former() string { return webhookFormer(e).Encode() }

// Former is likewise for a playback restriction.
func (v rule) Former() string { return ruleFormer(v).Encode() }

// streamFormer are the settings of a live stream as the form that changes them sends them.
func streamFormer(set live.Settings) url.Values {
	f := formOf(set)
	v := url.Values{
		"title": {f.Title}, "latency_mode": {f.Latency}, "reconnect_window": {f.Window}, "hours": {f.Hours},
		"reconnect_slate_url": {f.SlateURL}, "video_quality": {f.Quality}, "passthrough": {f.Passthrough},
	}
	if f.Slate {
		v.Set("slate", "1")
	}
	return v
}

func assetFormer(a asset.Asset) url.Values {
	return url.Values{"title": {a.Options.Meta.Title}, "passthrough": {a.Options.Passthrough}}
}

func trackFormer(t asset.Track) url.Values {
	v := url.Values{"name": {t.Name}, "language_code": {t.LanguageCode}}
	if t.ClosedCaptions {
		v.Set("closed_captions", "1")
	}
	return v
}

// webhookFormer are the settings of a webhook as the form that changes them sends them.
func webhookFormer(e endpoint) url.Values {
	v := url.Values{"address": {e.Address}, "which": {"all"}}
	if len(e.Types) > 0 {
		v["which"], v["type"] = []string{"chosen"}, e.Types
	}
	return v
}

// ruleFormer is a playback restriction as the form that changes it sends it.
func ruleFormer(v rule) url.Values {
	out := url.Values{"domains": {strings.Join(v.Referrer.AllowedDomains, "\n")}}
	for name, on := range map[string]bool{
		"allow_no_referrer": v.Referrer.AllowNoReferrer, "allow_no_user_agent": v.UserAgent.AllowNone,
		"allow_high_risk_user_agent": v.UserAgent.AllowHighRisk,
	} {
		if on {
			out.Set(name, "1")
		}
	}
	return out
}

// switched is whether a live stream may be used, and how often it was: a broadcast that has begun since is not cut off.
func switched(v live.Stream) url.Values {
	return url.Values{"state": {string(v.Status())}, "epoch": {fmt.Sprint(v.Epoch)}}
}

// turned is whether a webhook is enabled.
func turned(e endpoint) url.Values {
	return url.Values{"enabled": {fmt.Sprint(e.Enabled)}}
}
