package remote_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"millrace/internal/media/speech"
	"millrace/internal/media/speech/remote"
)

// TestAddressesAreNotTold: what a tenant reads of a server that is away has no address in it.
func TestAddressesAreNotTold(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err = l.Close(); err != nil { // nothing listens there any more
		t.Fatal(err)
	}
	client := &http.Client{}
	for name, e := range map[string]speech.Engine{
		"HTTP": remote.NewHTTP(remote.HTTPOptions{
			Name: "openai", URL: "http://" + address + "/secret", Client: client,
		}),
		"health": remote.NewHTTP(remote.HTTPOptions{
			Name: "whisper", Flavour: remote.WhisperCPP, URL: "http://" + address, Client: client,
		}),
		"websocket": remote.NewSocket(remote.SocketOptions{
			Name: "vosk", URL: "ws://" + address + "/secret", Client: client,
		}),
		"no host": remote.NewHTTP(remote.HTTPOptions{
			Name: "openai", URL: "http://speech.invalid/secret", Client: client,
		}),
	} {
		err := e.Probe(t.Context())
		if err == nil {
			t.Fatalf("%s: it runs", name)
		}
		for _, part := range []string{address, "127.0.0.1", "secret", "speech.invalid"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !strings.Contains(err.Error(), "the server") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
