package streams

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/web/dashboard/assets"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// showEdit is the form with the settings as they are.
func (rm *room) showEdit(_ *shell.Request, v live.Stream) (shell.View, error) {
	return rm.renderEdit(http.StatusOK, formOf(v.Settings), v, false), nil
}

func (rm *room) edit(r *shell.Request, v live.Stream) (shell.View, error) {
	err := r.StillSo(former(v.Settings))
	if err != nil {
		return shell.View{}, err
	}
	both := r.Merge(former(v.Settings))
	f := readForm(r)
	in := f.changes(v.Settings)
	status := http.StatusBadRequest
	if f.Overtaken(both) {
		status = http.StatusConflict
	}
	if len(f.Bad) == 0 {
		then := v
		if in != (live.PatchInput{}) { // else no event has to tell of it
			then, err = rm.Live.Patch(r.Context(), r.Person.Environment.ID, v.ID, in, rm.Now())
		}
		if err == nil {
			to := rm.stream(v).Address() + "/edit"
			r.Undoable("Saved.", to, former(v.Settings), former(then.Settings))
			return shell.Redirect(rm.stream(v).Address()), nil
		}
		if status, err = f.TakeErr(err); err != nil {
			return shell.View{}, err
		}
	} else if in != (live.PatchInput{}) {
		f.AddErr(in.Check(v))
	}
	return rm.renderEdit(status, f, v, false), nil
}

// formOf shows settings as they would be typed. A window that nobody chose stays empty: it follows the delay.
func formOf(set live.Settings) form {
	f := form{
		Title: set.Meta.Title, Latency: string(set.LatencyMode), Slate: set.SlateForStandard,
		SlateURL: set.ReconnectSlateURL, Hours: hours(set.MaxContinuous), Quality: quality(set),
		Passthrough: set.Passthrough,
	}
	if set.ReconnectChosen {
		f.Window = strconv.FormatFloat(set.ReconnectWindow, 'f', -1, 64)
	}
	return f
}

// hours is a number of seconds in hours, exact enough to be read back as the same.
func hours(sec int) string {
	return strconv.FormatFloat(math.Round(float64(sec)/3600*1e4)/1e4, 'f', -1, 64)
}

// quality is the video quality that recordings are made with.
func quality(set live.Settings) string {
	var o assetopt.Options
	if set.NewAsset != nil {
		o = *set.NewAsset
	}
	return o.WithDefaults(assetopt.ForLive).VideoQuality
}

// changes is what of the settings is to be another: the rest stays, whatever somebody else makes of it meanwhile.
func (f *form) changes(now live.Settings) live.PatchInput {
	var in live.PatchInput
	if !shell.Unchanged(f.Title, now.Meta.Title) {
		in.Meta = &assetopt.MetaPatch{Meta: now.Meta}
		in.Meta.Title = f.Title
	}
	// A field that can't be changed at the moment is not sent at all.
	if mode := live.LatencyMode(f.Latency); mode != "" && mode != now.LatencyMode {
		in.LatencyMode = &mode
	}
	if f.Quality != "" && f.Quality != quality(now) {
		in.NewAsset = &live.NewAssetPatch{VideoQuality: &f.Quality}
	}
	if f.Slate != now.SlateForStandard {
		in.SlateForStandard = &f.Slate
	}
	if !shell.Unchanged(f.SlateURL, now.ReconnectSlateURL) {
		in.ReconnectSlateURL = &f.SlateURL
	}
	if !shell.Unchanged(f.Passthrough, now.Passthrough) {
		in.Passthrough = &f.Passthrough
	}
	if n, ok := f.window(); ok && (!now.ReconnectChosen || n != now.ReconnectWindow) {
		in.ReconnectWindow = &n
	}
	in.DefaultWindow = f.Window == "" && now.ReconnectChosen
	sec, ok := f.longest()
	if !ok {
		sec = live.MaxContinuous
	}
	if sec != now.MaxContinuous {
		in.MaxContinuous = &sec
	}
	return in
}

// Former are the settings that the form which changes them was filled in with.
func (f form) Former() string { return former(f.Of.Settings).Encode() }

// former are the settings of a live stream as the form that changes them sends them.
func former(set live.Settings) url.Values {
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

// usage is whether a live stream may be used, and how often it was: a broadcast that has begun since is not cut off.
func usage(v live.Stream) url.Values {
	return url.Values{"state": {string(v.Status())}, "epoch": {fmt.Sprint(v.Epoch)}}
}

// editPage is the form of a live stream's settings, with its code.
type editPage struct {
	form

	Code shell.Code
}

func (rm *room) showEditCode(r *shell.Request, v live.Stream) (shell.View, error) {
	both := r.Merge(former(v.Settings))
	f := readForm(r)
	f.Overtaken(both)
	f.changes(v.Settings) // marks what can't be read
	return rm.renderEdit(http.StatusOK, f, v, !r.Resumed()), nil
}

func (rm *room) renderEdit(
	status int, f form, v live.Stream, open bool,
) shell.View {
	f.Of = new(rm.stream(v))
	page := editPage{form: f}
	f.FormErrors = shell.FormErrors{} // only of what can't be read
	page.Code = rm.Code("change", f.Of.Address()+"/edit/code", sdkcode.Request{
		Method: http.MethodPatch, Path: liveAPI(v.ID), IDs: []string{string(v.ID)},
		Body: patchBody(f.changes(v.Settings)), Node: "video.liveStreams.update",
		Go: "LiveStreamsApi.UpdateLiveStream", GoType: "mux.UpdateLiveStreamRequest",
	})
	page.Code.Open = open
	if len(f.Bad) > 0 {
		page.Code.None = shell.Unreadable
	}
	return shell.ShowAs(status, "edit", page)
}

// patchBody is what the API would be sent of changes that the form can make. null stands for the default.
func patchBody(in live.PatchInput) (o sdkcode.Object) {
	if in.Meta != nil {
		o = o.Set("meta", assets.MetaBody(in.Meta.Meta))
	}
	if in.LatencyMode != nil {
		o = o.Set("latency_mode", string(*in.LatencyMode))
	}
	if in.NewAsset != nil {
		o = o.Set("new_asset_settings", sdkcode.Object{}.Set("video_quality", *in.NewAsset.VideoQuality))
	}
	switch {
	case in.DefaultWindow:
		o = o.Set("reconnect_window", nil)
	case in.ReconnectWindow != nil:
		o = o.Set("reconnect_window", *in.ReconnectWindow)
	}
	o = sdkcode.Given(o, "use_slate_for_standard_latency", in.SlateForStandard)
	o = sdkcode.Given(o, "reconnect_slate_url", in.ReconnectSlateURL)
	o = sdkcode.Given(o, "max_continuous_duration", in.MaxContinuous)
	o = sdkcode.Given(o, "passthrough", in.Passthrough)
	return o
}
