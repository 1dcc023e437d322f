package cenc_test

import (
	"testing"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// tiny is an init segment of H.264 with a picture of two slices, and one of sound.
func tiny() (video, picture, sound []byte) {
	sps := []byte{
		0x67, 0x42, 0xc0, 0x1e, 0xda, 0x02, 0x80, 0xbf, 0xe5, 0xc0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xf0, 0x3c, 0x58,
		0xba, 0x80,
	}
	pps := []byte{0x68, 0xce, 0x0f, 0x2c, 0x80}
	video, _ = cmaf.Init(frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Width: 640, Height: 360,
	}, 90000)
	slice := append([]byte{0, 0, 0, 200, 0x65, 0x88, 0x84}, make([]byte, 197)...)
	picture = cmaf.AppendFragment(nil, 1, cmaf.TrackID, 900000, []cmaf.Sample{
		{Duration: 3000, Sync: true, Data: append(slice, slice...)},
	})
	sound, _ = cmaf.Init(frame.Config{
		Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x12, 0x10}, SampleRate: 44100, Channels: 2,
	}, 44100)
	return video, picture, sound
}

// FuzzEncrypt: whatever the bytes are, they are encrypted or refused; what comes out has the same samples.
func FuzzEncrypt(f *testing.F) {
	video, picture, sound := tiny()
	f.Add(video, picture, true)
	f.Add(sound, picture, false)
	f.Fuzz(func(t *testing.T, init, media []byte, ctr bool) {
		scheme := cenc.CBCS
		if ctr {
			scheme = cenc.CTR
		}
		track, err := cenc.NewTrack(init, scheme, key)
		if err != nil {
			return
		}
		head, err := track.Init()
		if err == nil && len(bmff.Find(head, "moov", "trak", "mdia", "minf", "stbl", "stsd")) == 0 {
			t.Error("the init segment has no sample entry")
		}
		out, err := track.Encrypt(media)
		if err != nil {
			return
		}
		had, err := cmaf.ParseFragments(media)
		if err != nil {
			return
		}
		got, err := cmaf.ParseFragments(out)
		if len(got) != len(had) || err != nil {
			t.Fatalf("%d fragments became %d: %v", len(had), len(got), err)
		}
		for i := range had {
			for k := range had[i].Samples {
				if len(had[i].Samples) != len(got[i].Samples) ||
					len(had[i].Samples[k].Data) != len(got[i].Samples[k].Data) {
					t.Fatalf("fragment %d has other samples", i)
				}
			}
		}
	})
}
