package asset_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// measured is a finished timeline of this size; no width is no video.
func measured(width, height int, audio bool) asset.Finished {
	f := finished()
	f.Facts = asset.Facts{
		Duration: 10, Width: width, Height: height, FrameRate: 30, HasVideo: width > 0, HasAudio: audio,
	}
	return f
}

// made creates an asset with options and finishes it.
func (w *world) made(o assetopt.Options, f asset.Finished) asset.Asset {
	w.t.Helper()
	o.Inputs = []assetopt.Input{{URL: "https://h/a.mp4"}}
	a, err := w.Create(w.ctx(), env, asset.CreateInput{Options: o}, w.now())
	w.must(err)
	w.must(w.Finish(w.ctx(), a.ID, f, w.now()))
	return w.find(a.ID)
}

func statuses(a asset.Asset) (out []string) {
	for _, f := range a.Static.Files {
		out = append(out, f.Name+" "+string(f.Status))
	}
	return out
}

// TestStaticSkipped asks for every resolution of every kind of asset: nothing is scaled up, nothing is made of nothing.
func TestStaticSkipped(t *testing.T) {
	t.Parallel()
	const made, not = "preparing", "skipped"
	for _, tt := range []struct {
		resolution, tier string
		width, height    int
		audio            bool
		name, want       string
	}{
		{"highest", "", 640, 360, true, "highest.mp4", made},
		{"highest", "", 0, 0, true, "highest.mp4", not},
		{"audio-only", "", 640, 360, true, "audio.m4a", made},
		{"audio-only", "", 0, 0, true, "audio.m4a", made},
		{"audio-only", "", 640, 360, false, "audio.m4a", not},
		{"1080p", "", 1920, 1080, true, "1080p.mp4", made},
		{"1080p", "", 1920, 800, true, "1080p.mp4", made}, // as wide as 1080p is
		{"1080p", "", 1080, 1920, true, "1080p.mp4", made},
		{"1080p", "", 1918, 1078, true, "1080p.mp4", not},
		{"1080p", "", 0, 0, true, "1080p.mp4", not},
		{"1440p", "1440p", 3840, 2160, true, "1440p.mp4", made},
		{"1440p", "", 3840, 2160, true, "1440p.mp4", not}, // 1080p is the most that the asset is stored in
		{"2160p", "2160p", 3840, 2160, true, "2160p.mp4", made},
		{"2160p", "2160p", 1920, 1080, true, "2160p.mp4", not},
		{"720p", "", 1280, 720, false, "720p.mp4", made},
		{"540p", "", 960, 540, true, "540p.mp4", made},
		{"480p", "", 640, 480, true, "480p.mp4", made},
		{"360p", "", 640, 352, true, "360p.mp4", made},
		{"270p", "", 320, 180, true, "270p.mp4", not},
	} {
		t.Run(tt.resolution+" of "+strconv.Itoa(tt.width)+"x"+strconv.Itoa(tt.height), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.made(assetopt.Options{
				MaxResolution:    tt.tier,
				StaticRenditions: []assetopt.StaticRendition{{Resolution: tt.resolution, Passthrough: "p"}},
			}, measured(tt.width, tt.height, tt.audio))
			if want := []string{tt.name + " " + tt.want}; !slices.Equal(statuses(a), want) || a.Static.Status != "" ||
				a.Static.Files[0].Passthrough != "p" {
				t.Errorf("files %v, want %v", statuses(a), want)
			}
			if tt.want == made {
				w.happened("created", "static_rendition.created", "ready", "job asset.ingest", "job asset.static")
			} else {
				w.happened("created", "static_rendition.created", "ready", "static_rendition.skipped",
					"job asset.ingest")
			}
		})
	}
}

// TestMP4Support has the files that each value asks for, and one status for all.
func TestMP4Support(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value         string
		width, height int
		audio         bool
		want          []string // names
		status        asset.FileStatus
	}{
		{"none", 640, 360, true, nil, ""},
		{"standard", 1920, 1080, true, []string{"low.mp4", "medium.mp4", "high.mp4"}, "preparing"},
		{"standard", 960, 400, true, []string{"low.mp4", "medium.mp4", "high.mp4"}, "preparing"},
		{"standard", 640, 360, false, []string{"low.mp4", "medium.mp4"}, "preparing"},
		{"standard", 320, 180, true, []string{"low.mp4"}, "preparing"},
		{"standard", 0, 0, true, []string{"audio.m4a"}, "preparing"},
		{"capped-1080p", 640, 360, true, []string{"capped-1080p.mp4"}, "preparing"},
		{"capped-1080p", 0, 0, true, []string{"audio.m4a"}, "preparing"},
		{"audio-only", 640, 360, true, []string{"audio.m4a"}, "preparing"},
		{"audio-only", 640, 360, false, []string{"audio.m4a"}, "errored"},
		{"audio-only,capped-1080p", 640, 360, true, []string{"capped-1080p.mp4", "audio.m4a"}, "preparing"},
		{"audio-only,capped-1080p", 640, 360, false, []string{"capped-1080p.mp4"}, "preparing"},
		{"audio-only,capped-1080p", 0, 0, true, []string{"audio.m4a"}, "preparing"},
	} {
		t.Run(tt.value+" of "+strconv.Itoa(tt.width)+strconv.FormatBool(tt.audio), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.made(assetopt.Options{MP4Support: tt.value}, measured(tt.width, tt.height, tt.audio))
			var names, happened []string
			for _, f := range a.Static.Files {
				names = append(names, f.Name)
				if f.Status == asset.FilePreparing {
					happened = append(happened, "job asset.static")
				}
			}
			if !slices.Equal(names, tt.want) || a.Static.Status != tt.status {
				t.Fatalf("files %v, %q; want %v, %q", names, a.Static.Status, tt.want, tt.status)
			}
			events := []string{"created", "ready"}
			if tt.status != "" {
				events = append(events, "static_renditions.preparing")
			}
			if tt.status == asset.FileErrored {
				events = append(events, "static_renditions.errored")
			}
			w.happened(append(append(events, "job asset.ingest"), happened...)...)
			for i, f := range a.Static.Files {
				if f.Status != asset.FilePreparing {
					return
				}
				f.Size = 100
				w.must(w.StaticReady(w.ctx(), a.ID, f, w.now()))
				w.must(w.StaticReady(w.ctx(), a.ID, f, w.now())) // again, after a crash
				if i+1 < len(a.Static.Files) {
					w.happened()
				}
			}
			if len(a.Static.Files) > 0 {
				w.happened("static_renditions.ready")
				if got := w.find(a.ID).Static; got.Status != asset.FileReady || got.Files[0].Size != 100 {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

// TestMP4SupportChanges turns the old way on and off, where the new one lets it.
func TestMP4SupportChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.made(assetopt.Options{}, measured(640, 360, true))
	w.forget()
	set := func(v string) error {
		_, err := w.SetMP4Support(w.ctx(), env, a.ID, v, w.now())
		return err
	}
	w.wantKind(set("all"), fault.Invalid)
	w.must(set("none"))
	w.happened()
	w.must(set("capped-1080p"))
	w.happened("static_renditions.preparing", "updated", "job asset.static")
	w.must(set("capped-1080p"))
	w.happened()
	_, err := w.AddStatic(w.ctx(), env, a.ID, assetopt.StaticRendition{Resolution: "highest"}, w.now())
	w.wantKind(err, fault.Conflict)
	f := w.find(a.ID).Static.Files[0]
	w.wantKind(w.DeleteStatic(w.ctx(), env, a.ID, f.ID, w.now()), fault.NotFound)
	w.must(w.StaticFailed(w.ctx(), a.ID, f.ID, asset.Errors{Type: "x", Messages: []string{"m"}}, w.now()))
	w.happened("static_renditions.errored")
	w.must(set("audio-only"))
	w.happened("static_renditions.deleted", "static_renditions.preparing", "updated", "job media.purge",
		"job asset.static")
	w.wantKind(w.StaticReady(w.ctx(), a.ID, f, w.now()), fault.NotFound)
	w.must(set("none"))
	w.happened("static_renditions.deleted", "updated", "job media.purge")
	if got := w.find(a.ID); got.Static.Status != asset.FilesDisabled || len(got.Static.Files) != 0 ||
		got.Options.MP4Support != "none" {
		t.Errorf("%+v", got.Static)
	}
	_, err = w.AddStatic(w.ctx(), env, a.ID, assetopt.StaticRendition{Resolution: "highest"}, w.now())
	w.must(err)
	w.wantKind(set("standard"), fault.Conflict)
}

// TestStatic adds, settles and deletes files.
func TestStatic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.made(assetopt.Options{}, measured(1280, 720, true))
	w.forget()
	addTo := func(resolution string) (asset.StaticRendition, error) {
		return w.AddStatic(w.ctx(), env, a.ID, assetopt.StaticRendition{Resolution: resolution, Passthrough: "p"},
			w.now())
	}
	for _, bad := range []string{"", "1081p", "HIGHEST"} {
		_, err := addTo(bad)
		w.wantKind(err, fault.Invalid)
	}
	w.happened()
	f, err := addTo("720p")
	w.must(err)
	if f.Status != asset.FilePreparing || f.Name != "720p.mp4" || f.Ext != "mp4" || f.Type != "advanced" ||
		f.Passthrough != "p" || f.ID == "" {
		t.Errorf("%+v", f)
	}
	w.happened("static_rendition.created", "job asset.static")
	big, err := addTo("1080p")
	w.must(err)
	if big.Status != asset.FileSkipped {
		t.Errorf("got %+v", big)
	}
	w.happened("static_rendition.created", "static_rendition.skipped")
	_, err = addTo("720p")
	w.wantKind(err, fault.Conflict)
	_, err = addTo("highest")
	w.wantKind(err, fault.Invalid)
	sound, err := addTo("audio-only")
	w.must(err)
	if sound.Name != "audio.m4a" || sound.Ext != "m4a" || sound.Type != "standard" || !sound.Sound() {
		t.Errorf("%+v", sound)
	}
	w.forget()
	done := f
	done.Width, done.Height, done.Size, done.Bitrate, done.ResolutionTier = 1280, 720, 5e9, 4e6, "720p"
	w.must(w.StaticProgress(w.ctx(), a.ID, f.ID, 0, w.now()))
	w.must(w.StaticProgress(w.ctx(), a.ID, f.ID, 20.7, w.now().Add(19*time.Second)))
	if got := w.find(a.ID).Static.Files[0]; got.Progress != 20 || len(got.Pace) != 2 {
		t.Errorf("%+v", got)
	} else if left := got.Pace.Left(got.Pace[1].At); left < 70*time.Second || left > 80*time.Second {
		t.Errorf("%s are left when a fifth took 20 s", left)
	}
	w.must(w.StaticProgress(w.ctx(), a.ID, f.ID, 140, w.now()))
	if got := w.find(a.ID).Static.Files[0]; got.Progress != 100 {
		t.Errorf("%+v", got)
	}
	w.must(w.StaticReady(w.ctx(), a.ID, done, w.now()))
	w.must(w.StaticReady(w.ctx(), a.ID, done, w.now()))
	w.happened("static_rendition.ready")
	w.must(w.StaticProgress(w.ctx(), a.ID, f.ID, 12, w.now())) // late
	if got := w.find(a.ID).Static.Files[0]; got.Progress != 0 || got.Pace != nil {
		t.Errorf("%+v", got)
	}
	w.wantKind(w.StaticFailed(w.ctx(), a.ID, f.ID, asset.Errors{}, w.now()), fault.Conflict)
	w.must(w.StaticFailed(w.ctx(), a.ID, sound.ID, asset.Errors{Type: "invalid_input", Messages: []string{"m"}},
		w.now()))
	w.happened("static_rendition.errored")
	if got := w.find(a.ID).Static.Files; got[0].Size != 5e9 || got[0].Width != 1280 || got[2].Errors == nil {
		t.Errorf("%+v", got)
	}
	w.must(w.DeleteStatic(w.ctx(), env, a.ID, f.ID, w.now()))
	w.happened("static_rendition.deleted", "job media.purge")
	w.wantKind(w.DeleteStatic(w.ctx(), env, a.ID, f.ID, w.now()), fault.NotFound)
	w.wantKind(w.DeleteStatic(w.ctx(), "other", a.ID, big.ID, w.now()), fault.NotFound)
	w.wantKind(w.StaticReady(w.ctx(), a.ID, done, w.now()), fault.NotFound)
	w.wantKind(w.StaticProgress(w.ctx(), a.ID, f.ID, 1, w.now()), fault.NotFound)
}

// TestStaticWaits: what is asked for while the asset is made is made when it is whole, and not at all when it fails.
func TestStaticWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.create()
	w.forget()
	_, err := w.AddStatic(w.ctx(), env, a.ID, assetopt.StaticRendition{Resolution: "highest"}, w.now())
	w.must(err)
	_, err = w.SetMasterAccess(w.ctx(), env, a.ID, "temporary", w.now())
	w.must(err)
	w.happened("static_rendition.created")
	w.must(w.Finish(w.ctx(), a.ID, measured(640, 360, true), w.now()))
	w.happened("ready", "master.preparing", "job asset.master", "job asset.static")

	b, err := w.Create(w.ctx(), env, asset.CreateInput{Options: assetopt.Options{
		Inputs: []assetopt.Input{{URL: "https://h/a.mp4"}}, MasterAccess: "temporary",
		StaticRenditions: []assetopt.StaticRendition{{Resolution: "highest"}},
	}}, w.now())
	w.must(err)
	w.forget()
	w.must(w.Fail(w.ctx(), b.ID, asset.Errors{Type: "invalid_input", Messages: []string{"m"}}, w.now()))
	w.happened("master.errored", "static_rendition.errored", "errored")
	_, err = w.AddStatic(w.ctx(), env, b.ID, assetopt.StaticRendition{Resolution: "audio-only"}, w.now())
	w.wantKind(err, fault.Conflict)
	_, err = w.SetMP4Support(w.ctx(), env, b.ID, "standard", w.now())
	w.wantKind(err, fault.Conflict)
	_, err = w.SetMasterAccess(w.ctx(), env, b.ID, "temporary", w.now())
	w.wantKind(err, fault.Conflict)
}

// TestRecordingFiles makes the files of a recording when its broadcast is over.
func TestRecordingFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options     assetopt.Options
		begun, over []string
	}{
		"static renditions": {
			assetopt.Options{
				StaticRenditions: []assetopt.StaticRendition{{Resolution: "highest"}, {Resolution: "1080p"}},
			},
			[]string{"created", "static_rendition.created", "static_rendition.created"},
			[]string{"live_stream_completed", "static_rendition.skipped", "job asset.static"},
		},
		"mp4_support": {
			assetopt.Options{MP4Support: "capped-1080p"},
			[]string{"created"},
			[]string{"live_stream_completed", "static_renditions.preparing", "job asset.static"},
		},
		"master": {
			assetopt.Options{MasterAccess: "temporary"},
			[]string{"created"},
			[]string{"live_stream_completed", "master.preparing", "job asset.master"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, err := w.Record(w.ctx(), asset.NewRecording{
				ID: "rec", Environment: env, LiveStream: "live", Options: tt.options, Media: "media-x",
			}, w.now())
			w.must(err)
			w.happened(tt.begun...)
			w.must(w.Ready(w.ctx(), a.ID, asset.Growth{Entries: entries(0, 1)}, w.now()))
			w.must(w.EndLive(w.ctx(), a.ID, asset.Writer{}, nil, w.now()))
			w.forget()
			w.must(w.Finish(w.ctx(), a.ID, measured(640, 360, true), w.now()))
			w.happened(tt.over...)
		})
	}
}

// TestMaster is offered for a day to anyone who has its address, and no longer.
func TestMaster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.made(assetopt.Options{}, measured(640, 360, true))
	w.forget()
	set := func(v string) asset.Asset {
		t.Helper()
		got, err := w.SetMasterAccess(w.ctx(), env, a.ID, v, w.now())
		w.must(err)
		return got
	}
	_, err := w.SetMasterAccess(w.ctx(), env, a.ID, "forever", w.now())
	w.wantKind(err, fault.Invalid)
	set("none")
	w.happened()
	first := set("temporary").Master
	w.happened("master.preparing", "job asset.master")
	if first.Status != asset.FilePreparing || first.Opens("", "", w.clock) {
		t.Errorf("%+v", first)
	}
	w.must(w.MasterFailed(w.ctx(), a.ID, first.ID, w.now()))
	w.happened("master.errored")
	m := set("temporary").Master // once more
	w.happened("master.preparing", "job asset.master")
	w.wantKind(w.MasterReady(w.ctx(), a.ID, first.ID, w.now()), fault.NotFound)
	w.must(w.MasterReady(w.ctx(), a.ID, m.ID, w.now()))
	w.must(w.MasterReady(w.ctx(), a.ID, m.ID, w.now()))
	w.happened("master.ready", "job asset.master")
	set("temporary")
	w.happened()
	m = w.find(a.ID).Master
	expires := strconv.FormatInt(m.Expires.Unix(), 10)
	if d := m.Expires.Sub(w.clock); d > asset.MasterLifetime || d < asset.MasterLifetime-time.Minute ||
		len(m.Signature) < 22 {
		t.Errorf("%+v at %v", m, w.clock)
	}
	for _, tt := range []struct {
		expires, signature string
		at                 time.Time
		want               bool
	}{
		{expires, m.Signature, w.clock, true},
		{expires, m.Signature, m.Expires.Add(-time.Nanosecond), true},
		{expires, m.Signature, m.Expires, false},
		{expires + "0", m.Signature, w.clock, false},
		{"", m.Signature, w.clock, false},
		{expires, m.Signature[1:], w.clock, false},
		{expires, "", w.clock, false},
	} {
		if m.Opens(tt.expires, tt.signature, tt.at) != tt.want {
			t.Errorf("%+v opens: %t", tt, !tt.want)
		}
	}
	w.must(w.MasterOver(w.ctx(), a.ID, id.StaticRendition("another"), w.now()))
	w.happened()
	w.must(w.MasterOver(w.ctx(), a.ID, m.ID, w.now()))
	w.must(w.MasterOver(w.ctx(), a.ID, m.ID, w.now()))
	w.happened("master.deleted", "job media.purge")
	if got := w.find(a.ID); got.Master != nil || got.Options.MasterAccess != "none" ||
		got.Master.Opens(expires, m.Signature, w.clock) {
		t.Errorf("%+v", got.Master)
	}
}
