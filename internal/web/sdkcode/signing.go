package sdkcode

import (
	"strconv"
	"time"
)

// SignedLink is a token for a playback ID, as a program of one's own signs it.
type SignedLink struct {
	Key, Playback  string // IDs
	Type, Audience string // what client libraries and `millrace token sign` call the use, and what the token says
	Restriction    string // ID of a playback restriction; empty: none
	Span           string // how long it lasts, as those take it
	Lasts          time.Duration
}

// Samples sign it at a shell and in each language. The private half is a file or a variable.
func (s SignedLink) Samples() []Sample {
	shell := "millrace token sign --key-id " + s.Key + " --private-key-file signing.key \\\n" +
		"  --playback-id " + s.Playback + " --type " + s.Type + " --expiry " + s.Span
	params, claim := "", ""
	if of := s.Restriction; of != "" {
		shell += " \\\n  --param playback_restriction_id=" + of
		params = "  params: { playback_restriction_id: " + quoted(of) + " },\n"
		claim = `		"playback_restriction_id": ` + strconv.Quote(of) + ",\n"
	}
	node := `import Mux from "@mux/mux-node";

const mux = new Mux({ tokenId: "", tokenSecret: "" }); // signing calls no API
const token = await mux.jwt.signPlaybackId(` + quoted(s.Playback) + `, {
  keyId: ` + quoted(s.Key) + `,
  keySecret: process.env.SIGNING_PRIVATE_KEY,
  type: ` + quoted(s.Type) + `,
  expiration: ` + quoted(s.Span) + `,
` + params + `});
console.log(token);
`
	golang := `package main

import (
	"encoding/base64"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func main() {
	pem, err := base64.StdEncoding.DecodeString(os.Getenv("SIGNING_PRIVATE_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(pem)
	if err != nil {
		log.Fatal(err)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"sub": ` + strconv.Quote(s.Playback) + `,
		"aud": ` + strconv.Quote(s.Audience) + `,
		"exp": time.Now().Add(` + strconv.Itoa(int(s.Lasts/time.Minute)) + ` * time.Minute).Unix(),
` + claim + `	})
	token.Header["kid"] = ` + strconv.Quote(s.Key) + `
	signed, err := token.SignedString(key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(signed)
}
`
	return []Sample{{"Shell", shell}, {"Node", node}, {"Go", golang}}
}
