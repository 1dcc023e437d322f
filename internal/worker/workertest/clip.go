package workertest

import (
	"bytes"
	"os"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/id"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/workertest/filmtest"
)

// ClipOf asks for a clip of an asset, in seconds.
func (w *World) ClipOf(source asset.Asset, from float64, to *float64) asset.Asset {
	w.T.Helper()
	return w.NewAsset(assetopt.Input{URL: "svc://assets/" + string(source.ID), StartTime: &from, EndTime: to})
}

// NewRecording makes the asset of a broadcast of so many segments of two seconds, one recorded at start each.
func (w *World) NewRecording(n int, start time.Time) asset.Asset {
	w.T.Helper()
	a := w.Unseen(n, start, assetopt.Options{})
	w.Must(w.Ready(w.Ctx(), a.ID, asset.Growth{}, start))
	return w.Asset(a.ID)
}

// Unseen is NewRecording before anybody was told that it plays.
func (w *World) Unseen(n int, start time.Time, o assetopt.Options) asset.Asset {
	w.T.Helper()
	media := id.Media(id.New())
	a, err := w.Record(w.Ctx(), asset.NewRecording{
		ID: id.Asset(id.New()), Environment: Env, LiveStream: "live", Media: media, Options: o,
	}, start)
	w.Must(err)
	init, _ := w.broadcast(0)
	w.put(objectkey.Media(media)+"v/init-0.mp4", init)
	entries := []timeline.Entry{
		{Target: 2},
		{Rendition: &timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 1000}},
		{
			Init: &timeline.Init{
				Rendition: "v",
				Codec:     "avc1.64001f",
				Width:     160,
				Height:    90,
				Object:    objectkey.Media(media) + "v/init-0.mp4",
			},
		},
	}
	w.Must(w.Grow(w.Ctx(), a.ID, asset.Growth{Entries: w.rows(0, entries...)}, start))
	w.Extend(a, 0, n, start)
	return w.Asset(a.ID)
}

// aired is what recordings are made of.
type aired struct {
	once     sync.Once
	init     []byte
	segments [][]byte
}

// broadcast is an init segment and a segment of two seconds, of 25 pictures a second in ticks of a thousandth.
func (w *World) broadcast(i int) (init, segment []byte) {
	w.T.Helper()
	w.aired.once.Do(func() {
		path := filmtest.File(w.T, "live.mp4", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:duration=20",
			"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "50",
			"-video_track_timescale", "1000", "-movflags", "+frag_keyframe+empty_moov+default_base_moof")
		data, err := os.ReadFile(path) //nolint:gosec // made above
		w.Must(err)
		f, err := cmaf.ParseFragments(data)
		w.Must(err)
		w.aired.init = data[:f[0].Offset]
		for i := range f {
			segment := cmaf.AppendFragment(nil, uint32(i+1), cmaf.TrackID, uint64(10_000+2000*i), f[i].Samples)
			w.aired.segments = append(w.aired.segments, segment)
		}
	})
	return w.aired.init, w.aired.segments[i]
}

func (w *World) put(key string, data []byte) {
	w.T.Helper()
	w.Must(w.Store.Store.Put(w.Ctx(), key, bytes.NewReader(data)))
}

// Extend adds n segments to a recording.
func (w *World) Extend(a asset.Asset, from, n int, start time.Time) {
	w.T.Helper()
	for i := from; i < from+n; i++ {
		c := timeline.Chunk{
			Rendition:   "v",
			Time:        10_000 + int64(i)*2000,
			Duration:    2000,
			Size:        1000,
			Independent: true,
			Object:      objectkey.Media(a.Media) + "v/" + string(rune('0'+i)) + ".m4s",
		}
		_, segment := w.broadcast(i)
		w.put(c.Object, segment)
		at := start.Add(time.Duration(i) * 2 * time.Second)
		e := timeline.Entry{
			Segment: &timeline.Segment{MSN: int64(i), Start: at.UnixMilli(), Chunks: []timeline.Chunk{c}},
		}
		facts := &asset.Facts{Duration: float64(2*i + 2), HasVideo: true}
		w.Must(w.Grow(w.Ctx(), a.ID, asset.Growth{Entries: w.rows(int64(3+i), e), Facts: facts}, at))
	}
}

func (w *World) rows(from int64, entries ...timeline.Entry) []asset.TimelineEntry {
	var out []asset.TimelineEntry
	for i, e := range entries {
		out = append(out, asset.TimelineEntry{Sequence: from + int64(i), Data: timeline.Encode(e)})
	}
	return out
}
