package whip

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/sdp/v3"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// chromium is an offer of Chromium 130 for a camera and a microphone, shortened by codecs that are all alike.
const chromium = `v=0
o=- 4611731400430051336 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0 1
a=extmap-allow-mixed
a=msid-semantic: WMS 5d1c
m=audio 9 UDP/TLS/RTP/SAVPF 111 63 0 110
c=IN IP4 0.0.0.0
a=rtcp:9 IN IP4 0.0.0.0
a=ice-ufrag:Zvsx
a=ice-pwd:PwmRiJQVs2cgYpEWmUEZDNsd
a=ice-options:trickle
a=fingerprint:sha-256 7B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08
a=setup:actpass
a=mid:0
a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
a=sendonly
a=msid:5d1c 8a01
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:111 opus/48000/2
a=rtcp-fb:111 transport-cc
a=fmtp:111 minptime=10;useinbandfec=1
a=rtpmap:63 red/48000/2
a=fmtp:63 111/111
a=rtpmap:0 PCMU/8000
a=rtpmap:110 telephone-event/48000
a=ssrc:2231631735 cname:aZtvW
a=ssrc:2231631735 msid:5d1c 8a01
m=video 9 UDP/TLS/RTP/SAVPF 96 97 103 104 107 108 45 46 98 99 100 101
c=IN IP4 0.0.0.0
a=rtcp:9 IN IP4 0.0.0.0
a=ice-ufrag:Zvsx
a=ice-pwd:PwmRiJQVs2cgYpEWmUEZDNsd
a=ice-options:trickle
a=fingerprint:sha-256 7B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08
a=setup:actpass
a=mid:1
a=extmap:14 urn:ietf:params:rtp-hdrext:toffset
a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
a=sendonly
a=msid:5d1c 2bf1
a=rtcp-mux
a=rtcp-rsize
a=rtpmap:96 VP8/90000
a=rtcp-fb:96 goog-remb
a=rtcp-fb:96 transport-cc
a=rtcp-fb:96 ccm fir
a=rtcp-fb:96 nack
a=rtcp-fb:96 nack pli
a=rtpmap:97 rtx/90000
a=fmtp:97 apt=96
a=rtpmap:103 H264/90000
a=rtcp-fb:103 nack
a=fmtp:103 level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42001f
a=rtpmap:104 rtx/90000
a=fmtp:104 apt=103
a=rtpmap:107 H264/90000
a=rtcp-fb:107 goog-remb
a=rtcp-fb:107 transport-cc
a=rtcp-fb:107 ccm fir
a=rtcp-fb:107 nack
a=rtcp-fb:107 nack pli
a=fmtp:107 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f
a=rtpmap:108 rtx/90000
a=fmtp:108 apt=107
a=rtpmap:45 AV1/90000
a=rtcp-fb:45 nack
a=fmtp:45 level-idx=5;profile=0;tier=0
a=rtpmap:46 rtx/90000
a=fmtp:46 apt=45
a=rtpmap:98 VP9/90000
a=fmtp:98 profile-id=0
a=rtpmap:99 rtx/90000
a=fmtp:99 apt=98
a=rtpmap:100 VP9/90000
a=fmtp:100 profile-id=2
a=rtpmap:101 rtx/90000
a=fmtp:101 apt=100
a=ssrc-group:FID 1431207543 2894105018
a=ssrc:1431207543 cname:aZtvW
a=ssrc:1431207543 msid:5d1c 2bf1
a=ssrc:2894105018 cname:aZtvW
a=ssrc:2894105018 msid:5d1c 2bf1
`

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

var defaultVideo = []frame.Codec{frame.H264, frame.AV1, frame.VP9}

// TestOffer lists offers that are taken, with what is chosen.
func TestOffer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		codecs          []frame.Codec
		edit            func(string) string
		video           frame.Codec
		payload, repeat uint8
	}{
		"as it is":      {defaultVideo, nil, frame.H264, 107, 108},
		"AV1 preferred": {[]frame.Codec{frame.AV1, frame.H264}, nil, frame.AV1, 45, 46},
		"no H.264": {
			defaultVideo, func(s string) string { return strings.ReplaceAll(s, "H264/", "H263/") }, frame.AV1, 45, 46,
		},
		"mode 0 alone": {
			defaultVideo,
			func(s string) string { return strings.ReplaceAll(s, "packetization-mode=1", "packetization-mode=0") },
			frame.AV1, 45, 46,
		},
		"VP9 of profile 0": {[]frame.Codec{frame.VP9}, nil, frame.VP9, 98, 99},
		"VP8 where wanted": {
			[]frame.Codec{frame.H264, frame.VP8},
			func(s string) string { return strings.ReplaceAll(s, "H264/", "H263/") }, frame.VP8, 96, 97,
		},
		"no repetitions": {
			defaultVideo, func(s string) string { return strings.ReplaceAll(s, "rtx/", "rtz/") }, frame.H264, 107, 0,
		},
		"sendrecv": {
			defaultVideo, func(s string) string { return strings.ReplaceAll(s, "a=sendonly", "a=sendrecv") },
			frame.H264, 107, 108,
		},
		"active": {
			defaultVideo, func(s string) string { return strings.ReplaceAll(s, "actpass", "active") }, frame.H264, 107,
			108,
		},
		"no direction": {
			defaultVideo, func(s string) string { return strings.ReplaceAll(s, "a=sendonly\n", "") }, frame.H264, 107,
			108,
		},
		"without SSRCs": {
			defaultVideo, func(s string) string { return strings.ReplaceAll(s, "a=ssrc", "a=x-ssrc") }, frame.H264, 107,
			108,
		},
		"simulcast is taken as one": {defaultVideo, func(s string) string {
			return s + "a=rid:h send\na=rid:l send\na=simulcast:send h;l\n"
		}, frame.H264, 107, 108},
		"candidates": {
			defaultVideo, func(s string) string { return s + "a=candidate:1 1 udp 1 169.254.169.254 80 typ host\n" },
			frame.H264, 107, 108,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := chromium
			if tt.edit != nil {
				text = tt.edit(text)
			}
			o, err := parseOffer(crlf(text), tt.codecs)
			if err != nil {
				t.Fatal(err)
			}
			if o.video.codec != tt.video || o.video.payload != tt.payload || o.video.repeat != tt.repeat ||
				o.audio.payload != 111 {
				t.Errorf("chosen %+v and %+v", o.video, o.audio)
			}
			out, err := o.text()
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{"candidate", "simulcast", "rid:", "PCMU", "169.254"} {
				if strings.Contains(out, bad) {
					t.Errorf("what the peer connection sees has %s", bad)
				}
			}
		})
	}
}

// TestOfferRefused lists offers that are not, with their status and a part of the reason.
func TestOfferRefused(t *testing.T) {
	t.Parallel()
	swap := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	data := "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\na=mid:2\n"
	video := chromium[strings.Index(chromium, "m=video"):]
	for name, tt := range map[string]struct {
		edit   func(string) string
		status int
		want   string
	}{
		"nothing":  {func(string) string { return "" }, 422, "no media"},
		"nonsense": {func(string) string { return "hello" }, 400, "not SDP"},
		"return in a line": {
			func(o string) string { return strings.Replace(o, "useinbandfec", "use\rinbandfec", 1) }, 400,
			"carriage return",
		},
		"no media":     {func(s string) string { return s[:strings.Index(s, "m=audio")] }, 422, "no media"},
		"data channel": {func(s string) string { return s + data }, 422, "data channel"},
		"two videos": {
			func(s string) string { return s + strings.Replace(video, "a=mid:1", "a=mid:2", 1) }, 422,
			"more than one video",
		},
		"text":               {swap("m=video", "m=text"), 422, "neither audio nor video"},
		"no encryption":      {swap("UDP/TLS/RTP/SAVPF", "RTP/AVPF"), 422, "SAVPF"},
		"recvonly":           {swap("a=sendonly", "a=recvonly"), 422, "sendonly"},
		"inactive for all":   {swap("a=sendonly\n", "", "a=msid-semantic: WMS 5d1c", "a=inactive"), 422, "sendonly"},
		"no rtcp-mux":        {swap("a=rtcp-mux\n", ""), 422, "rtcp-mux"},
		"no bundle":          {swap("a=group:BUNDLE 0 1\n", ""), 422, "BUNDLE"},
		"bundle of one":      {swap("a=group:BUNDLE 0 1\n", "a=group:BUNDLE 0\n"), 422, "BUNDLE"},
		"bundle of others":   {swap("a=group:BUNDLE 0 1\n", "a=group:BUNDLE 0 7\n"), 422, "BUNDLE"},
		"no mid":             {swap("a=mid:0\n", ""), 400, "mid"},
		"one mid for both":   {swap("a=mid:1\n", "a=mid:0\n"), 400, "same mid"},
		"no ufrag":           {swap("a=ice-ufrag:Zvsx\n", ""), 400, "ice-ufrag"},
		"short password":     {swap("PwmRiJQVs2cgYpEWmUEZDNsd", "short"), 400, "ice-ufrag"},
		"long ufrag":         {swap("a=ice-ufrag:Zvsx", "a=ice-ufrag:"+strings.Repeat("a", 257)), 400, "ice-ufrag"},
		"no fingerprint":     {swap("a=fingerprint", "a=x-print"), 400, "fingerprint"},
		"passive":            {swap("a=setup:actpass", "a=setup:passive"), 422, "setup"},
		"lite on both sides": {swap("a=group:", "a=ice-lite\na=group:"), 422, "ice-lite"},
		"no codec for video": {
			swap("H264/", "H263/", "AV1/", "AV0/", "VP9/", "VP7/"), 422,
			"H.264 (packetization mode 1), AV1, VP9 (profile 0)",
		},
		"no codec for audio":    {swap("opus/", "speex/"), 422, "Opus"},
		"mono Opus":             {swap("opus/48000/2", "opus/48000"), 422, "Opus"},
		"payload types as text": {swap("SAVPF 111 63", "SAVPF 111 x"), 400, "payload type"},
		"payload type of 200":   {swap("SAVPF 111 63", "SAVPF 111 200"), 400, "payload type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseOffer(crlf(tt.edit(chromium)), defaultVideo)
			p, ok := errors.AsType[*problem](err)
			if !ok || p.status != tt.status || !strings.Contains(p.detail, tt.want) {
				t.Errorf("got %v, want %d with %q", err, tt.status, tt.want)
			}
		})
	}
}

func TestFragment(t *testing.T) {
	t.Parallel()
	candidate := "a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw " +
		"network-id 1\n"
	whole := "a=group:BUNDLE 0 1\nm=audio 9 UDP/TLS/RTP/SAVPF " +
		"111\na=mid:0\na=ice-ufrag:EsAw\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\n"
	for name, tt := range map[string]struct {
		body string
		ok   bool
		want fragment
	}{
		"of the RFC": {
			whole + candidate + candidate + "a=end-of-candidates\n", true,
			fragment{"EsAw", "P2uYro0UCOQ4zxjKXaWCBui1", 2},
		},
		"empty":             {"", true, fragment{}},
		"candidates alone":  {candidate, true, fragment{candidates: 1}},
		"said twice":        {whole + whole, true, fragment{"EsAw", "P2uYro0UCOQ4zxjKXaWCBui1", 0}},
		"two passwords":     {whole + "a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui2\n", false, fragment{}},
		"two ufrags":        {whole + "a=ice-ufrag:other\n", false, fragment{}},
		"ufrag alone":       {"a=ice-ufrag:EsAw\n", false, fragment{}},
		"not a candidate":   {"a=candidate:1 1 udp\n", false, fragment{}},
		"a whole SDP":       {"v=0\n", false, fragment{}},
		"nonsense":          {"hello\n", false, fragment{}},
		"candidates galore": {strings.Repeat(candidate, maxCandidates+1), false, fragment{}},
		"lines galore":      {strings.Repeat("a=mid:0\n", maxFragmentLines+1), false, fragment{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseFragment(crlf(tt.body))
			if (err == nil) != tt.ok || tt.ok && got != tt.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// TestRules lists requests and how they are answered.
func TestRules(t *testing.T) { //nolint:tparallel // its requests are to one session
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink), ICEServers: []ICEServer{
		{URL: "stun:stun.example.org"}, {URL: "turn:turn.example.org?transport=tcp", Username: "u", Credential: "c"},
	}})
	auth := []string{"Authorization", "Bearer " + key}
	with := func(h ...string) []string { return append(slices.Clone(auth), h...) }
	p := newPublisher(t, wants{})
	offer := p.offer(nil)
	made := ask(t, http.MethodPost, s.url, offer, with("Content-Type", "application/sdp; charset=utf-8")...)
	if made.status != http.StatusCreated || made.head.Get("Content-Type") != "application/sdp" ||
		!strings.HasPrefix(made.head.Get("Location"), "/whip/") ||
		len(made.head.Get("Location")) < 30 || len(made.head.Get("ETag")) < 20 ||
		made.head.Get("Accept-Patch") != "application/trickle-ice-sdpfrag" {
		t.Fatalf("POST: %d %v\n%s", made.status, made.head, made.body)
	}
	if l := made.head.Values("Link"); len(l) != 2 || l[0] != `<stun:stun.example.org>; rel="ice-server"` ||
		l[1] !=
			`<turn:turn.example.org?transport=tcp>; rel="ice-server"; username="u"; credential="c"; credential-type="password"` {
		t.Errorf("links %q", l)
	}
	checkAnswer(t, made.body)
	session := strings.TrimSuffix(s.url, "/whip") + made.head.Get("Location")
	fragment, etag := fragmentOf(t, offer), made.head.Get("ETag")
	restart := "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
	frag := []string{"Content-Type", "application/trickle-ice-sdpfrag"}
	for name, tt := range map[string]struct { //nolint:paralleltest // the same
		method, url, body string
		head              []string
		status            int
		answer            []string // headers, by pairs
	}{
		"preflight": {
			"OPTIONS", s.url, "",
			[]string{"Origin", "https://else.example", "Access-Control-Request-Method", "POST"},
			200,
			[]string{
				"Access-Control-Allow-Origin", "*", "Access-Control-Allow-Methods", "POST, OPTIONS",
				"Access-Control-Allow-Headers", "Authorization, Content-Type", "Accept-Post", "application/sdp",
			},
		},
		"preflight of a session": {
			"OPTIONS", session, "", nil, 200,
			[]string{
				"Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match", "Accept-Patch",
				"application/trickle-ice-sdpfrag",
			},
		},
		"GET":              {"GET", s.url, "", nil, 204, nil},
		"GET of a session": {"GET", session, "", nil, 204, nil},
		"PUT":              {"PUT", s.url, "", nil, 405, []string{"Allow", "POST, OPTIONS, GET, HEAD"}},
		"POST to a session": {
			"POST", session, "", auth, 405, []string{"Allow", "PATCH, DELETE, OPTIONS, GET, HEAD"},
		},
		"no key": {
			"POST", s.url, offer,
			[]string{"Content-Type", "application/sdp"},
			401,
			[]string{"WWW-Authenticate", `Bearer realm="whip"`},
		},
		"another scheme": {
			"POST", s.url, offer,
			[]string{"Authorization", "Basic " + key, "Content-Type", "application/sdp"},
			401,
			nil,
		},
		"unknown key": {
			"POST", s.url, offer,
			[]string{"Authorization", "Bearer other", "Content-Type", "application/sdp"},
			401,
			[]string{"Access-Control-Allow-Origin", "*"},
		},
		"no type": {"POST", s.url, offer, auth, 415, []string{"Accept-Post", "application/sdp"}},
		"JSON":    {"POST", s.url, offer, with("Content-Type", "application/json"), 415, nil},
		"too large": {
			"POST", s.url, strings.Repeat("a", maxOffer+1), with("Content-Type", "application/sdp"), 413, nil,
		},
		"no SDP": {"POST", s.url, "v=1", with("Content-Type", "application/sdp"), 400, nil},
		"cannot be answered": {
			"POST", s.url, strings.ReplaceAll(offer, "sendonly", "recvonly"), with("Content-Type", "application/sdp"),
			422, nil,
		},
		"deeper":               {"POST", s.url + "/a/b", offer, auth, 404, nil},
		"beside":               {"POST", s.url + "per", offer, auth, 404, nil},
		"unknown session":      {"DELETE", s.url + "/XXXXXXXX", "", auth, 404, nil},
		"DELETE without a key": {"DELETE", session, "", nil, 401, nil},
		"DELETE with another":  {"DELETE", session, "", []string{"Authorization", "Bearer other"}, 403, nil},
		"PATCH without a key":  {"PATCH", session, fragment, append(frag, "If-Match", etag), 401, nil},
		"trickle": {
			"PATCH", session, fragment, with("Content-Type", "application/trickle-ice-sdpfrag", "If-Match", etag), 204,
			nil,
		},
		"trickle without ETag": {"PATCH", session, fragment, with(frag...), 428, nil},
		"trickle with another": {
			"PATCH", session, fragment, with("Content-Type", "application/trickle-ice-sdpfrag", "If-Match", `"x"`), 412,
			nil,
		},
		"restart without ETag": {"PATCH", session, restart, with(frag...), 428, nil},
		"restart with another": {
			"PATCH", session, restart, with("Content-Type", "application/trickle-ice-sdpfrag", "If-Match", `"x"`), 412,
			nil,
		},
		"PATCH of another type": {
			"PATCH", session, fragment, with("Content-Type", "application/sdp", "If-Match", etag), 415, nil,
		},
		"PATCH too large": {
			"PATCH", session, strings.Repeat("a", maxFragment+1),
			with("Content-Type", "application/trickle-ice-sdpfrag", "If-Match", etag), 413, nil,
		},
		"PATCH of nonsense": {
			"PATCH", session, "hello", with("Content-Type", "application/trickle-ice-sdpfrag", "If-Match", etag), 400,
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, tt.method, tt.url, tt.body, tt.head...)
			if a.status != tt.status {
				t.Errorf("status %d, want %d: %s", a.status, tt.status, a.body)
			}
			for i := 0; i < len(tt.answer); i += 2 {
				if got := a.head.Get(tt.answer[i]); got != tt.answer[i+1] {
					t.Errorf("%s: %q, want %q", tt.answer[i], got, tt.answer[i+1])
				}
			}
			var problem struct {
				Detail string `json:"detail"`
			}
			if a.status >= 400 && a.head.Get("Content-Type") == "application/problem+json" &&
				(json.Unmarshal([]byte(a.body), &problem) != nil || problem.Detail == "") {
				t.Errorf("body %q", a.body)
			}
		})
	}
}

// checkAnswer holds an answer to RFC 9725 section 4.2.
func checkAnswer(t *testing.T, body string) {
	t.Helper()
	var d sdp.SessionDescription
	if err := d.UnmarshalString(body); err != nil {
		t.Fatal(err)
	}
	if _, lite := d.Attribute("ice-lite"); !lite || len(d.MediaDescriptions) != 2 {
		t.Errorf("answer\n%s", body)
	}
	for i, m := range d.MediaDescriptions {
		_, recvonly := m.Attribute("recvonly")
		_, mux := m.Attribute("rtcp-mux")
		setup, _ := m.Attribute("setup")
		_, candidate := m.Attribute("candidate")
		if !recvonly || !mux || setup != "passive" || candidate != (i == 0) {
			t.Errorf("section %d of the answer\n%s", i, body)
		}
	}
	if strings.Count(body, "a=candidate:") != 2 || strings.Count(body, "127.0.0.1 ") < 2 ||
		!strings.Contains(body, "tcptype passive") {
		t.Errorf("candidates of the answer\n%s", body)
	}
}

// TestGateAnswers lists what each no of the gate becomes.
func TestGateAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		detail string
	}{
		{ingest.ErrUnknownKey, 401, "stream key is unknown"},
		{ingest.ErrDisabled, 403, "disabled"},
		{ingest.ErrBusy, 409, "another encoder"},
		{ingest.ErrShutdown, 503, "shutting down"},
		{errors.New("database is away"), 503, "could not be checked"},
	} {
		t.Run(tt.detail, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{
				Gate: ingesttest.Gate(func(context.Context, ingest.Publication) (context.Context, ingest.Sink, error) {
					return nil, nil, tt.err
				}),
			})
			a := ask(t, http.MethodPost, s.url, crlf(chromium), "Authorization", "Bearer "+key, "Content-Type",
				"application/sdp")
			if a.status != tt.status || !strings.Contains(a.body, tt.detail) || strings.Contains(a.body, "database") {
				t.Errorf("answered %d %s", a.status, a.body)
			}
		})
	}
}

// TestTooMany refuses sessions over the limit and lets others in when one has ended.
func TestTooMany(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{
		MaxPerIP: 3,
		Gate: ingesttest.Gate(func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
			if p.Protocol != "whip" || p.Remote.Addr() != netip.MustParseAddr("127.0.0.1") {
				t.Errorf("publication %+v", p)
			}
			return ctx, ingesttest.NewRecorder(), nil
		}),
	})
	post := func() reply {
		return ask(t, http.MethodPost, s.url, crlf(chromium), "Authorization", "Bearer "+key, "Content-Type",
			"application/sdp")
	}
	first, second, third := post(), post(), post()
	if first.status != 201 || second.status != 201 || third.status != 201 {
		t.Fatalf("%d and %d: %s", first.status, second.status, first.body)
	}
	if a := post(); a.status != 429 || a.head.Get("Retry-After") == "" {
		t.Errorf("the fourth is answered %d", a.status)
	}
	if a := ask(t, http.MethodDelete, strings.TrimSuffix(s.url, "/whip")+first.head.Get("Location"), "",
		"Authorization", "Bearer "+key); a.status != 200 {
		t.Errorf("DELETE: %d", a.status)
	}
	if a := post(); a.status != 201 {
		t.Errorf("after an end the next is answered %d", a.status)
	}
	if a := ask(t, http.MethodDelete, strings.TrimSuffix(s.url, "/whip")+second.head.Get("Location"), "",
		"Authorization", "Bearer "+key); a.status != 200 {
		t.Errorf("DELETE: %d", a.status)
	}
	s.mu.Lock()
	stands := s.sockets
	s.sockets = nil // as while it stops
	s.mu.Unlock()
	if a := post(); a.status != 503 {
		t.Errorf("a service that stops answers %d", a.status)
	}
	s.mu.Lock()
	s.sockets = stands
	s.mu.Unlock()
}

// TestPlaceComesBackFirst holds the server where an ended session is forgotten: its place must be free by then, as who
// is told of the end publishes at once.
func TestPlaceComesBackFirst(t *testing.T) {
	t.Parallel()
	s := startServer(t, Options{MaxPerIP: 1, Gate: ingesttest.Admit(key, ingesttest.NewRecorder())})
	a := ask(t, http.MethodPost, s.url, crlf(chromium),
		"Authorization", "Bearer "+key, "Content-Type", "application/sdp")
	n := s.find(strings.TrimPrefix(a.head.Get("Location"), "/whip/"))
	if n == nil {
		t.Fatalf("POST: %d %s", a.status, a.body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n.cancel(ingest.ErrEncoderEnded)
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		if _, total := s.limit.Count(n.remote); total == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the session keeps its place until it is forgotten")
		}
	}
	select {
	case <-n.done:
		t.Error("the session is over and not forgotten")
	default:
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	addrs := func(s ...string) (out []netip.Addr) {
		for _, a := range s {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	machine := addrs("127.0.0.1", "::1", "192.0.2.7", "fe80::1", "2001:db8::7")
	port := netip.MustParseAddrPort
	for name, tt := range map[string]struct {
		public   []netip.Addr
		udp, tcp netip.AddrPort
		machine  []netip.Addr
		want     []string // transport and address
	}{
		"all addresses": {
			nil, port("[::]:8189"), netip.AddrPort{}, machine, []string{"udp 192.0.2.7 8189", "udp 2001:db8::7 8189"},
		},
		"only IPv4": {nil, port("0.0.0.0:8189"), netip.AddrPort{}, machine, []string{"udp 192.0.2.7 8189"}},
		"nothing but itself": {
			nil, port("[::]:8189"),
			netip.AddrPort{},
			addrs("127.0.0.1", "::1"),
			[]string{"udp 127.0.0.1 8189", "udp ::1 8189"},
		},
		"bound": {
			nil, port("127.0.0.1:1"), port("127.0.0.1:2"), machine, []string{"udp 127.0.0.1 1", "tcp 127.0.0.1 2"},
		},
		"behind a NAT": {
			addrs("203.0.113.1"), port("[::]:8189"), port("[::]:8190"), machine,
			[]string{
				"udp 203.0.113.1 8189", "udp 192.0.2.7 8189", "udp 2001:db8::7 8189", "tcp 203.0.113.1 8190",
				"tcp 192.0.2.7 8190", "tcp 2001:db8::7 8190",
			},
		},
		"public is its own": {
			addrs("192.0.2.7"), port("0.0.0.0:1"), netip.AddrPort{}, machine, []string{"udp 192.0.2.7 1"},
		},
		"public of another": {
			addrs("2001:db8::9"), port("0.0.0.0:1"), netip.AddrPort{}, machine, []string{"udp 192.0.2.7 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			last := ""
			for _, c := range candidates(tt.public, tt.udp, tt.tcp, tt.machine) {
				w := strings.Fields(c)
				got = append(got, w[2]+" "+w[4]+" "+w[5])
				if last != "" && w[3] >= last {
					t.Errorf("priorities do not fall: %s", c)
				}
				last = w[3]
				if !isCandidate(c) {
					t.Errorf("%q is no candidate", c)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzOffer checks that what is taken can be written, read again, and is taken again with the same choice.
func FuzzOffer(f *testing.F) {
	f.Add(crlf(chromium))
	f.Add(crlf(strings.ReplaceAll(chromium, "a=ssrc", "a=x-ssrc")))
	f.Fuzz(func(t *testing.T, body string) {
		o, err := parseOffer(body, defaultVideo)
		if err != nil {
			if _, ok := errors.AsType[*problem](err); !ok {
				t.Errorf("an error that is no problem: %v", err)
			}
			return
		}
		text, err := o.text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseOffer(text, defaultVideo)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again.video.codec != o.video.codec || again.audio.codec != o.audio.codec || again.ufrag != o.ufrag {
			t.Errorf("chosen %+v %+v, then %+v %+v", o.video, o.audio, again.video, again.audio)
		}
		if next := o.restarted("abcd", "0123456789012345678901"); next.ufrag != "abcd" ||
			o.ufrag == "abcd" && again.ufrag != "abcd" {
			t.Error("a restart changes the offer that it is made of")
		}
	})
}

func FuzzFragment(f *testing.F) {
	f.Add("a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\na=candidate:1 1 udp 1 192.0.2.1 1 typ host\r\n")
	f.Fuzz(func(t *testing.T, body string) {
		got, err := parseFragment(body)
		if err == nil && (got.ufrag == "") != (got.pwd == "") {
			t.Errorf("half of the credentials: %+v", got)
		}
	})
}
