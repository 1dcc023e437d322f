package protection_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Eyevinn/mp4ff/mp4"

	"millrace/internal/fault"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
)

var (
	videoKey = cenc.Key{ID: [16]byte{1, 15: 1}, Value: [16]byte{2}, IV: [16]byte{3}}
	audioKey = cenc.Key{ID: [16]byte{4, 15: 4}, Value: [16]byte{5}, IV: [16]byte{6}}
	system   = [16]byte{0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b}
)

// plain is clear renditions: a picture and sound, each in one segment of two parts. It counts what is read.
type plain struct {
	playback.Presentation // what is not encrypted

	text  []byte
	reads atomic.Int64
	codec string
	take  byte // another one has other bytes of the same layout
}

func (p *plain) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	return &hls.Multivariant{
		Variants: []hls.Variant{
			{URI: "v.m3u8", Codecs: []string{p.codec, "mp4a.40.2"}}, {URI: "low.m3u8", Codecs: []string{"avc1.42c01e"}},
		},
	}, nil
}

func (p *plain) Pictures(context.Context) ([]hls.Picture, error) {
	return []hls.Picture{
		{Rendition: "v", Short: 720, Codecs: []string{"avc1.42c01e", p.codec}, Offered: true},
		{Rendition: "low", Short: 270, Codecs: []string{"avc1.42c01e"}, Offered: true},
	}, nil
}

func (p *plain) Playlist(context.Context, string, playback.Reload, bool) (playback.Text, error) {
	return playback.Text{Data: p.text, MaxAge: 1}, nil
}

func (p *plain) Media() string { return "media" }

func (p *plain) Began() time.Time { return time.Time{} }

func (p *plain) Chunk(_ context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	p.reads.Add(1)
	parts := [][]byte{part(0), part(1)}
	for i := range parts {
		parts[i] = bytes.ReplaceAll(parts[i], []byte("picture."), append([]byte("pictur"), 'e'^p.take, '.'^p.take))
	}
	switch {
	case rendition == "text" && r.Fits(true):
		return playback.Body{Data: []byte("WEBVTT"), Text: true}, nil
	case rendition == "text":
		return playback.Body{}, fault.New(fault.NotFound, "there is no such segment")
	case r.Init == 0 && rendition == "a":
		return playback.Body{Data: sound}, nil
	case r.Init == 0 && rendition == "av1":
		return playback.Body{Data: bytes.ReplaceAll(picture, []byte("avc1"), []byte("av01"))}, nil
	case r.Init == 0:
		return playback.Body{Data: picture}, nil
	case r.Part == len(parts): // by the name that was hinted
		return playback.Body{Data: parts[0]}, nil
	case r.Part >= 0 && r.Part < len(parts):
		return playback.Body{Data: parts[r.Part]}, nil
	case r.Part < 0 && r.MSN < 1000:
		return playback.Body{Data: bytes.Join(parts, nil)}, nil
	}
	return playback.Body{}, fault.New(fault.NotFound, "there is no such segment")
}

var picture, sound = func() (video, audio []byte) {
	sps := []byte{
		0x67, 0x42, 0xc0, 0x1e, 0xda, 0x02, 0x80, 0xbf, 0xe5, 0xc0, 0x44, 0, 0, 3, 0, 4, 0, 0, 3, 0, 0xf0, 0x3c, 0x58,
		0xba, 0x80,
	}
	video, _ = cmaf.Init(frame.Config{
		Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: []byte{0x68, 0xce, 0x0f, 0x2c, 0x80}, Width: 640,
		Height: 360,
	}, 90000)
	audio, _ = cmaf.Init(frame.Config{
		Kind: frame.Audio, Codec: frame.AAC, ASC: []byte{0x12, 0x10}, SampleRate: 44100, Channels: 2,
	}, 44100)
	return video, audio
}()

func part(k int) []byte {
	sample := append([]byte{0, 0, 2, 2, 0x65, 0x88, 0x84, byte(k)}, bytes.Repeat([]byte("picture."), 64)...)
	sample = sample[:4+0x202]
	return cmaf.AppendFragment(nil, uint32(k+1), cmaf.TrackID, uint64(900000+3000*k), []cmaf.Sample{
		{Duration: 3000, Sync: true, Data: sample},
	})
}

func view(p *plain, s cenc.Scheme, encryptAudio bool) protection.View {
	p.codec = "avc1.42c01e"
	return protection.View{
		Presentation: p, Store: protection.NewStore(1 << 20),
		Content: protection.Content{
			Name: "asset", Scheme: s, Keys: []cenc.Key{videoKey, audioKey}, Systems: []protection.System{{ID: system}},
			KeyOf: func(m cenc.Media, _ int) (cenc.Key, bool) {
				if m.Video {
					return videoKey, true
				}
				return audioKey, encryptAudio
			},
		},
	}
}

func chunk(t *testing.T, v protection.View, rendition, name string) []byte {
	t.Helper()
	r, ok := hls.ParseResource(name)
	if !ok {
		t.Fatal(name)
	}
	data, err := delivered.Bytes(v.Chunk(t.Context(), rendition, r))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestChunks: the picture is encrypted, once for all who ask, a segment as its parts; sound stays clear where it has no
// key.
func TestChunks(t *testing.T) {
	t.Parallel()
	for _, scheme := range []cenc.Scheme{cenc.CBCS, cenc.CTR} {
		p := &plain{}
		v := view(p, scheme, false)
		init := chunk(t, v, "v", "init-0.mp4")
		parts := append(chunk(t, v, "v", "3.0.m4s"), chunk(t, v, "v", "3.1.m4s")...)
		segment := chunk(t, v, "v", "3.m4s")
		if !bytes.Equal(segment, parts) || bytes.Contains(segment, bytes.Repeat([]byte("picture."), 25)) {
			t.Errorf("%s: a segment is not what its parts are, or is clear", scheme)
		}
		if hinted := chunk(t, v, "v", "2.2.m4s"); !bytes.HasPrefix(segment, hinted) {
			t.Errorf("%s: a segment's first part, by the name that was hinted, is another one", scheme)
		}
		f, err := mp4.DecodeFile(bytes.NewReader(append(init, segment...)))
		if err != nil {
			t.Fatal(err)
		}
		if h := f.Init.Moov.Pssh; h == nil || h.Version != 1 || len(h.KIDs) != 1 ||
			!bytes.Equal(h.KIDs[0], videoKey.ID[:]) {
			t.Errorf("%s: the header is %+v", scheme, h)
		}
		info, err := mp4.DecryptInit(f.Init)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range f.Segments {
			if err := mp4.DecryptSegment(s, info, videoKey.Value[:]); err != nil {
				t.Fatal(err)
			}
			for k, fr := range s.Fragments {
				if samples, err := fr.GetFullSamples(nil); err != nil || !bytes.Contains(part(k), samples[0].Data) {
					t.Errorf("%s: part %d is another one: %v", scheme, k, err)
				}
			}
		}
		if !bytes.Equal(chunk(t, v, "a", "init-0.mp4"), sound) || !bytes.Equal(chunk(t, v, "a", "3.0.m4s"), part(0)) {
			t.Errorf("%s: the sound is not clear", scheme)
		}
		read, hits, misses := p.reads.Load(), v.Store.Lookups.Hits(), v.Store.Lookups.Misses()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = v.Chunk(t.Context(), "v", hls.Resource{Init: -1, MSN: 9, Part: -1, Ext: "m4s"}) })
		}
		all.Wait()
		if n := p.reads.Load() - read; n != 1 {
			t.Errorf("%s: a segment was read %d times", scheme, n)
		}
		hits, misses = v.Store.Lookups.Hits()-hits, v.Store.Lookups.Misses()-misses
		if hits != 19 || misses != 1 {
			t.Errorf("%s: %d hits and %d misses", scheme, hits, misses)
		}
		if _, err := v.Chunk(t.Context(), "av1", hls.Resource{Init: 0, Part: -1, Ext: "mp4"}); !fault.Is(err,
			fault.Invalid) {
			t.Errorf("AV1: %v", err)
		}
		if _, err := v.Chunk(t.Context(), "v", hls.Resource{Init: -1, MSN: 1001, Part: -1, Ext: "m4s"}); !fault.Is(err,
			fault.NotFound) {
			t.Errorf("what is not there: %v", err)
		}
	}
}

// TestOtherBytes gives one name other bytes of the same layout in another process, which nothing should: what is sent
// then does not say by what the two differ. The same bytes are sent as the same.
func TestOtherBytes(t *testing.T) {
	t.Parallel()
	sent := func(take byte, name string) (from, to []byte) {
		v := view(&plain{take: take}, cenc.CTR, false)
		r, _ := hls.ParseResource(name)
		data, err := delivered.Bytes(v.Presentation.Chunk(t.Context(), "v", r))
		if err != nil {
			t.Fatal(err)
		}
		init := chunk(t, v, "v", "init-0.mp4")
		return payload(t, picture, data), payload(t, init, chunk(t, v, "v", name))
	}
	for _, name := range []string{"3.m4s", "3.1.m4s", "1-3.m4s"} {
		was, encrypted := sent(0, name)
		if _, again := sent(0, name); !bytes.Equal(again, encrypted) {
			t.Errorf("%s: the same bytes are sent as others", name)
		}
		otherWas, other := sent(1, name)
		same := 0
		for i := range was {
			if was[i]^otherWas[i] == encrypted[i]^other[i] {
				same++
			}
		}
		if len(other) != len(encrypted) || same > len(was)/4 { // lengths, types and headers are not encrypted
			t.Errorf("%s: %d of %d bytes that are sent differ as the clear ones do", name, same, len(was))
		}
	}
}

// payload is the samples of a segment or part.
func payload(t *testing.T, init, media []byte) (all []byte) {
	t.Helper()
	f, err := mp4.DecodeFile(bytes.NewReader(append(bytes.Clone(init), media...)))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Segments {
		for _, fr := range s.Fragments {
			samples, err := fr.GetFullSamples(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range samples {
				all = append(all, x.Data...)
			}
		}
	}
	return all
}

// TestNames: what is encrypted is so under any name that it is given, and text is clear by its kind: the clear
// renditions here give a segment of the picture whatever its name ends with.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, scheme := range []cenc.Scheme{cenc.CBCS, cenc.CTR} {
		v := view(&plain{}, scheme, false)
		for _, ext := range []string{"m4s", "vtt", "mp4", "aac", ""} {
			data, err := delivered.Bytes(v.Chunk(t.Context(), "v", hls.Resource{Init: -1, MSN: 3, Part: -1, Ext: ext}))
			if err != nil || bytes.Contains(data, bytes.Repeat([]byte("picture."), 25)) {
				t.Errorf("%s: a segment is clear as %q, %v", scheme, ext, err)
			}
		}
		for range 2 {
			if data := chunk(t, v, "text", "3.vtt"); string(data) != "WEBVTT" {
				t.Errorf("%s: text is %q", scheme, data)
			}
			for _, name := range []string{"3.m4s", "3.0.m4s", "init-0.mp4"} {
				r, _ := hls.ParseResource(name)
				if _, err := v.Chunk(t.Context(), "text", r); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s: text as %s: %v", scheme, name, err)
				}
			}
		}
	}
}

// TestFiles: what is read from a file is encrypted as what is in memory, and stays as it is when the next one is read.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := &plain{}
	inMemory, v := view(p, cenc.CTR, false), view(p, cenc.CTR, false)
	film := longVideo{p, filepath.Join(t.TempDir(), "segment.m4s")}
	v.Presentation = film
	want := chunk(t, inMemory, "v", "3.m4s")
	var first []byte
	for i, name := range []string{"3.m4s", "4.m4s"} {
		if err := os.WriteFile(film.file, append(part(2*i), part(2*i+1)...), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := chunk(t, v, "v", name); i == 0 {
			first = got
		}
	}
	if !bytes.Equal(first, want) || !bytes.Equal(chunk(t, v, "v", "3.m4s"), want) {
		t.Error("a segment of a file is another one")
	}
}

const text = `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-MEDIA-SEQUENCE:3
#EXT-X-MAP:URI="v/init-0.mp4"
#EXTINF:2.00000,
v/3.m4s
#EXT-X-PART:DURATION=1.00000,URI="v/4.0.m4s"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="v/4.1.m4s"
`

// TestPlaylists: players are told how to get keys, in front of what is encrypted with them, and of nothing that they
// would take for another key.
func TestPlaylists(t *testing.T) {
	t.Parallel()
	for scheme, method := range map[cenc.Scheme]string{cenc.CBCS: "SAMPLE-AES", cenc.CTR: "SAMPLE-AES-CTR"} {
		p := &plain{text: []byte(text)}
		v := view(p, scheme, true)
		key := "METHOD=" + method + `,URI="data:text/plain;base64,` +
			base64.StdEncoding.EncodeToString(videoKey.ID[:]) + `",KEYFORMAT="org.w3.clearkey",KEYFORMATVERSIONS="1"`
		got, err := v.Playlist(t.Context(), "v", playback.Reload{MSN: -1, Part: -1}, false)
		if err != nil {
			t.Fatal(err)
		}
		head, tail, ok := strings.Cut(string(got.Data), "#EXT-X-KEY:"+key+"\n")
		if !ok || !strings.HasSuffix(head, "SEQUENCE:3\n") ||
			!strings.Contains(tail, `KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"`) ||
			strings.Count(tail, "#EXT-X-KEY") != 1 ||
			!strings.HasSuffix(tail, text[strings.Index(text, "#EXT-X-MAP"):]) || strings.Contains(tail, "identity") {
			t.Errorf("%s: %s", scheme, got.Data)
		}
		packed, err := v.Playlist(t.Context(), "v", playback.Reload{MSN: -1, Part: -1}, true)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed.Data))
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(unpacked, got.Data) {
			t.Errorf("%s: compressed it is another one: %v", scheme, err)
		}
		m, err := v.Multivariant(t.Context(), playback.Clip{})
		if err != nil || strings.Count(string(m.Append(nil)), "#EXT-X-SESSION-KEY:") != 4 ||
			!strings.Contains(string(m.SessionKeys), key) {
			t.Errorf("%s: %s, %v", scheme, m.Append(nil), err)
		}
		p.codec = "av01.0.04M.08"
		if m, err = v.Multivariant(t.Context(), playback.Clip{}); err != nil || len(m.Variants) != 1 ||
			m.Variants[0].URI != "low.m3u8" {
			t.Errorf("AV1 beside H.264: %+v, %v", m, err)
		}
		if all, err := v.Pictures(t.Context()); err != nil || all[0].Offered || !all[1].Offered {
			t.Errorf("AV1 beside H.264: %+v, %v", all, err)
		}
	}
}

// TestSystems: each system is told of in its own words, or in those of a key provider.
func TestSystems(t *testing.T) {
	t.Parallel()
	p := &plain{text: []byte(text)}
	v := view(p, cenc.CBCS, false)
	v.Content.Systems = []protection.System{
		{ID: [16]byte{0xed, 0xef, 0x8b, 0xa9, 0x79, 0xd6, 0x4a, 0xce, 0xa3, 0xc8, 0x27, 0xdc, 0xd5, 0x1d, 0x21, 0xed}},
		{ID: [16]byte{0x9a, 0x04, 0xf0, 0x79, 0x98, 0x40, 0x42, 0x86, 0xab, 0x92, 0xe6, 0x5b, 0xe0, 0x88, 0x5f, 0x95}},
		{ID: [16]byte{0x94, 0xce, 0x86, 0xfb, 0x07, 0xff, 0x4f, 0x43, 0xad, 0xb8, 0x93, 0xd2, 0xfa, 0x96, 0x8c, 0xa2}},
		{
			ID: [16]byte{9},
			Signals: []protection.Signal{
				{
					KeyID: videoKey.ID, Header: cenc.Header([16]byte{9}, nil, []byte("x")),
					Media: "#EXT-X-KEY:METHOD=X", Session: "#EXT-X-SESSION-KEY:METHOD=X",
				},
			},
		},
	}
	got, err := v.Playlist(t.Context(), "v", playback.Reload{MSN: -1, Part: -1}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`KEYID=0x01000000000000000000000000000001,KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"`,
		`URI="data:text/plain;charset=UTF-16;base64,`,
		`KEYFORMAT="com.microsoft.playready"`,
		`URI="skd://01000000000000000000000000000001",KEYFORMAT="com.apple.streamingkeydelivery"`,
		"#EXT-X-KEY:METHOD=X\n",
	} {
		if !strings.Contains(string(got.Data), want) {
			t.Errorf("%s is not in %s", want, got.Data)
		}
	}
	f, err := mp4.DecodeFile(bytes.NewReader(chunk(t, v, "v", "init-0.mp4")))
	if err != nil || len(f.Init.Moov.Psshs) != 4 {
		t.Fatalf("%d headers, %v", len(f.Init.Moov.Psshs), err)
	}
}

// earlier was watched before another presentation.
type earlier struct{ plain }

func (*earlier) Media() string { return "before" }

// watched has an earlier one, and files.
type watched struct{ plain }

func (*watched) Earlier(_ context.Context, media string) (playback.Presentation, error) {
	if media != "before" {
		return nil, fault.New(fault.NotFound, "there is none")
	}
	return &earlier{plain{codec: "avc1.42c01e"}}, nil
}

func (*watched) File(context.Context, string) (playback.File, error) {
	return playback.File{Size: 1}, nil
}

// TestPresentation: what was watched before is encrypted as well, and no file to download leaves in clear.
func TestPresentation(t *testing.T) {
	t.Parallel()
	v := view(&plain{}, cenc.CBCS, false)
	v.Presentation = &watched{}
	if _, err := v.File(t.Context(), "highest.mp4"); !fault.Is(err, fault.Denied) {
		t.Errorf("a file: %v", err)
	}
	if _, err := v.Earlier(t.Context(), "another"); !fault.Is(err, fault.NotFound) {
		t.Errorf("what was not watched: %v", err)
	}
	before, err := v.Earlier(t.Context(), "before")
	if err != nil || before.Media() != "before" {
		t.Fatalf("%v", err)
	}
	r, _ := hls.ParseResource("init-0.mp4")
	data, err := delivered.Bytes(before.Chunk(t.Context(), "v", r))
	if err != nil || !bytes.Contains(data, []byte("encv")) {
		t.Errorf("it is in clear, %v", err)
	}
}
