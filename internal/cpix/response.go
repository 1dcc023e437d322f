package cpix

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// responseDocument is what is read of a response. Its elements are those of CPIX, PSKC (RFC 6030) and XML Encryption,
// whose names do not collide; the namespace of the root says that it is CPIX.
type responseDocument struct {
	XMLName  xml.Name           `xml:"urn:dashif:org:cpix CPIX"`
	Delivery []responseDelivery `xml:"DeliveryDataList>DeliveryData"`
	Keys     []responseKey      `xml:"ContentKeyList>ContentKey"`
	Systems  []responseSystem   `xml:"DRMSystemList>DRMSystem"`
	Rules    []responseRule     `xml:"ContentKeyUsageRuleList>ContentKeyUsageRule"`
}

type responseDelivery struct {
	DocumentKey secret       `xml:"DocumentKey>Data>Secret"`
	MACKey      cipheredText `xml:"MACMethod>Key"`
}

type responseKey struct {
	KeyID  string `xml:"kid,attr"`
	IV     string `xml:"explicitIV,attr"`
	Scheme string `xml:"commonEncryptionScheme,attr"`
	Secret secret `xml:"Data>Secret"`
}

type secret struct {
	Plain     string       `xml:"PlainValue"`
	Encrypted cipheredText `xml:"EncryptedValue"`
	MAC       string       `xml:"ValueMAC"`
}

type cipheredText struct {
	Value string `xml:"CipherData>CipherValue"`
}

type responseSystem struct {
	KeyID    string `xml:"kid,attr"`
	SystemID string `xml:"systemId,attr"`
	PSSH     string `xml:"PSSH"`
	HLS      []struct {
		Playlist string `xml:"playlist,attr"`
		Data     string `xml:",chardata"`
	} `xml:"HLSSignalingData"`
}

type responseRule struct {
	KeyID string `xml:"kid,attr"`
	Track string `xml:"intendedTrackType,attr"`
}

// Read reads the response to a request. Its errors repeat nothing of it.
func (r Request) Read(document []byte) (Response, error) {
	if len(document) > maxDocument {
		return Response{}, fmt.Errorf("the document has more than %d bytes", maxDocument)
	}
	var doc responseDocument
	dec := xml.NewDecoder(bytes.NewReader(document))
	if err := dec.Decode(&doc); err != nil {
		return Response{}, errors.New("it is no CPIX document")
	}
	if err := atEnd(dec); err != nil {
		return Response{}, err
	}
	if len(doc.Keys) > maxKeys || len(doc.Systems) > maxKeys*len(r.Systems)+maxKeys {
		return Response{}, fmt.Errorf("it has more than %d keys", maxKeys)
	}
	open, err := r.Recipient.opener(doc.Delivery)
	if err != nil {
		return Response{}, err
	}
	known := map[[16]byte]Key{}
	for _, k := range doc.Keys {
		key, bad := k.read(r.Scheme, open)
		if bad != nil {
			return Response{}, bad
		}
		known[key.ID] = key
	}
	keys, err := r.byTrack(doc.Rules, known)
	if err != nil {
		return Response{}, err
	}
	out := Response{Keys: keys}
	for _, s := range doc.Systems {
		system, bad := s.read(r.Scheme)
		if bad != nil {
			return Response{}, bad
		}
		if _, ours := known[system.KeyID]; !ours {
			return Response{}, errors.New("a DRM system names a key that is not there")
		}
		out.Systems = append(out.Systems, system)
	}
	return out, nil
}

// atEnd reports whether nothing but space and comments follows.
func atEnd(dec *xml.Decoder) error {
	for {
		t, err := dec.Token()
		if err == io.EOF { //nolint:errorlint // exactly this value is the end
			return nil
		}
		if err != nil {
			return errors.New("it is no CPIX document to its end")
		}
		if _, is := t.(xml.StartElement); is {
			return errors.New("there is more than one document")
		}
	}
}

// byTrack returns the key of each track type of the request. Where the provider has other key IDs, its rules say what
// they are for.
func (r Request) byTrack(rules []responseRule, known map[[16]byte]Key) ([]Key, error) {
	keys := make([]Key, 0, len(r.Keys))
	for _, wanted := range r.Keys {
		key, found := known[wanted.ID]
		for _, rule := range rules {
			if rule.Track != wanted.Track {
				continue
			}
			kid, err := parseUUID(rule.KeyID)
			if err != nil {
				return nil, err
			}
			if key, found = known[kid]; !found {
				return nil, errors.New("a usage rule names a key that is not there")
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no key for the track type %s", wanted.Track)
		}
		if key.IV == ([16]byte{}) {
			key.IV = wanted.IV
		}
		key.Track = wanted.Track
		keys = append(keys, key)
	}
	return keys, nil
}

func (r responseKey) read(scheme string, open func(secret) ([]byte, error)) (key Key, err error) {
	if key.ID, err = parseUUID(r.KeyID); err != nil {
		return key, err
	}
	if r.Scheme != "" && r.Scheme != scheme {
		return key, errors.New("a key is for another encryption scheme")
	}
	value, err := open(r.Secret)
	if err != nil {
		return key, err
	}
	if len(value) != len(key.Value) {
		return key, errors.New("a key does not have 16 bytes")
	}
	key.Value = [16]byte(value)
	if r.IV == "" {
		return key, nil
	}
	iv, err := decode(r.IV)
	if err != nil || len(iv) != len(key.IV) {
		return key, errors.New("an IV (explicitIV) does not have 16 bytes in base64")
	}
	key.IV = [16]byte(iv)
	return key, nil
}

func (rs responseSystem) read(scheme string) (out System, err error) {
	if out.ID, err = parseUUID(rs.SystemID); err != nil {
		return out, err
	}
	if out.KeyID, err = parseUUID(rs.KeyID); err != nil {
		return out, err
	}
	if rs.PSSH != "" {
		if out.PSSH, err = decode(rs.PSSH); err != nil || !isPSSH(out.PSSH, out.ID) {
			return out, errors.New("a PSSH is not the base64 of a box pssh of its system")
		}
	}
	for _, h := range rs.HLS {
		into, tag := &out.Media, "#EXT-X-KEY:"
		if h.Playlist == "master" {
			into, tag = &out.Master, "#EXT-X-SESSION-KEY:"
		}
		if strings.TrimSpace(h.Data) == "" {
			continue
		}
		line, err := decode(h.Data)
		text := strings.TrimRight(string(line), "\r\n")
		control := func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }
		if err != nil || !strings.HasPrefix(text, tag) || len(text) > maxLine || strings.ContainsFunc(text, control) {
			return out, fmt.Errorf("HLSSignalingData is not the base64 of one line %s…", tag)
		}
		if err = checkKeyLine(text[len(tag):], scheme); err != nil {
			return out, err
		}
		*into = text
	}
	return out, nil
}

// isPSSH reports whether b is one box of a system, ISO/IEC 23001-7 section 8.1.
func isPSSH(b []byte, system [16]byte) bool {
	const least = 28
	return len(b) >= least && len(b) <= maxPSSH && uint64(binary.BigEndian.Uint32(b)) == uint64(len(b)) &&
		string(b[4:8]) == "pssh" && [16]byte(b[12:28]) == system
}

// decode reads base64 that may be broken into lines.
func decode(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}
