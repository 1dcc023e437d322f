package presentation_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/media/container/cenc"
	"millrace/internal/media/playback"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/media/protection"
	"millrace/internal/presentation"
)

// underDRM resolves playback IDs as if they had the policy drm, admits everybody, and has one key for all.
type underDRM struct{ presentation.Resolver }

func (u underDRM) Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error) {
	o, err := u.Resolver.Resolve(ctx, p)
	o.ID.Policy, o.ID.DRMConfigurationID = playbackid.DRM, "configuration"
	return o, err
}

func (underDRM) Admit(context.Context, playbackid.Object, playback.Request, time.Time) (playback.Permit, error) {
	return playback.Permit{}, nil
}

func (underDRM) Content(_ context.Context, o playbackid.Object, _ time.Time) (protection.Content, error) {
	key := cenc.Key{ID: [16]byte{1}, Value: [16]byte{2}, IV: [16]byte{3}}
	return protection.Content{
		Name: o.ObjectID, Scheme: cenc.CTR, Keys: []cenc.Key{key}, Systems: []protection.System{{ID: [16]byte{
			0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02, 0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b,
		}}},
		KeyOf: func(m cenc.Media, _ int) (cenc.Key, bool) { return key, m.Video },
	}, nil
}

// encrypted is a viewer to whom all that the node has is encrypted.
func (n *node) encrypted() playbacktest.Viewer {
	u := underDRM{n.w.access}
	o := n.shows
	o.Access, o.Guard, o.Keys, o.Meter = u, u, u, nil
	return playbacktest.New(n.w.t, presentation.New(o))
}

// TestEncrypted: a live stream with parts and its recording are encrypted for a playback ID with the policy drm, and
// for no other. What was sent under a name stays, also when the recording is over and on another node; a segment is
// what its parts are; sound is as it was.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(60), func(in *live.CreateInput) { in.LatencyMode = live.Low })
		n.publish(s.StreamKey).send(10 * time.Second)
		v, plain, sent := n.encrypted(), n.viewer(), map[string]string{}
		look := func(when string, p id.Playback) {
			t.Helper()
			if list := v.Expect(when, http.StatusOK, "/"+string(p)+".m3u8"); !strings.Contains(list,
				"#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES-CTR") {
				t.Errorf("%s: no session key: %s", when, list)
			}
			for _, l := range v.Playlists(p) {
				video := strings.HasSuffix(l, "/v.m3u8")
				if !video && !strings.HasSuffix(l, "/a.m3u8") { // of a key
					continue
				}
				text := v.Expect(when, http.StatusOK, l)
				if strings.Contains(text, "#EXT-X-KEY:METHOD=SAMPLE-AES-CTR") != video {
					t.Errorf("%s: %s", when, text)
				}
				for _, uri := range playbacktest.URIs(l, text) {
					body, was := v.Expect(when, http.StatusOK, uri), plain.Expect(when, http.StatusOK, uri)
					if (body == was) == video {
						t.Errorf("%s: %s is clear, or sound is not", when, uri)
					}
					if had, known := sent[uri]; known && had != body {
						t.Errorf("%s: %s has changed", when, uri)
					}
					sent[uri] = body
				}
			}
			v.Expect(when+": file", http.StatusForbidden, "/"+string(p)+"/highest.mp4")
		}
		look("live", s.PlaybackIDs[0].ID)
		a := w.row(s.ID).ActiveAsset
		look("asset of what is live", w.playbackID(a))
		joined := 0
		for uri, segment := range sent {
			if strings.HasSuffix(uri, ".m4s") && strings.Contains(uri, "/v/") {
				parts := ""
				for k := 0; ; k++ {
					code, part := v.Get(strings.TrimSuffix(uri, ".m4s") + "." + string(rune('0'+k)) + ".m4s")
					if code != http.StatusOK || len(parts) >= len(segment) {
						break
					}
					parts += part
				}
				if parts != "" && !strings.HasPrefix(segment, parts) && !strings.HasPrefix(parts, segment) {
					t.Errorf("%s is not what its parts are", uri)
				}
				joined += len(parts)
			}
		}
		if joined == 0 {
			t.Error("there are no parts")
		}
		w.must(w.streams.Complete(w.ctx, env, s.ID, time.Now()))
		w.wait(time.Minute)
		w.finish(a)
		w.wait(time.Second)
		look("finished", w.playbackID(a))
		other := w.start("b")
		v, plain = other.encrypted(), other.viewer()
		look("on another node", w.playbackID(a))
	})
}
