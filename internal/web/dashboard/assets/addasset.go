package assets

import (
	"net/http"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// addForm is the page on which an asset is made of a URL: what was typed, and what is wrong with it.
type addForm struct {
	URL, Title, Policy, Quality, Passthrough string
	Download, Test                           bool

	Code shell.Code
	shell.FormErrors
}

func (rm *room) routeAdd() {
	rm.Handle("GET "+shell.AssetsPath+"/new", "", shell.Writes, rm.showAdd)
	rm.Handle("POST "+shell.AssetsPath, "create-asset", shell.Writes, rm.add)
}

func (rm *room) showAdd(_ *shell.Request) (shell.View, error) {
	return rm.renderAdd(http.StatusOK, addForm{Policy: string(playbackid.Public)}, false), nil
}

func (rm *room) add(r *shell.Request) (shell.View, error) {
	f := readAdd(r)
	made, err := rm.Assets.Create(r.Context(), r.Person.Environment.ID,
		asset.CreateInput{Options: f.options(), DefaultQuality: r.Person.Environment.VideoQuality}, rm.Now())
	if err == nil {
		return shell.Redirect(Video{Asset: made}.Address()), nil
	}
	status, err := f.TakeErr(err)
	if err != nil {
		return shell.View{}, err
	}
	return rm.renderAdd(status, f, false), nil
}

func readAdd(r *shell.Request) addForm {
	return addForm{
		URL: r.Text("url"), Title: r.Text("title"), Policy: r.Text("policy"), Quality: r.Text("video_quality"),
		Passthrough: r.Text("passthrough"), Download: r.Ticked("download"), Test: r.Ticked("test"),
		FormErrors: shell.FormErrors{Fields: []shell.Field{
			shell.At("inputs", "url", "Address of the file"),
			shell.At("meta.title", "title", "Name"),
			shell.At("playback_policies", "policy", "Who may watch"),
			shell.At("video_quality", "video_quality", "Video quality"),
			shell.At("static_renditions", "download", "MP4 file"),
			shell.At("test", "test", "For a test"),
			shell.At("passthrough", "passthrough", "Passthrough"),
		}},
	}
}

// options are what the API would be asked.
func (a addForm) options() assetopt.Options {
	o := assetopt.Options{
		Inputs: []assetopt.Input{{URL: a.URL}}, Meta: assetopt.Meta{Title: a.Title},
		PlaybackPolicies: Policies(a.Policy), VideoQuality: a.Quality, Passthrough: a.Passthrough, Test: a.Test,
	}
	if a.Download {
		o.StaticRenditions = []assetopt.StaticRendition{{Resolution: assetopt.Highest}}
	}
	return o
}

const nobody = "nobody" // may watch

// Policies are those of a choice of who may watch.
func Policies(word string) []playbackid.Policy {
	if word == "" || word == nobody {
		return nil
	}
	return []playbackid.Policy{playbackid.Policy(word)}
}

const addCodePath = shell.AssetsPath + "/code"

func (rm *room) showAddCode(r *shell.Request) (shell.View, error) {
	return rm.renderAdd(http.StatusOK, readAdd(r), !r.Resumed()), nil
}

// renderAdd shows the form of an asset, with its code.
func (rm *room) renderAdd(
	status int, f addForm, open bool,
) shell.View {
	f.Code = rm.Code("make", addCodePath, assetCall(f.options()))
	f.Code.Open = open
	return shell.ShowAs(status, "addasset", f)
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
