package encode

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestSniff(t *testing.T) {
	t.Parallel()
	adts := "\xff\xf1\x50\x80\x01\x1f\xfcX" // eight bytes long
	ts := make([]byte, 188*3)
	m2ts := make([]byte, 192*3)
	for i := range 3 {
		ts[i*188], m2ts[4+i*192] = 0x47, 0x47
	}
	id3 := func(size byte) string { return "ID3\x04\x00\x00\x00\x00\x00" + string([]byte{size}) }
	for name, tt := range map[string]struct {
		head string
		want Format
	}{
		"mp4":               {"\x00\x00\x00\x18ftypmp42....", MOV},
		"old mov":           {"\x00\x00\x00\x08wide\x00\x00\x00\x00mdat", MOV},
		"large mdat":        {"\x00\x00\x00\x01mdat\x00\x00\x00\x00", MOV},
		"box too small":     {"\x00\x00\x00\x02ftypmp42....", ""},
		"webm":              {"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81", Matroska},
		"wav":               {"RIFF\x24\x00\x00\x00WAVEfmt ", WAV},
		"rf64":              {"RF64\xff\xff\xff\xffWAVEds64", WAV},
		"avi":               {"RIFF\x24\x00\x00\x00AVI LIST", ""},
		"ogg":               {"OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00", Ogg},
		"flac":              {"fLaC\x00\x00\x00\x22\x10\x00\x10\x00", FLAC},
		"flac after a tag":  {id3(2) + "xxfLaC\x00\x00\x00\x22", FLAC},
		"adts":              {adts + adts, ADTS},
		"adts after a tag":  {id3(2) + "xx" + adts + adts, ADTS},
		"two tags":          {id3(0) + id3(0) + adts + adts, ADTS},
		"mp3":               {"\xff\xfb\x90\x64xxxxxxxxxxxx", MP3},
		"mp3 after padding": {id3(1) + "x\x00\x00\x00\xff\xfb\x90\x64xxxx", MP3},
		"huge tag":          {"ID3\x04\x00\x00\x7f\x7f\x7f\x7fxxxxxx", MP3},
		"ts":                {string(ts), MPEGTS},
		"m2ts":              {string(m2ts), MPEGTS},
		"one G":             {"GGGGGGGGGGGGGGGG", ""},
		"playlist":          {"#EXTM3U\n#EXT-X-VERSION:3\n", ""},
		"html":              {"<!DOCTYPE html><html>", ""},
		"nothing":           {"", ""},
		"bad bitrate":       {"\xff\xfb\xf0\x64xxxxxxxxxxxx", ""},
	} {
		if got, ok := Sniff([]byte(tt.head)); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func FuzzSniff(f *testing.F) {
	f.Add([]byte("ID3\x04\x00\x10\x00\x00\x00\x01x\xff\xf1\x50\x80\x01\x1f\xfc"))
	f.Add([]byte("GGGGGGGGGGGGGGGGG"))
	f.Fuzz(func(t *testing.T, head []byte) {
		if got, ok := Sniff(head); ok != (got != "") {
			t.Errorf("got %q, %v", got, ok)
		}
	})
}

func TestParseProbe(t *testing.T) {
	t.Parallel()
	const answer = `{"streams":[
		{"codec_type":"video","codec_name":"mjpeg","disposition":{"attached_pic":1}},
		{"codec_type":"video","codec_name":"hevc","width":1920,"height":1080,"avg_frame_rate":"0/0","r_frame_rate":"25/1","field_order":"tt",
		 "bits_per_raw_sample":"10","tags":{"DURATION":"01:00:02.500000000"},"side_data_list":[{"rotation":-90}]},
		{"codec_type":"audio","codec_name":"pcm_s24le","sample_rate":"96000","channels":2,"bits_per_sample":24,"duration":"N/A"},
		{"codec_type":"subtitle","codec_name":"mov_text"},{"codec_type":"attachment"},{}],
		"format":{"duration":"3602.5","start_time":"-0.021"}}`
	got, err := parseProbe([]byte(answer), Matroska)
	if err != nil {
		t.Fatal(err)
	}
	tracks := []Track{
		{Kind: Video, Codec: "hevc", Width: 1920, Height: 1080, FrameRate: 25, Interlaced: true, BitSize: 10, Duration: 3602500 * time.Millisecond, Rotation: 90},
		{Kind: Audio, Codec: "pcm_s24le", SampleRate: 96000, Channels: 2, BitSize: 24},
		{Kind: Text, Codec: "mov_text"},
		{Kind: Data},
		{Kind: Data},
	}
	want := Info{Container: Matroska, Duration: 3602500 * time.Millisecond, Start: -21 * time.Millisecond, Tracks: tracks}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
}

func FuzzParseProbe(f *testing.F) {
	f.Add(`{"streams":[{"codec_type":"video","avg_frame_rate":"1/0","side_data_list":[{"rotation":1e300}],"tags":{"DURATION":"99999999999:1:1","language":"\ud800"}}],"format":{"duration":"1e308"}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		info, err := parseProbe([]byte(answer), MOV)
		if err != nil {
			return
		}
		for _, track := range info.Tracks {
			if track.Rotation < 0 || track.Rotation > 270 || track.Rotation%90 != 0 || !(track.FrameRate >= 0) || len(track.Language) > 64 {
				t.Errorf("got %+v", track)
			}
		}
	})
}

func TestTail(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{{10}, {tailSize}, {tailSize + 1}, {tailSize - 1, 5}, {3 * tailSize}, {100, 3 * tailSize, 7}, {1, tailSize}} {
		var all []byte
		var got tail
		for i, n := range sizes {
			b := make([]byte, n)
			for j := range b {
				b[j] = byte('a' + (i*7+j)%26)
			}
			if written, err := got.Write(b); written != n || err != nil {
				t.Fatalf("wrote %d, %v", written, err)
			}
			all = append(all, b...)
		}
		if want := string(all[max(0, len(all)-tailSize):]); got.String() != want {
			t.Errorf("%v: kept %d bytes, want %d, or others", sizes, len(got.String()), len(want))
		}
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(BudgetOptions{Cores: 2})
		first, err := b.Acquire(t.Context(), Background, 5) // more than there is is all of it
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan error)
		go func() {
			release, err := b.Acquire(t.Context(), Background, 1)
			if err == nil {
				release()
			}
			second <- err
		}()
		synctest.Wait()
		select {
		case err := <-second:
			t.Errorf("two background jobs at once: %v", err)
		default:
		}
		live, ok := b.TryAcquire(Live, 2)
		if !ok {
			t.Error("background work stands in the way of a live stream")
		}
		if _, ok := b.TryAcquire(OnDemand, 1); ok {
			t.Error("more was given than there is")
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errEnough)
		defer cancel()
		if _, err := b.Acquire(ctx, OnDemand, 1); !errors.Is(err, errEnough) {
			t.Errorf("got %v", err)
		}
		first()
		if err := <-second; err != nil {
			t.Error(err)
		}
		live()
	})
}
