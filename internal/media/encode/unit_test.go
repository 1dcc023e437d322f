package encode

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseProbe(t *testing.T) {
	t.Parallel()
	const output = `{"streams":[
		{"codec_type":"video","codec_name":"mjpeg","disposition":{"attached_pic":1}},
		{"codec_type":"video","codec_name":"hevc","width":1920,"height":1080,"avg_frame_rate":"0/0","r_frame_rate":"25/1","field_order":"tt",
		 "bits_per_raw_sample":"10","tags":{"DURATION":"01:00:02.500000000"},"side_data_list":[{"rotation":-90}]},
		{"codec_type":"audio","codec_name":"pcm_s24le","sample_rate":"96000","channels":2,"bits_per_sample":24,"duration":"N/A"},
		{"codec_type":"subtitle","codec_name":"mov_text","disposition":{"forced":1}},{"codec_type":"attachment"},{}],
		"format":{"duration":"3602.5","start_time":"-0.021"}}`
	got, err := parseProbe([]byte(output), Matroska)
	if err != nil {
		t.Fatal(err)
	}
	tracks := []Track{
		{
			Kind: Video, Codec: "hevc", Width: 1920, Height: 1080, FrameRate: 25, Interlaced: true, HD: true,
			BitSize: 10, Duration: 3602500 * time.Millisecond, Rotation: 90,
		},
		{Kind: Audio, Codec: "pcm_s24le", SampleRate: 96000, Channels: 2, BitSize: 24},
		{Kind: Text, Codec: "mov_text", Forced: true},
		{Kind: Data},
		{Kind: Data},
	}
	want := Info{
		Container: Matroska, Duration: 3602500 * time.Millisecond, Start: -21 * time.Millisecond, Tracks: tracks,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
}

func FuzzParseProbe(f *testing.F) {
	f.Add(
		`{"streams":[{"codec_type":"video","avg_frame_rate":"1/0","side_data_list":[{"rotation":1e300}],"tags":{"DURATION":"99999999999:1:1","language":"\ud800"}}],"format":{"duration":"1e308"}}`)
	f.Fuzz(func(t *testing.T, output string) {
		info, err := parseProbe([]byte(output), MOV)
		if err != nil {
			return
		}
		for _, track := range info.Tracks {
			if track.Rotation < 0 || track.Rotation > 270 || track.Rotation%90 != 0 || !(track.FrameRate >= 0) ||
				len(track.Language) > 64 {
				t.Errorf("got %+v", track)
			}
		}
	})
}

func TestTail(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{
		{10}, {tailSize}, {tailSize + 1}, {tailSize - 1, 5}, {3 * tailSize}, {100, 3 * tailSize, 7}, {1, tailSize},
	} {
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
		live, ok := b.TryAcquire(Live, 2*liveShare)
		if !ok {
			t.Error("background work stands in the way of a live stream")
		}
		if _, more := b.TryAcquire(Live, 1); more {
			t.Error("more was given than there is")
		}
		watched, ok := b.TryAcquire(OnDemand, 2)
		if !ok {
			t.Error("live streams stand in the way of who watches")
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
		var order []string
		var all sync.WaitGroup
		for _, w := range []struct {
			name string
			p    Priority
		}{{"picture", Images}, {"another picture", Images}, {"segment", OnDemand}, {"first segment", FirstPlay}} {
			all.Go(func() {
				release, err := b.Acquire(t.Context(), w.p, 2)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, w.name)
				release()
			})
			synctest.Wait()
		}
		watched()
		all.Wait()
		if want := []string{"first segment", "segment", "picture", "another picture"}; !slices.Equal(order, want) {
			t.Errorf("let in: %q, want %q", order, want)
		}
	})
}
