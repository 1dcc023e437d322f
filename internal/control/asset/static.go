package asset

import (
	"context"
	"fmt"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Static is the files to download of an asset: those that static_renditions asks for, or those that mp4_support does.
type Static struct {
	// Status is that of all files together; only where mp4_support asks for them.
	Status FileStatus        `json:"status,omitempty"`
	Files  []StaticRendition `json:"files,omitempty"`
}

// StaticRendition is a file to download. Its JSON is the data of its events.
type StaticRendition struct {
	ID             id.StaticRendition `json:"id"`
	Asset          id.Asset           `json:"asset_id"`
	Name           string             `json:"name"` // in URLs: highest.mp4, 720p.mp4, audio.m4a
	Ext            string             `json:"ext"`
	Resolution     string             `json:"resolution,omitempty"` // as it was asked for; none where mp4_support did
	Type           string             `json:"type,omitempty"`       // standard, advanced
	Status         FileStatus         `json:"status"`
	ResolutionTier string             `json:"resolution_tier,omitempty"`
	Width          int                `json:"width,omitempty"` // pixels
	Height         int                `json:"height,omitempty"`
	Bitrate        int64              `json:"bitrate,omitempty"`         // bits per second
	Size           int64              `json:"filesize,omitempty,string"` // bytes
	Passthrough    string             `json:"passthrough,omitempty"`
	// Progress is how much of a preparing file is encoded, in percent; 0 where nothing has to be, too.
	Progress float64 `json:"progress,omitempty"`
	Pace     Pace    `json:"pace,omitempty"` // of that
	Errors   *Errors `json:"error,omitempty"`
}

// The kinds of files; the second costs an encode where there is no such rendition.
const (
	standardFile = "standard"
	advancedFile = "advanced"
)

// asked makes the preparing file that r asks for.
func asked(a id.Asset, r assetopt.StaticRendition) StaticRendition {
	f := StaticRendition{
		ID:          id.StaticRendition(id.New()),
		Asset:       a,
		Name:        r.Resolution + ".mp4",
		Ext:         "mp4",
		Resolution:  r.Resolution,
		Type:        advancedFile,
		Status:      FilePreparing,
		Passthrough: r.Passthrough,
	}
	if !r.Sized() {
		f.Type = standardFile
	}
	if r.Resolution == assetopt.AudioOnly {
		f.Name, f.Ext = "audio.m4a", "m4a"
	}
	return f
}

// Sound reports whether the file has no picture.
func (s StaticRendition) Sound() bool { return s.Ext == "m4a" }

// heights are the pixels of the shorter side by file name.
//
//nolint:gochecknoglobals // a table
var heights = map[string]int{
	"2160p.mp4": 2160, "1440p.mp4": 1440, "1080p.mp4": 1080, "720p.mp4": 720, "540p.mp4": 540, "480p.mp4": 480,
	"360p.mp4": 360, "270p.mp4": 270,
	"capped-1080p.mp4": 1080, "high.mp4": 1080, "medium.mp4": 540, "low.mp4": 360,
}

// Short is the most pixels that the shorter side of the picture has; 0: as many as there are.
func (s StaticRendition) Short() int { return heights[s.Name] }

// reaches reports whether a picture has the height that f is named after, on its shorter side, or the width that goes
// with it on its longer one.
func reaches(f Facts, short int) bool {
	return min(f.Width, f.Height) >= short || max(f.Width, f.Height) >= short*16/9
}

// skipped reports whether there is nothing to make f of: it would have to be scaled up, or the asset has no such media.
func (a *Asset) skipped(f StaticRendition) bool {
	switch {
	case f.Sound():
		return !a.Facts.HasAudio
	case !a.Facts.HasVideo:
		return true
	case f.Resolution == assetopt.Highest:
		return false
	}
	return f.Short() > tierHeight(a.Options.MaxResolution) || !reaches(a.Facts, f.Short())
}

// tierHeight is what max_resolution_tier allows, in pixels of the shorter side.
func tierHeight(tier string) int {
	switch tier {
	case "2160p":
		return 2160
	case "1440p":
		return 1440
	}
	return 1080
}

// mp4Wanted reports whether mp4_support asks for files, which excludes static_renditions.
func (a *Asset) mp4Wanted() bool {
	return a.Options.MP4Support != "" && a.Options.MP4Support != assetopt.NoMP4
}

// mp4Files are the files that mp4_support asks for, now that it is known what is in the asset.
func (a *Asset) mp4Files() []StaticRendition {
	var out []StaticRendition
	add := func(name, ext string) {
		out = append(out, StaticRendition{
			ID:     id.StaticRendition(id.New()),
			Asset:  a.ID,
			Name:   name,
			Ext:    ext,
			Status: FilePreparing,
		})
	}
	video, audio := a.Facts.HasVideo, a.Facts.HasAudio
	soundless := func() { // what is asked for can not be
		add("audio.m4a", "m4a")
		out[len(out)-1].Status = FileErrored
		out[len(out)-1].Errors = &Errors{
			Type:     "invalid_input",
			Messages: []string{"the asset has no audio to make audio.m4a of"},
		}
	}
	switch v := a.Options.MP4Support; {
	case v == "audio-only" && !audio:
		soundless()
	case v == "audio-only", !video:
		add("audio.m4a", "m4a")
	case v == "standard":
		add("low.mp4", "mp4")
		if reaches(a.Facts, 360) {
			add("medium.mp4", "mp4")
		}
		if reaches(a.Facts, 540) {
			add("high.mp4", "mp4")
		}
	default:
		add("capped-1080p.mp4", "mp4")
		if v != "capped-1080p" && audio {
			add("audio.m4a", "m4a")
		}
	}
	return out
}

// whole reports whether everything there will ever be of the asset is there: files can be made of it.
func (a *Asset) whole() bool { return a.Status == Ready && a.Index != "" }

// wantFiles notes which files the options of a new asset ask for.
func (c *Change) wantFiles() {
	a := &c.Asset
	if a.Options.MasterAccess == assetopt.Temporary {
		a.Master = &Master{ID: id.StaticRendition(id.New()), Status: FilePreparing}
	}
	if a.mp4Wanted() {
		a.Static = Static{Status: FilePreparing}
		return
	}
	for _, r := range a.Options.StaticRenditions {
		c.wantFile(r)
	}
}

func (c *Change) wantFile(r assetopt.StaticRendition) StaticRendition {
	f := asked(c.Asset.ID, r)
	c.Asset.Static.Files = append(slices.Clip(c.Asset.Static.Files), f)
	c.tellFile(f, EventStaticCreated)
	return f
}

// makeFiles has the preparing files made, now that the asset is whole, and skips those that there is nothing to make
// of.
func (c *Change) makeFiles() {
	a := &c.Asset
	c.makeMaster()
	if a.mp4Wanted() {
		c.makeMP4()
		return
	}
	for i, f := range a.Static.Files {
		c.makeFile(i, f)
	}
}

// makeMP4 has the files made that mp4_support asks for.
func (c *Change) makeMP4() {
	c.Asset.Static = Static{Status: FilePreparing, Files: c.Asset.mp4Files()}
	c.tell(EventMP4Preparing)
	for i, f := range c.Asset.Static.Files {
		c.makeFile(i, f)
	}
	c.endMP4()
}

func (c *Change) makeFile(i int, f StaticRendition) {
	if f.Status != FilePreparing {
		return
	}
	if !c.Asset.mp4Wanted() && c.Asset.skipped(f) {
		f.Status, _ = NextFile(f.Status, NothingToMake)
		c.putFile(i, f)
		c.tellFile(f, EventStaticSkipped)
		return
	}
	c.ask(c.Asset.staticJob(f))
}

// failFiles gives up the files of an asset that will not be whole.
func (c *Change) failFiles(why Errors) {
	a := &c.Asset
	if m := a.Master; m != nil && m.Status == FilePreparing {
		a.Master = &Master{ID: m.ID, Status: FileErrored}
		c.tell(EventMasterErrored)
	}
	if a.mp4Wanted() {
		if a.Static.Status == FilePreparing {
			a.Static.Status = FileErrored
			c.tell(EventMP4Errored)
		}
		return
	}
	for i, f := range a.Static.Files {
		if to, ok := NextFile(f.Status, WorkFailed); ok {
			f.Status, f.Errors = to, &why
			c.putFile(i, f)
			c.tellFile(f, EventStaticErrored)
		}
	}
}

// endMP4 says what has become of all files that mp4_support asks for, when none is being made any more.
func (c *Change) endMP4() {
	a := &c.Asset
	if !a.mp4Wanted() || a.Static.Status != FilePreparing {
		return
	}
	failed := false
	for _, f := range a.Static.Files {
		if f.Status == FilePreparing {
			return
		}
		failed = failed || f.Status == FileErrored
	}
	if failed {
		a.Static.Status = FileErrored
		c.tell(EventMP4Errored)
		return
	}
	a.Static.Status = FileReady
	c.tell(EventMP4Ready)
}

// putFile replaces the file at i.
func (c *Change) putFile(i int, f StaticRendition) {
	c.Asset.Static.Files = slices.Clone(c.Asset.Static.Files)
	c.Asset.Static.Files[i] = f
}

// tellFile adds an event about a single file.
func (c *Change) tellFile(f StaticRendition, typ string) {
	c.Events = append(c.Events,
		event.New(c.Asset.Environment, typ, EventFileObject, string(f.ID), c.Asset.UpdatedAt, f).Of(string(f.Asset)))
}

// sweepFiles has the storage of files that are gone freed. what tells this purge from others of the asset that wait; so
// that it isn't taken for one that runs already, there is the revision.
func (c *Change) sweepFiles(what string) {
	c.ask(job.New(JobPurge, fmt.Sprintf("%s/%s/%d", c.Asset.Media, what, c.Asset.Revision), PurgeArgs{
		Media: c.Asset.Media,
	}))
}

// AddStatic adds a file to download. Event static_rendition.created; job JobStatic once the asset is whole, or event
// skipped.
func (s *Service) AddStatic(
	ctx context.Context, env id.Environment, a id.Asset, in assetopt.StaticRendition, now time.Time,
) (StaticRendition, error) {
	var l fault.List
	in.Check(&l, "")
	if err := l.Err(); err != nil {
		return StaticRendition{}, err
	}
	var f StaticRendition
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		if err := c.Asset.mayAdd(in); err != nil {
			return err
		}
		f = c.wantFile(in)
		if c.Asset.whole() {
			i := len(c.Asset.Static.Files) - 1
			c.makeFile(i, f)
			f = c.Asset.Static.Files[i]
		}
		return nil
	})
	return f, err
}

// mayAdd says why a file can't be added.
func (a *Asset) mayAdd(in assetopt.StaticRendition) error {
	if a.Status == Errored {
		return fault.New(fault.Conflict, "the asset is errored: there is nothing to make files of")
	}
	if a.mp4Wanted() {
		return fault.At(fault.Conflict, "static_renditions",
			"can't be used while mp4_support is %s; set mp4_support to none first", a.Options.MP4Support)
	}
	all := []assetopt.StaticRendition{in}
	for _, f := range a.Static.Files {
		if f.Resolution == in.Resolution {
			return fault.New(fault.Conflict,
				"the asset has a static rendition of resolution %s already; delete it first", in.Resolution)
		}
		all = append(all, assetopt.StaticRendition{Resolution: f.Resolution})
	}
	var l fault.List
	assetopt.CheckStatic(&l, "static_renditions", all)
	return l.Err()
}

// DeleteStatic takes a file away. Event static_rendition.deleted; job JobPurge.
func (s *Service) DeleteStatic(
	ctx context.Context, env id.Environment, a id.Asset, f id.StaticRendition, now time.Time,
) error {
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		i := c.Asset.file(f)
		if i < 0 || c.Asset.mp4Wanted() { // those have no ID of their own
			return noFile()
		}
		gone := c.Asset.Static.Files[i]
		c.Asset.Static.Files = slices.Delete(slices.Clone(c.Asset.Static.Files), i, i+1)
		c.tellFile(gone, EventStaticDeleted)
		c.sweepFiles(string(f))
		return nil
	})
	return err
}

// SetMP4Support changes which files there are as the deprecated mp4_support says. Events static_renditions.preparing,
// deleted.
func (s *Service) SetMP4Support(
	ctx context.Context, env id.Environment, a id.Asset, v string, now time.Time,
) (Asset, error) {
	var l fault.List
	assetopt.CheckMP4(&l, "mp4_support", v)
	if err := l.Err(); err != nil {
		return Asset{}, err
	}
	return s.change(ctx, env, a, now, func(c *Change) error {
		old := c.Asset.mp4Wanted()
		switch {
		case !old && v == assetopt.NoMP4, old && v == c.Asset.Options.MP4Support:
			return errSame
		case c.Asset.Status == Errored:
			return fault.New(fault.Conflict, "the asset is errored: there is nothing to make files of")
		case !old && len(c.Asset.Static.Files) > 0:
			return fault.At(fault.Conflict, "mp4_support",
				"can't be used together with static_renditions; delete those first")
		}
		c.Asset.Options.MP4Support = v
		if old {
			c.tell(EventMP4Deleted)
			c.sweepFiles("mp4")
		}
		c.Asset.Static = Static{Status: FilesDisabled}
		if v != assetopt.NoMP4 {
			c.Asset.Static.Status = FilePreparing
			if c.Asset.whole() {
				c.makeMP4()
			}
		}
		c.tell(EventUpdated)
		return nil
	})
}

func noFile() error { return fault.New(fault.NotFound, "the static rendition does not exist") }

func (a *Asset) file(f id.StaticRendition) int {
	return slices.IndexFunc(a.Static.Files, func(have StaticRendition) bool { return have.ID == f })
}

// StaticReady ends a preparing file with what was made of it; see FileMaker. Nothing happens when it is ready already.
func (w *Work) StaticReady(ctx context.Context, a id.Asset, done StaticRendition, now time.Time) error {
	return w.endFile(ctx, a, done.ID, BecamePlayable, now, func(f *StaticRendition) {
		f.Width, f.Height, f.Bitrate, f.Size, f.ResolutionTier = done.Width, done.Height, done.Bitrate, done.Size,
			done.ResolutionTier
	})
}

// StaticFailed ends a preparing file; see FileMaker. Nothing happens when it is errored already.
func (w *Work) StaticFailed(ctx context.Context, a id.Asset, file id.StaticRendition, e Errors, now time.Time) error {
	return w.endFile(ctx, a, file, WorkFailed, now, func(f *StaticRendition) { f.Errors = &e })
}

// StaticProgress says how much of a preparing file is encoded; see FileMaker.
func (w *Work) StaticProgress(
	ctx context.Context, a id.Asset, file id.StaticRendition, percent float64, now time.Time,
) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		i := c.Asset.file(file)
		if i < 0 {
			return noFile()
		}
		f := c.Asset.Static.Files[i]
		if f.Status != FilePreparing {
			return errSame
		}
		f.Progress, f.Pace = progressed(f.Pace, percent, now)
		c.putFile(i, f)
		return nil
	})
}

func (w *Work) endFile(
	ctx context.Context, a id.Asset, file id.StaticRendition, fact Fact, now time.Time, fill func(*StaticRendition),
) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		i := c.Asset.file(file)
		if i < 0 {
			return noFile()
		}
		f := c.Asset.Static.Files[i]
		to, ok := NextFile(f.Status, fact)
		if !ok {
			if want, _ := NextFile(FilePreparing, fact); f.Status == want {
				return errSame
			}
			return fault.New(fault.Conflict, "the static rendition is %s already", f.Status)
		}
		f.Status, f.Progress, f.Pace = to, 0, nil
		fill(&f)
		c.putFile(i, f)
		if c.Asset.mp4Wanted() {
			c.endMP4()
			return nil
		}
		typ := EventStaticReady
		if to == FileErrored {
			typ = EventStaticErrored
		}
		c.tellFile(f, typ)
		return nil
	})
}
