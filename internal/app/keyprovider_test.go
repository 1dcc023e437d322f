package app

import (
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/fetch"
)

// TestKeyProvider: what goes over HTTP is what SPEKE says, and what comes back becomes keys.
func TestKeyProvider(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte("sixteen bytes...")[:16])
	respond := func(w http.ResponseWriter, kid string) {
		_, _ = io.WriteString(w,
			`<cpix:CPIX xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc"><cpix:ContentKeyList><cpix:ContentKey kid="`+kid+
				`"><cpix:Data><pskc:Secret><pskc:PlainValue>`+key+
				`</pskc:PlainValue></pskc:Secret></cpix:Data></cpix:ContentKey></cpix:ContentKeyList></cpix:CPIX>`)
	}
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		kid := regexp.MustCompile(`<cpix:ContentKey kid="([0-9a-f-]{36})"`).FindSubmatch(body)
		if err != nil || len(kid) != 2 || r.Method != http.MethodPost || r.Header.Get("X-Speke-Version") != "2.0" ||
			r.Header.Get("Content-Type") != "application/xml" || r.Header.Get("Authorization") != "Basic secret" ||
			!strings.Contains(string(body), `contentId="asset1"`) {
			t.Errorf("asked %s %v %s", r.Method, r.Header, body)
			return
		}
		w.WriteHeader(status)
		respond(w, string(kid[1]))
	}))
	defer server.Close()
	client := fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer client.Close()
	settings := drm.KeyProvider{
		URL:     server.URL + "/speke",
		Headers: map[string]string{"Authorization": "Basic secret", "X-Speke-Version": "1.0"},
	}
	request := drm.KeyRequest{
		Resource: drm.Resource{Kind: playbackid.OfAsset, ID: "asset1"}, Scheme: drm.CBCS,
		Systems: []drm.SystemID{drm.Widevine}, Period: -1,
		Keys: []drm.Key{{ID: [16]byte{1, 2}, IV: [16]byte{3}, Class: drm.Video}},
	}
	got, err := keyProvider{client}.ask(t.Context(), settings, request)
	if err != nil || len(got.Keys) != 1 || got.Keys[0].ID != request.Keys[0].ID ||
		string(got.Keys[0].Value[:]) != "sixteen bytes..." || got.Keys[0].IV != request.Keys[0].IV {
		t.Errorf("%+v, %v", got, err)
	}
	status = http.StatusUnprocessableEntity
	if _, err = (keyProvider{client}).ask(t.Context(), settings, request); err == nil ||
		!strings.Contains(err.Error(), "422") {
		t.Errorf("refused: %v", err)
	}
	closed := fetch.New(fetch.Options{})
	defer closed.Close()
	if _, err = (keyProvider{closed}).ask(t.Context(), settings, request); err == nil {
		t.Error("a private address is asked without fetch-allow")
	}
}
