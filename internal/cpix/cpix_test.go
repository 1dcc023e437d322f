package cpix_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/cpix"
)

// node is any element of XML.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Nodes   []node     `xml:",any"`
	Text    string     `xml:",chardata"`
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// all are the elements at a path of names, which are in the namespaces that the specifications say.
func (n node) all(t *testing.T, names ...string) []node {
	t.Helper()
	if len(names) == 0 {
		return []node{n}
	}
	space := "urn:dashif:org:cpix"
	if strings.HasPrefix(names[0], "X509") {
		space = "http://www.w3.org/2000/09/xmldsig#"
	}
	var found []node
	for _, c := range n.Nodes {
		if c.XMLName.Local == names[0] {
			if c.XMLName.Space != space {
				t.Errorf("%s is in the namespace %q", names[0], c.XMLName.Space)
			}
			found = append(found, c.all(t, names[1:]...)...)
		}
	}
	return found
}

// provider is a key provider, written after the documents of SPEKE 2.0 and CPIX 2.3 and not after what is tested here.
type provider struct {
	t        *testing.T
	rename   bool // key IDs
	keys     map[string][]byte
	document []byte // what it was asked
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func uuid(b []byte) string {
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 {
		t.Fatalf("%q is no UUID", text)
	}
	return b
}

// respond fills a document as a provider does.
func (p *provider) respond(request []byte) string {
	t := p.t
	t.Helper()
	p.document = request
	var doc node
	if err := xml.Unmarshal(request, &doc); err != nil { //nolint:musttag // any element
		t.Fatal(err)
	}
	if doc.XMLName.Local != "CPIX" || doc.XMLName.Space != "urn:dashif:org:cpix" || doc.attr("version") != "2.3" ||
		doc.attr("contentId") == "" {
		t.Fatalf("asked by %v %v", doc.XMLName, doc.Attrs)
	}
	var b strings.Builder
	scheme := ""
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` +
		"\n<!-- filled --><cpix:CPIX xmlns:cpix=\"urn:dashif:org:cpix\" " +
		"xmlns:pskc=\"urn:ietf:params:xml:ns:keyprov:pskc\" " +
		"xmlns:enc=\"http://www.w3.org/2001/04/xmlenc#\" xmlns:ds=\"http://www.w3.org/2000/09/xmldsig#\" " +
		"version=\"2.3\" contentId=\"" + strings.ReplaceAll(doc.attr("contentId"), "<", "&lt;") + "\">\n")
	value := func(key []byte) string { return "<pskc:PlainValue>" + b64(key) + "</pskc:PlainValue>" }
	if to := doc.all(t, "DeliveryDataList", "DeliveryData", "DeliveryKey", "X509Data",
		"X509Certificate"); len(to) == 1 {
		value = p.deliver(&b, to[0].Text)
	}
	names := map[string]string{}
	p.keys = map[string][]byte{}
	b.WriteString("<cpix:ContentKeyList>\n")
	for _, k := range doc.all(t, "ContentKeyList", "ContentKey") {
		kid := k.attr("kid")
		names[kid] = kid
		if p.rename {
			names[kid] = uuid(random(16))
		}
		key := random(16)
		p.keys[names[kid]], scheme = key, k.attr("commonEncryptionScheme")
		fmt.Fprintf(&b,
			"<cpix:ContentKey kid=%q "+
				"commonEncryptionScheme=%q><cpix:Data><pskc:Secret>%s</pskc:Secret></cpix:Data></cpix:ContentKey>\n",
			names[kid], k.attr("commonEncryptionScheme"), value(key))
	}
	b.WriteString("</cpix:ContentKeyList><cpix:DRMSystemList>\n")
	for _, s := range doc.all(t, "DRMSystemList", "DRMSystem") {
		system, kid := s.attr("systemId"), names[s.attr("kid")]
		fmt.Fprintf(&b, "<cpix:DRMSystem kid=%q systemId=%q>", kid, system)
		if len(s.all(t, "PSSH")) == 1 {
			box := append([]byte{0, 0, 0, 40, 'p', 's', 's', 'h', 0, 0, 0, 0}, unhex(t, system)...)
			b.WriteString("<cpix:PSSH>\n" + b64(append(box, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8)) +
				"\n</cpix:PSSH><cpix:ContentProtectionData>PHg+</cpix:ContentProtectionData>")
		}
		for _, h := range s.all(t, "HLSSignalingData") {
			tag := map[string]string{"media": "#EXT-X-KEY:", "master": "#EXT-X-SESSION-KEY:"}[h.attr("playlist")]
			fmt.Fprintf(&b, "<cpix:HLSSignalingData playlist=%q>%s</cpix:HLSSignalingData>", h.attr("playlist"),
				b64([]byte(tag+keyLine(kid, scheme)+"\n")))
		}
		b.WriteString("</cpix:DRMSystem>\n")
	}
	b.WriteString("</cpix:DRMSystemList><cpix:ContentKeyUsageRuleList>\n")
	for _, r := range doc.all(t, "ContentKeyUsageRuleList", "ContentKeyUsageRule") {
		if len(r.all(t, "VideoFilter"))+len(r.all(t, "AudioFilter")) != 1 {
			t.Errorf("a rule has no filter")
		}
		fmt.Fprintf(&b, "<cpix:ContentKeyUsageRule kid=%q intendedTrackType=%q/>\n", names[r.attr("kid")],
			r.attr("intendedTrackType"))
	}
	return b.String() + "</cpix:ContentKeyUsageRuleList></cpix:CPIX>\n"
}

// keyLine is what the provider says to players of a key.
func keyLine(kid, scheme string) string {
	return "METHOD=" + map[string]string{"cbcs": "SAMPLE-AES", "cenc": "SAMPLE-AES-CTR"}[scheme] + `,URI="skd://` +
		kid + `",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`
}

// deliver makes a document key for a certificate, and what encrypts keys with it.
func (p *provider) deliver(b *strings.Builder, certificate string) func(key []byte) string {
	p.t.Helper()
	der, err := base64.StdEncoding.DecodeString(certificate)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil || time.Now().After(c.NotAfter) {
		p.t.Fatal(err)
	}
	public, _ := c.PublicKey.(*rsa.PublicKey)
	wrap := func(key []byte) string {
		sealed, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public, key, nil)
		if err != nil {
			p.t.Fatal(err)
		}
		return `<enc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p"/><enc:CipherData><enc:CipherValue>` + b64(sealed) + "</enc:CipherValue></enc:CipherData>"
	}
	document, mac := random(32), random(64)
	fmt.Fprintf(b,
		`<cpix:DeliveryDataList><cpix:DeliveryData id="x"><cpix:DeliveryKey/><cpix:DocumentKey Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc"><cpix:Data><pskc:Secret>`+
			`<pskc:EncryptedValue>%s</pskc:EncryptedValue></pskc:Secret></cpix:Data></cpix:DocumentKey><cpix:MACMethod Algorithm="http://www.w3.org/2001/04/xmldsig-more#hmac-sha512"><cpix:Key>%s</cpix:Key></cpix:MACMethod></cpix:DeliveryData></cpix:DeliveryDataList>`, wrap(document), wrap(mac))
	return func(key []byte) string {
		block, _ := aes.NewCipher(document)
		sealed := random(16)
		padded := append(bytes.Clone(key), bytes.Repeat([]byte{16}, 16)...)
		out := make([]byte, len(padded))
		cipher.NewCBCEncrypter(block, sealed).CryptBlocks(out, padded)
		sealed = append(sealed, out...)
		h := hmac.New(sha512.New, mac)
		h.Write(sealed)
		return `<pskc:EncryptedValue><enc:EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes256-cbc"/><enc:CipherData><enc:CipherValue>` + b64(sealed) +
			"</enc:CipherValue></enc:CipherData></pskc:EncryptedValue><pskc:ValueMAC>" + b64(h.Sum(nil)) +
			"</pskc:ValueMAC>"
	}
}

var systems = [][16]byte{
	{0xed, 0xef, 0x8b, 0xa9, 0x79, 0xd6, 0x4a, 0xce, 0xa3, 0xc8, 0x27, 0xdc, 0xd5, 0x1d, 0x21, 0xed},
	{0x94, 0xce, 0x86, 0xfb, 0x07, 0xff, 0x4f, 0x43, 0xad, 0xb8, 0x93, 0xd2, 0xfa, 0x96, 0x8c, 0xa2},
}

func request(tracks ...string) cpix.Request {
	r := cpix.Request{ContentID: "asset<1>", Scheme: "cbcs", Systems: systems, Period: -1}
	for _, t := range tracks {
		r.Keys = append(r.Keys, cpix.Key{ID: [16]byte(random(16)), IV: [16]byte(random(16)), Track: t})
	}
	return r
}

// TestExchange: a provider that speaks the documents of the specifications is understood, with its own key IDs and with
// encrypted keys.
func TestExchange(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rename, encrypted bool
		period            int
		tracks            []string
	}{
		"one key":     {tracks: []string{"VIDEO"}, period: -1},
		"by class":    {tracks: []string{"SD", "HD", "UHD1", "AUDIO"}, period: -1},
		"its own IDs": {tracks: []string{"VIDEO", "AUDIO"}, rename: true, period: -1},
		"encrypted":   {tracks: []string{"VIDEO", "AUDIO"}, encrypted: true, rename: true, period: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, p := request(tt.tracks...), &provider{t: t, rename: tt.rename}
			r.Period = tt.period
			if tt.encrypted {
				var err error
				if r.Recipient, err = cpix.NewRecipient(time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			document, err := r.Document()
			if err != nil {
				t.Fatal(err)
			}
			text := p.respond(document)
			got, err := r.Read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if tt.encrypted == strings.Contains(text, "PlainValue") ||
				tt.period >= 0 != bytes.Contains(document, []byte(`<cpix:ContentKeyPeriod id="period_3" index="3">`)) {
				t.Errorf("asked with\n%s\ngot\n%s", document, text)
			}
			if len(got.Keys) != len(tt.tracks) || len(got.Systems) != len(tt.tracks)*len(systems) {
				t.Fatalf("%d keys, %d systems", len(got.Keys), len(got.Systems))
			}
			for i, k := range got.Keys {
				if k.Track != tt.tracks[i] || k.IV != r.Keys[i].IV || (k.ID == r.Keys[i].ID) == tt.rename ||
					!bytes.Equal(p.keys[uuid(k.ID[:])], k.Value[:]) {
					t.Errorf("%s: %+v", tt.tracks[i], k)
				}
			}
			for _, s := range got.Systems {
				suffix := keyLine(uuid(s.KeyID[:]), r.Scheme)
				if s.Media != "#EXT-X-KEY:"+suffix || s.Master != "#EXT-X-SESSION-KEY:"+suffix ||
					(len(s.PSSH) == 40) != (s.ID == systems[0]) || !slices.Contains(systems, s.ID) {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// TestBadResponses: what does not fit is refused, and nothing of it is repeated.
func TestBadResponses(t *testing.T) {
	t.Parallel()
	r, p := request("VIDEO", "AUDIO"), &provider{t: t}
	document, err := r.Document()
	if err != nil {
		t.Fatal(err)
	}
	good := p.respond(document)
	if _, err = r.Read([]byte(good)); err != nil {
		t.Fatal(err)
	}
	first := uuid(r.Keys[0].ID[:])
	key := b64(p.keys[first])
	line := func(text string) string { return `playlist="media">` + b64([]byte(text)) + "<" }
	oldLine := line("#EXT-X-KEY:" + keyLine(first, "cbcs") + "\n")
	attributes := func(list string) string { return strings.Replace(good, oldLine, line("#EXT-X-KEY:"+list), 1) }
	for name, broken := range map[string]string{
		"empty": "", "HTML": "<html><body/></html>", "cut": good[:len(good)/2], "two": good + good,
		"another namespace": strings.ReplaceAll(good, "urn:dashif:org:cpix", "urn:x"),
		"short key":         strings.Replace(good, key, b64(p.keys[first][:15]), 1),
		"no base64":         strings.Replace(good, key, "!!!", 1), "no key": strings.Replace(good, key, "", 1),
		"no UUID": strings.Replace(good, "<cpix:ContentKey kid=\""+first, "<cpix:ContentKey kid=\"x",
			1),
		"another scheme":           strings.ReplaceAll(good, `"cbcs"`, `"cenc"`),
		"rule for no key":          strings.Replace(good, `Rule kid="`+first, `Rule kid="`+uuid(random(16)), 1),
		"system for no key":        strings.Replace(good, `System kid="`+first, `System kid="`+uuid(random(16)), 1),
		"PSSH of another system":   strings.Replace(good, "AAAAKHBzc2g", "AAAAKHBzc2k", 1),
		"long PSSH":                strings.Replace(good, "AAAAKHBzc2g", "AAAAKXBzc2g", 1),
		"line feed in a line":      strings.Replace(good, oldLine, line("#EXT-X-KEY:METHOD=NONE\n#EXT-X-ENDLIST"), 1),
		"another line":             strings.Replace(good, oldLine, line("#EXTINF:1,"), 1),
		"no KEYFORMAT":             attributes(`METHOD=SAMPLE-AES,URI="skd://x"`),
		"identity":                 attributes(`METHOD=SAMPLE-AES,URI="x",KEYFORMAT="identity"`),
		"KEYFORMAT inside a text":  attributes(`METHOD=SAMPLE-AES,URI="x,KEYFORMAT=y"`),
		"KEYFORMAT twice":          attributes(keyLine(first, "cbcs") + `,KEYFORMAT="identity"`),
		"KEYFORMAT of nothing":     attributes(`METHOD=SAMPLE-AES,URI="x",KEYFORMAT=""`),
		"KEYFORMAT without quotes": attributes(`METHOD=SAMPLE-AES,URI="x",KEYFORMAT=x`),
		"METHOD of another scheme": attributes(strings.Replace(keyLine(first, "cbcs"), "AES", "AES-CTR", 1)),
		"METHOD NONE":              attributes("METHOD=NONE"), "no METHOD": attributes(`URI="x",KEYFORMAT="x"`),
		"METHOD of whole segments": attributes(`METHOD=AES-128,URI="x",KEYFORMAT="x"`),
		"text that does not end":   attributes(`METHOD=SAMPLE-AES,KEYFORMAT="x`),
		"no attributes":            attributes("SAMPLE-AES"),
		"entities":                 `<!DOCTYPE x [<!ENTITY a "aaaa">]>` + strings.Replace(good, key, "&a;", 1),
		"huge":                     strings.Repeat(" ", 1<<20) + good,
	} {
		if broken == good {
			t.Fatalf("%s: nothing is changed", name)
		}
		if got, failed := r.Read([]byte(broken)); failed == nil || strings.Contains(failed.Error(), key) ||
			strings.Contains(failed.Error(), first) {
			t.Errorf("%s: %+v, %v", name, got, failed)
		}
	}
	other := r
	other.Scheme = "cenc"
	if document, err = other.Document(); err != nil {
		t.Fatal(err)
	}
	if _, err = other.Read([]byte(p.respond(document))); err != nil {
		t.Errorf("cenc: %v", err)
	}
	if r.Recipient, err = cpix.NewRecipient(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err = r.Read([]byte(good)); err == nil {
		t.Error("keys in clear are taken although they were to be encrypted")
	}
	if document, err = r.Document(); err != nil {
		t.Fatal(err)
	}
	sealed := p.respond(document)
	i := strings.Index(sealed, "<pskc:ValueMAC>") + len("<pskc:ValueMAC>")
	if _, err = r.Read([]byte(sealed[:i] + "AAAA" + sealed[i+4:])); err == nil {
		t.Error("a wrong MAC is taken")
	}
	if r.Recipient, err = cpix.NewRecipient(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err = r.Read([]byte(sealed)); err == nil {
		t.Error("a document for another recipient is taken")
	}
}

func FuzzRead(f *testing.F) {
	r := request("VIDEO")
	document, err := r.Document()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(document)
	kid := uuid(r.Keys[0].ID[:])
	f.Add(
		[]byte(
			`<CPIX xmlns="urn:dashif:org:cpix" xmlns:p="urn:ietf:params:xml:ns:keyprov:pskc"><ContentKeyList><ContentKey kid="` + kid + `"><Data><p:Secret><p:PlainValue>AAAAAAAAAAAAAAAAAAAAAA==</p:PlainValue>` +
				`</p:Secret></Data></ContentKey></ContentKeyList><DRMSystemList><DRMSystem kid="` + kid +
				`" systemId="` + uuid(systems[1][:]) +
				`"><HLSSignalingData playlist="media">I0VYVC1YLUtFWTpN</HLSSignalingData></DRMSystem></DRMSystemList></CPIX>`))
	f.Fuzz(func(t *testing.T, document []byte) {
		got, err := r.Read(document)
		if err == nil && (len(got.Keys) != 1 || got.Keys[0].Track != "VIDEO") {
			t.Errorf("%+v", got)
		}
		for _, s := range got.Systems {
			if strings.ContainsAny(s.Media+s.Master, "\r\n") {
				t.Errorf("%q", s)
			}
		}
	})
}
