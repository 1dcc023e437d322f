package assets

import (
	"net/http"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

const addCodePath = shell.AssetsPath + "/code"

func (s *room) showAddCode(r *shell.Request) (shell.View, error) {
	return s.renderAdd(r, http.StatusOK, readAdd(r), !r.Resumed())
}

// renderAdd shows the form of an asset, with its code.
func (s *room) renderAdd(
	r *shell.Request, status int, f addForm, open bool,
) (shell.View, error) {
	f.Code = s.Code("make", addCodePath, assetCall(f.options()))
	f.Code.Open = open
	return shell.ShowAs(status, "addasset", f), nil
}

func assetCall(o assetopt.Options) sdkcode.Request {
	return sdkcode.Request{
		Path: "/video/v1/assets", Body: OptionsBody(o), Node: "video.assets.create",
		Go: "AssetsApi.CreateAsset", GoType: "mux.CreateAssetRequest",
	}
}

// OptionsBody is what the API would be sent of an asset.
func OptionsBody(o assetopt.Options) sdkcode.Object {
	var inputs, files []sdkcode.Object
	for _, in := range o.Inputs {
		x := sdkcode.Object{}.Set("url", in.URL)
		if in.StartTime != nil {
			x = x.With("start_time", *in.StartTime)
		}
		if in.EndTime != nil {
			x = x.With("end_time", *in.EndTime)
		}
		inputs = append(inputs, x)
	}
	for _, f := range o.StaticRenditions {
		files = append(files, sdkcode.Object{}.Set("resolution", f.Resolution))
	}
	return sdkcode.Object{}.With("inputs", inputs).With("meta", sdkcode.Object{}.With("title", o.Meta.Title)).
		With("playback_policies", Words(o.PlaybackPolicies)).With("video_quality", o.VideoQuality).
		With("static_renditions", files).With("test", o.Test).With("passthrough", o.Passthrough)
}

// Words are policies as the API has them.
func Words(policies []playbackid.Policy) []string {
	var out []string
	for _, p := range policies {
		out = append(out, string(p))
	}
	return out
}
