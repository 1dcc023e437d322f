package whip

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/logging"
	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"
	samples "github.com/pion/webrtc/v4/pkg/media"

	"millrace/internal/media/captions/cea608/cea608test"
)

// reply is an HTTP answer, read whole.
type reply struct {
	status int
	head   http.Header
	body   string
}

// ask makes a request; headers are pairs.
func ask(t *testing.T, method, url, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// publisher is a WHIP client on pion.
type publisher struct {
	t            *testing.T
	pc           *webrtc.PeerConnection
	video, audio *webrtc.TrackLocalStaticSample
	keys         chan struct{} // a key frame is asked for
	url          string        // of the session
	etag         string
	answer       string
	gop          int                 // pictures from one key frame that nobody asked for to the next
	says         *cea608test.Encoder // of the captions in the pictures; nil: there are none
}

// wants says how a publisher is.
type wants struct {
	tcp         bool
	video       string // MIME type; H.264 when empty
	noAudio     bool
	noVideo     bool
	interceptor interceptor.Factory // between the tracks and the network
	noRepeat    bool                // lost packets are not sent again
}

func newPublisher(t *testing.T, w wants) *publisher {
	t.Helper()
	p := &publisher{t: t, keys: make(chan struct{}, 64), gop: 25}
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	registry := &interceptor.Registry{}
	reports, err := report.NewSenderInterceptor(report.SenderInterval(200 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	registry.Add(reports)
	if w.interceptor != nil { // the first one is the nearest to the network
		registry.Add(w.interceptor)
	}
	if !w.noRepeat {
		again, aerr := nack.NewResponderInterceptor()
		if aerr != nil {
			t.Fatal(aerr)
		}
		registry.Add(again)
	}
	if err = webrtc.ConfigureTWCCHeaderExtensionSender(engine, registry); err != nil {
		t.Fatal(err)
	}
	var set webrtc.SettingEngine
	set.SetIncludeLoopbackCandidate(true)
	set.LoggerFactory = &logging.DefaultLoggerFactory{Writer: io.Discard}
	set.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	if w.tcp {
		set.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeTCP4})
	}
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry),
		webrtc.WithSettingEngine(set))
	if p.pc, err = api.NewPeerConnection(webrtc.Configuration{BundlePolicy: webrtc.BundlePolicyMaxBundle}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.hangUp)
	add := func(mime, id string) *webrtc.TrackLocalStaticSample {
		track, err := webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: mime}, id, "publisher")
		if err != nil {
			t.Fatal(err)
		}
		tr, err := p.pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{
			Direction: webrtc.RTPTransceiverDirectionSendonly,
		})
		if err != nil {
			t.Fatal(err)
		}
		go p.readReports(tr.Sender())
		return track
	}
	if !w.noAudio {
		p.audio = add(webrtc.MimeTypeOpus, "audio")
	}
	if !w.noVideo {
		if w.video == "" {
			w.video = webrtc.MimeTypeH264
		}
		p.video = add(w.video, "video")
	}
	return p
}

func (p *publisher) hangUp() { _ = p.pc.GracefulClose() }

// readReports notices requests for key frames.
func (p *publisher) readReports(s *webrtc.RTPSender) {
	for {
		packets, _, err := s.ReadRTCP()
		if err != nil {
			return
		}
		for _, r := range packets {
			if _, ok := r.(*rtcp.PictureLossIndication); ok {
				select {
				case p.keys <- struct{}{}:
				default:
				}
			}
		}
	}
}

// offer is the publisher's, with its candidates.
func (p *publisher) offer(o *webrtc.OfferOptions) string {
	p.t.Helper()
	offer, err := p.pc.CreateOffer(o)
	if err != nil {
		p.t.Fatal(err)
	}
	done := gathered(p.pc)
	if err = p.pc.SetLocalDescription(offer); err != nil {
		p.t.Fatal(err)
	}
	<-done
	return p.pc.LocalDescription().SDP
}

// publish makes the session.
func (p *publisher) publish(endpoint string) {
	p.t.Helper()
	a := ask(p.t, http.MethodPost, endpoint, p.offer(nil), "Authorization", "Bearer "+key, "Content-Type",
		"application/sdp", "User-Agent", "pion test")
	if a.status != http.StatusCreated {
		p.t.Fatalf("POST: %d %s", a.status, a.body)
	}
	p.url = strings.TrimSuffix(endpoint, "/whip") + a.head.Get("Location")
	p.etag, p.answer = a.head.Get("ETag"), a.body
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{
		Type: webrtc.SDPTypeAnswer, SDP: a.body,
	}); err != nil {
		p.t.Fatalf("%v\n%s", err, a.body)
	}
}

// delete ends the session.
func (p *publisher) delete() {
	p.t.Helper()
	if a := ask(p.t, http.MethodDelete, p.url, "", "Authorization", "Bearer "+key); a.status != http.StatusOK {
		p.t.Errorf("DELETE: %d %s", a.status, a.body)
	}
}

// connected waits for the connection.
func (p *publisher) connected() {
	p.t.Helper()
	for end := time.Now().Add(patience); p.pc.ConnectionState() != webrtc.PeerConnectionStateConnected; {
		if time.Now().After(end) {
			p.t.Fatalf("connection is %v", p.pc.ConnectionState())
		}
		<-time.After(5 * time.Millisecond)
	}
}

var (
	testSPS = []byte{
		0x67, 0x42, 0xc0, 0x28, 0xd9, 0x00, 0x78, 0x02, 0x27, 0xe5, 0x84, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00, 0x00,
		0x03, 0x00, 0xf0, 0x3c, 0x60, 0xc9, 0x20,
	}
	testPPS = []byte{0x68, 0xce, 0x38, 0x80}
	silence = []byte{0xf8, 0xff, 0xfe} // 20 ms
)

// picture is an access unit that can be told from others, in Annex B.
func picture(n int, key bool, size int) []byte {
	slice := append([]byte{0x41, byte(n >> 8), byte(n), 0x80}, make([]byte, size)...)
	for i := range slice[4:] {
		slice[4+i] = byte(n+i) | 1
	}
	start := []byte{0, 0, 0, 1}
	var au []byte
	if key {
		slice[0] = 0x65
		au = append(append(append(append(au, start...), testSPS...), start...), testPPS...)
	}
	return append(append(au, start...), slice...)
}

// numberOf reads the number of a picture back.
func numberOf(au []byte) int {
	for len(au) > 4 {
		n := int(au[0])<<24 | int(au[1])<<16 | int(au[2])<<8 | int(au[3])
		if nal := au[4 : 4+n]; nal[0] == 0x65 || nal[0] == 0x41 {
			return int(nal[1])<<8 | int(nal[2])
		}
		au = au[4+n:]
	}
	return -1
}

// play sends media in real time until stop is closed: 50 packets of sound and 25 pictures a second, a key frame first,
// one when one is asked for, and one each second or p.gop.
func (p *publisher) play(stop <-chan struct{}) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	pictures := 0
	for n := 0; ; n++ {
		if p.audio != nil {
			_ = p.audio.WriteSample(samples.Sample{Data: silence, Duration: 20 * time.Millisecond})
		}
		if p.video != nil && n%2 == 0 {
			isKey := pictures%p.gop == 0
			select {
			case <-p.keys:
				isKey = true
			default:
			}
			data := picture(pictures, isKey, 4000)
			if p.says != nil {
				slice := bytes.LastIndex(data, []byte{0, 0, 0, 1})
				data = slices.Insert(data, slice, append([]byte{0, 0, 0, 1}, p.says.SEI(float64(pictures)/25)...)...)
			}
			_ = p.video.WriteSample(samples.Sample{Data: data, Duration: 40 * time.Millisecond})
			pictures++
		}
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
	}
}

// start plays in the background until the test ends or stop is called.
func (p *publisher) start() (stop func()) {
	p.t.Helper()
	p.connected()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.play(quit)
	}()
	once := false
	stop = func() {
		if !once {
			once = true
			close(quit)
			<-done
		}
	}
	p.t.Cleanup(stop)
	return stop
}
