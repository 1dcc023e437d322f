package ondemand

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"time"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// Where the sound goes on behind the picture, or there is none for longer than a segment, the last picture is held:
// encoded again as a key frame, of which every segment of the freeze is made. It is stored once. It has an init segment
// of its own, and no discontinuity: times go on, and hls.js would place what is behind one by decoding times, which
// leaves a hole as long as reordering takes.

// Freeze decodes pictures, which are a fragmented MP4 that begins with a key frame, and gives the one that is presented
// at a time, or the next one, encoded again as a key frame, as fragmented MP4.
type Freeze func(pictures []byte, at time.Duration) ([]byte, error)

// maxStill bounds a held picture, in bytes.
const maxStill = 16 << 20

// still is a picture that is held.
type still struct {
	header, fragment []byte
	init             timeline.Init
	delay            int64 // between decoding and showing it, in ticks
}

// last encodes the last of some pictures, of a track that is described by o and in. delay is what lies between decoding
// and showing it, in ticks.
func (f Freeze) last(o cmaf.InitOptions, in timeline.Init, pictures []cmaf.Sample, delay int64) (*still, error) {
	upright := o
	upright.Matrix = [9]uint32{} // or ffmpeg would turn it
	at, shown := int64(0), int64(0)
	for _, p := range pictures {
		shown = max(shown, at+int64(p.CompositionOffset))
		at += int64(p.Duration)
	}
	group := cmaf.AppendFragment(cmaf.InitFromEntry(upright), 1, cmaf.TrackID, 0, pictures)
	made, err := f(group, time.Duration(float64(shown)/float64(o.Timescale)*float64(time.Second))-time.Millisecond)
	if err != nil {
		return nil, fmt.Errorf("freeze last picture: %w", err)
	}
	t, data, err := onePicture(made)
	if err != nil {
		return nil, fmt.Errorf("freeze last picture: %w", err)
	}
	o.SampleEntry = t.SampleEntry
	in.Codec, in.Still = codecOf(t.FourCC, t.Config.SPS), true
	return &still{
		delay:  delay,
		header: cmaf.InitFromEntry(o), init: in, fragment: cmaf.AppendFragment(nil, 1, cmaf.TrackID, 0, []cmaf.Sample{
			{Duration: 1, CompositionOffset: int32(min(max(delay, 0), math.MaxInt32)), Sync: true, Data: data},
		}),
	}, nil
}

// onePicture reads a fragmented MP4 of one picture.
func onePicture(data []byte) (cmaf.Track, []byte, error) {
	r := cmaf.NewReader(io.LimitReader(bytes.NewReader(data), maxStill), cmaf.ReaderOptions{})
	tracks, err := r.Tracks()
	if err != nil {
		return cmaf.Track{}, nil, err
	}
	fragments, err := r.Next()
	if err != nil {
		return cmaf.Track{}, nil, err
	}
	if len(tracks) != 1 || tracks[0].Config.Codec != frame.H264 || len(fragments) != 1 ||
		len(fragments[0].Samples) != 1 {
		return cmaf.Track{}, nil, bmff.Malformed("a held picture of %d tracks", len(tracks))
	}
	return tracks[0], fragments[0].Samples[0].Data, nil
}

// Still gives a chunk whose init segment says that it is a held picture, of the picture as it is stored.
func Still(stored []byte, msn int64, c timeline.Chunk) ([]byte, error) {
	f, err := cmaf.ParseFragments(stored)
	if err != nil {
		return nil, fmt.Errorf("read held picture: %w", err)
	}
	if len(f) != 1 || len(f[0].Samples) != 1 || c.Duration > math.MaxUint32 {
		return nil, bmff.Malformed("a held picture of %d fragments", len(f))
	}
	f[0].Samples[0].Duration = uint32(c.Duration)
	return cmaf.AppendFragment(nil, uint32(msn+1), cmaf.TrackID, uint64(c.Time), f[0].Samples), nil
}

// chunk holds the picture between two times, in ticks.
func (s *still) chunk(id string, n int, object string, from, until int64) timeline.Chunk {
	return timeline.Chunk{
		Rendition:   id,
		Init:        n,
		Time:        from,
		Duration:    until - from,
		Size:        int64(len(s.fragment)),
		Independent: true,
		Object:      object,
	}
}

// FreezeLast has the last picture of a planned file stand where the plan has no picture at its end; r is the file. It
// gives what is to be stored, with keys that begin with prefix: nothing where there is a picture everywhere.
func FreezeLast(t *timeline.Timeline, r io.ReaderAt, video *mp4.Track, prefix string, freeze Freeze) ([]Object, error) {
	l := t.Rendition(timeline.MainVideo)
	if l == nil || !l.Chunks[len(l.Chunks)-1].Gap {
		return nil, nil
	}
	idrs, err := mp4.IDRs(r, video)
	if err != nil || len(idrs) == 0 {
		return nil, err
	}
	x, err := newVideoTrack(video.CountedFrom(l.Source.Start))
	if err != nil {
		return nil, err
	}
	k := len(idrs) - 1
	for k > 0 && idrs[k] >= x.to {
		k--
	}
	samples, err := mp4.ReadSamples(r, video, idrs[k], x.to)
	if err != nil {
		return nil, fmt.Errorf("read last pictures: %w", err)
	}
	held, err := freeze.last(mp4.InitOptions(video), l.Inits[0], samples, x.delay)
	if err != nil {
		return nil, err
	}
	held.init.Object = prefix + timeline.MainVideo + "/held.mp4"
	object := prefix + timeline.MainVideo + "/held.m4s"
	standAtEnd(l, held, object)
	return []Object{{held.init.Object, held.header}, {object, held.fragment}}, nil
}

// standAtEnd puts a held picture where a plan has gaps at its end.
func standAtEnd(l *timeline.Rendition, held *still, object string) {
	n := len(l.Chunks)
	for n > 0 && l.Chunks[n-1].Gap {
		n--
	}
	gaps, at := l.Chunks[n:], l.Chunks[n-1].Time+l.Chunks[n-1].Duration
	l.Inits, l.Chunks = append(l.Inits, held.init), l.Chunks[:n:n]
	for _, c := range gaps {
		until := c.Time + c.Duration - held.delay
		l.Append(held.chunk(l.ID, len(l.Inits)-1, object, at, until))
		at = until
	}
}
