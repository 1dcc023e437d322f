package permit_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
	"millrace/internal/permit"
	"millrace/internal/storage/db/dbtest"
)

// broadcast is one init segment and segments of two seconds that are all alike.
type broadcast struct {
	playback.Presentation

	began time.Time
}

func (b broadcast) Media() string { return "m" }

func (b broadcast) Began() time.Time { return b.began }

func (b broadcast) Chunk(_ context.Context, _ string, r hls.Resource) (playback.Body, error) {
	if r.Init >= 0 {
		sps := []byte{
			0x67, 0x42, 0xc0, 0x1e, 0xda, 0x02, 0x80, 0xbf, 0xe5, 0xc0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xf0, 0x3c,
			0x58, 0xba, 0x80,
		}
		data, err := cmaf.Init(frame.Config{
			Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: []byte{0x68, 0xce, 0x0f, 0x2c, 0x80}, Width: 640,
			Height: 360,
		}, 90000)
		return playback.Body{Data: data}, err
	}
	sample := append([]byte{0, 0, 2, 2, 0x65, 0x88, 0x84, 1}, bytes.Repeat([]byte("picture."), 64)...)[:4+0x202]
	data := cmaf.AppendFragment(nil, uint32(r.MSN), cmaf.TrackID, uint64(180000*r.MSN), []cmaf.Sample{
		{Duration: 180000, Sync: true, Data: sample},
	})
	return playback.Body{Data: data, Start: b.began.Add(time.Duration(2*r.MSN) * time.Second)}, nil
}

// TestBytesStay: where keys rotate, an init segment and a segment are the same bytes on whatever node and at whatever
// time of the broadcast they are encrypted: before the second period is there, when it is, and when the first ones are
// forgotten.
func TestBytesStay(t *testing.T) {
	t.Parallel()
	store := dbtest.Open(t, dbtest.SQLite(t))
	first := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c, err := drm.New(drm.Options{Store: store.DRM()}).Create(t.Context(), "env", "tests", drm.Settings{
		Scheme: drm.CBCS, ClearKey: true, Rotation: time.Hour,
	}, first)
	if err != nil {
		t.Fatal(err)
	}
	o := playbackid.Object{
		ID:   playbackid.ID{Policy: playbackid.DRM, DRMConfigurationID: string(c.ID)},
		Kind: playbackid.OfLiveStream, ObjectID: "stream", Environment: "env",
	}
	// Of the two broadcasts the first begins with the first keys. While the second one goes on, the keys that there
	// were when it began are the oldest ones, and then are not kept any more.
	unencrypted, sent := broadcast{began: first}, map[string][]byte{}
	for now := first; now.Before(first.Add(26 * time.Hour)); now = now.Add(20 * time.Minute) {
		if now.Sub(unencrypted.began) > 12*time.Hour {
			unencrypted.began, sent = now, map[string][]byte{}
		}
		content, err := permit.Keys{Source: drm.New(drm.Options{Store: store.DRM()})}.Content(t.Context(), o, now)
		if err != nil {
			t.Fatal(err)
		}
		v := protection.View{Presentation: unencrypted, Content: content, Store: protection.NewStore(1 << 20)}
		for _, name := range []string{"init-0.mp4", "0.m4s", "15.m4s"} {
			r, _ := hls.ParseResource(name)
			data, err := delivered.Bytes(v.Chunk(t.Context(), "v", r))
			if err != nil {
				t.Fatal(err)
			}
			if was := sent[name]; was != nil && !bytes.Equal(was, data) {
				t.Fatalf("%v after the broadcast began, %s has other bytes", now.Sub(unencrypted.began), name)
			}
			sent[name] = data
		}
	}
}
