package cenc_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/Eyevinn/mp4ff/mp4"

	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/programtest"
)

var key = cenc.Key{ID: [16]byte{1, 2, 3, 15: 4}, Value: [16]byte{5, 6, 15: 7}, IV: [16]byte{8, 9, 15: 10}}

// sources are what ffmpeg encodes of a moving picture and a tone.
var sources = map[string][]string{
	"H.264":                {"-map", "0:v", "-c:v", "libx264", "-bf", "2", "-g", "15"},
	"H.264 in slices":      {"-map", "0:v", "-c:v", "libx264", "-g", "15", "-x264-params", "slices=4:weightp=2"},
	"H.264 in many slices": {"-map", "0:v", "-c:v", "libx264", "-g", "15", "-x264-params", "slice-max-mbs=4"},
	"H.264 without CABAC":  {"-map", "0:v", "-c:v", "libx264", "-profile:v", "baseline", "-g", "15"},
	"HEVC": {
		"-map", "0:v", "-c:v", "libx265", "-g", "15", "-tag:v", "hvc1", "-x265-params", "log-level=error",
	},
	"AAC":  {"-map", "1:a", "-c:a", "aac"},
	"Opus": {"-map", "1:a", "-c:a", "libopus", "-strict", "-2"},
}

// encode returns an init segment and the movie fragments behind it.
func encode(t testing.TB, codec ...string) (init, media []byte) {
	t.Helper()
	args := []string{
		"-nostdin", "-hide_banner", "-loglevel", "error", "-f", "lavfi", "-i",
		"testsrc2=size=320x180:rate=30:duration=2",
		"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=2", "-pix_fmt", "yuv420p",
	}
	args = append(append(args, codec...), "-f", "mp4", "-movflags", "empty_moov+default_base_moof+frag_keyframe",
		"-frag_duration", "500000", "-")
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "ffmpeg"), args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ffmpeg: %v\n%s", err, log.String())
	}
	err = bmff.Walk(out, func(b bmff.Box) error {
		switch b.Type.String() {
		case "ftyp", "moov":
			init = append(init, b.Raw...)
		case "moof", "mdat":
			media = append(media, b.Raw...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return init, media
}

// decode has ffmpeg read a stream from a pipe, and gives a line for each frame.
func decode(t testing.TB, stream []byte, args ...string) []string {
	t.Helper()
	args = append(append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, args...), "-i", "-", "-fps_mode",
		"passthrough", "-f", "framemd5", "-")
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, "ffmpeg"), args...)
	cmd.Stdin = bytes.NewReader(stream)
	out, _ := cmd.Output() // without the key it fails
	var frames []string
	for l := range strings.Lines(string(out)) {
		if !strings.HasPrefix(l, "#") {
			frames = append(frames, strings.TrimSpace(l))
		}
	}
	return frames
}

// encrypt encrypts fragment by fragment, as parts are.
func encrypt(t testing.TB, track *cenc.Track, media []byte) (init, out []byte) {
	t.Helper()
	init, err := track.Init(cenc.Header([16]byte{1}, [][16]byte{key.ID}, nil))
	if err != nil {
		t.Fatal(err)
	}
	fragments, err := cmaf.ParseFragments(media)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fragments {
		var part []byte
		if part, err = track.Encrypt(media[f.Offset : f.Offset+f.Size]); err != nil {
			t.Fatal(err)
		}
		out = append(out, part...)
	}
	whole, err := track.Encrypt(media)
	if err != nil || !bytes.Equal(whole, out) {
		t.Errorf("a segment is not what its parts are: %v", err)
	}
	return init, out
}

// TestDecrypters has ffmpeg and mp4ff decrypt what was encrypted: it is the clear media, bit by bit, and without the
// key it is not.
func TestDecrypters(t *testing.T) {
	t.Parallel()
	for name, codec := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clearInit, media := encode(t, codec...)
			want := decode(t, slices.Concat(clearInit, media))
			for _, scheme := range []cenc.Scheme{cenc.CBCS, cenc.CTR} {
				track, err := cenc.NewTrack(clearInit, scheme, key)
				if err != nil {
					t.Fatal(err)
				}
				init, out := encrypt(t, track, media)
				stream := slices.Concat(init, out)
				if got := decode(t, stream, "-decryption_key", hex.EncodeToString(key.Value[:])); len(got) < 50 ||
					!slices.Equal(got, want) {
					t.Errorf("%s: ffmpeg decrypts %d frames, clear are %d", scheme, len(got), len(want))
				}
				for _, frame := range decode(t, stream) {
					if slices.Contains(want, frame) {
						t.Errorf("%s: without the key ffmpeg shows %s", scheme, frame)
					}
				}
				if got := decrypted(t, stream); !bytes.Equal(got, samples(t, slices.Concat(clearInit, media))) {
					t.Errorf("%s: mp4ff decrypts something else", scheme)
				}
			}
		})
	}
}

// decrypted has mp4ff decrypt a stream and gives its samples.
func decrypted(t testing.TB, stream []byte) []byte {
	t.Helper()
	f, err := mp4.DecodeFile(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	info, err := mp4.DecryptInit(f.Init)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Segments {
		if err := mp4.DecryptSegment(s, info, key.Value[:]); err != nil {
			t.Fatal(err)
		}
	}
	return gather(t, f)
}

func samples(t testing.TB, stream []byte) []byte {
	t.Helper()
	f, err := mp4.DecodeFile(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	return gather(t, f)
}

func gather(t testing.TB, f *mp4.File) (all []byte) {
	t.Helper()
	for _, s := range f.Segments {
		for _, fr := range s.Fragments {
			list, err := fr.GetFullSamples(f.Init.Moov.Mvex.Trex)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				all = append(all, x.Data...)
			}
		}
	}
	return all
}

// TestUnsupported: what has no standard here is refused.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	init, _ := encode(t, "-map", "0:v", "-c:v", "libvpx-vp9", "-cpu-used", "8", "-deadline", "realtime")
	if _, err := cenc.NewTrack(init, cenc.CBCS, key); !errors.Is(err, cenc.ErrUnsupported) {
		t.Errorf("VP9: %v", err)
	}
}

// counters are the blocks of keystream that encrypted fragments use, each of which is used once.
func counters(t *testing.T, init, media []byte) map[[16]byte]bool {
	t.Helper()
	f, err := mp4.DecodeFile(bytes.NewReader(slices.Concat(init, media)))
	if err != nil {
		t.Fatal(err)
	}
	used := map[[16]byte]bool{}
	for _, fr := range f.Segments[0].Fragments {
		samples, err := fr.GetFullSamples(f.Init.Moov.Mvex.Trex)
		if err != nil || len(samples) != len(fr.Moof.Traf.Senc.IVs) {
			t.Fatalf("%d IVs of %d samples: %v", len(fr.Moof.Traf.Senc.IVs), len(samples), err)
		}
		for i, iv := range fr.Moof.Traf.Senc.IVs {
			block := [16]byte(iv)
			for at := 0; at < len(samples[i].Data); at += len(block) {
				if used[block] {
					t.Fatalf("block %x of the keystream is used twice", block)
				}
				used[block] = true
				for k := 15; k >= 8; k-- { // ISO/IEC 23001-7 section 9.3: 64 bits count
					if block[k]++; block[k] != 0 {
						break
					}
				}
			}
		}
	}
	return used
}

// TestIVs: under the scheme cenc no keystream is used twice, unless for the same bytes, which become the same each
// time. Not by other bytes of the same layout, wherever one of them differs; not by samples of one fragment; and not
// where other bytes of a sample are encrypted.
func TestIVs(t *testing.T) {
	t.Parallel()
	video, picture, sound := tiny()
	frames := cmaf.AppendFragment(nil, 3, cmaf.TrackID, 44100, []cmaf.Sample{
		{Duration: 1024, Sync: true, Data: bytes.Repeat([]byte{1}, 16)},
		{Duration: 1024, Sync: true, Data: bytes.Repeat([]byte{1}, 33)},
		{Duration: 1024, Sync: true, Data: nil},
		{Duration: 1024, Sync: true, Data: bytes.Repeat([]byte{2}, 31)},
	})
	// Of a set of parameters that names another one the slices' headers can't be read.
	unread := bytes.ReplaceAll(video, []byte{0x68, 0xce, 0x0f}, []byte{0x68, 0x4e, 0x0f})
	encrypted := func(init, media []byte) (out []byte, used map[[16]byte]bool) {
		track, err := cenc.NewTrack(init, cenc.CTR, key)
		if err != nil {
			t.Fatal(err)
		}
		head, err := track.Init()
		if err != nil {
			t.Fatal(err)
		}
		if out, err = track.Encrypt(media); err != nil {
			t.Fatal(err)
		}
		return out, counters(t, head, out)
	}
	for name, tt := range map[string]struct{ init, media []byte }{
		"picture": {video, picture}, "sound": {sound, frames},
	} {
		first, used := encrypted(tt.init, tt.media)
		if again, _ := encrypted(tt.init, bytes.Clone(tt.media)); !bytes.Equal(again, first) || len(used) == 0 {
			t.Errorf("%s: the same bytes are encrypted otherwise", name)
		}
		data := bytes.Index(tt.media, []byte("mdat")) + 4
		places := []int{bytes.Index(tt.media, []byte("mfhd")) + 11, bytes.Index(tt.media, []byte("tfdt")) + 15}
		for at := data + 4; at < len(tt.media); at++ {
			if (at-data)%204 >= 4 { // the lengths of NAL units stay
				places = append(places, at)
			}
		}
		for _, at := range places {
			other := bytes.Clone(tt.media)
			other[at] ^= 1
			_, others := encrypted(tt.init, other)
			for block := range others {
				if used[block] {
					t.Fatalf("%s: with another byte %d the keystream is the same", name, at)
				}
			}
		}
	}
	_, used := encrypted(video, picture)
	_, others := encrypted(unread, picture)
	for block := range others {
		if used[block] {
			t.Fatal("where another part of a sample is encrypted the keystream is the same")
		}
	}
}

// TestOverlap: samples that share bytes would have those encrypted twice, and are refused.
func TestOverlap(t *testing.T) {
	t.Parallel()
	_, _, sound := tiny()
	track, err := cenc.NewTrack(sound, cenc.CTR, key)
	if err != nil {
		t.Fatal(err)
	}
	run := func(offset uint32) []byte { // one sample of 32 bytes
		return bmff.Full("trun", 0, 0x201, bmff.U32(1, offset, 32))
	}
	fragment := func(first, second uint32) []byte {
		tfhd := bmff.Full("tfhd", 0, 0x20000, bmff.U32(cmaf.TrackID))
		moof := bmff.Make("moof", bmff.Make("traf", tfhd, run(first), run(second)))
		return append(moof, bmff.Make("mdat", make([]byte, 64))...)
	}
	begin := uint32(len(fragment(0, 0)) - 64)
	if _, err := track.Encrypt(fragment(begin, begin+32)); err != nil {
		t.Errorf("two samples side by side: %v", err)
	}
	for _, second := range []uint32{begin, begin + 31, begin - 8} {
		if _, err := track.Encrypt(fragment(begin, second)); !errors.Is(err, bmff.ErrMalformed) {
			t.Errorf("a sample at %d behind one at %d: %v", second, begin, err)
		}
	}
}

// TestGroups: where keys change, fragments say which one they have.
func TestGroups(t *testing.T) {
	t.Parallel()
	init, media := encode(t, sources["AAC"]...)
	for _, scheme := range []cenc.Scheme{cenc.CBCS, cenc.CTR} {
		track, err := cenc.NewTrack(init, scheme, key)
		if err != nil {
			t.Fatal(err)
		}
		track = track.InGroups()
		head, err := track.Init()
		if err != nil {
			t.Fatal(err)
		}
		out, err := track.Encrypt(media)
		if err != nil {
			t.Fatal(err)
		}
		f, err := mp4.DecodeFile(bytes.NewReader(slices.Concat(head, out)))
		if err != nil {
			t.Fatal(err)
		}
		for _, fr := range f.Segments[0].Fragments {
			traf := fr.Moof.Traf
			if traf.Sgpd == nil || traf.Sbgp == nil || len(traf.Sgpd.SampleGroupEntries) != 1 {
				t.Fatalf("%s: no sample group", scheme)
			}
			entry, ok := traf.Sgpd.SampleGroupEntries[0].(*mp4.SeigSampleGroupEntry)
			if !ok || !bytes.Equal(entry.KID, key.ID[:]) ||
				scheme == cenc.CBCS && !bytes.Equal(entry.ConstantIV, key.IV[:]) {
				t.Errorf("%s: %+v", scheme, entry)
			}
			if n := traf.Sbgp.SampleCounts; len(n) != 1 || n[0] != traf.Trun.SampleCount() ||
				traf.Sbgp.GroupDescriptionIndices[0] != 1<<16|1 {
				t.Errorf("%s: %+v", scheme, traf.Sbgp)
			}
		}
	}
}
