package asset

import (
	"slices"
	"time"

	"millrace/internal/control/job"
)

// indexPatience is for how long the index of a recording that plays already is tried.
const indexPatience = 7 * 24 * time.Hour

// Unfinished reports whether work may be left on a, its files or its master; that on tracks is not counted.
func (a *Asset) Unfinished() bool {
	return a.Status == Preparing || a.Status == Ready && a.Index == "" ||
		a.Master != nil && a.Master.Status != FileErrored ||
		slices.ContainsFunc(a.Static.Files, func(f StaticRendition) bool { return f.Status == FilePreparing })
}

// Left are the jobs that bring to its end what is unfinished of a. Each of them was asked for when its time came; one
// that is not finished yet is skipped by the queue, and one that ended and could not say so is done again.
func (a *Asset) Left(now time.Time) []job.Insert {
	var out []job.Insert
	switch {
	case a.Status == Errored || a.IsLive && a.Status != Ready:
		return nil
	case a.IsLive:
	case a.LiveStream != "" && (a.Status == Preparing || a.Index == "" && now.Sub(a.UpdatedAt) < indexPatience):
		return []job.Insert{a.finishJob()}
	case a.Status == Preparing:
		return []job.Insert{a.ingestJob()}
	}
	for _, t := range a.Tracks {
		if t.Status == TrackPreparing && t.URL != "" {
			out = append(out, a.trackJob(t))
		}
	}
	if !a.whole() {
		return out
	}
	for _, t := range a.Tracks {
		if t.waitsForSpeech() {
			out = append(out, a.speechJob(t))
		}
	}
	if len(a.WaitsForCaptions()) > 0 {
		out = append(out, a.captionsJob())
	}
	for _, f := range a.Static.Files {
		if f.Status == FilePreparing {
			out = append(out, a.staticJob(f))
		}
	}
	if m := a.Master; m != nil && m.Status == FilePreparing {
		out = append(out, a.masterJob())
	} else if m != nil && m.Status == FileReady && !now.Before(m.Expires) {
		out = append(out, a.masterOverJob())
	}
	return out
}

func (a *Asset) ingestJob() job.Insert {
	j := job.New(JobIngest, string(a.ID), IngestArgs{Asset: a.ID, Media: a.Media})
	if a.Origin != FromClip || a.Options.Test { // a test asset's clip is encoded, and may download overlays
		j.Queue, j.Owner = job.Fetching, string(a.Environment)
	}
	return j
}

func (a *Asset) finishJob() job.Insert {
	return job.New(JobFinish, string(a.ID), FinishArgs{Asset: a.ID, Media: a.Media})
}

func (a *Asset) trackJob(t Track) job.Insert {
	j := job.New(JobTrackIngest, string(t.ID), TrackArgs{Asset: a.ID, Track: t.ID, Media: a.Media})
	j.Owner = string(a.Environment)
	return j
}

func (a *Asset) speechJob(t Track) job.Insert {
	j := job.New(JobSpeech, string(t.ID), TrackArgs{Asset: a.ID, Track: t.ID, Media: a.Media})
	j.Owner = string(a.Environment)
	return j
}

func (a *Asset) staticJob(f StaticRendition) job.Insert {
	return job.New(JobStatic, string(f.ID), StaticArgs{Asset: a.ID, File: f.ID, Media: a.Media})
}

// masterJob is for a whole asset with a master.
func (a *Asset) masterJob() job.Insert {
	return job.New(JobMaster, string(a.Master.ID), MasterArgs{Asset: a.ID, File: a.Master.ID, Media: a.Media})
}

// masterOverJob is the one that takes the master away when its time is over.
func (a *Asset) masterOverJob() job.Insert {
	j := job.New(JobMaster, string(a.Master.ID)+"/over", MasterArgs{Asset: a.ID, File: a.Master.ID, Media: a.Media})
	j.At = a.Master.Expires
	return j
}
